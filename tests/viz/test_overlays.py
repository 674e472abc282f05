import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from iap.attention import Grid, centres_of, grid_of
from iap.viz.lettering import OUTLINE
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


@given(st.integers(0, 15), st.integers(2, 6))
def test_the_selected_patch_is_outlined_and_keeps_its_colours_inside(selected, zoom):
    image = np.random.default_rng(0).integers(0, 200, (32, 32, 3), dtype=np.uint8)
    picture = overlay(image, np.array([selected]), Grid(4, 4), 8, 8, zoom=zoom)
    is_line = (picture == OUTLINE).all(axis=-1)
    row, column = 8 * zoom * (selected // 4), 8 * zoom * (selected % 4)
    rows, columns = np.nonzero(is_line)
    assert (rows.min(), rows.max()) == (row, row + 8 * zoom - 1)
    assert (columns.min(), columns.max()) == (column, column + 8 * zoom - 1)
    same = (picture == image.repeat(zoom, axis=0).repeat(zoom, axis=1)).all(axis=-1)
    assert same[row + 3 : row + 8 * zoom - 3, column + 3 : column + 8 * zoom - 3].all()
    assert (~same).sum() < 4 * 8 * zoom * 4


def test_neighbouring_patches_share_one_outline():
    picture = overlay(np.zeros((32, 32, 3), np.uint8), np.array([5, 6]), Grid(4, 4), 8, 8, zoom=4)
    is_line = (picture == OUTLINE).all(axis=-1)
    assert not is_line[40:56, 60:68].any()
    assert is_line[32:34, 32:96].all()


def test_the_outline_is_visible_on_its_own_colour():
    picture = overlay(np.full((32, 32, 3), OUTLINE, np.uint8), np.array([5]), Grid(4, 4), 8, 8, zoom=4)
    assert (picture == 0).all(axis=-1).sum() > 100


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
    is_line = np.all(np.abs(drawn - OUTLINE) < 60, axis=-1)
    assert is_line[:, 800:].sum() > 100
    assert is_line[:, :400].sum() == 0


@pytest.mark.parametrize("selected", [[], range(48)])
def test_a_figure_of_no_or_all_patches_is_drawn(selected, tmp_path):
    panel = AttentionPanel("all or none", np.zeros(48, np.float32), np.array(selected, np.int64), Grid(6, 8), 1, 1)
    save_figure(attention_figure(GREY, [panel], width_px=300), tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 0
