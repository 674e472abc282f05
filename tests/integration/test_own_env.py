"""Training in a user's own environment from Python, with workers and without registering anything."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import iap
from iap.envs.core import EnvConfig
from iap.evolution import OpenES
from iap.rollouts import PoolError

OPTIONS = {"strategy": OpenES(population=2), "iterations": 2, "episodes": 1, "max_steps": 5, "evaluate_episodes": 1}


class Brightness(gymnasium.Env):
    """The reward is high if the first action is the brightness of the image."""

    observation_space = gymnasium.spaces.Box(0, 255, (32, 32, 3), np.uint8)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, gain: float = 1.0) -> None:
        self.gain, self.level = gain, 0.0

    def _image(self) -> np.ndarray:
        self.level = self.np_random.uniform(-1, 1)
        return np.full((32, 32, 3), 127 + 120 * self.level, np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._image(), {}

    def step(self, action):
        reward = -self.gain * abs(float(action[0]) - self.level)
        return self._image(), reward, False, False, {}


ENVS = {
    "class": Brightness,
    "function": lambda: Brightness(gain=2.0),
    "object": Brightness(gain=2.0),
    "config": EnvConfig.from_factory(Brightness),
}


def trained(env, path, workers, **options):
    run = iap.train("seek", env=env, workers=workers, out=path, **OPTIONS | options)
    rows = [{key: value for key, value in row.items() if key != "seconds"} for row in run.metrics]
    return rows, run.policy.theta.tobytes()


@pytest.fixture(scope="module")
def inline(tmp_path_factory):
    return {name: trained(env, tmp_path_factory.mktemp("run") / name, workers=0) for name, env in ENVS.items()}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "function" else pytest.mark.slow) for name in ENVS]
)
def test_two_workers_train_in_an_unregistered_environment_with_the_same_result_as_this_process(name, inline, tmp_path):
    assert trained(ENVS[name], tmp_path / "run", workers=2) == inline[name]


def test_a_function_and_an_object_of_the_same_environment_give_the_same_result(inline):
    assert inline["function"] == inline["object"]
    assert inline["class"] == inline["config"]
    assert inline["class"] != inline["function"]


def test_a_run_in_an_own_environment_is_continued_and_evaluated_if_the_environment_is_given_again(tmp_path):
    trained(Brightness, tmp_path / "run", workers=0, iterations=1)
    with pytest.raises(ValueError, match="holds a run with other options"):
        trained(Brightness, tmp_path / "run", workers=0, iterations=1, episodes=2)
    assert len(trained(Brightness, tmp_path / "run", workers=0, iterations=1)[0]) == 1
    policy = iap.load_policy(tmp_path / "run")
    assert policy.env is not None
    assert policy.env.id == "custom:Brightness"
    env = gymnasium.wrappers.TimeLimit(Brightness(), 5)
    assert len(iap.evaluate(policy, 2, env=env, workers=2).returns) == 2
    with pytest.raises(PoolError, match=r"pass it again, for example EnvConfig\.from_factory\(Brightness\)"):
        iap.evaluate(policy, 2, workers=0)


SCRIPT = """
from dataclasses import dataclass, replace

import gymnasium
import numpy as np

import iap
from iap.evolution import OpenES
from iap.policies import ENCODERS, Encoder, ParamSpec
from iap.policies.encoders import Encoding

GOAL = 0.5


class Mine(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample() * 0, {}

    def step(self, action):
        return self.np_random.integers(0, 256, (8, 8, 3), dtype=np.uint8), -abs(action[0] - GOAL), False, False, {}


@dataclass(frozen=True)
class Mean(Encoder):
    def feature_size(self, image_shape):
        return 1

    def param_specs(self, image_shape):
        return [ParamSpec("gain", (1,), 1.0)]

    def forward(self, params, images, uniforms=None):
        return Encoding((images / 255 - 0.5).mean(axis=(1, 2, 3))[:, None] * params["gain"])


if __name__ == "__main__":
    ENCODERS.register("mean", Mean)
    seek = iap.presets["seek"]
    config = replace(seek, policy=replace(seek.policy, encoder=Mean()), strategy=OpenES(population=2))
    results = []
    for workers in (0, 2):
        run = iap.train(config, env=Mine, workers=workers, out=f"run-{workers}", iterations=2, episodes=1, max_steps=4)
        results.append((run.policy.theta.tobytes(), run.metrics[-1]["held_out"]))
    print(run.policy.env.id, results[0] == results[1], results[0][1] < 0)
"""


def test_a_script_trains_in_an_environment_and_with_an_encoder_that_it_defines_itself(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "error", "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "custom:Mine True True\n", done.stderr
