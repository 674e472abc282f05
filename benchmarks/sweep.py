"""What the runs in benchmarks/results/sweep say of patches: how large, in how many dimensions, how many are kept."""

from collections.abc import Sequence

import numpy as np
from report import DOCS, markdown
from runs import Runs
from studies.sweep import ARMS, SEEDS

from iap.policies import Rank, describe
from iap.viz.plots import plot_heat_map

RUNS = Runs("sweep", SEEDS, {})
AXES = ("patch", "d", "kept")


def rows() -> list[dict]:
    """A row a run: its point, its return, and how many parameters it has."""
    found = []
    for arm, config in ARMS.items():
        encoder = config.policy.encoder
        assert isinstance(encoder, Rank)
        point = {"patch": encoder.patch, "d": encoder.d, "kept": encoder.top_k}
        parameters = describe(config.policy).total
        found += [point | {"return": run["mean"], "parameters": parameters} for run in RUNS.returns_of(arm)]
    return found


def plot(runs: Sequence[dict]) -> None:
    """All points in one picture, the mean over seeds of each."""
    named = [
        row | {"patch, d": f"{row['patch']}, {row['d']}"} for row in sorted(runs, key=lambda r: (r["patch"], r["d"]))
    ]
    plot_heat_map(
        named, "kept", "patch, d", "return", DOCS / "images" / "sweep.png", title="return, held-out backgrounds"
    )


def table(runs: Sequence[dict]) -> str:
    """The mean return at each value of each axis, over all runs that have it, with its standard error."""
    lines = []
    for axis in AXES:
        for value in sorted({row[axis] for row in runs}):
            returns = [row["return"] for row in runs if row[axis] == value]
            error = np.std(returns, ddof=1) / np.sqrt(len(returns))
            lines.append([axis, value, f"{np.mean(returns):.0f} ± {error:.0f}", len(returns)])
    return markdown(["of", "value", "mean return ± standard error", "runs"], lines)


def budget() -> int:
    """How many episodes of training a run has, those of screening among them."""
    return RUNS.metrics_of(next(iter(ARMS)))[-1]["episodes"]
