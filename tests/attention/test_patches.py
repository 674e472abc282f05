"""Patches equal slices of the image, for all sizes, strides and libraries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap.attention import Grid, as_pixels, centres_of, extract, grid_of


@st.composite
def cuts(draw, most=12):
    """(batch, height, width, channels, patch, stride): any valid combination, most with pixels left over."""
    height, width = draw(st.integers(1, most)), draw(st.integers(1, most))
    patch = draw(st.integers(1, min(height, width)))
    batch = draw(st.sampled_from([(), (1,), (2,), (2, 3)]))
    return batch, height, width, draw(st.integers(1, 5)), patch, draw(st.integers(1, most + 1))


def image_of(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(dtype)


def sliced_by_hand(image, patch, stride):
    """Patches and their centres in pixels, by explicit loops."""
    height, width, _ = image.shape
    patches, centres = [], []
    for top in range(0, height - patch + 1, stride):
        for left in range(0, width - patch + 1, stride):
            patches.append(image[top : top + patch, left : left + patch].reshape(-1))
            centres.append((top + (patch - 1) / 2, left + (patch - 1) / 2))
    return np.array(patches), np.array(centres)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_patches_equal_slices_of_the_image(library, dtype):
    @given(library.cases(cuts(), ((), 5, 7, 3, 2, 2), ((2,), 6, 4, 1, 3, 1), ((2, 3), 3, 4, 4, 1, 5)))
    def check(cut):
        batch, height, width, channels, patch, stride = cut
        image = image_of((*batch, height, width, channels), dtype)
        tokens = library.numpy(extract(library.array(image), patch, stride))
        count = grid_of(height, width, patch, stride).patches
        assert tokens.dtype == dtype
        assert tokens.shape == (*batch, count, patch * patch * channels)
        for index in np.ndindex(*batch):
            np.testing.assert_array_equal(tokens[index], sliced_by_hand(image[index], patch, stride)[0])

    check()


@given(cuts(most=40))
def test_grid_and_centres_match_the_patches(cut):
    _, height, width, _, patch, stride = cut
    _, centres = sliced_by_hand(np.zeros((height, width, 1)), patch, stride)
    grid = grid_of(height, width, patch, stride)
    assert grid.patches == len(centres)
    assert grid.rows == len(np.unique(centres[:, 0]))
    assert grid.columns == len(np.unique(centres[:, 1]))
    found = centres_of(grid, patch, stride)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, centres)


@pytest.mark.parametrize(
    ("height", "width", "patch", "stride", "patches"),
    [(240, 320, 2, 2, 19_200), (240, 320, 1, 1, 76_800), (100, 100, 4, 4, 625), (96, 96, 7, 4, 529)],
)
def test_published_image_sizes_have_the_published_number_of_patches(height, width, patch, stride, patches):
    assert grid_of(height, width, patch, stride).patches == patches


def test_a_patch_as_large_as_the_image_is_the_image():
    image = image_of((3, 3, 2), np.float32)
    np.testing.assert_array_equal(extract(image, 3, 1), image.reshape(1, -1))


def test_bytes_become_centred_floats_and_floats_are_unchanged(library):
    image = np.array([[[0], [51], [255]]], np.uint8)
    pixels = library.numpy(as_pixels(library.array(image)))
    assert pixels.dtype == np.float32
    np.testing.assert_allclose(pixels.ravel(), [-0.5, -0.3, 0.5], atol=1e-7)
    np.testing.assert_allclose(library.numpy(as_pixels(library.array(image), centre=0)).ravel(), [0, 0.2, 1], atol=1e-7)
    depth = image_of((2, 2, 1), np.float32)
    np.testing.assert_array_equal(library.numpy(as_pixels(library.array(depth))), depth)


@pytest.mark.parametrize(
    ("patch", "stride", "error", "message"),
    [
        (1, 0, ValueError, "stride .* not 0"),
        (1, -2, ValueError, "stride .* not -2"),
        (1, 1.5, TypeError, "stride .* not 1.5"),
        (0, 1, ValueError, "patch .* not 0"),
        (5, 1, ValueError, "patch .*4×6.* not 5"),
        (2.0, 1, TypeError, "patch .* not 2.0"),
        (True, 1, TypeError, "patch .* not True"),
    ],
)
def test_an_invalid_patch_or_stride_is_refused(patch, stride, error, message):
    with pytest.raises(error, match=message):
        extract(image_of((4, 6, 3), np.uint8), patch, stride)


def test_arrays_that_are_not_images_are_refused():
    with pytest.raises(ValueError, match=r"image must be .*\(4, 6\)"):
        extract(image_of((4, 6), np.uint8), 1, 1)
    with pytest.raises(ValueError, match=r"channels .* not 0"):
        extract(np.zeros((4, 6, 0), np.float32), 1, 1)
    with pytest.raises(TypeError, match=r"image .*int32"):
        as_pixels(np.zeros((4, 6, 1), np.int32))
    with pytest.raises(TypeError, match=r"image .* not list"):
        as_pixels([[[0.0]]])
    with pytest.raises(TypeError, match=r"image .* not list"):
        extract([[[0.0]]], 1, 1)


@pytest.mark.parametrize(("name", "size"), [("height", (0, 3)), ("width", (3, 0)), ("height", (-1, 3))])
def test_an_image_without_pixels_has_no_grid(name, size):
    with pytest.raises(ValueError, match=f"{name} .* not {min(size)}"):
        grid_of(*size, patch=1, stride=1)


def test_a_grid_is_rows_by_columns():
    assert grid_of(4, 7, 2, 2) == Grid(rows=2, columns=3)
