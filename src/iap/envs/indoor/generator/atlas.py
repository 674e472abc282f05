"""Textures: the rectangles of a class are packed into one image and painted, pattern times light."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8

from iap._compile import compiled
from iap.envs.indoor.generator.light import Grids
from iap.envs.indoor.generator.materials import PATTERNS
from iap.envs.indoor.generator.shapes import Patch

GUTTER = 2  # texels around a rectangle that repeat its edge
TEXEL_M = {"floor": 0.0125, "wall": 0.02, "ceiling": 0.05, "door": 0.02, "furniture": 0.0125}
LEAST_TEXELS = 2
EXPOSURE = 1.35


@dataclass(frozen=True, eq=False)
class Atlas:
    """A texture.

    Attributes:
        pixels: row 0 is the top.
        places: x, y, width, height in texels of each rectangle, without the gutter.
    """

    pixels: UInt8[np.ndarray, "H W 3"]
    places: Int[np.ndarray, "n 4"]

    def texcoords(self, i: int, outline: Float[np.ndarray, "k 2"]) -> Float[np.ndarray, "k 2"]:
        """Texture coordinates of points (s, t) of rectangle i; t = 0 is its lowest row."""
        x, y, width, height = self.places[i]
        rows, columns = self.pixels.shape[:2]
        return np.stack([(x + outline[:, 0] * width) / columns, 1 - (y + (1 - outline[:, 1]) * height) / rows], axis=1)


def paint_atlas(
    kind: str,
    patches: list[Patch],
    chosen: list[int],
    grids: Grids,
    patterns: Float32[np.ndarray, "n S S 3"],
    shifts: Int[np.ndarray, "all 2"],
) -> Atlas:
    """The texture of the rectangles with the numbers `chosen`; their patterns are shifted by `shifts` texels."""
    sizes = np.array([[np.linalg.norm(patches[i].u), np.linalg.norm(patches[i].v)] for i in chosen])
    texels = np.maximum(np.ceil(sizes / TEXEL_M[kind]).astype(np.int64), LEAST_TEXELS)
    places, side, height = pack(texels + 2 * GUTTER)
    inner = np.concatenate([places + GUTTER, texels], axis=1)
    pixels = np.zeros((height, side, 3), np.uint8)
    names = list(PATTERNS)
    pattern = np.array([names.index(patches[i].pattern) for i in chosen])
    tints = np.array([patches[i].tint for i in chosen], np.float64)
    _paint(pixels, inner, sizes, pattern, tints, shifts[chosen], np.array(chosen), grids, patterns, _tone_curve())
    return Atlas(pixels, inner)


def pack(sizes: Int[np.ndarray, "n 2"]) -> tuple[Int[np.ndarray, "n 2"], int, int]:
    """Rows of rectangles (width, height), the highest first: their places, and the width and height of all."""
    area = float((sizes[:, 0] * sizes[:, 1]).sum())
    side = max(int(sizes[:, 0].max()), 64 * int(np.ceil(np.sqrt(area * 1.05) / 64)))
    places = np.zeros_like(sizes)
    x = y = row = 0
    for i in np.lexsort((np.arange(len(sizes)), -sizes[:, 0], -sizes[:, 1])):
        width, height = sizes[i]
        if x + width > side:
            x, y, row = 0, y + row, 0
        places[i] = x, y
        x, row = x + int(width), max(row, int(height))
    return places, side, y + row


def _tone_curve() -> UInt8[np.ndarray, " 4096"]:
    """Light from 0 to 4 as sRGB, with highlights compressed."""
    light = np.linspace(0, 4, 4096) * EXPOSURE
    return np.rint(255 * (1 - np.exp(-light)) ** (1 / 2.2)).astype(np.uint8)


@compiled
def _paint(pixels, places, sizes, pattern, tints, shifts, chosen, grids, patterns, curve):
    side = patterns.shape[1]
    height, width = pixels.shape[:2]
    for i in range(len(places)):
        x0, y0, columns, rows = places[i]
        first, grid_rows, grid_columns = grids.starts[chosen[i]], grids.rows[chosen[i]], grids.columns[chosen[i]]
        for y in range(max(y0 - GUTTER, 0), min(y0 + rows + GUTTER, height)):
            t = 1 - (min(max(y, y0), y0 + rows - 1) - y0 + 0.5) / rows
            at_row = t * (grid_rows - 1)
            r = min(int(at_row), grid_rows - 2)
            dr = at_row - r
            tile_row = (int(t * sizes[i, 1] * 100) + shifts[i, 1]) % side
            for x in range(max(x0 - GUTTER, 0), min(x0 + columns + GUTTER, width)):
                s = (min(max(x, x0), x0 + columns - 1) - x0 + 0.5) / columns
                at_column = s * (grid_columns - 1)
                c = min(int(at_column), grid_columns - 2)
                dc = at_column - c
                corner = first + r * grid_columns + c
                tile_column = (int(s * sizes[i, 0] * 100) + shifts[i, 0]) % side
                for k in range(3):
                    low = (1 - dc) * grids.values[corner, k] + dc * grids.values[corner + 1, k]
                    high = (1 - dc) * grids.values[corner + grid_columns, k]
                    high += dc * grids.values[corner + grid_columns + 1, k]
                    light = (1 - dr) * low + dr * high
                    light *= tints[i, k] * patterns[pattern[i], tile_row, tile_column, k]
                    pixels[y, x, k] = curve[min(int(light * 1024), 4095)]
