"""Rows of results for people, as tables, and for machines, as JSON."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from iap._files import write_whole
from iap.policies import PolicyConfig, cnn_baseline, describe
from iap.viz.plots import SMALLEST_GROWING, growth_exponent

Row = Mapping[str, Any]


def write_json(rows: Sequence[Row] | Row, path: str | Path) -> None:
    """Results as JSON in a file, replaced whole or not at all; `-` is standard output."""
    text = json.dumps(rows, indent=1, allow_nan=False) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
        return
    write_whole(path, text.encode())


def attention_table(rows: Sequence[Row]) -> Table:
    """Milliseconds by kernel, size and method; below each kernel how time grows, and the memory at the largest size."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    table = Table(title="image → scores, one core: milliseconds", title_justify="left", box=SIMPLE_HEAD)
    for name in ("kernel", "patches", *methods):
        table.add_column(name, justify="left" if name == "kernel" else "right")
    if {"jax", "fused"} <= set(methods):
        table.add_column("fused / jax", justify="right")
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        mine = [row for row in rows if row["kernel"] == kernel]
        sizes = sorted({row["patches"] for row in mine})
        for size in sizes:
            ms = {row["method"]: row["ms"] for row in mine if row["patches"] == size}
            ratio = [f"{ms['fused'] / ms['jax']:.2f}"] if {"jax", "fused"} <= set(ms) else []
            table.add_row(kernel, f"{size:,}", *(number(ms.get(method)) for method in methods), *ratio)
        growth = [
            growth_exponent([row for row in mine if row["method"] == method], SMALLEST_GROWING) for method in methods
        ]
        if not all(map(math.isnan, growth)):
            table.add_row(kernel, "grows as", *(f"L^{g:.2f}" for g in growth), style="dim")
        largest = {row["method"]: row["extra_mb"] for row in mine if row["patches"] == sizes[-1]}
        memory = [f"{mb:.1f} MB" if (mb := largest.get(method)) is not None else "" for method in methods]
        table.add_row(kernel, "memory", *memory, style="dim", end_section=True)
    return table


def plain_table(rows: Sequence[Row], title: str) -> Table:
    """Rows that share their keys, as they are, without the columns that all leave empty."""
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for name in names:
        table.add_column(
            name.replace("_", " "), overflow="fold", justify="left" if isinstance(rows[0][name], str) else "right"
        )
    for row in rows:
        table.add_row(*(number(row[name]) for name in names))
    return table


def policy_table(spec: PolicyConfig) -> tuple[Table, list[dict[str, Any]]]:
    """The parts of a policy, and how many times more parameters the CNN of the same task has."""
    mine, baseline = describe(spec), describe(cnn_baseline(spec))
    rows = [{**row._asdict(), "shape": list(row.shape)} for row in mine.rows]
    table = Table(title=f"{type(spec.encoder).__name__} policy", title_justify="left", box=SIMPLE_HEAD)
    for name in ("part", "name", "shape", "parameters"):
        table.add_column(name, justify="right" if name == "parameters" else "left")
    for row in mine.rows:
        table.add_row(row.part, row.name, " × ".join(map(str, row.shape)), f"{row.parameters:,}")
    table.add_section()
    table.add_row("all", "", "", f"{mine.total:,}")
    for part in mine.parts.keys() | baseline.parts.keys():
        rows.append({"part": part, "name": "total", "parameters": mine.parts.get(part, 0)})
    for what, own, theirs in (
        ("CNN, encoder", mine.parts.get("encoder", 0), baseline.parts["encoder"]),
        ("CNN, all", mine.total, baseline.total),
    ):
        times = f"{theirs / own:.1f} × as many" if own else ""
        table.add_row(what, "", times, f"{theirs:,}", style="dim")
        rows.append({"part": what, "name": "baseline", "parameters": theirs, "ratio": theirs / own if own else None})
    return table, rows


def number(value: Any) -> str:
    """Three digits of a measurement, every digit of a count."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004
    return str(value)
