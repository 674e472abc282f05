"""Learning curves: the return over training, with a band that spans the seeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from iap.viz.plots import DPI, OTHER, STYLES, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Runs = Mapping[str, Sequence[Sequence[Row]]]
Over = Literal["episodes", "iteration"]

# The returns that a row may hold, the most informative first.
RETURNS = {"held_out": "validation episodes", "mean": "mean of the population", "best": "best of the population"}
PALETTE = list(dict.fromkeys(colour for colour, _ in (STYLES["numpy"], *STYLES.values(), OTHER)))
DASHES = ("-", "--", ":")  # for more lines than colours


class Curve(NamedTuple):
    """The returns of one seed over its training."""

    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]


def plot_curves(runs: Runs, path: str | Path, *, over: Over = "episodes") -> None:
    """Write `curves_figure` to a PNG file."""
    save_figure(curves_figure(runs, over=over), path)


def curves_figure(runs: Runs, *, over: Over = "episodes") -> Figure:
    """Draw the return over training: per label a line, the mean of its seeds, in a band from lowest to highest seed.

    With one label, every kind of return in its rows is drawn; with several, the most informative kind that all have.

    Args:
        runs: for each label, the rows of metrics of each of its seeds.
        over: the horizontal axis.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    if not runs:
        raise ValueError("runs must not be empty")
    curves = {kind: {label: curves_of(seeds, over, kind) for label, seeds in runs.items()} for kind in RETURNS}
    kinds = [kind for kind in RETURNS if all(curves[kind].values())]
    if not kinds:
        raise ValueError(f"runs has nothing to draw: {', '.join(runs)} have no kind of return over {over} in common")
    figure = Figure(figsize=(7.2, 4.4), dpi=DPI, layout="constrained")
    axes = figure.subplots()
    if len(runs) == 1:
        (label,) = runs
        lines = {RETURNS[kind]: curves[kind][label] for kind in kinds}
        axes.set(title=_with_seeds(label, lines[RETURNS[kinds[0]]]), ylabel="return")
    else:
        lines = {_with_seeds(label, seeds): seeds for label, seeds in curves[kinds[0]].items()}
        axes.set_ylabel(f"return, {RETURNS[kinds[0]]}")
    styles = itertools.cycle(itertools.product(DASHES, PALETTE))
    for (name, seeds), (dash, colour) in zip(lines.items(), styles, strict=False):
        width = 1.2 if len(runs) == 1 and name != RETURNS[kinds[0]] else 2.2
        _draw(axes, seeds, name, width, {"color": colour, "linestyle": dash})
    axes.set_xlabel({"episodes": "episodes", "iteration": "iterations"}[over])
    last = max(1, *(seed.x[-1] for seeds in lines.values() for seed in seeds))
    axes.set_xlim(-0.02 * last, 1.02 * last)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(visible=True, color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    several = any(len(seeds) > 1 for seeds in lines.values())
    axes.legend(frameon=False, fontsize=9, title="band: lowest to highest seed" if several else None, title_fontsize=9)
    return figure


def curves_of(seeds: Sequence[Sequence[Row]], over: Over, kind: str) -> list[Curve]:
    """Return one kind of return of each seed that has it; of rows with equal x the last counts."""
    curves = []
    for rows in seeds:
        points = {row[over]: row[kind] for row in rows if _is_number(row.get(over)) and _is_number(row.get(kind))}
        if points:
            curves.append(Curve(*np.array(sorted(points.items()), np.float64).T))
    return curves


def band_of(curves: Sequence[Curve]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "seeds n"]]:
    """Return every x that all seeds have reached, and the return of each seed there, interpolated linearly."""
    first, last = max(curve.x[0] for curve in curves), min(curve.x[-1] for curve in curves)
    x = np.unique(np.concatenate([curve.x for curve in curves]))
    x = x[(first <= x) & (x <= last)]
    return x, np.array([np.interp(x, curve.x, curve.y) for curve in curves])


def _draw(axes: Axes, curves: Sequence[Curve], name: str, width: float, style: Mapping[str, Any]) -> None:
    """Draw the mean of the seeds in their band, which ends with the shortest seed, and each seed as a thin line."""
    x, returns = band_of(curves)
    if len(curves) > 1:
        axes.fill_between(x, returns.min(axis=0), returns.max(axis=0), color=style["color"], alpha=0.18, linewidth=0)
        for curve in curves:
            axes.plot(curve.x, curve.y, alpha=0.35, linewidth=0.7, **style)
    marker = "o" if len(x) == 1 else None
    axes.plot(x, returns.mean(axis=0), label=name, linewidth=width, marker=marker, **style)


def _with_seeds(label: str, curves: Sequence[Curve]) -> str:
    return label if len(curves) == 1 else f"{label} ({len(curves)} seeds)"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
