"""Distil a teacher that knows the state of your environment into a policy that acts on its images.

Run it: python examples/08_distil.py [--out runs/ball]
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from small_envs import Dot

import iap
from iap.attention import Positions
from iap.distillation import DAgger
from iap.policies import MLP, PolicyConfig, Trans


def teacher(env: Dot) -> np.ndarray:
    """Straight to the target; only the environment's state says where it is."""
    return np.clip(10 * (env.target - env.dot), -1, 1)


def main() -> None:
    """Distil, and print the return on other episodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs/dot")
    out = parser.parse_args().out
    encoder = Trans(rows=8, positions=Positions("concat", scale=1.0), bias=True)
    policy = PolicyConfig((32, 32, 3), sensors=0, actions=2, encoder=encoder, controller=MLP((32,)))
    dagger = DAgger(steps=(1000, 500), teacher_share=(1.0, 0.0), updates=(300, 200), batch=64, learning_rate=0.01)
    run = iap.distill(env=Dot, teacher=teacher, out=out, workers=0, policy=policy, pretraining=dagger, max_steps=40)
    print(f"return of 40 steps: {run.metrics[0]['held_out']:.2f}, policy {out}/best.policy")


if __name__ == "__main__":
    main()
