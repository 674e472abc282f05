"""Write docs/speed.md and docs/fidelity.md with their plots from the JSON files in benchmarks/results.

Run it: python benchmarks/report.py
"""

import json

from pages import IMAGES, RESULTS, markdown, write_page

from iap.viz.plots import SMALLEST_GROWING, growth_exponent, plot_bench, plot_fidelity


def select(rows: list[dict], **wanted: object) -> list[dict]:
    """The rows with these values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def distinct(rows: list[dict], key: str) -> list:
    """The values of a column, in the order of their first row."""
    return list(dict.fromkeys(row[key] for row in rows))


def columns(rows: list[dict], names: list[str]) -> str:
    """A table of some columns."""
    return markdown([name.replace("_", " ") for name in names], [[row[name] for name in names] for row in rows])


def speed(rows: list[dict]) -> str:
    """Milliseconds by kernel and number of patches, with the growth and the memory of each kernel."""
    methods = distinct(rows, "method")
    lines = []
    for kernel in distinct(rows, "kernel"):
        for patches in sorted(distinct(rows, "patches")):
            ms = {row["method"]: row["ms"] for row in select(rows, kernel=kernel, patches=patches)}
            lines.append([kernel, patches, *(ms[method] for method in methods), ms["compiled"] / ms["jax"]])
        growth = [growth_exponent(select(rows, kernel=kernel, method=m), SMALLEST_GROWING) for m in methods]
        lines.append([kernel, "growth", *(f"L^{g:.2f}" for g in growth), None])
        most = max(distinct(rows, "patches"))
        memory = [select(rows, kernel=kernel, method=m, patches=most)[0]["extra_mb"] for m in methods]
        lines.append([kernel, f"MB at {most:,}", *memory, None])
    return markdown(["kernel", "patches", *methods, "compiled / jax"], lines)


def overlaps(rows: list[dict]) -> str:
    """Top-10 overlap with exact softmax by feature map and number of projections."""
    rows = select(rows, kind="features")
    projections = sorted(distinct(rows, "m"))
    lines = []
    for source in distinct(rows, "source"):
        for normalised in (False, True):
            for name in distinct(rows, "map"):
                overlap = {
                    row["m"]: row["overlap"] for row in select(rows, source=source, normalised=normalised, map=name)
                }
                kind = "normalised" if normalised else "plain"
                lines.append([source, kind, name, *(overlap[m] for m in projections)])
    return markdown(["source", "softmax", "features", *(f"m = {m}" for m in projections)], lines)


def errors(rows: list[dict]) -> str:
    """Measured errors and the ε of the theorems."""
    names = ["source", "kind", "map", "m", "bits", "overlap", "spearman", "max_error", "epsilon"]
    return columns([row for row in rows if row["epsilon"] is not None], names)


def trees(rows: list[dict]) -> str:
    """Total variation of samples from the tree and of direct samples."""
    return columns(select(rows, kind="tree"), ["source", "map", "m", "total_variation", "total_variation_direct"])


def main() -> None:
    """Write both pages."""
    attention, database, fidelity = (
        json.loads((RESULTS / f"{name}.json").read_text()) for name in ("attention", "database", "fidelity")
    )
    plot_bench(attention, IMAGES / "speed.png")
    plot_fidelity(fidelity, IMAGES / "fidelity.png")
    write_page("speed.md", attention=speed(attention), database=columns(database, list(database[0])))
    write_page(
        "fidelity.md",
        draws=fidelity[0]["draws"],
        overlaps=overlaps(fidelity),
        errors=errors(fidelity),
        trees=trees(fidelity),
    )


if __name__ == "__main__":
    main()
