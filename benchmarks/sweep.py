"""Table and plot of the runs in benchmarks/results/sweep, for docs/distracting-suite.md."""

from collections.abc import Sequence

import numpy as np
from pages import IMAGES, markdown
from runs import Runs
from studies.sweep import ARMS, SEEDS

from iap.policies import Rank, describe
from iap.viz.plots import plot_heat_map

RUNS = Runs("sweep", SEEDS)
AXES = ("patch", "d", "top_k")


def rows() -> list[dict]:
    """One row per run: its point, its return and its number of parameters."""
    found = []
    for arm, config in ARMS.items():
        encoder = config.policy.encoder
        assert isinstance(encoder, Rank)
        point = {"patch": encoder.patch, "d": encoder.d, "top_k": encoder.top_k}
        parameters = describe(config.policy).total
        found += [point | {"return": run["mean"], "parameters": parameters} for run in RUNS.evaluations(arm)]
    return found


def plot(runs: Sequence[dict]) -> None:
    """A heat map of all points, each the mean over its seeds."""
    ordered = sorted(runs, key=lambda row: (row["patch"], row["d"], row["top_k"]))
    labelled = [row | {"patch, d": f"{row['patch']}, {row['d']}"} for row in ordered]
    plot_heat_map(labelled, "top_k", "patch, d", "return", IMAGES / "sweep.png", title="return, held-out backgrounds")


def table(runs: Sequence[dict]) -> str:
    """The mean return at each value of each axis over all runs with that value, with its standard error."""
    lines = []
    for axis in AXES:
        for value in sorted({row[axis] for row in runs}):
            returns = [row["return"] for row in runs if row[axis] == value]
            error = np.std(returns, ddof=1) / np.sqrt(len(returns))
            lines.append([axis, value, f"{np.mean(returns):.0f} ± {error:.0f}", len(returns)])
    return markdown(["axis", "value", "mean return ± standard error", "runs"], lines)


def training_episodes() -> int:
    """Training episodes of a run, including those of random search."""
    return RUNS.metrics(next(iter(ARMS)))[-1]["episodes"]
