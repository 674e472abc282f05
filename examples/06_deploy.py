"""Export a policy to C, compile it, and act with the C code: the return and the time of a step beside Python's.

Run it: python examples/06_deploy.py --out out
"""

import argparse
from pathlib import Path
from time import perf_counter

import iap
from iap.interop.c import export_c
from iap.interop.native import NativePolicy
from iap.rollouts import run_episode

EPISODES = 5
NAME = "seek"


class Timed:
    """A policy that adds up the time of its steps."""

    def __init__(self, policy):
        self.policy, self.inputs_size = policy, policy.inputs_size
        self.reset, self.needs_image = policy.reset, policy.needs_image
        self.seconds, self.steps = 0.0, 0

    def act(self, state, observation):
        """One step."""
        start = perf_counter()
        result = self.policy.act(state, observation)
        self.seconds, self.steps = self.seconds + perf_counter() - start, self.steps + 1
        return result


def main() -> None:
    """Write the C files, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the C files")
    out = parser.parse_args().out
    policy = iap.load_policy(f"zoo:{NAME}")
    for path in export_c(policy, out / NAME, NAME):
        print(f"wrote {path}")
    env = iap.make_env(policy.env)
    for name, actor in (("Python", policy), ("C", NativePolicy(policy))):
        run_episode(env, actor, seed=0)  # compiles
        timed = Timed(actor)
        total = sum(run_episode(env, timed, seed).total for seed in range(EPISODES))
        print(f"{name}: mean return {total / EPISODES:.3f}, {1e6 * timed.seconds / timed.steps:.0f} µs a step")


if __name__ == "__main__":
    main()
