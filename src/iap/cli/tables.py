"""Rows of results as tables for people and as JSON for programs."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from iap._files import write_whole

if TYPE_CHECKING:
    from iap.policies import PolicyConfig

Row = Mapping[str, Any]

THREE_DIGITS = 100  # measurements from here on are printed without decimals
COMPARED = ("compiled", "jax")  # methods whose ratio has a column of its own


def write_json(rows: Sequence[Row] | Row, path: str | Path) -> None:
    """Write results as JSON, atomically; the path `-` is standard output."""
    text = json.dumps(rows, indent=1, allow_nan=False) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
        return
    write_whole(path, text.encode())


def attention_table(rows: Sequence[Row]) -> Table:
    """Milliseconds by kernel, size and method; below each kernel the growth of time and the memory."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    table = Table(title="image → scores, one core: milliseconds", title_justify="left", box=SIMPLE_HEAD)
    for name in ("kernel", "patches", *methods):
        table.add_column(name, justify="left" if name == "kernel" else "right")
    if {*COMPARED} <= {*methods}:
        table.add_column(" / ".join(COMPARED), justify="right")
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        _add_kernel(table, methods, [row for row in rows if row["kernel"] == kernel])
    return table


def _add_kernel(table: Table, methods: Sequence[str], rows: Sequence[Row]) -> None:
    """Add the times of one kernel, their growth with the number of patches L, and the memory at the largest size."""
    from iap.viz.plots import SMALLEST_GROWING, growth_exponent

    kernel = rows[0]["kernel"]
    sizes = sorted({row["patches"] for row in rows})
    for size in sizes:
        ms = {row["method"]: row["ms"] for row in rows if row["patches"] == size}
        ratio = [f"{ms[COMPARED[0]] / ms[COMPARED[1]]:.2f}"] if {*COMPARED} <= {*ms} else []
        table.add_row(kernel, f"{size:,}", *(number(ms.get(method)) for method in methods), *ratio)
    growth = [growth_exponent([row for row in rows if row["method"] == method], SMALLEST_GROWING) for method in methods]
    if not all(map(math.isnan, growth)):
        table.add_row(kernel, "grows as", *(f"L^{g:.2f}" for g in growth), style="dim")
    largest = {row["method"]: row["extra_mb"] for row in rows if row["patches"] == sizes[-1]}
    memory = [f"{mb:.1f} MB" if (mb := largest.get(method)) is not None else "" for method in methods]
    table.add_row(kernel, "memory", *memory, style="dim", end_section=True)


def plain_table(rows: Sequence[Row], title: str) -> Table:
    """A table of rows with the same keys, without the columns that are empty in all rows."""
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for name in names:
        justify = "left" if isinstance(rows[0][name], str) else "right"
        is_name = name == names[0]  # stays whole, since it is what people copy
        table.add_column(name.replace("_", " "), overflow="fold", justify=justify, no_wrap=is_name)
    for row in rows:
        table.add_row(*(number(row[name]) for name in names))
    return table


def policy_table(config: "PolicyConfig") -> tuple[Table, list[dict[str, Any]]]:
    """The parameter arrays of a policy, and how many times more parameters a CNN policy for the same task has."""
    from iap.policies import cnn_baseline, describe

    own, baseline = describe(config), describe(cnn_baseline(config))
    rows = [{**row._asdict(), "shape": list(row.shape)} for row in own.rows]
    table = Table(title=f"{type(config.encoder).__name__} policy", title_justify="left", box=SIMPLE_HEAD)
    for name in ("part", "name", "shape", "parameters"):
        table.add_column(name, justify="right" if name == "parameters" else "left")
    for row in own.rows:
        table.add_row(row.part, row.name, " × ".join(map(str, row.shape)), f"{row.parameters:,}")
    table.add_section()
    table.add_row("all", "", "", f"{own.total:,}")
    for part in own.parts.keys() | baseline.parts.keys():
        rows.append({"part": part, "name": "total", "parameters": own.parts.get(part, 0)})
    for what, mine, theirs in (
        ("CNN, encoder", own.parts.get("encoder", 0), baseline.parts["encoder"]),
        ("CNN, all", own.total, baseline.total),
    ):
        times = f"{theirs / mine:.1f} × as many" if mine else ""
        table.add_row(what, "", times, f"{theirs:,}", style="dim")
        ratio = theirs / mine if mine else None
        rows.append({"part": what, "name": "baseline", "parameters": theirs, "ratio": ratio})
    return table, rows


def number(value: Any) -> str:
    """A cell: three digits of a measurement, all digits of a count."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= THREE_DIGITS else f"{value:.3g}"
    return str(value)
