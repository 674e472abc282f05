from dataclasses import replace

import numpy as np
import pytest
from policy_cases import some_theta

from iap.attention import ReLU, Softmax
from iap.policies import (
    CNN,
    LSTM,
    MLP,
    Hierarchy,
    Linear,
    Normaliser,
    Policy,
    PolicyConfig,
    Rank,
    Symmetry,
    build_policy,
    init,
    unflatten,
)
from iap.policies.symmetry import SignedOrder

# roll (odd), two sides that change places, a phase that runs from 1 down
MIRROR = Symmetry(sensors=(-1, 3, 2, -4), actions=(-1, 3, 2), offsets=(0.0, 0.0, 0.0, 1.0))
SENSORS, ACTIONS, SHAPE = 4, 3, (16, 16, 3)
STEPS = 12


def spec_of(**options):
    return PolicyConfig(image_shape=SHAPE, sensors=SENSORS, actions=ACTIONS, mirror=MIRROR, **options)


SPECS = {
    "rank": spec_of(encoder=Rank(patch=1, stride=1, order="pooled")),
    "frames": spec_of(encoder=Rank(patch=4, stride=2), frames=3),
    "cnn": spec_of(encoder=CNN(((4, 4, 2),))),
    "lstm": spec_of(encoder=Rank(patch=4, stride=4), controller=LSTM(4)),
    "two levels": spec_of(encoder=Rank(patch=2, stride=2), hierarchy=Hierarchy(high_level_sensors=False)),
}

POOLED = Rank(patch=1, stride=1, kernel=ReLU(), order="pooled", bias=True)
COMMANDED = spec_of(encoder=POOLED, hierarchy=Hierarchy(high_level_sensors=False))
TWO_LEVELS = {
    "pooled": COMMANDED,
    "pooled, feeling": replace(COMMANDED, hierarchy=Hierarchy(latent_size=3)),
    "pooled patches": replace(COMMANDED, encoder=replace(POOLED, patch=4, stride=3, score_weighted=True, position_weighted=True)),
    "pooled queries": replace(COMMANDED, encoder=replace(POOLED, learn_pooling=True)),
    "many kept": replace(COMMANDED, encoder=replace(POOLED, top_k=40)),
    "sampled": replace(COMMANDED, encoder=replace(POOLED, select="sample")),
    "softmax": replace(COMMANDED, encoder=replace(POOLED, kernel=Softmax(projections=4))),
    "stored keys": replace(COMMANDED, keys_every=2),
    "frames": replace(COMMANDED, frames=2),
    "relative_to_first_frame": replace(COMMANDED, relative_to_first_frame=True),
    "frame_difference": replace(COMMANDED, preprocessing=("frame_difference",)),
    "deep high level": replace(COMMANDED, controller=MLP((3,))),
    "deep low level": replace(COMMANDED, hierarchy=Hierarchy(low=MLP((3,)))),
    "cnn": replace(COMMANDED, encoder=CNN(((4, 4, 2),))),
}


