"""Where the time of an episode goes, on one core: the policy, the camera, and the rest of the environment.

Run it: python benchmarks/episode_profile.py zoo:obstacle-course [--json FILE]
"""

import argparse
import gc
import os
from pathlib import Path
from statistics import median
from time import process_time

os.environ.update(OMP_NUM_THREADS="1", LP_NUM_THREADS="0")

import numpy as np

from iap.evaluation.evaluate import locate_policy, policy_job
from iap.cli.tables import write_json
from iap.policies import build_policy, unflatten
from iap.policies.serialization import PolicyFile
from iap.rollouts import run_episode

EPISODES = 40


class Recorder:
    """An environment that keeps what was done to it: whether it had to draw, and the action."""

    def __init__(self, env) -> None:
        self.env, self.unwrapped, self.action_space = env, self, env.action_space
        self.reset = env.reset
        self.done: list[tuple[bool, np.ndarray]] = []

    def look(self, wanted: bool) -> None:
        self.drawing = wanted
        self.env.unwrapped.look(wanted)

    def step(self, action):
        self.done.append((self.drawing, action))
        return self.env.step(action)


def profile(policy: PolicyFile) -> dict:
    """Milliseconds of the processor for 500 steps, medians over episodes."""
    env = policy_job(policy).env.make()
    actor = build_policy(policy.spec, unflatten(policy.spec, policy.theta), policy.normaliser)
    rows = []
    gc.freeze()  # as workers do
    for seed in range(EPISODES + 1):
        recorder = Recorder(env)
        run_episode(recorder, actor, seed)  # pyright: ignore[reportArgumentType]
        steps = len(recorder.done)
        whole = timed(lambda seed=seed: run_episode(env, actor, seed))
        drawn = timed(lambda seed=seed, done=recorder.done: replay(env, seed, done))
        blind = timed(lambda seed=seed, done=recorder.done: replay(env, seed, [(False, a) for _, a in done]))
        per_500 = 1000 * 500 / steps
        looks = sum(drawing for drawing, _ in recorder.done) * 500 / steps
        rows.append([whole * per_500, (whole - drawn) * per_500, (drawn - blind) * per_500, blind * per_500, looks])
    env.close()
    names = ("whole_ms", "policy_ms", "camera_ms", "environment_ms", "looks")
    result = dict(zip(names, map(median, zip(*rows[1:], strict=True)), strict=True))  # the first warms up
    return {"env": policy.env_id, "episodes": EPISODES, **result, "episodes_per_second": 1000 / result["whole_ms"]}


def replay(env, seed: int, done: list[tuple[bool, np.ndarray]]) -> None:
    env.reset(seed=seed)
    for drawing, action in done:
        env.unwrapped.look(drawing)
        env.step(action)
    env.unwrapped.look(True)


def timed(run) -> float:
    begun = process_time()
    run()
    return process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    result = profile(locate_policy(asked.policy)[0])
    for name, value in result.items():
        print(f"{name}: {value if isinstance(value, str) else round(value, 2)}")
    if asked.json is not None:
        write_json(result, asked.json)


if __name__ == "__main__":
    main()
