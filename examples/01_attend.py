"""Attend to a frame of a simulator: which pixels does a linear-time attention pick out of 76,800?

The weights are random, not trained: the seed is one of the one in ten whose attention happens to fall on the robot.
Run it: python examples/01_attend.py --out out
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np

from iap.attention import Kernel, ReLU, Softmax, top
from iap.attention.kernels.ranker import Ranker, Layer, compile_ranker
from iap.envs.control_suite.frames import render_frames
from iap.viz.overlays import AttentionPanel, attention_figure
from iap.viz.plots import save_figure

SEED = 23
D = 4


def random_ranker(kernel: Kernel, image_shape: tuple[int, int, int], patch: int) -> Ranker:
    """Queries and keys as random projections of `patch`×`patch` pixels."""
    rng = np.random.default_rng(SEED)
    width = patch * patch * image_shape[2]
    queries, keys = (Layer((rng.standard_normal((width, D)) / np.sqrt(width)).astype(np.float32)) for _ in range(2))
    return compile_ranker(kernel, queries, keys, image_shape, patch=patch, stride=patch)


def look(name: str, kernel: Kernel, image: np.ndarray, patch: int, top_k: int) -> AttentionPanel:
    """Score all patches, keep the best, and tell how long that took."""
    ranker = random_ranker(kernel, image.shape, patch)
    scores = ranker(image).values  # compiles, if it never ran here before
    chosen = top(scores, top_k)
    times_ms = []
    for _ in range(20):
        begun = time.perf_counter()
        top(ranker(image).values, top_k)
        times_ms.append(1e3 * (time.perf_counter() - begun))
    print(f"{name}: {keep} of {ranker.grid.patches:,} patches in {statistics.median(times_ms):.2f} ms")
    return AttentionPanel(f"{name}, patch {patch}", scores, chosen, ranker.grid, patch, patch)


def main() -> None:
    """Render, look three times, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    [image] = render_frames("cheetah-run", size=(240, 320), seed=1)
    glances = [
        look("ReLU", ReLU(), image, patch=1, top_k=200),
        look("softmax", Softmax("positive"), image, patch=2, top_k=50),
        look("softmax, trigonometric", Softmax("trigonometric", 64, normalised=True), image, patch=8, top_k=10),
    ]
    save_figure(attention_figure(image, glances), out / "attention.png")
    print(f"wrote {out / 'attention.png'}")


if __name__ == "__main__":
    main()