def observations(seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(STEPS):
        yield {
            "image": rng.integers(0, 256, SHAPE, np.uint8),
            "sensors": rng.standard_normal(SENSORS).astype(np.float32),
        }


def mirrored(observation):
    return {
        "image": observation["image"][:, ::-1].copy(),
        "sensors": SignedOrder(MIRROR.sensors, MIRROR.offsets)(observation["sensors"]),
    }


def actions_of(policy, seen):
    state = policy.begin()
    actions = []
    for observation in seen:
        action, state, _ = policy.act(state, observation)
        actions.append(action)
    return np.array(actions)


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("seed", range(3))
def test_the_mirrored_observations_give_the_mirrored_actions(kind, seed):
    policy = build_policy(SPECS[kind], init(SPECS[kind], seed))
    here = actions_of(policy, observations())
    there = actions_of(policy, map(mirrored, observations()))
    order = SignedOrder(MIRROR.actions)
    np.testing.assert_allclose(there, [order(action) for action in here], rtol=0, atol=1e-5)
    assert np.abs(here).max() > 0


def test_a_policy_without_a_mirror_does_not():
    spec = SPECS["rank"]
    policy = Policy(spec, init(spec, 0))
    here, there = actions_of(policy, observations()), actions_of(policy, map(mirrored, observations()))
    assert not np.allclose(there, [SignedOrder(MIRROR.actions)(action) for action in here], atol=1e-4)


def test_attention_of_both_worlds_is_shown_in_this_one():
    spec = SPECS["rank"]
    policy = build_policy(spec, init(spec, 1))
    [observation, *_] = observations()
    _, _, here = policy.act(policy.begin(), observation)
    _, _, there = policy.act(policy.begin(), mirrored(observation))
    assert here is not None
    assert there is not None
    rows, columns = np.divmod(there.selected, 16)
    assert set(here.selected) == set(rows * 16 + 15 - columns)
    assert len(set(here.selected)) == len(here.selected) >= Rank().top_k
    flipped = there.scores.reshape(16, 16)[:, ::-1].ravel()
    np.testing.assert_allclose(here.scores, flipped, rtol=1e-6)


def test_both_worlds_look_at_the_same_steps():
    spec = SPECS["two levels"]
    policy = build_policy(spec, init(spec, 2))
    state = policy.begin()
    wanted = []
    for observation in observations():
        wanted.append(policy.needs_image(state))
        given = observation if wanted[-1] else observation | {"image": None}
        _, state, _ = policy.act(state, given)
    assert wanted[0]
    assert not all(wanted)


@pytest.mark.parametrize("kind", TWO_LEVELS)
@pytest.mark.parametrize("as_floats", [False, True])
def test_it_does_what_a_policy_does_in_each_world(kind, as_floats):
    """However many of its steps are one compiled call for both worlds."""
    spec = TWO_LEVELS[kind]
    params = unflatten(spec, some_theta(spec, 4) / 4)  # so that holds are neither all short nor all long
    gathered = Normaliser.of(np.random.default_rng(1).standard_normal((9, spec.inputs_size)))
    both, one = build_policy(spec, params, gathered), Policy(spec, params, gathered)
    state, here, there = both.begin(3), one.begin(3), one.begin(3)
    for seen in observations(5):
        observation = seen | {"image": (seen["image"] / 255).astype(np.float32)} if as_floats else seen
        action, state, attention = both.act(state, observation)
        action_here, here, seen_here = one.act(here, observation)
        action_there, there, seen_there = one.act(there, mirrored(observation))
        hold = (here.hold + there.hold) // 2
        here, there = here._replace(hold=hold), there._replace(hold=hold)
        np.testing.assert_array_equal(action, (action_here + SignedOrder(MIRROR.actions)(action_there)) / 2)
        for ours, theirs in zip((*state.here, *state.there), (*here, *there), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        if seen_here is None or seen_there is None or attention is None:
            assert attention is seen_here is seen_there is None
        else:
            columns = seen_here.grid.columns
            rows, places = np.divmod(seen_there.selected, columns)
            assert set(attention.selected) == {*seen_here.selected, *(rows * columns + columns - 1 - places)}
            assert attention[2:] == seen_here[2:]
            scores = seen_there.scores.reshape(-1, columns)[:, ::-1].ravel()
            np.testing.assert_array_equal(attention.scores, seen_here.scores + scores)
    assert 1 < state.here.looks < STEPS


@pytest.mark.parametrize("wrong", [{"image": None}, {"image": np.zeros((8, 8, 3), np.uint8)}, {"sensors": np.zeros(3)}])
def test_an_observation_of_another_kind_is_refused(wrong):
    policy = build_policy(COMMANDED, init(COMMANDED, 0))
    [observation, *_] = observations()
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(wrong))} must be"):
        policy.act(policy.begin(), observation | wrong)


@pytest.mark.parametrize("wrong", [{"sensors": (1, 1)}, {"sensors": (0, 1)}, {"actions": (2, 3)}])
def test_a_mirror_that_loses_numbers_is_refused(wrong):
    with pytest.raises(ValueError, match="must hold each of 1 to 2 once"):
        Symmetry(**wrong)


def test_a_mirror_of_another_robot_is_refused():
    spec = PolicyConfig(image_shape=SHAPE, sensors=5, actions=3, controller=Linear(), mirror=MIRROR)
    with pytest.raises(ValueError, match="mirror must tell of"):
        build_policy(spec, init(spec, 0))
