"""Score and select the patches of a rendered frame with linear-time attention, up to 76,800 patches.

The weights are random, not trained. The seed was chosen so that the attention falls on the robot, which happens for
about one seed in ten. Run it: python examples/01_attend.py --out out
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np

from iap.attention import Kernel, ReLU, Softmax, top
from iap.attention.kernels.folding import Layer
from iap.attention.kernels.ranker import Ranker, compile_ranker
from iap.envs.control_suite.frames import render_frames
from iap.viz.overlays import AttentionPanel, attention_figure
from iap.viz.plots import save_figure

SEED = 23
D = 4
REPETITIONS = 20


def random_ranker(kernel: Kernel, image_shape: tuple[int, int, int], patch: int) -> Ranker:
    """A ranker whose queries and keys are random projections of `patch`×`patch` pixels."""
    rng = np.random.default_rng(SEED)
    width = patch * patch * image_shape[2]
    queries, keys = (Layer((rng.standard_normal((width, D)) / np.sqrt(width)).astype(np.float32)) for _ in range(2))
    return compile_ranker(kernel, queries, keys, image_shape, patch=patch, stride=patch)


def attend(name: str, kernel: Kernel, image: np.ndarray, patch: int, top_k: int) -> AttentionPanel:
    """Score all patches, select the best, and print the time that takes."""
    ranker = random_ranker(kernel, image.shape, patch)
    scores = ranker.values(image)  # the first call compiles
    selected = top(scores, top_k)
    times_ms = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        top(ranker.values(image), top_k)
        times_ms.append(1e3 * (time.perf_counter() - start))
    print(f"{name}: {top_k} of {ranker.grid.patches:,} patches in {statistics.median(times_ms):.2f} ms")
    return AttentionPanel(f"{name}, patch {patch}", scores, selected, ranker.grid, patch, patch)


def main() -> None:
    """Render a frame, attend to it with three kernels, and save a figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the figure")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    [image] = render_frames("cheetah-run", size=(240, 320), seed=1)
    panels = [
        attend("ReLU", ReLU(), image, patch=1, top_k=200),
        attend("softmax", Softmax("positive"), image, patch=2, top_k=50),
        attend("softmax, trigonometric", Softmax("trigonometric", 64, normalised=True), image, patch=8, top_k=10),
    ]
    save_figure(attention_figure(image, panels), out / "attention.png")
    print(f"wrote {out / 'attention.png'}")


if __name__ == "__main__":
    main()
