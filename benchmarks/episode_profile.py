"""Processor time of an episode on one core: policy, camera and the rest of the environment.

Run it: python benchmarks/episode_profile.py zoo:obstacle-course [--json FILE]
"""

import argparse
import gc
import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", LP_NUM_THREADS="0")

import gymnasium
import numpy as np

from iap.cli.tables import write_json
from iap.envs.protocols import LazyRendering, find_protocol
from iap.evaluation.evaluate import policy_job
from iap.policies import Policy, PolicyFile
from iap.rollouts import run_episode
from iap.zoo.locate import locate_policy

EPISODES = 40
Steps = list[tuple[bool, np.ndarray]]


class Recorder(gymnasium.Wrapper):
    """Records for every step whether the environment rendered, and the action."""

    def __init__(self, env: gymnasium.Env, rendering: LazyRendering) -> None:
        super().__init__(env)
        self._rendering, self._enabled = rendering, True
        self.steps: Steps = []

    def set_rendering(self, enabled: bool) -> None:
        """Forward the request and remember it."""
        self._enabled = enabled
        self._rendering.set_rendering(enabled)

    def step(self, action: np.ndarray) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Record the action."""
        self.steps.append((self._enabled, action))
        return super().step(action)


def profile(policy: PolicyFile) -> dict:
    """Milliseconds of processor time for 500 steps, medians over episodes.

    Each episode runs three times: with the policy, with its recorded actions, and with these but without rendering. The
    differences are the times of the policy and of the camera.
    """
    env = policy_job(policy).env.make()
    rendering = find_protocol(env, LazyRendering)
    assert rendering is not None
    actor = Policy.of(policy)
    rows = []
    gc.freeze()  # as the workers of a pool do
    for seed in range(EPISODES + 1):
        recorder = Recorder(env, rendering)
        run_episode(recorder, actor, seed)
        steps, unrendered = recorder.steps, [(False, action) for _, action in recorder.steps]
        total = timed(lambda seed=seed: run_episode(env, actor, seed))
        rendered = timed(lambda seed=seed, steps=steps: replay(env, rendering, seed, steps))
        physics = timed(lambda seed=seed, steps=unrendered: replay(env, rendering, seed, steps))
        per_500 = 1000 * 500 / len(steps)
        frames = sum(enabled for enabled, _ in steps) * 500 / len(steps)
        times = (total, total - rendered, rendered - physics, physics)
        rows.append([*(seconds * per_500 for seconds in times), frames])
    env.close()
    names = ("total_ms", "policy_ms", "camera_ms", "environment_ms", "frames")
    result = dict(zip(names, map(median, zip(*rows[1:], strict=True)), strict=True))  # the first episode is warm-up
    return {"env": policy.env_id, "episodes": EPISODES, **result, "episodes_per_second": 1000 / result["total_ms"]}


def replay(env: gymnasium.Env, rendering: LazyRendering, seed: int, steps: Steps) -> None:
    """Repeat recorded steps."""
    env.reset(seed=seed)
    for enabled, action in steps:
        rendering.set_rendering(enabled)
        env.step(action)
    rendering.set_rendering(True)


def timed(run: Callable[[], object]) -> float:
    """Seconds of processor time."""
    start = process_time()
    run()
    return process_time() - start


def main() -> None:
    """Profile a policy and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    result = profile(locate_policy(args.policy)[0])
    for name, value in result.items():
        print(f"{name}: {value if isinstance(value, str) else round(value, 2)}")
    if args.json is not None:
        write_json(result, args.json)


if __name__ == "__main__":
    main()
