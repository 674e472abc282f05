import math

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from PIL import Image

from iap.viz.curves import Curve, band_of, curves_figure, curves_of, plot_curves


def run(*means: float, every: int = 10, held_out: dict[int, float] | None = None, **more) -> list[dict]:
    """Rows of metrics, one per iteration."""
    return [
        {
            "iteration": i,
            "episodes": every * i,
            "mean": mean,
            "best": mean + 5,
            "held_out": (held_out or {}).get(i),
            **more,
        }
        for i, mean in enumerate(means)
    ]


def labelled_lines(figure) -> dict[str, list[list[float]]]:
    """The lines of the legend: label → points."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    return {label: np.asarray(handle.get_xydata()).tolist() for handle, label in zip(handles, labels, strict=True)}


def bands(figure) -> list[PolyCollection]:
    return [shape for shape in figure.axes[0].collections if isinstance(shape, PolyCollection)]


def test_one_run_is_drawn_with_every_kind_of_return_in_its_rows():
    figure = curves_figure({"seek": [run(1, 2, 3, held_out={0: 1.5, 2: 4})]})
    assert labelled_lines(figure) == {
        "validation episodes": [[0, 1.5], [20, 4]],
        "mean of the population": [[0, 1], [10, 2], [20, 3]],
        "best of the population": [[0, 6], [10, 7], [20, 8]],
    }
    assert figure.axes[0].get_title() == "seek"
    assert figure.axes[0].get_xlabel() == "episodes"
    assert bands(figure) == []


def test_seeds_are_drawn_as_their_mean_in_a_band_from_the_lowest_to_the_highest():
    figure = curves_figure({"seek": [run(1, 2), run(3, 8), run(2, 5)]})
    assert labelled_lines(figure)["mean of the population"] == [[0, 2], [10, 5]]
    assert figure.axes[0].get_title() == "seek (3 seeds)"
    corners = {tuple(corner) for corner in np.asarray(bands(figure)[0].get_paths()[0].vertices)}
    assert {(0, 1), (0, 3), (10, 2), (10, 8)} <= corners


def test_several_labels_are_compared_by_the_most_informative_return_that_all_have():
    both = {"rank": [run(1, 2, held_out={1: 7}), run(3, 4, held_out={1: 9})], "blind": [run(0, 0, held_out={1: 1})]}
    figure = curves_figure(both)
    assert labelled_lines(figure) == {"rank (2 seeds)": [[10, 8]], "blind": [[10, 1]]}
    assert figure.axes[0].get_ylabel() == "return, validation episodes"
    figure = curves_figure(both | {"never evaluated": [run(5, 6)]})
    assert list(labelled_lines(figure).values()) == [[[0, 2], [10, 3]], [[0, 0], [10, 0]], [[0, 5], [10, 6]]]
    assert figure.axes[0].get_ylabel() == "return, mean of the population"


def test_the_horizontal_axis_can_be_iterations():
    figure = curves_figure({"seek": [run(1, 2)]}, over="iteration")
    assert labelled_lines(figure)["mean of the population"] == [[0, 1], [1, 2]]
    assert figure.axes[0].get_xlabel() == "iterations"


def test_the_band_ends_with_the_shortest_seed_and_the_others_continue_as_thin_lines():
    figure = curves_figure({"seek": [run(1, 2, 3), run(3, 4)]})
    assert labelled_lines(figure)["mean of the population"] == [[0, 2], [10, 3]]
    thin = [np.asarray(line.get_xydata()).tolist() for line in figure.axes[0].lines if line.get_linewidth() < 1]
    assert [[0, 1], [10, 2], [20, 3]] in thin


def test_seeds_measured_at_different_points_are_interpolated():
    x, returns = band_of(
        [Curve(np.array([0.0, 10]), np.array([0.0, 10])), Curve(np.array([5.0, 20]), np.array([3.0, 6]))]
    )
    assert x.tolist() == [5, 10]
    assert returns.tolist() == [[5, 10], [3, 4]]


def test_seeds_without_a_common_range_are_drawn_without_a_mean():
    early, late = ([{"episodes": start + i, "mean": i} for i in range(3)] for start in (0, 100))
    figure = curves_figure({"seek": [early, late]})
    assert labelled_lines(figure) == {"mean of the population": []}
    assert len(figure.axes[0].lines) == 3


def test_missing_and_infinite_values_are_left_out_and_the_last_of_equal_rows_counts():
    rows = [
        {"episodes": 10, "mean": 2.0},
        {"episodes": 0, "mean": 1.0},
        {"episodes": 20, "mean": None},
        {"episodes": 30},
        {"episodes": None, "mean": 3.0},
        {"episodes": 40, "mean": math.nan},
        {"episodes": 50, "mean": math.inf},
        {"episodes": 10, "mean": 4.0},
    ]
    (curve,) = curves_of([rows, [], [{"episodes": 1}]], "episodes", "mean")
    assert curve.x.tolist() == [0, 10]
    assert curve.y.tolist() == [1, 4]


def test_many_labels_have_different_styles():
    figure = curves_figure({f"label {i}": [run(i, i)] for i in range(15)})
    styles = {(to_hex(line.get_color()), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(styles) == 15


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ({}, "runs must not be empty"),
        ({"seek": []}, "runs has nothing to draw: seek"),
        ({"seek": [[]]}, "runs has nothing to draw: seek"),
        ({"seek": [run(1)], "empty": [[]]}, "runs has nothing to draw: seek, empty"),
    ],
)
def test_runs_with_nothing_to_draw_are_refused(runs, message):
    with pytest.raises(ValueError, match=message):
        curves_figure(runs)


def test_the_plot_is_an_image_with_lines_and_a_band(tmp_path):
    plot_curves({"seek": [run(*range(30)), run(*range(5, 35))], "blind": [run(*[0] * 30)]}, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        drawn = np.asarray(picture.convert("RGB")).astype(int)
    for line in ((0, 114, 178), (213, 94, 0), (208, 227, 239)):  # the last is the blue band
        assert (np.abs(drawn - line).sum(axis=-1) < 15).sum() > 200
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_a_single_row_is_drawn_as_a_point(tmp_path):
    figure = curves_figure({"seek": [run(3)]})
    assert [line.get_marker() for line in figure.axes[0].lines] == ["o", "o"]
    plot_curves({"seek": [run(3)]}, tmp_path / "a.png")
