import numpy as np
import pytest

from iap.policies import CNN, LSTM, Linear, Mirror, Policy, PolicySpec, Rank, TwoLevel, init, policy_of
from iap.policies.mirrored import SignedOrder

# roll (odd), two sides that change places, a phase that runs from 1 down
MIRROR = Mirror(sensors=(-1, 3, 2, -4), actions=(-1, 3, 2), offsets=(0.0, 0.0, 0.0, 1.0))
SENSORS, ACTIONS, SHAPE = 4, 3, (16, 16, 3)
STEPS = 12


def spec_of(**options):
    return PolicySpec(image_shape=SHAPE, sensors=SENSORS, actions=ACTIONS, mirror=MIRROR, **options)


SPECS = {
    "rank": spec_of(vision=Rank(patch=1, stride=1, order="pooled")),
    "frames": spec_of(vision=Rank(patch=4, stride=2), frames=3),
    "cnn": spec_of(vision=CNN(((4, 4, 2),))),
    "lstm": spec_of(vision=Rank(patch=4, stride=4), controller=LSTM(4)),
    "two levels": spec_of(vision=Rank(patch=2, stride=2), level=TwoLevel(senses=False)),
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
    policy = policy_of(SPECS[kind], init(SPECS[kind], seed))
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
    policy = policy_of(spec, init(spec, 1))
    [observation, *_] = observations()
    _, _, here = policy.act(policy.begin(), observation)
    _, _, there = policy.act(policy.begin(), mirrored(observation))
    assert here is not None
    assert there is not None
    rows, columns = np.divmod(there.chosen, 16)
    assert set(here.chosen) == set(rows * 16 + 15 - columns)
    assert len(set(here.chosen)) == len(here.chosen) >= Rank().keep
    flipped = there.scores.reshape(16, 16)[:, ::-1].ravel()
    np.testing.assert_allclose(here.scores, flipped, rtol=1e-6)


def test_both_worlds_look_at_the_same_steps():
    spec = SPECS["two levels"]
    policy = policy_of(spec, init(spec, 2))
    state = policy.begin()
    wanted = []
    for observation in observations():
        wanted.append(policy.wants_image(state))
        given = observation if wanted[-1] else observation | {"image": None}
        _, state, _ = policy.act(state, given)
    assert wanted[0]
    assert not all(wanted)


@pytest.mark.parametrize("wrong", [{"sensors": (1, 1)}, {"sensors": (0, 1)}, {"actions": (2, 3)}])
def test_a_mirror_that_loses_numbers_is_refused(wrong):
    with pytest.raises(ValueError, match="must hold each of 1 to 2 once"):
        Mirror(**wrong)


def test_a_mirror_of_another_robot_is_refused():
    spec = PolicySpec(image_shape=SHAPE, sensors=5, actions=3, controller=Linear(), mirror=MIRROR)
    with pytest.raises(ValueError, match="mirror must tell of"):
        policy_of(spec, init(spec, 0))
