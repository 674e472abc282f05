"""Plots of measurements: time over patches, fidelity over random projections, and heat maps of a sweep."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from iap._files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

# The palette of Okabe and Ito, distinguishable by colour-blind readers, with a marker each for print
STYLES = {
    "exact": ("#D55E00", "s"),
    "numpy": ("#0072B2", "o"),
    "jax": ("#009E73", "^"),
    "torch": ("#CC79A7", "v"),
    "compiled": ("#000000", "D"),
    "positive": ("#0072B2", "o"),
    "trigonometric": ("#D55E00", "s"),
    "hyperbolic": ("#009E73", "^"),
    "favor++": ("#CC79A7", "D"),
}
OTHER = ("#56B4E9", "x")
MISSING = "0.85"  # grey of cells without a value
LUMINANCE = (0.299, 0.587, 0.114)  # weights of red, green and blue
DPI = 130
SMALLEST_GROWING = 2_500  # patches; below, the fixed cost of a call hides the growth
CONVERGED_PX = 20_000  # the palette has converged when fewer pixels than this change their colour


def growth_exponent(rows: Iterable[Row], least: int = 0) -> float:
    """Fit g of time ∝ patches^g to the rows with at least `least` patches; NaN with fewer than two sizes."""
    points = np.log([(row["patches"], row["ms"]) for row in rows if row["patches"] >= least] or [(1, 1)])
    sizes, times = points.T
    sizes = sizes - sizes.mean()
    spread = float(sizes @ sizes)
    return float(sizes @ times) / spread if spread > 0 else math.nan


def plot_bench(rows: Sequence[Row], path: str | Path) -> None:
    """Write `bench_figure` to a PNG file."""
    save_figure(bench_figure(rows), path)


def plot_fidelity(rows: Sequence[Row], path: str | Path) -> None:
    """Write `fidelity_figure` to a PNG file."""
    save_figure(fidelity_figure(rows), path)


def bench_figure(rows: Sequence[Row]) -> Figure:
    """Draw time over the number of patches, both logarithmic: one panel per kernel, one line per method."""
    from matplotlib.figure import Figure

    if not rows:
        raise ValueError("rows must not be empty")
    kernels = _distinct(rows, "kernel")
    figure = Figure(figsize=(max(6, 4.2 * len(kernels)), 4.4), dpi=DPI, layout="constrained")
    for axes, kernel in zip(figure.subplots(1, len(kernels), sharey=True, squeeze=False)[0], kernels, strict=True):
        panel = [row for row in rows if row["kernel"] == kernel]
        for method in _distinct(panel, "method"):
            line = [row for row in panel if row["method"] == method]
            growth = growth_exponent(line, SMALLEST_GROWING)
            label = method if math.isnan(growth) else f"{method}: $L^{{{growth:.2f}}}$"
            _draw(axes, line, "patches", "ms", method, label)
        axes.set(title=kernel, yscale="log", xlabel="patches, L")
        _tick(axes, _distinct(panel, "patches"))
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 3, "columnspacing": 1.2}
        axes.legend(title="time grows as", frameon=False, fontsize=9, **below)
        axes.yaxis.set_major_formatter("{x:g}")
    figure.axes[0].set_ylabel("milliseconds to score all patches")
    return figure


def fidelity_figure(rows: Sequence[Row]) -> Figure:
    """Draw the share of the best patches of exact softmax found with m projections: a panel per source and kind."""
    from matplotlib.figure import Figure

    rows = [row for row in rows if row["kind"] == "features"]
    if not rows:
        raise ValueError('rows must contain rows of kind "features"')
    sources = _distinct(rows, "source")
    figure = Figure(figsize=(8.4, 1 + 2.8 * len(sources)), dpi=DPI, layout="constrained")
    grid = figure.subplots(len(sources), 2, sharex=True, sharey=True, squeeze=False)
    for line, source in zip(grid, sources, strict=True):
        for axes, normalised in zip(line, (False, True), strict=True):
            panel = [row for row in rows if row["source"] == source and row["normalised"] == normalised]
            for name in _distinct(panel, "map"):
                _draw(axes, [row for row in panel if row["map"] == name], "m", "overlap", name, name)
            axes.set(title=f"{source}, {'normalised' if normalised else 'plain'} softmax", ylim=(-0.03, 1.03))
            _tick(axes, _distinct(rows, "m"))
    figure.supylabel("share of the best patches found", fontsize=11)
    figure.supxlabel("random projections, m", fontsize=11)
    handles, labels = max((axes.get_legend_handles_labels() for axes in grid.flat), key=lambda pair: len(pair[1]))
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def plot_heat_map(rows: Sequence[Row], x: str, y: str, value: str, path: str | Path, *, title: str = "") -> None:
    """Write `heat_map_figure` to a PNG file."""
    save_figure(heat_map_figure(rows, x, y, value, title=title), path)


def heat_map_figure(rows: Sequence[Row], x: str, y: str, value: str, *, title: str = "") -> Figure:
    """Draw the mean of `value` for each pair of values of two columns, as coloured cells with numbers."""
    from matplotlib.figure import Figure

    columns, lines = _distinct(rows, x), _distinct(rows, y)
    cells = np.array(
        [[_mean(row[value] for row in rows if (row[x], row[y]) == (c, r)) for c in columns] for r in lines]
    )
    figure = Figure(figsize=(2.8 + 1.1 * len(columns), 1.8 + 0.8 * len(lines)), dpi=DPI, layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor(MISSING)
    image = axes.imshow(np.ma.masked_invalid(cells), cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(columns)), map(str, columns))
    axes.set_yticks(range(len(lines)), map(str, lines))
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title or value.replace("_", " "), fontsize=11)
    for (line, column), cell in np.ndenumerate(cells):
        is_known = math.isfinite(cell)
        is_bright = not is_known or np.dot(image.cmap(image.norm(cell))[:3], LUMINANCE) > 0.5  # noqa: PLR2004
        text = f"{cell:.3g}" if is_known else "none"
        axes.text(column, line, text, ha="center", va="center", color="black" if is_bright else "white", fontsize=11)
    figure.colorbar(image, ax=axes)
    return figure


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else math.nan


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a PNG of 256 colours, which is small. An existing file is replaced atomically."""
    if Path(path).suffix.lower() != ".png":
        raise ValueError(f"path must end in .png, not {Path(path).name!r}")
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", facecolor="white")
    with Image.open(drawn) as picture:
        small = picture.convert("RGB").quantize(256, kmeans=CONVERGED_PX)
    encoded = io.BytesIO()
    small.save(encoded, format="png", optimize=True)
    write_whole(path, encoded.getvalue())


def _distinct(rows: Iterable[Row], key: str) -> list[Any]:
    """Return the values of a column in the order of first appearance."""
    return list(dict.fromkeys(row[key] for row in rows))


def _draw(axes: Axes, rows: Sequence[Row], x: str, y: str, name: str, label: str) -> None:
    colour, marker = STYLES.get(name, OTHER)
    points = sorted((row[x], row[y]) for row in rows)
    axes.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=5, label=label)
    axes.grid(visible=True, color="0.9")
    axes.spines[["top", "right"]].set_visible(False)


def _tick(axes: Axes, values: Sequence[int]) -> None:
    """Use a logarithmic axis with ticks at the measured values only."""
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:,}" for value in values])
    axes.minorticks_off()
    axes.tick_params(labelsize=9)
