"""Measuring commands and the first example, as users run them."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image
from training_cases import error_of, iap, iap_here

ROOT = Path(__file__).parents[2]


def width_of(picture: Path) -> int:
    with Image.open(picture) as opened:
        return opened.width


@pytest.mark.slow
def test_bench_attention_writes_rows_a_plot_and_a_table(tmp_path):
    rows_file, plot = tmp_path / "rows.json", tmp_path / "plot.png"
    options = ["--sizes", 529, 2500, "--kernels", "trigonometric", "--json", rows_file, "--plot", plot]
    shown = iap("bench", "attention", *options).stdout
    rows = json.loads(rows_file.read_text())
    measured = {(row["method"], row["kernel"], row["patches"]) for row in rows}
    methods = ["exact", "numpy", "jax", "compiled", *(["torch"] if find_spec("torch") else [])]
    assert measured == {(method, "trigonometric", patches) for method in methods for patches in (529, 2500)}
    assert all(set(row) == {"method", "kernel", "patches", "ms", "extra_mb"} for row in rows)
    assert all(row["ms"] > 0 and row["extra_mb"] >= 0 for row in rows)
    assert "compiled / jax" in shown
    assert width_of(plot) > 500
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plot.png", "rows.json"]


def test_json_to_standard_output_is_nothing_but_json():
    words = ["bench", "attention", "--sizes", 529, "--kernels", "relu", "--methods", "compiled", "--json", "-"]
    [row] = json.loads(iap_here(*words).stdout)
    assert row["method"] == "compiled"


@pytest.mark.slow
def test_fidelity_writes_rows_and_a_plot(tmp_path):
    rows_file, plot = tmp_path / "rows.json", tmp_path / "plot.png"
    iap_here("fidelity", "--draws", 1, "--json", rows_file, "--plot", plot)
    rows = json.loads(rows_file.read_text())
    assert {row["source"] for row in rows} == {"synthetic", "frames"}
    assert {row["kind"] for row in rows} == {"features", "hash", "tree"}
    assert width_of(plot) > 500


def test_an_output_file_that_cannot_be_written_is_an_error_before_anything_is_measured(tmp_path):
    missing = tmp_path / "nowhere" / "rows.json"
    assert str(missing.parent) in error_of(iap_here("bench", "attention", "--json", missing, code=1))


@pytest.mark.slow
def test_the_first_example_draws_the_attended_patches(tmp_path):
    example = [sys.executable, ROOT / "examples" / "01_attend.py", "--out", tmp_path / "new"]
    done = subprocess.run(example, capture_output=True, text=True, check=True)
    assert "200 of 76,800 patches" in done.stdout
    assert width_of(tmp_path / "new" / "attention.png") > 1000


@pytest.mark.slow
def test_the_deployment_example_acts_through_c_as_in_python(tmp_path):
    example = [sys.executable, ROOT / "examples" / "06_deploy.py", "--out", tmp_path]
    done = subprocess.run(example, capture_output=True, text=True, check=True)
    python, native = (line.split(",")[0].split()[-1] for line in done.stdout.splitlines()[-2:])
    assert abs(float(python) - float(native)) < 0.01
    assert (tmp_path / "seek" / "seek.c").exists()


def test_the_return_of_one_episode_has_no_interval():
    shown = iap_here("eval", "zoo:seek", "--episodes", 1, "--pool", "inline").stdout
    assert "1 episode, seed 0" in shown
    assert "±" not in shown
