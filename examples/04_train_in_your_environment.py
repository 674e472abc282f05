"""Train, evaluate and film a policy in an environment of your own: a registered id, a class, or a function.

Run it: python examples/04_train_in_your_environment.py --out out
"""

import argparse
from pathlib import Path

import small_envs  # registers small/Dot-v0; any Gymnasium environment with images will do

import iap

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the run and the video")
parser.add_argument("--iterations", type=int, default=45, help="generations of the training")

if __name__ == "__main__":
    options = parser.parse_args()
    run = iap.train(env="small/Dot-v0", iterations=options.iterations, out=options.out / "dot")
    result = iap.evaluate(run.policy, episodes=32)
    print(f"{small_envs.Dot.__name__}: return {result.mean:.2f} ± {result.ci95:.2f}")
    iap.record_video(run.policy, options.out / "dot.mp4")
