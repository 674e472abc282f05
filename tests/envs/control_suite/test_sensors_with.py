"""The sensors that an environment with other options would return: those of a twin with these options."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from iap.envs.core import make_env
from iap.envs.protocols import PrivilegedSensors, require_protocol

CASES = {
    "walker-walk": {"proprioception": True},
    "ball_in_cup-catch": {"proprioception": True},
    "finger-spin": {"proprioception": True},
    "reacher-easy": {"keypoints": ("finger", "x of target from finger")},
    "cartpole-swingup": {"proprioception": True, "keypoints": "pole_1 from cart", "keypoint_noise": 0.0},
    "cheetah-run": {},
}
DISTRACTED = {"difficulty": 0.3, "distractions": ("camera",), "dynamic": True}


def twins(task: str, options: dict[str, Any], own: dict[str, Any]) -> tuple[Any, Any]:
    """The environment with its own sensors, and one with those of the options."""
    id = f"iap/{task}-v0"
    return make_env(id, size=(8, 8), **DISTRACTED, **own), make_env(id, size=(8, 8), **DISTRACTED, **options)


def sensors_of(observation: dict[str, np.ndarray]) -> np.ndarray:
    """The sensors; an observation without any has no such key."""
    return observation.get("sensors", np.zeros(0, np.float32))


@pytest.mark.parametrize("task", CASES)
def test_the_sensors_are_those_of_a_twin_with_these_options(task: str):
    env, twin = twins(task, CASES[task], {})
    asked = require_protocol(gymnasium.wrappers.TimeLimit(env, 100), PrivilegedSensors)
    rng = np.random.default_rng(0)
    for seed in (0, 1):
        env.reset(seed=seed)
        wanted = sensors_of(twin.reset(seed=seed)[0])
        for _ in range(4):
            sensors = asked.sensors_with(CASES[task])
            assert sensors.dtype == np.float32
            np.testing.assert_array_equal(sensors, wanted)
            action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
            env.step(action)
            wanted = sensors_of(twin.step(action)[0])
    drawn = sensors_of(twin.unwrapped.randomize_state(np.random.default_rng(2)))
    env.unwrapped.randomize_state(np.random.default_rng(2))
    np.testing.assert_array_equal(asked.sensors_with(CASES[task]), drawn)
    env.close()
    twin.close()


def test_asking_for_other_sensors_leaves_the_environments_own_alone():
    noisy = {"keypoints": ("cart",), "keypoint_noise": 0.1}
    env, twin = twins("cartpole-swingup", noisy, noisy)
    for each in (env, twin):
        each.reset(seed=3)
    for _ in range(3):
        env.unwrapped.sensors_with({"proprioception": True, "keypoints": ("cart", "pole_1")})
        push = np.ones(1, np.float32)
        np.testing.assert_array_equal(env.step(push)[0]["sensors"], twin.step(push)[0]["sensors"])
    env.close()
    twin.close()


def test_noisy_keypoints_are_refused_because_their_errors_were_not_drawn():
    env = make_env("iap/cartpole-swingup-v0", size=(8, 8))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"keypoint_noise must be 0 for the current sensors, not 0\.1"):
        env.unwrapped.sensors_with({"keypoints": ("cart",), "keypoint_noise": 0.1})  # pyright: ignore[reportAttributeAccessIssue]
    env.close()
