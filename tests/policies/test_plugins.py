"""An encoder and a controller from outside the package: registered by one line each, without compiled code."""

from pathlib import Path

import numpy as np
import pytest
from config_cases import observations, random_policy
from toys import ToyController, ToyEncoder

from iap.policies import (
    CONTROLLERS,
    ENCODERS,
    EnvReference,
    Hierarchy,
    Linear,
    Policy,
    PolicyConfig,
    Rank,
    Symmetry,
    count_params,
    describe,
    from_json,
    init,
    to_json,
)

SHAPE = (12, 16, 2)
CONFIGS = {
    "toy encoder": PolicyConfig(SHAPE, 3, 2, encoder=ToyEncoder(), controller=Linear()),
    "toy controller": PolicyConfig(SHAPE, 3, 2, encoder=Rank(2, 2, top_k=3), controller=ToyController(0.5)),
    "both": PolicyConfig(SHAPE, 3, 2, encoder=ToyEncoder(), controller=ToyController()),
    "hierarchy": PolicyConfig(
        SHAPE, 3, 2, encoder=ToyEncoder(), controller=ToyController(), hierarchy=Hierarchy(low_level=ToyController(0.5))
    ),
    "options": PolicyConfig(
        SHAPE,
        3,
        2,
        encoder=ToyEncoder(),
        controller=ToyController(),
        frames=3,
        preprocessing=("image", "frame_difference"),
        relative_to_first_frame=True,
        image_every=2,
    ),
    "symmetry": PolicyConfig(
        SHAPE, 3, 2, encoder=ToyEncoder(), controller=ToyController(), symmetry=Symmetry((1, 3, 2), (-1, 2))
    ),
}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are registered during a test only."""
    for registry in (ENCODERS, CONTROLLERS):
        assert len(registry) > 0  # entry points are loaded once
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    ENCODERS.register("toy-encoder", ToyEncoder)
    CONTROLLERS.register("toy-controller", ToyController)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_registered_plugin_acts_is_saved_loaded_and_described(config: PolicyConfig, tmp_path: Path):
    policy = Policy(config, init(config, 0), env=EnvReference("CarRacing-v3", {}))
    assert policy.compiled_for(np.dtype(np.uint8)) is None
    policy.save(tmp_path / "policy.npz")
    loaded = Policy.load(tmp_path / "policy.npz")
    assert loaded.config == config
    assert from_json(to_json(config)) == config
    state, other = policy.reset(), loaded.reset()
    for observation in observations(config, 5):
        action, state, _ = policy.act(state, observation)
        again, other, _ = loaded.act(other, observation)
        np.testing.assert_array_equal(action, again)
        assert action.shape == (2,)
        assert action.dtype == np.float32
        assert np.abs(action).max() <= 1
        assert np.isfinite(state.inputs).all()
    description = describe(config)
    assert description.total == count_params(config) == len(policy.theta)
    assert {row.part for row in description.rows} == set(config.param_specs())


def test_the_toy_encoder_gives_the_mean_colour_of_each_quadrant():
    config = CONFIGS["both"]
    policy = random_policy(config, compiled=True)
    (observation,) = observations(config, 1)
    _, state, attention = policy.act(policy.reset(), observation)
    quadrants = (observation["image"] / 255 - 0.5).reshape(2, 6, 2, 8, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(state.inputs[:8], quadrants.ravel() * policy.params["encoder"]["gain"], atol=1e-6)
    assert attention is None


def test_a_config_with_an_unregistered_class_cannot_be_written():
    class Unregistered(ToyEncoder):
        """Of no registered name."""

    with pytest.raises(TypeError, match="Unregistered is not registered"):
        to_json(PolicyConfig(SHAPE, 3, 2, encoder=Unregistered()))
