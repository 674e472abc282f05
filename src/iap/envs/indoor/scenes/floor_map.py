"""The traversability map of a floor: where there is nothing to bump into.

The image is square and centred on the world's origin; row = y and column = x, so that row 0 is the smallest y.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32

from iap.envs.indoor.grids import clearance_m, largest_part
from iap.envs.indoor.scenes.errors import SceneError
from iap.envs.indoor.scenes.images import read_image

FREE = 255
PLANNING_M = 0.05  # side of the cells of a map that is used for planning


@dataclass(frozen=True, eq=False)
class FloorMap:
    """Free and occupied cells of a floor.

    Attributes:
        free: which cells are free.
        resolution_m: side of a cell.
        origin_m: x and y of the centre of cell (0, 0).
    """

    free: Bool[np.ndarray, "H W"]
    resolution_m: float
    origin_m: tuple[float, float]

    @classmethod
    def read(cls, path: Path, resolution_m: float) -> "FloorMap":
        """The map of a file `floor_trav_{i}.png`, cropped to its free cells, in cells of at least 5 cm."""
        pixels = read_image(path, "L")
        if pixels.shape[0] != pixels.shape[1]:
            raise SceneError(path, f"must be square, not of shape {pixels.shape}")
        free = pixels == FREE
        if not free.any():
            raise SceneError(path, f"has no free pixel, of value {FREE}")
        factor = max(1, round(PLANNING_M / resolution_m))
        half = pixels.shape[0] / 2 * resolution_m
        whole = cls(free, resolution_m, (resolution_m / 2 - half, resolution_m / 2 - half))
        return whole._reduced(factor)._cropped()

    def _reduced(self, factor: int) -> "FloorMap":
        """The map in cells of factor × factor, which are free if more than half of them are."""
        if factor == 1:
            return self
        side = -(-self.free.shape[0] // factor) * factor
        padded = np.zeros((side, side), np.float32)
        padded[: self.free.shape[0], : self.free.shape[1]] = self.free
        share = padded.reshape(side // factor, factor, side // factor, factor).mean(axis=(1, 3))
        shift = (factor - 1) / 2 * self.resolution_m
        return FloorMap(share > 0.5, self.resolution_m * factor, (self.origin_m[0] + shift, self.origin_m[1] + shift))  # noqa: PLR2004

    def _cropped(self) -> "FloorMap":
        """The map around its free cells, with a border of one obstacle."""
        padded = np.pad(self.free, 2)
        rows, columns = (np.flatnonzero(padded.any(axis=axis)) for axis in (1, 0))
        top, left = rows[0] - 2, columns[0] - 2
        part = padded[top : rows[-1] + 3, left : columns[-1] + 3]
        x, y = self.origin_m
        return FloorMap(
            part, self.resolution_m, (x + (left - 2) * self.resolution_m, y + (top - 2) * self.resolution_m)
        )

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """The row and column of a position, which may be outside the map."""
        row, column = self.fractional_cell(x, y)
        return round(row), round(column)

    def fractional_cell(self, x: float, y: float) -> tuple[float, float]:
        """The row and column of a position, not rounded."""
        return (y - self.origin_m[1]) / self.resolution_m, (x - self.origin_m[0]) / self.resolution_m

    def position(self, row: float, column: float) -> tuple[float, float]:
        """x and y of a cell."""
        return float(self.origin_m[0] + column * self.resolution_m), float(self.origin_m[1] + row * self.resolution_m)

    @cached_property
    def clearance(self) -> Float32[np.ndarray, "H W"]:
        """The distance of each cell to the nearest obstacle, in metres."""
        return clearance_m(self.free, self.resolution_m)

    def walkable(self, radius_m: float) -> Bool[np.ndarray, "H W"]:
        """The largest connected part that the centre of a robot of this radius can be in."""
        return largest_part(self.clearance >= radius_m)

    @property
    def size_m(self) -> tuple[float, float]:
        """Extent along x and y between the centres of the outermost cells."""
        return (self.free.shape[1] - 1) * self.resolution_m, (self.free.shape[0] - 1) * self.resolution_m

    def contains(self, x: float, y: float) -> bool:
        """Whether a position is inside the map."""
        row, column = self.cell(x, y)
        return math.isfinite(x + y) and 0 <= row < self.free.shape[0] and 0 <= column < self.free.shape[1]
