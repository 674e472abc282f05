"""Position codes of patches: two-dimensional sinusoids, added to the patch (the paper) or concatenated."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Float

from iap._validation import require_count
from iap.attention.arrays import Array, like, namespace, require_floats
from iap.attention.patches import Grid

HALF_SWEEP = math.pi / 3  # the slowest phase ranges over ±60°, where the sine is injective
FASTEST = 1.0  # radians between neighbouring patches, as in Vaswani et al.


@dataclass(frozen=True)
class Positions:
    """The position code of patches.

    Attributes:
        mode: "add" to the vectorised patch (the paper), "concat" to it, or "none".
        scale: the amplitude of the sinusoids; at 1 they dominate pixels in ±0.5, and the selection hardly changes.
        channels: the number of channels for "concat"; "add" uses one for each entry of the patch.
    """

    mode: Literal["add", "concat", "none"] = "add"
    scale: float = 0.1
    channels: int = 4

    def __post_init__(self) -> None:
        if self.mode not in ("add", "concat", "none"):
            raise ValueError(f'mode must be "add", "concat" or "none", not {self.mode!r}')
        if not math.isfinite(self.scale):
            raise ValueError(f"scale must be finite, not {self.scale}")
        require_count("channels", self.channels)

    def width(self, patch_width: int) -> int:
        """The length of a patch with its position code."""
        return patch_width + self.channels if self.mode == "concat" else patch_width


def place(tokens: Float[Array, "*batch L c"], grid: Grid, positions: Positions) -> Float[Array, "*batch L e"]:
    """X′: the patches with their position codes."""
    xp = namespace(tokens=require_floats("tokens", tokens, least_rank=2))
    if tokens.shape[-2] != grid.patches:
        raise ValueError(f"tokens have {tokens.shape[-2]} patches, but the grid {tuple(grid)} has {grid.patches}")
    if positions.mode == "none":
        return tokens
    width = tokens.shape[-1] if positions.mode == "add" else positions.channels
    code = like(positions.scale * sinusoidal(grid, width), tokens)
    if positions.mode == "add":
        return tokens + code
    return xp.concat([tokens, xp.broadcast_to(code, (*tokens.shape[:-1], width))], axis=-1)


def sinusoidal(grid: Grid, channels: int) -> Float[np.ndarray, "L channels"]:
    """A different code for each patch: the sum of a code of its row and one of its column."""
    rows, columns = axis_codes(grid, channels)
    return (rows[:, None, :] + columns[None, :, :]).reshape(grid.patches, channels)


@lru_cache(maxsize=64)
def axis_codes(
    grid: Grid, channels: int
) -> tuple[Float[np.ndarray, "rows channels"], Float[np.ndarray, "columns channels"]]:
    """The codes of rows and of columns, each zero in the other's channels.

    Rows use the first half of the channels, including the middle one of an odd number. A single channel (depth,
    patch 1) is shared: columns then change the code by less than one row does, so that all codes differ.
    """
    require_count("channels", channels)
    rows = np.zeros((grid.rows, channels), np.float32)
    columns = np.zeros((grid.columns, channels), np.float32)
    half = (channels + 1) // 2
    rows[:, :half] = _waves(grid.rows, half)
    if channels == 1:
        columns[:] = _waves(grid.columns, 1) / (2 * grid.rows)
    else:
        columns[:, half:] = _waves(grid.columns, channels - half)
    rows.flags.writeable = columns.flags.writeable = False
    return rows, columns


def _waves(length: int, channels: int) -> np.ndarray:
    """Sines and cosines of phases of increasing frequency, one position a row."""
    place = (np.arange(length) + 0.5) / length - 0.5
    slowest = 2 * HALF_SWEEP
    fastest = max(slowest, FASTEST * length)
    rates = np.geomspace(slowest, fastest, (channels + 1) // 2)
    phases = place[:, None] * rates
    waves = np.stack([np.sin(phases), np.cos(phases)], axis=-1).reshape(length, -1)
    return waves[:, :channels].astype(np.float32)
