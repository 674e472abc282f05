import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from iap.attention import Grid, centres_of, grid_of
from iap.viz.overlays import AttentionPanel, attention_figure, by_rank, heat_map, overlay, spread
from iap.viz.plots import save_figure

GREY = np.full((6, 8, 3), 100, np.uint8)


def brightness(picture: np.ndarray) -> np.ndarray:
    return picture.astype(int).sum(axis=-1)


@st.composite
def layouts(draw) -> tuple[int, int, int, int, Grid]:
    height, width = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    patch = draw(st.integers(1, min(height, width)))
    stride = draw(st.integers(1, 5))
    return height, width, patch, stride, grid_of(height, width, patch, stride)


@given(layouts(), st.integers(0, 2**32 - 1))
def test_exactly_the_pixels_of_the_selected_patches_are_red(layout, seed):
    height, width, patch, stride, grid = layout
    selected = np.random.default_rng(seed).choice(grid.patches, size=(grid.patches + 1) // 2, replace=False)
    expected = np.full((height, width, 3), 100, np.uint8)
    for row, column in zip(*np.unravel_index(selected, grid), strict=True):
        expected[row * stride : row * stride + patch, column * stride : column * stride + patch] = (255, 0, 0)
    image = np.full((height, width, 3), 100, np.uint8)
    np.testing.assert_array_equal(overlay(image, selected, grid, patch, stride, opacity=1), expected)
    assert (image == 100).all()


@given(layouts(), st.integers(0, 2**32 - 1))
def test_a_pixel_gets_the_mean_of_the_patches_that_cover_it(layout, seed):
    height, width, patch, stride, grid = layout
    values = np.random.default_rng(seed).random(grid.patches, dtype=np.float32)
    means, covers = spread(values, grid, patch, stride, (height, width))
    corners = centres_of(grid, patch, stride) - (patch - 1) / 2
    for y, x in np.ndindex(height, width):
        inside = ((corners <= (y, x)) & ((y, x) < corners + patch)).all(axis=-1)
        assert covers[y, x] == inside.sum()
        np.testing.assert_allclose(means[y, x], values[inside].mean() if inside.any() else 0, rtol=1e-5)


def test_opacity_blends_the_colour_with_the_image():
    picture = overlay(GREY, np.array([0]), Grid(6, 8), 1, 1, opacity=0.5)
    assert picture[0, 0].tolist() == [178, 50, 50]
    assert picture[0, 1].tolist() == [100, 100, 100]


def test_zoom_turns_one_red_pixel_into_a_red_square_and_nothing_else():
    picture = overlay(GREY, np.array([9]), Grid(6, 8), 1, 1, opacity=1, zoom=5)
    red = (picture == (255, 0, 0)).all(axis=-1)
    assert picture.shape == (30, 40, 3)
    assert red.sum() == 25
    assert red[5:10, 5:10].all()


def test_a_higher_score_is_brighter_also_beside_an_outlier():
    scores = np.arange(48, dtype=np.float32)
    scores[-1] = 1e30
    shown = brightness(heat_map(GREY, scores, Grid(6, 8), 1, 1)).ravel()
    assert (np.diff(shown) >= 0).all()
    assert shown[40] - shown[5] > 100


def test_equal_scores_have_equal_colours():
    assert by_rank(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [1, 0, 1, 0.5]
    assert len(np.unique(heat_map(GREY, np.zeros(48, np.float32), Grid(6, 8), 1, 1).reshape(-1, 3), axis=0)) == 1


def test_pixels_outside_every_patch_are_unchanged():
    picture = heat_map(GREY, np.zeros(4, np.float32), Grid(2, 2), 2, 2)
    assert (picture[4:] == 100).all()
    assert (picture[:4, :4] != 100).any(axis=-1).all()


def test_depth_is_shown_from_black_to_white():
    depth = np.linspace(0.5, 4, 48, dtype=np.float32).reshape(6, 8, 1)
    picture = overlay(depth, np.array([], np.int64), Grid(6, 8), 1, 1)
    assert picture.shape == (6, 8, 3)
    assert (picture[0, 0].max(), picture[-1, -1].min()) == (0, 255)
    assert (np.diff(brightness(picture).ravel()) >= 0).all()


def test_constant_depth_is_black():
    picture = overlay(np.full((6, 8, 1), 2, np.float32), np.array([], np.int64), Grid(6, 8), 1, 1)
    assert (picture == 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: overlay(GREY, np.array([48]), Grid(6, 8), 1, 1), "selected must be between 0 and 47"),
        (lambda: overlay(GREY, np.array([-1]), Grid(6, 8), 1, 1), "selected must be between 0 and 47"),
        (lambda: overlay(GREY, np.array([0]), Grid(6, 8), 2, 1), "but the image has"),
        (lambda: overlay(GREY, np.array([0]), Grid(6, 8), 1, 1, zoom=0), "zoom must be at least 1"),
        (lambda: overlay(GREY[0], np.array([0]), Grid(6, 8), 1, 1), "image must be"),
        (
            lambda: overlay(np.full((6, 8, 1), np.inf, np.float32), np.array([0]), Grid(6, 8), 1, 1),
            "image must be finite",
        ),
        (lambda: heat_map(GREY, np.full(48, np.nan, np.float32), Grid(6, 8), 1, 1), "scores must not hold NaN"),
        (lambda: heat_map(GREY, np.zeros(47, np.float32), Grid(6, 8), 1, 1), "values must be 48"),
        (lambda: attention_figure(GREY, []), "panels must not be empty"),
    ],
)
def test_errors_name_arguments_that_do_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_figure_has_one_row_per_panel_and_the_given_width(tmp_path):
    rng = np.random.default_rng(0)
    image = rng.integers(0, 40, (60, 80, 3), dtype=np.uint8)
    panels = [
        AttentionPanel(f"patch {patch}", rng.random(grid.patches), np.array([3, 5]), grid, patch, patch)
        for patch in (1, 4)
        for grid in [grid_of(60, 80, patch, patch)]
    ]
    figure = attention_figure(image, panels)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[::3] == ["patch 1", "patch 4"]
    assert titles[2::3] == ["attended: 2 of 4,800 patches", "attended: 2 of 300 patches"]
    save_figure(figure, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        drawn = np.asarray(picture.convert("RGB")).astype(int)
    assert drawn.shape[1] == 1200
    red = (drawn[..., 0] > 200) & (drawn[..., 1:].max(axis=-1) < 60)
    assert red[:, 800:].sum() > 100
    assert red[:, :400].sum() == 0


@pytest.mark.parametrize("selected", [[], range(48)])
def test_a_figure_of_no_or_all_patches_is_drawn(selected, tmp_path):
    panel = AttentionPanel("all or none", np.zeros(48, np.float32), np.array(selected, np.int64), Grid(6, 8), 1, 1)
    save_figure(attention_figure(GREY, [panel], width_px=300), tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 0
