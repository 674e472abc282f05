"""The compiled step against the plain NumPy step."""

import numpy as np
import pytest
from config_cases import random_normaliser, random_theta
from policy_cases import CASES, observations

from iap.attention import KERNELS
from iap.policies import (
    CONTROLLERS,
    ENCODERS,
    Attention,
    AttentionAgent,
    Blind,
    Controller,
    Encoder,
    MultiHeadRank,
    Policy,
    PolicyConfig,
    Rank,
    ResidualRank,
    Trans,
)
from iap.policies.preprocessing import local_contrast, preprocess


@pytest.mark.parametrize("name", CASES)
def test_the_compiled_step_equals_the_plain_one(name):
    config, dtype = CASES[name]
    theta, normaliser = random_theta(config, 1), random_normaliser(config)
    compiled, plain = Policy(config, theta, normaliser), Policy(config, theta, normaliser, compiled=False)
    state, other = compiled.reset(seed=2), plain.reset(seed=2)
    encoded = []
    for observation in observations(config, 6, dtype=dtype):
        encoded.append(compiled.needs_image(state))
        action, state, attention = compiled.act(state, observation)
        wanted, other, wanted_attention = plain.act(other, observation)
        np.testing.assert_allclose(action, wanted, atol=1e-5)
        for field in ("inputs", "previous", "first", "hidden", "low_hidden", "latent"):
            np.testing.assert_allclose(getattr(state, field), getattr(other, field), rtol=2e-6, atol=1e-5)
        for field in ("image", "first_image", "frames", "hold_steps", "seed"):
            np.testing.assert_array_equal(getattr(state, field), getattr(other, field))
        assert (attention is None) == (wanted_attention is None)
        if attention is not None and wanted_attention is not None:
            assert_same_attention(attention, wanted_attention, config)
    assert compiled.compiled_for(np.dtype(dtype)) is not None
    assert any(encoded) or isinstance(config.encoder, Blind)
    assert not all(encoded) or config.image_every == 1


def assert_same_attention(attention: Attention, wanted: Attention, config: PolicyConfig) -> None:
    """The same patches, and scores that are equal up to one positive factor."""
    sizes = [np.abs(scores).max() for scores in (attention.scores, wanted.scores)]
    np.testing.assert_allclose(attention.scores / sizes[0], wanted.scores / sizes[1], atol=1e-4)
    if isinstance(
        config.encoder, MultiHeadRank | ResidualRank
    ):  # plain: one list for each head; compiled: merged, best first
        assert set(attention.selected) == set(wanted.selected)
        assert (np.diff(attention.scores[attention.selected]) <= 0).all()
    else:
        assert attention.selected.tolist() == wanted.selected.tolist()
    assert attention[2:] == wanted[2:]


def of_package(kinds) -> set[type]:
    """The registered classes that this package defines, without toys of other tests."""
    return {kind for kind in kinds.values() if kind.__module__.startswith("iap.")}


def test_the_cases_cover_every_registered_encoder_on_both_dtypes():
    for kind in of_package(ENCODERS):
        assert issubclass(kind, Encoder)
        dtypes = {dtype for config, dtype in CASES.values() if type(config.encoder) is kind}
        assert dtypes == {np.uint8, np.float32} or kind is Blind


def test_the_cases_cover_every_registered_controller_alone_and_as_a_low_level():
    configs = [config for config, _ in CASES.values()]
    registered = of_package(CONTROLLERS)
    assert all(issubclass(kind, Controller) for kind in registered)
    assert {type(config.controller) for config in configs} >= registered
    assert {type(config.hierarchy.low_level) for config in configs if config.hierarchy is not None} >= registered


@pytest.mark.parametrize("kind", [Rank, Trans, AttentionAgent])
def test_the_cases_cover_every_kernel(kind):
    encoders = [config.encoder for config, _ in CASES.values() if isinstance(config.encoder, kind)]
    kernels = [e.kernel for e in encoders if not isinstance(e, AttentionAgent) or e.linear]  # pyright: ignore
    names = [getattr(kernel, "features", "relu") for kernel in kernels]
    assert set(names) == set(KERNELS)


def test_a_policy_without_image_and_sensors_acts():
    config = PolicyConfig((8, 8, 3), 0, 2, encoder=Blind())
    policy = Policy(config, random_theta(config))
    action, _, _ = policy.act(policy.reset(), {"image": None, "sensors": np.zeros(0, np.float32)})
    assert action.shape == (2,)


def test_an_implementation_cannot_be_called_from_python():
    implementation = next(iter(preprocess.implementations.values()))  # pyright: ignore[reportFunctionMemberAccess]
    with pytest.raises(TypeError, match="can be called only from compiled functions"):
        implementation(0, np.zeros((2, 2, 1)), np.zeros((2, 2, 1)), np.zeros((2, 2, 1)))
    assert local_contrast(np.zeros((2, 2, 1), np.float32), 1, 0.5, 1.0).shape == (2, 2, 1)  # a plain one can
