"""Check the speed claims on the rows of one run of `iap bench attention`; the exit status is 1 if one fails.

Run it: python benchmarks/claims.py [ROWS.json]
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def claims(rows: list[dict]) -> Iterator[tuple[str, float, float]]:
    """Each claim: what is compared, the measured value, and its upper limit."""
    ms = {(row["method"], row["kernel"], row["patches"]): row["ms"] for row in rows}
    mb = {(row["method"], row["kernel"], row["patches"]): row["extra_mb"] for row in rows}
    small, middle, large = 4_800, 19_200, 76_800
    softmax = ms["compiled", "positive", middle]
    yield "softmax, 19,200 patches: compiled / jitted JAX", softmax / ms["jax", "positive", middle], 0.4
    yield "softmax, 19,200 patches: compiled / exact", softmax / ms["exact", "positive", middle], 1 / 500
    relu = ms["compiled", "relu", middle]
    yield "ReLU, 19,200 patches: compiled / jitted JAX", relu / ms["jax", "relu", middle], 0.5
    yield "19,200 patches: compiled ReLU / compiled softmax", relu / softmax, 1.0
    for kernel in sorted({row["kernel"] for row in rows}):
        growth = ms["compiled", kernel, large] / ms["compiled", kernel, small]
        yield f"{kernel}: compiled, 76,800 / 4,800 patches", growth, 18.0
        if mb["compiled", kernel, large] is not None:
            yield f"{kernel}: compiled, extra MB at 76,800 patches", mb["compiled", kernel, large], 50.0


def main() -> None:
    """Print every claim with its measured value."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "attention.json"
    failed = False
    for comparison, measured, limit in claims(json.loads(path.read_text())):
        holds = measured <= limit
        failed |= not holds
        print(f"{'holds' if holds else 'FAILS'}  {comparison}: {measured:.4g} (at most {limit:.4g})")
    sys.exit(failed)


if __name__ == "__main__":
    main()
