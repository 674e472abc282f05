"""Policies that are equivariant under a reflection of left and right."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from config_cases import observations, random_normaliser, random_theta

from iap.attention import ReLU, Softmax
from iap.policies import (
    CNN,
    LSTM,
    MLP,
    Hierarchy,
    Policy,
    PolicyConfig,
    PooledMoments,
    Rank,
    Symmetry,
    init,
    unflatten,
)
from iap.policies.symmetry import SignedPermutation

# A roll angle that changes sign, two sides that are exchanged, a phase that is counted down from 1.
SYMMETRY = Symmetry(sensors=(-1, 3, 2, -4), actions=(-1, 3, 2), offsets=(0.0, 0.0, 0.0, 1.0))
SENSORS, ACTIONS, SHAPE = 4, 3, (16, 16, 2)
STEPS = 12
REFLECT_ACTION = SignedPermutation(SYMMETRY.actions)


def config_of(**options: Any) -> PolicyConfig:
    return PolicyConfig(image_shape=SHAPE, sensors=SENSORS, actions=ACTIONS, symmetry=SYMMETRY, **options)


POOLED = Rank(patch=2, stride=2, kernel=ReLU(), features=PooledMoments(), bias=True)
CONFIGS = {
    "rank": config_of(encoder=replace(POOLED, bias=False)),
    "frames": config_of(encoder=Rank(patch=4, stride=2), frames=3),
    "cnn": config_of(encoder=CNN(((4, 4, 2),))),
    "lstm": config_of(encoder=Rank(patch=4, stride=4), controller=LSTM(4)),
    "hierarchy": config_of(encoder=Rank(patch=2, stride=2), hierarchy=Hierarchy(high_level_sensors=False)),
}
HIERARCHY = config_of(encoder=POOLED, hierarchy=Hierarchy(high_level_sensors=False))
ALL_WEIGHTS = PooledMoments(score_weighted=True, position_weighted=True)
HIERARCHIES = {
    "pooled": HIERARCHY,
    "high-level sensors": replace(HIERARCHY, hierarchy=Hierarchy(latent_size=3)),
    "large patches": replace(HIERARCHY, encoder=replace(POOLED, patch=4, stride=3, features=ALL_WEIGHTS)),
    "learnt pooling": replace(HIERARCHY, encoder=replace(POOLED, learn_pooling=True)),
    "many patches": replace(HIERARCHY, encoder=replace(POOLED, top_k=40)),
    "sampled": replace(HIERARCHY, encoder=replace(POOLED, select="sample")),
    "softmax": replace(HIERARCHY, encoder=replace(POOLED, kernel=Softmax(projections=4))),
    "stored keys": replace(HIERARCHY, encoder=replace(POOLED, keys_every=2)),
    "frames": replace(HIERARCHY, frames=2),
    "relative to the first frame": replace(HIERARCHY, relative_to_first_frame=True),
    "frame difference": replace(HIERARCHY, preprocessing=("frame_difference",)),
    "deep high level": replace(HIERARCHY, controller=MLP((3,))),
    "deep low level": replace(HIERARCHY, hierarchy=Hierarchy(low_level=MLP((3,)))),
    "cnn": replace(HIERARCHY, encoder=CNN(((4, 4, 2),))),
}
PLAIN_CASES = [(name, dtype, False) for name in HIERARCHIES for dtype in (np.uint8, np.float32)]
COMPILED_CASES = [(name, np.uint8, True) for name in ("pooled", "high-level sensors", "frames", "learnt pooling")]


def episode(seed: int = 0, dtype: Any = np.uint8) -> list[dict[str, np.ndarray]]:
    drawn = observations(HIERARCHY, STEPS, seed)
    if dtype == np.uint8:
        return drawn
    return [observation | {"image": (observation["image"] / 255).astype(dtype)} for observation in drawn]


def reflected(observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        "image": observation["image"][:, ::-1].copy(),
        "sensors": SignedPermutation(SYMMETRY.sensors, SYMMETRY.offsets)(observation["sensors"]),
    }


def actions_of(policy: Policy, seen: Iterable[dict[str, np.ndarray]]) -> np.ndarray:
    state, actions = policy.reset(), []
    for observation in seen:
        action, state, _ = policy.act(state, observation)
        actions.append(action)
    return np.array(actions)


@pytest.mark.parametrize(("name", "compiled"), [*((name, False) for name in CONFIGS), ("rank", True), ("cnn", True)])
@pytest.mark.parametrize("seed", range(3))
def test_reflected_observations_give_reflected_actions(name: str, seed: int, compiled: bool):
    policy = Policy(CONFIGS[name], init(CONFIGS[name], seed), compiled=compiled)
    actions = actions_of(policy, episode())
    others = actions_of(policy, map(reflected, episode()))
    np.testing.assert_allclose(others, [REFLECT_ACTION(action) for action in actions], rtol=0, atol=1e-5)
    assert np.abs(actions).max() > 0


def test_a_policy_without_symmetry_is_not_equivariant():
    config = replace(CONFIGS["rank"], symmetry=None)
    policy = Policy(config, init(config, 0), compiled=False)
    actions, others = actions_of(policy, episode()), actions_of(policy, map(reflected, episode()))
    assert not np.allclose(others, [REFLECT_ACTION(action) for action in actions], atol=1e-4)


@pytest.mark.parametrize("compiled", [True, False])
def test_attention_on_both_images_is_in_the_coordinates_of_the_plain_one(compiled: bool):
    config = CONFIGS["rank"]
    policy = Policy(config, init(config, 1), compiled=compiled)
    observation = episode()[0]
    _, _, attention = policy.act(policy.reset(), observation)
    _, _, other = policy.act(policy.reset(), reflected(observation))
    assert attention is not None
    assert other is not None
    rows, columns = np.divmod(other.selected, 8)
    assert set(attention.selected) == set(rows * 8 + 7 - columns)
    assert len(set(attention.selected)) == len(attention.selected) >= Rank().top_k
    flipped = other.scores.reshape(8, 8)[:, ::-1].ravel()
    np.testing.assert_allclose(attention.scores, flipped, rtol=1e-6)


def test_both_images_are_encoded_at_the_same_steps():
    config = CONFIGS["hierarchy"]
    policy = Policy(config, init(config, 2), compiled=False)
    state: Any = policy.reset()
    needed = []
    for observation in episode():
        needed.append(policy.needs_image(state))
        given = observation if needed[-1] else observation | {"image": None}
        _, state, _ = policy.act(state, given)
        assert state.plain.hold_steps == state.mirrored.hold_steps == state.hold_steps
    assert needed[0]
    assert not all(needed)


@pytest.mark.parametrize(("name", "dtype", "compiled"), PLAIN_CASES + COMPILED_CASES)
def test_a_symmetric_policy_is_the_mean_of_the_plain_policy_on_both_observations(name: str, dtype: Any, compiled: bool):
    config = HIERARCHIES[name]
    params = unflatten(config, random_theta(config, 7) / 4)  # so that commands are neither all short nor all long
    normaliser = random_normaliser(config, 1)
    both = Policy(config, params, normaliser, compiled=compiled)
    one = Policy(replace(config, symmetry=None), params, normaliser, compiled=compiled)
    state: Any
    plain: Any
    mirrored: Any
    state, plain, mirrored = both.reset(3), one.reset(3), one.reset(3)
    for observation in episode(5, dtype):
        action, state, attention = both.act(state, observation)
        plain_action, plain, plain_attention = one.act(plain, observation)
        other_action, mirrored, other_attention = one.act(mirrored, reflected(observation))
        hold_steps = (plain.hold_steps + mirrored.hold_steps) // 2
        plain, mirrored = plain._replace(hold_steps=hold_steps), mirrored._replace(hold_steps=hold_steps)
        np.testing.assert_array_equal(action, (plain_action + REFLECT_ACTION(other_action)) / 2)
        for own, wanted in zip((*state.plain, *state.mirrored), (*plain, *mirrored), strict=True):
            np.testing.assert_array_equal(own, wanted)
        if attention is None or plain_attention is None or other_attention is None:
            assert attention is plain_attention is other_attention is None
            continue
        columns = attention.grid.columns
        rows, places = np.divmod(other_attention.selected, columns)
        reflected_places = rows * columns + columns - 1 - places
        assert set(attention.selected) == {*plain_attention.selected, *reflected_places}
        assert attention[2:] == plain_attention[2:]
        scores = other_attention.scores.reshape(-1, columns)[:, ::-1].ravel()
        np.testing.assert_array_equal(attention.scores, plain_attention.scores + scores)
    assert 1 < state.frames < STEPS


def test_compiled_symmetric_steps_equal_those_in_numpy():
    config = replace(HIERARCHY, frames=2)
    theta, normaliser = random_theta(config, 7) / 4, random_normaliser(config, 1)
    fast, slow = Policy(config, theta, normaliser), Policy(config, theta, normaliser, compiled=False)
    state, other = fast.reset(), slow.reset()
    for observation in episode(5):
        action, state, _ = fast.act(state, observation)
        wanted, other, _ = slow.act(other, observation)
        np.testing.assert_allclose(action, wanted, atol=1e-5)
        np.testing.assert_allclose(state.inputs, other.inputs, atol=1e-5)
        assert (state.frames, state.hold_steps, state.seed) == (other.frames, other.hold_steps, other.seed)


@pytest.mark.parametrize("wrong", [{"image": None}, {"image": np.zeros((8, 8, 3), np.uint8)}, {"sensors": np.zeros(3)}])
def test_an_observation_of_another_shape_is_refused(wrong: dict[str, Any]):
    policy = Policy(HIERARCHY, init(HIERARCHY, 0), compiled=False)
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(wrong))} must be"):
        policy.act(policy.reset(), episode()[0] | wrong)


@pytest.mark.parametrize("wrong", [{"sensors": (1, 1)}, {"sensors": (0, 1)}, {"actions": (2, 3)}])
def test_a_symmetry_that_is_no_permutation_is_refused(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match="must hold each of 1 to 2 once"):
        Symmetry(**wrong)


def test_a_symmetry_of_other_sensors_is_refused():
    config = PolicyConfig(image_shape=SHAPE, sensors=5, actions=3, symmetry=SYMMETRY)
    with pytest.raises(ValueError, match="symmetry must be of"):
        Policy(config, init(config, 0))
