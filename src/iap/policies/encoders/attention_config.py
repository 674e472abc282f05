"""Shared by the attention encoders: checks of their configs, patches with positions, and the centres of patches."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iap._compile import compiled
from iap._validation import require_count, require_number, require_type
from iap.attention.arrays import Array
from iap.attention.features import ReLU, Softmax
from iap.attention.kernels.folding import Layer, floats32, position_shares
from iap.attention.kernels.projection import project_image, unrolled_steps
from iap.attention.patches import as_pixels, centres_of, extract, grid_of
from iap.attention.positions import Positions, place
from iap.policies.encoders.base import Shape, Window

if TYPE_CHECKING:
    from iap.policies.encoders.rank import Rank
    from iap.policies.encoders.trans import Trans

# Far above any practical value: a config from a file cannot allocate all memory.
MOST_DIMENSIONS = 1 << 10
MOST_PROJECTIONS = 1 << 14


def check_attention(patch: object, stride: object, d: object, kernel: object) -> None:
    """Raise an error for sizes or kernels that are not valid for attention."""
    require_count("patch", patch)
    require_count("stride", stride)
    require_count("d", d, most=MOST_DIMENSIONS)
    require_type("kernel", kernel, ReLU, Softmax)
    if isinstance(kernel, Softmax):
        require_count("projections", kernel.projections, most=MOST_PROJECTIONS)


def scaled_centres(window: Window, size: tuple[int, int]) -> Float[np.ndarray, "L 2"]:
    """Each patch's centre, (row, column), with the image's edges at ±1."""
    centres = centres_of(window.grid, window.patch, window.stride)
    return (2 * centres + 1) / np.array(size, np.float32) - 1


def tokens_of(images: Array, patch: int, stride: int, positions: Positions, centre: float = 0.5) -> Array:
    """X′: the patches of a batch of images, (n, L, c), with their positions."""
    grid = grid_of(int(images.shape[1]), int(images.shape[2]), patch, stride)
    return place(extract(as_pixels(images, centre), patch, stride), grid, positions)


def check_pixel_scale(offset: object, scale: object) -> None:
    """Raise an error unless both are finite, and the scale is positive."""
    require_number("pixel_offset", offset, -1e6, 1e6)
    require_number("pixel_scale", scale, 1e-6, 1e6)


def scaled_tokens(encoder: "Rank | Trans", images: Array) -> Array:
    """X′ of an encoder: scaled patches of a batch of images, (n, L, c), with their positions."""
    pixels = as_pixels(images)
    if encoder.pixel_offset != 0 or encoder.pixel_scale != 1:
        pixels = (pixels - encoder.pixel_offset) * encoder.pixel_scale
    return tokens_of(pixels, encoder.patch, encoder.stride, encoder.positions)


def with_scaled_pixels(
    params: Mapping[str, np.ndarray], names: Sequence[str], encoder: "Rank | Trans", channels: int
) -> tuple[Mapping[str, np.ndarray], Positions]:
    """Parameters and positions that give on pixels what the encoder's give on scaled pixels.

    W·((x − o)·s + p) = (s·W)·(x + p/s) − s·o·W·1; a concatenated position code has columns of its own in W.
    """
    offset, scale, positions = encoder.pixel_offset, encoder.pixel_scale, encoder.positions
    if offset == 0 and scale == 1:
        return params, positions
    pixels = encoder.patch**2 * channels
    folded = dict(params)
    for name in names:
        weight = np.array(params[f"{name}.weight"], np.float64)
        weight[:, :pixels] *= scale
        bias = params.get(f"{name}.bias", np.zeros(len(weight))) - offset * weight[:, :pixels].sum(axis=1)
        folded |= {f"{name}.weight": weight.astype(np.float32), f"{name}.bias": bias.astype(np.float32)}
    return folded, replace(positions, scale=positions.scale / scale) if positions.mode == "add" else positions


def project_tokens(params: Mapping[str, Array], names: Sequence[str], tokens: Array) -> list[Array]:
    """Each named layer on the tokens, (n, L, d)."""
    projected = []
    for name in names:
        x = tokens @ params[f"{name}.weight"].T
        bias = params.get(f"{name}.bias")
        projected.append(x if bias is None else x + bias)
    return projected


def layer_of(params: Mapping[str, np.ndarray], name: str, factor: float = 1.0) -> Layer:
    """A layer as `compile_ranker` takes it, multiplied by a factor."""
    bias = params.get(f"{name}.bias")
    scale = np.float32(factor)
    return Layer(params[f"{name}.weight"].T * scale, None if bias is None else bias * scale)


class ProjectionArrays(NamedTuple):
    """Several layers on all patches of an image in one pass: weights, and shares of rows and columns."""

    patch: Any
    stride: Any
    steps: Any
    weights: Any
    row_shares: Any
    column_shares: Any


def compile_projection(
    params: Mapping[str, np.ndarray],
    names: Sequence[str],
    image_shape: Shape,
    patch: int,
    stride: int,
    positions: Positions,
    dtype: np.dtype,
    *,
    centre: float = 0.5,
    factor: float = 1.0,
) -> ProjectionArrays:
    """The named layers for `project_patches`, with positions, biases and the scale of uint8 pixels included."""
    grid, pixels = grid_of(image_shape[0], image_shape[1], patch, stride), patch**2 * image_shape[2]
    weights = np.concatenate([params[f"{name}.weight"] for name in names]).astype(np.float64) * factor
    biases = [params.get(f"{name}.bias", np.zeros(len(params[f"{name}.weight"]))) for name in names]
    row_shares, column_shares = position_shares(weights, pixels, grid, positions)
    row_shares += np.concatenate(biases)[:, None].astype(np.float64) * factor
    weights = weights[:, :pixels]
    if dtype == np.uint8:
        row_shares -= centre * weights.sum(axis=1, keepdims=True)
        weights = weights / 255
    step = stride * image_shape[2]
    steps = unrolled_steps(step)
    return ProjectionArrays(patch, stride, steps, *map(floats32, (weights, row_shares, column_shares)))


@compiled
def project_patches(projection, image):
    """All layers on all patches, (outputs, L)."""
    patches = projection.row_shares.shape[1] * projection.column_shares.shape[1]
    x = np.empty((len(projection.weights), patches), np.float32)
    project_image(
        image,
        projection.patch,
        projection.stride,
        projection.steps,
        projection.weights,
        projection.row_shares,
        projection.column_shares,
        x,
    )
    return x
