import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]


def iap(*arguments, code=0):
    command = [sys.executable, "-c", "from iap.cli import main; main()", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def width_of(picture):
    with Image.open(picture) as opened:
        return opened.width


@pytest.mark.parametrize("words", [[], ["bench"], ["bench", "attention"], ["bench", "database"], ["fidelity"]])
def test_every_command_has_help_with_an_example(words):
    shown = " ".join(iap(*words, "--help").stdout.split())
    assert not words or f"Example: iap {' '.join(words)}" in shown


def test_bench_attention_writes_rows_a_plot_and_a_table(tmp_path):
    rows_file, plot = tmp_path / "rows.json", tmp_path / "plot.png"
    options = ["--sizes", 529, 2500, "--kernels", "trigonometric", "--json", rows_file, "--plot", plot]
    shown = iap("bench", "attention", *options).stdout
    rows = json.loads(rows_file.read_text())
    measured = {(row["method"], row["kernel"], row["patches"]) for row in rows}
    assert measured == {
        (method, "trigonometric", patches)
        for method in ("exact", "numpy", "jax", "torch", "fused")
        for patches in (529, 2500)
    }
    assert all(set(row) == {"method", "kernel", "patches", "ms", "extra_mb"} for row in rows)
    assert all(row["ms"] > 0 and row["extra_mb"] >= 0 for row in rows)
    assert "fused" in shown
    assert width_of(plot) > 500
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plot.png", "rows.json"]


def test_json_to_standard_output_is_nothing_but_json():
    done = iap("bench", "attention", "--sizes", 529, "--kernels", "relu", "--methods", "fused", "--json", "-")
    [row] = json.loads(done.stdout)
    assert row["method"] == "fused"


def test_fidelity_writes_rows_and_a_plot(tmp_path):
    rows_file, plot = tmp_path / "rows.json", tmp_path / "plot.png"
    iap("fidelity", "--draws", 1, "--json", rows_file, "--plot", plot)
    rows = json.loads(rows_file.read_text())
    assert {row["source"] for row in rows} == {"synthetic", "frames"}
    assert {row["kind"] for row in rows} == {"features", "hash", "tree"}
    assert width_of(plot) > 500


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "attention", "--sizes", "5"], "sizes must be of 529, 2500, 4800, 19200, 76800, not 5"),
        (["bench", "attention", "--kernels", "cosine"], "kernels must be of relu, positive"),
        (["fidelity", "--draws", "0"], "draws must be at least 1, not 0"),
    ],
)
def test_a_wrong_value_is_told_in_one_line(arguments, message):
    told = iap(*arguments, code=1).stderr.strip()
    assert told.startswith("iap: ")
    assert message in told
    assert "\n" not in told


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path):
    missing = tmp_path / "nowhere" / "rows.json"
    told = iap("bench", "attention", "--json", missing, code=1).stderr
    assert str(missing.parent) in told


def test_the_example_draws_where_attention_falls(tmp_path):
    example = [sys.executable, ROOT / "examples" / "01_attend.py", "--out", tmp_path / "new"]
    done = subprocess.run(example, capture_output=True, text=True, check=True)
    assert "200 of 76,800 patches" in done.stdout
    assert width_of(tmp_path / "new" / "attention.png") > 1000
