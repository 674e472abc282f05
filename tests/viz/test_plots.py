import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from iap.viz.plots import bench_figure, fidelity_figure, growth_exponent, heat_map_figure, plot_bench, plot_fidelity

BENCH = [
    {"method": method, "kernel": kernel, "patches": patches, "ms": 1e-4 * patches**growth, "extra_mb": 1.0}
    for kernel in ("relu", "softmax")
    for method, growth in (("exact", 2.0), ("compiled", 1.0))
    for patches in (19200, 2500, 4800)
]
FIDELITY = [
    {"kind": "features", "source": source, "map": name, "normalised": normalised, "m": m, "overlap": overlap}
    for source in ("synthetic", "frames")
    for normalised in (False, True)
    for name, overlap in (("positive", 0.25), ("trigonometric", 0.75))
    for m in (64, 15)
] + [{"kind": "tree", "source": "frames", "map": "positive", "normalised": False, "m": 9, "overlap": None}]


@given(st.floats(-1, 3), st.floats(1e-3, 1e3))
def test_the_growth_exponent_of_a_power_law_is_its_exponent(growth, factor):
    rows = [{"patches": size, "ms": factor * size**growth} for size in (10, 200, 3000)]
    assert growth_exponent(rows) == pytest.approx(growth, abs=1e-9)


def test_small_sizes_can_be_left_out_of_the_fit():
    rows = [{"patches": size, "ms": max(1.0, size / 1000)} for size in (10, 2000, 4000)]
    assert growth_exponent(rows) < 0.9
    assert growth_exponent(rows, least=2000) == pytest.approx(1)


def test_one_size_has_no_growth_exponent():
    assert math.isnan(growth_exponent([{"patches": 10, "ms": 1.0}] * 2))
    assert math.isnan(growth_exponent([]))


def test_the_bench_figure_has_one_panel_per_kernel_and_the_growth_in_its_legend():
    figure = bench_figure(BENCH)
    assert [axes.get_title() for axes in figure.axes] == ["relu", "softmax"]
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["exact: $L^{2.00}$", "compiled: $L^{1.00}$"]
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"
    assert np.asarray(figure.axes[1].lines[0].get_xdata()).tolist() == [2500, 4800, 19200]


def test_the_fidelity_figure_has_one_panel_per_source_and_normalisation_and_uses_feature_rows_only():
    figure = fidelity_figure(FIDELITY)
    assert [axes.get_title() for axes in figure.axes] == [
        "synthetic, plain softmax",
        "synthetic, normalised softmax",
        "frames, plain softmax",
        "frames, normalised softmax",
    ]
    for axes in figure.axes:
        points = [np.asarray(line.get_xydata()).tolist() for line in axes.lines]
        assert points == [[[15, 0.25], [64, 0.25]], [[15, 0.75], [64, 0.75]]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["positive", "trigonometric"]


@pytest.mark.parametrize(("plot", "rows"), [(plot_bench, BENCH), (plot_fidelity, FIDELITY)])
def test_a_plot_replaces_the_file_and_leaves_no_other_file(plot, rows, tmp_path):
    path = tmp_path / "plot.png"
    path.write_text("old")
    plot(rows, path)
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 3
    assert [file.name for file in tmp_path.iterdir()] == ["plot.png"]


def test_a_plot_that_cannot_be_written_leaves_no_file(tmp_path):
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(OSError, match="taken"):
        plot_bench(BENCH, tmp_path / "taken.png")
    assert [file.name for file in tmp_path.iterdir()] == ["taken.png"]


def test_a_plot_without_rows_is_refused():
    with pytest.raises(ValueError, match="rows must not be empty"):
        bench_figure([])
    with pytest.raises(ValueError, match='kind "features"'):
        fidelity_figure(FIDELITY[-1:])


def test_every_cell_of_a_heat_map_is_legible_and_missing_values_are_marked():
    values = {(1, 10): 0.0, (1, 20): 4.0, (2, 10): 2.0, (2, 20): None}
    rows = [{"patch": patch, "top_k": top_k, "return": value} for (patch, top_k), value in values.items()]
    rows.append({"patch": 2, "top_k": 10, "return": 3.0})
    axes = heat_map_figure(rows, "patch", "top_k", "return", title="returns").axes[0]
    texts = {text.get_position(): (text.get_text(), text.get_color()) for text in axes.texts}
    assert texts == {
        (0, 0): ("0", "white"),  # dark
        (1, 0): ("2.5", "black"),  # the mean of two
        (0, 1): ("4", "black"),  # bright
        (1, 1): ("none", "black"),
    }
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("returns", "patch", "top_k")


def test_importing_the_package_does_not_import_matplotlib():
    code = "import sys, iap.viz.curves, iap.viz.overlays, iap.viz.videos; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
