"""The claims about speed, checked on the rows of one run of `iap bench attention`: status 1 if one does not hold.

Run it: python benchmarks/claims.py [ROWS.json]
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def claims(rows: list[dict]) -> Iterator[tuple[str, float, float]]:
    """What is claimed, the ratio measured, and the most that it may be."""
    ms = {(row["method"], row["kernel"], row["patches"]): row["ms"] for row in rows}
    mb = {(row["method"], row["kernel"], row["patches"]): row["extra_mb"] for row in rows}
    small, middle, large = 4_800, 19_200, 76_800
    fused = ms["fused", "positive", middle]
    yield "softmax, 19,200 patches: fused / jitted JAX", fused / ms["jax", "positive", middle], 0.4
    yield "softmax, 19,200 patches: fused / exact", fused / ms["exact", "positive", middle], 1 / 500
    relu = ms["fused", "relu", middle]
    yield "ReLU, 19,200 patches: fused / jitted JAX", relu / ms["jax", "relu", middle], 0.5
    yield "19,200 patches: fused ReLU / fused softmax", relu / fused, 1.0
    for kernel in sorted({row["kernel"] for row in rows}):
        growth = ms["fused", kernel, large] / ms["fused", kernel, small]
        yield f"{kernel}: fused, 76,800 / 4,800 patches", growth, 18.0
        if mb["fused", kernel, large] is not None:
            yield f"{kernel}: fused, extra MB at 76,800 patches", mb["fused", kernel, large], 50.0


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "attention.json"
    failed = False
    for what, measured, most in claims(json.loads(path.read_text())):
        holds = measured <= most
        failed |= not holds
        print(f"{'holds' if holds else 'FAILS'}  {what}: {measured:.4g} (at most {most:.4g})")
    sys.exit(failed)


if __name__ == "__main__":
    main()
