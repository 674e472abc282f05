"""Environments whose reset or step does not return what it should are refused before training, with the reason."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from iap.envs.core import EnvConfig
from iap.policies import Blind, PolicyConfig
from iap.training.config import TrainConfig, fit_to_env

IMAGE = spaces.Box(0, 255, (8, 8, 3), np.uint8)
UNIT = spaces.Box(0, 1, (8, 8, 3), np.float32)
UNIT_ACTION = spaces.Box(-1, 1, (2,), np.float32)
ZEROS = np.zeros((8, 8, 3), np.uint8)
STEPPED = (ZEROS, 0.0, False, False, {})


class Returns(gymnasium.Env):
    """An environment that returns anything."""

    def __init__(self, observes: spaces.Space = IMAGE, acts: spaces.Space = UNIT_ACTION, **returned: Any) -> None:
        self.observation_space, self.action_space, self._returned = observes, acts, returned

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._returned.get("reset", (self._returned.get("shows", ZEROS), {}))

    def step(self, action):
        return self._returned.get("step", (self._returned.get("shows", ZEROS), 0.0, False, False, {}))


def fit(**options: Any) -> TrainConfig:
    env = EnvConfig.from_factory(lambda: Returns(**options))
    return fit_to_env(TrainConfig(env, PolicyConfig((8, 8, 3), 0, 2, encoder=Blind())))


def sensed(values: Any) -> dict[str, Any]:
    space = spaces.Dict(image=IMAGE, joints=spaces.Box(-1, 1, (2,), np.float32))
    return {"observes": space, "shows": {"image": ZEROS, "joints": np.array(values, np.float32)}}


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "reset of one value": ({"reset": ZEROS}, r"reset must return \(observation, info\), not an array"),
    "reset of three values": ({"reset": (ZEROS, {}, 1)}, "reset must return .*, not 3 values"),
    "step of four values": ({"step": STEPPED[:4]}, "step must return .*terminated, truncated, info.*, not 4 values"),
    "step of nothing": ({"step": None}, "step must return .*, not a NoneType"),
    "reward that is NaN": ({"step": (ZEROS, np.nan, False, False, {})}, "must return a finite reward, not nan"),
    "reward that is an array": ({"step": (ZEROS, np.zeros(1), False, False, {})}, "reward as a number, not an array"),
    "reward that is a text": ({"step": (ZEROS, "good", False, False, {})}, "reward as a number, not a str"),
    "int64 in a uint8 space": ({"shows": ZEROS.astype(np.int64)}, r"must be uint8, .*not int64: return \.astype"),
    "float64 in a uint8 space": ({"shows": ZEROS.astype(np.float64)}, "must be uint8, .*not float64"),
    "uint8 in a float space": ({"observes": UNIT}, "must be float32, .*not uint8"),
    "another shape": ({"shows": np.zeros((9, 8, 3), np.uint8)}, r"must be of shape \(8, 8, 3\).*not \(9, 8, 3\)"),
    "floats to 255 in a space to 1": (
        {"observes": UNIT, "shows": np.full((8, 8, 3), 200, np.float32)},
        "image from 200 to 200, but its space says 0 to 1: declare the bounds",
    ),
    "image with NaN": ({"observes": UNIT, "shows": np.full((8, 8, 3), np.nan, np.float32)}, "image with NaN"),
    "sensors with NaN": (sensed([0, np.nan]), "sensors with NaN or infinity"),
    "sensors with infinity": (sensed([0, np.inf]), "sensors with NaN or infinity"),
    "no image": ({"observes": spaces.Box(-1, 1, (9,)), "shows": np.zeros(9, np.float32)}, "no image"),
    "int64 image": (
        {"observes": spaces.Dict(view=spaces.Box(0, 9, (8, 8, 3), np.int64))},
        r"no image.*view is int64 of shape \(8, 8, 3\)\. An image is uint8, uint16, float32 or float64",
    ),
    "bool image": (
        {"observes": spaces.Box(0, 1, (8, 8), np.dtype("bool"))},  # pyright: ignore
        r"no image.*observation is bool of shape \(8, 8\)",
    ),
    "channels anywhere": (
        {"observes": spaces.Box(0, 255, (16, 16, 16), np.uint8)},
        "channels may be the first or the last",
    ),
    "unlike cameras": (
        {"observes": spaces.Dict(a=IMAGE, b=spaces.Box(0, 255, (8, 9, 3), np.uint8))},
        r"one dtype, range, width and number of channels: a uint8 \(8, 8, 3\), b uint8 \(8, 9, 3\)\. Choose with",
    ),
    "text": ({"observes": spaces.Dict(image=IMAGE, a=spaces.Dict(b=spaces.Text(3)))}, "'a.b' cannot become sensors"),
    "unbounded actions": ({"acts": spaces.Box(-np.inf, 1, (2,), np.float32)}, "actions must have finite bounds"),
    "whole-number actions": ({"acts": spaces.Box(0, 9, (2,), np.int64)}, "is not supported, so convert it with"),
    "actions in a Dict": ({"acts": spaces.Dict(a=UNIT_ACTION)}, "is not supported, so convert it with"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_fit_is_named_with_what_would(case):
    options, message = CASES[case]
    with pytest.raises((ValueError, TypeError), match=message):
        fit(**options)


def test_an_environment_that_fits_is_accepted():
    config = fit(shows=np.full((8, 8, 3), 255, np.uint8))
    assert config.policy.image_format is not None
    assert config.policy.image_format.is_plain


def test_an_error_of_the_environment_itself_is_not_hidden():
    class Raises(Returns):
        def step(self, action):
            return {}[action[0]]

    env = EnvConfig.from_factory(Raises)
    with pytest.raises(KeyError):
        fit_to_env(TrainConfig(env, PolicyConfig((8, 8, 3), 0, 2, encoder=Blind())))
