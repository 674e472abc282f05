"""Position codes are different for all patches, small and smooth, and have separate channels for rows and columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap.attention import Grid, Positions, place, sinusoidal

GRIDS = st.builds(Grid, st.integers(1, 40), st.integers(1, 40))


def distinct_rows(codes):
    return len(np.unique(codes, axis=0))


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 12, 48])
@given(GRIDS)
def test_all_patches_have_different_codes(channels, grid):
    codes = sinusoidal(grid, channels)
    assert codes.shape == (grid.patches, channels)
    assert codes.dtype == np.float32
    assert distinct_rows(codes) == grid.patches


@pytest.mark.parametrize("channels", [1, 3])
def test_all_pixels_of_a_large_image_have_different_codes_at_the_default_scale(channels):
    grid = Grid(240, 320)
    blank = np.full((grid.patches, channels), 0.5, np.float32)
    assert distinct_rows(place(blank, grid, Positions())) == 76_800


@given(GRIDS, st.integers(2, 20))
def test_rows_and_columns_have_separate_channels(grid, channels):
    codes = sinusoidal(grid, channels).reshape(*grid, channels)
    of_rows = [c for c in range(channels) if np.ptp(codes[..., c], axis=1).max() == 0]
    of_columns = [c for c in range(channels) if np.ptp(codes[..., c], axis=0).max() == 0]
    half = (channels + 1) // 2
    assert set(range(half)) <= set(of_rows)
    assert set(range(half, channels)) <= set(of_columns)


@given(GRIDS)
def test_a_single_channel_changes_less_along_a_row_than_from_row_to_row(grid):
    codes = sinusoidal(grid, 1).reshape(grid)
    assert np.all(np.diff(codes, axis=1) > 0)
    assert np.all(codes[1:, 0] > codes[:-1, -1])


@pytest.mark.parametrize("channels", [1, 2, 3, 12, 48])
def test_codes_of_neighbours_are_similar_and_those_of_distant_patches_are_not(channels):
    grid = Grid(24, 32)
    codes = sinusoidal(grid, channels).reshape(*grid, channels)
    to_the_right = np.linalg.norm(np.diff(codes, axis=1), axis=-1)
    below = np.linalg.norm(np.diff(codes, axis=0), axis=-1)
    across = np.linalg.norm(codes[0, 0] - codes[-1, -1])
    # the highest frequency is one radian a patch
    assert max(to_the_right.max(), below.max()) < 0.5 * np.sqrt(channels)
    assert across > 2 * np.median(to_the_right)
    assert across > 2 * np.median(below)


@given(GRIDS, st.integers(1, 20))
def test_a_code_is_the_sum_of_a_row_and_a_column_code_of_at_most_unit_size(grid, channels):
    codes = sinusoidal(grid, channels).reshape(*grid, channels)
    np.testing.assert_allclose(codes, codes[:, :1] + codes[:1] - codes[:1, :1], atol=1e-6)
    limit = 1.5 if channels == 1 else 1  # a single channel is the sum of both
    assert np.abs(codes).max() <= limit


@pytest.mark.parametrize("scale", [None, 0.0, 0.1, 2.5])
def test_codes_are_added_with_the_given_scale_and_with_a_tenth_by_default(library, scale):
    grid = Grid(3, 5)
    tokens = np.random.default_rng(0).normal(size=(2, 15, 6)).astype(np.float32)
    positions = Positions() if scale is None else Positions(scale=scale)
    placed = library.numpy(place(library.array(tokens), grid, positions))
    assert placed.dtype == np.float32
    expected = tokens + (0.1 if scale is None else scale) * sinusoidal(grid, 6)
    np.testing.assert_allclose(placed, expected, atol=1e-6)


def test_codes_can_be_concatenated(library):
    grid = Grid(3, 5)
    tokens = np.random.default_rng(0).normal(size=(2, 15, 3)).astype(np.float32)
    positions = Positions("concat", channels=4)
    placed = library.numpy(place(library.array(tokens), grid, positions))
    assert placed.dtype == np.float32
    assert placed.shape == (2, 15, positions.width(3)) == (2, 15, 7)
    np.testing.assert_array_equal(placed[..., :3], tokens)
    for image in placed:
        np.testing.assert_allclose(image[:, 3:], 0.1 * sinusoidal(grid, 4), atol=1e-7)


def test_codes_can_be_left_out(library):
    tokens = np.ones((15, 3), np.float32)
    positions = Positions("none")
    np.testing.assert_array_equal(library.numpy(place(library.array(tokens), Grid(3, 5), positions)), tokens)
    assert positions.width(3) == Positions("add").width(3) == 3


def test_a_caller_cannot_change_the_cached_codes():
    grid = Grid(3, 5)
    before = sinusoidal(grid, 4).copy()
    sinusoidal(grid, 4)[:] = 7
    np.testing.assert_array_equal(sinusoidal(grid, 4), before)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mode": "multiply"}, ValueError, "mode .*'multiply'"),
        ({"scale": float("nan")}, ValueError, "scale .* nan"),
        ({"scale": float("inf")}, ValueError, "scale .* inf"),
        ({"channels": 0}, ValueError, "channels .* 0"),
        ({"channels": 2.5}, TypeError, "channels .* 2.5"),
    ],
)
def test_invalid_positions_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Positions(**arguments)


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (np.zeros((14, 3), np.float32), ValueError, r"14 patches.*\(3, 5\) has 15"),
        (np.zeros(15, np.float32), ValueError, r"tokens .* shape \(15,\)"),
        (np.zeros((15, 3), np.uint8), TypeError, "tokens .* uint8"),
        ([[0.0]] * 15, TypeError, "tokens .* list"),
    ],
)
def test_patches_that_do_not_match_the_grid_are_refused(tokens, error, message):
    with pytest.raises(error, match=message):
        place(tokens, Grid(3, 5), Positions())


def test_a_code_needs_at_least_one_channel():
    with pytest.raises(ValueError, match=r"channels .* 0"):
        sinusoidal(Grid(3, 5), 0)
