"""docs/speed.md and docs/fidelity.md with their plots, from the rows in benchmarks/results alone.

Run it: python benchmarks/report.py
"""

import json
from collections.abc import Sequence
from pathlib import Path

from iap.cli.tables import number
from iap.viz.plots import SMALLEST_GROWING, growth_exponent, plot_bench, plot_fidelity

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[1] / "docs"


def markdown(names: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    cells = [names, ["---"] * len(names), *([number(cell) for cell in line] for line in lines)]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def of(rows: list[dict], **wanted: object) -> list[dict]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def distinct(rows: list[dict], key: str) -> list:
    return list(dict.fromkeys(row[key] for row in rows))


def speed(rows: list[dict]) -> str:
    methods = distinct(rows, "method")
    lines = []
    for kernel in distinct(rows, "kernel"):
        for patches in sorted(distinct(rows, "patches")):
            here = {row["method"]: row for row in of(rows, kernel=kernel, patches=patches)}
            lines.append([kernel, patches, *(here[m]["ms"] for m in methods), here["fused"]["ms"] / here["jax"]["ms"]])
        growth = [growth_exponent(of(rows, kernel=kernel, method=m), SMALLEST_GROWING) for m in methods]
        lines.append([kernel, "grows as", *(f"L^{g:.2f}" for g in growth), None])
        most = max(distinct(rows, "patches"))
        memory = [of(rows, kernel=kernel, method=m, patches=most)[0]["extra_mb"] for m in methods]
        lines.append([kernel, f"MB at {most:,}", *memory, None])
    return markdown(["kernel", "patches", *methods, "fused / jax"], lines)


def database(rows: list[dict]) -> str:
    names = list(rows[0])
    return markdown([name.replace("_", " ") for name in names], [[row[name] for name in names] for row in rows])


def overlaps(rows: list[dict]) -> str:
    rows = of(rows, kind="features")
    projections = sorted(distinct(rows, "m"))
    lines = []
    for source in distinct(rows, "source"):
        for normalised in (False, True):
            for name in distinct(rows, "map"):
                line = of(rows, source=source, normalised=normalised, map=name)
                found = {row["m"]: row["overlap"] for row in line}
                lines.append([source, "normalised" if normalised else "plain", name, *(found[m] for m in projections)])
    return markdown(["source", "softmax", "features", *(f"m = {m}" for m in projections)], lines)


def errors(rows: list[dict]) -> str:
    rows = [row for row in rows if row["epsilon"] is not None]
    names = ["source", "kind", "map", "m", "bits", "overlap", "spearman", "max_error", "epsilon"]
    return markdown([name.replace("_", " ") for name in names], [[row[name] for name in names] for row in rows])


def trees(rows: list[dict]) -> str:
    names = ["source", "map", "m", "total_variation", "total_variation_direct"]
    lines = [[row[name] for name in names] for row in of(rows, kind="tree")]
    return markdown([name.replace("_", " ") for name in names], lines)


def write(name: str, **parts: object) -> None:
    template = (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
    (DOCS / name).write_text(template.format(**parts), encoding="utf-8")
    print(f"wrote {DOCS.name}/{name}")


def main() -> None:
    attention, lookups, faithful = (
        json.loads((RESULTS / f"{name}.json").read_text()) for name in ("attention", "database", "fidelity")
    )
    (DOCS / "images").mkdir(exist_ok=True)
    plot_bench(attention, DOCS / "images" / "speed.png")
    plot_fidelity(faithful, DOCS / "images" / "fidelity.png")
    write("speed.md", attention=speed(attention), database=database(lookups))
    draws = faithful[0]["draws"]
    write("fidelity.md", draws=str(draws), overlaps=overlaps(faithful), errors=errors(faithful), trees=trees(faithful))


if __name__ == "__main__":
    main()
