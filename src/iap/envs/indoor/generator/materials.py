"""Procedural patterns: tiles of 256 × 256 texels of 1 cm that repeat, as reflectances relative to a tint."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float32

SIDE = 256
Pattern = Float32[np.ndarray, "256 256 3"]

PATTERNS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {}


def pattern(function: Callable[[np.random.Generator], np.ndarray]) -> Callable[[np.random.Generator], np.ndarray]:
    """Register a pattern under the function's name."""
    PATTERNS[function.__name__.replace("_", " ")] = function
    return function


def draw_patterns(rng: np.random.Generator) -> Float32[np.ndarray, "n 256 256 3"]:
    """All patterns, in the order of `PATTERNS`."""
    drawn = [np.asarray(make(rng), np.float32) for make in PATTERNS.values()]
    full = [np.repeat(tile[..., None], 3, axis=2) if tile.ndim == 2 else tile for tile in drawn]  # noqa: PLR2004
    return np.clip(np.stack(full), 0.0, 2.5)


def noise(rng: np.random.Generator, rows: float, columns: float) -> Float32[np.ndarray, "256 256"]:
    """Smooth noise of mean 0 and deviation 1, with these correlation lengths in texels, which repeats."""
    spectrum = np.fft.rfft2(rng.standard_normal((SIDE, SIDE)))
    fy, fx = np.fft.fftfreq(SIDE)[:, None], np.fft.rfftfreq(SIDE)[None]
    smooth = np.fft.irfft2(
        spectrum * np.exp(-2 * ((np.pi * rows * fy) ** 2 + (np.pi * columns * fx) ** 2)), (SIDE, SIDE)
    )
    smooth -= smooth.mean()
    return (smooth / (smooth.std() + 1e-9)).astype(np.float32)


@pattern
def plain(rng: np.random.Generator) -> np.ndarray:
    """Paint, plastic."""
    return 1 + 0.015 * noise(rng, 2, 2)


@pattern
def plaster(rng: np.random.Generator) -> np.ndarray:
    """Painted walls."""
    return 1 + 0.03 * noise(rng, 20, 20) + 0.02 * noise(rng, 1, 1)


@pattern
def planks(rng: np.random.Generator) -> np.ndarray:
    """Floor boards along u."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    width, length = 16, 128
    row = rows // width
    shifts = rng.integers(0, SIDE, SIDE // width)
    along = (columns + shifts[row]) % SIDE
    board = row * (SIDE // length) + along // length
    tone = rng.normal(0, 0.1, board.max() + 1)[board]
    warmth = rng.normal(0, 0.02, board.max() + 1)[board]
    seam = np.where((rows % width == 0) | (along % length == 0), 0.55, 1.0)
    grain = 0.07 * noise(rng, 0.6, 18) + 0.04 * noise(rng, 2, 40)
    tile = (1 + tone + grain) * seam
    return np.stack([tile * (1 + warmth), tile, tile * (1 - 2 * warmth)], axis=-1)


@pattern
def herringbone(rng: np.random.Generator) -> np.ndarray:
    """Parquet of alternating blocks."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    block = 64
    turned = ((rows // block) + (columns // block)) % 2 == 0
    across = np.where(turned, rows, columns)
    strip = across // 16
    tones = rng.normal(0, 0.09, (SIDE // block, SIDE // block, SIDE))
    tone = tones[rows // block, columns // block, strip]
    grain = np.where(turned, noise(rng, 0.6, 12), noise(rng, 12, 0.6))
    seam = np.where((across % 16 == 0) | (rows % block == 0) | (columns % block == 0), 0.65, 1.0)
    return (1 + tone + 0.06 * grain) * seam


@pattern
def tiles(rng: np.random.Generator) -> np.ndarray:
    """Floor tiles of 32 cm."""
    return _tiles(rng, 32, 0.05)


@pattern
def small_tiles(rng: np.random.Generator) -> np.ndarray:
    """Wall tiles of 16 cm."""
    return _tiles(rng, 16, 0.03)


@pattern
def chequered(rng: np.random.Generator) -> np.ndarray:
    """Light and dark tiles."""
    rows, columns = np.mgrid[:SIDE, :SIDE] // 32
    return _tiles(rng, 32, 0.03) * np.where((rows + columns) % 2 == 0, 1.1, 0.45)


def _tiles(rng: np.random.Generator, side: int, variation: float) -> np.ndarray:
    rows, columns = np.mgrid[:SIDE, :SIDE]
    tone = rng.normal(0, variation, (SIDE // side, SIDE // side))[rows // side, columns // side]
    grout = np.where((rows % side < 1) | (columns % side < 1), 0.7, 1.0)
    return (1 + tone + 0.03 * noise(rng, 8, 8)) * grout


@pattern
def carpet(rng: np.random.Generator) -> np.ndarray:
    """Cut pile."""
    return 1 + 0.13 * noise(rng, 0.7, 0.7) + 0.05 * noise(rng, 12, 12)


@pattern
def rug(rng: np.random.Generator) -> np.ndarray:
    """Bands and diamonds in two colours."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    period = int(rng.choice([32, 64]))
    diamonds = (np.abs(rows % period - period // 2) + np.abs(columns % period - period // 2)) < period // 3
    colours = rng.uniform(0.35, 1.4, (2, 3))
    return np.where(diamonds[..., None], colours[0], colours[1]) * (1 + 0.1 * noise(rng, 0.8, 0.8))[..., None]


@pattern
def stripes(rng: np.random.Generator) -> np.ndarray:
    """Wallpaper."""
    columns = np.mgrid[:SIDE, :SIDE][1]
    return 1 - 0.14 * (columns % 32 < rng.integers(6, 18)) + 0.02 * noise(rng, 1, 1)


@pattern
def grain(rng: np.random.Generator) -> np.ndarray:
    """Wood of furniture, along u."""
    return 1 + 0.12 * noise(rng, 1.2, 30) + 0.06 * noise(rng, 0.5, 10)


@pattern
def fabric(rng: np.random.Generator) -> np.ndarray:
    """Woven upholstery."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    weave = 0.06 * ((rows % 4 < 2) ^ (columns % 4 < 2))  # noqa: PLR2004
    return 1 - weave + 0.06 * noise(rng, 1, 1) + 0.05 * noise(rng, 15, 15)


@pattern
def books(rng: np.random.Generator) -> np.ndarray:
    """Spines of 2 to 6 cm."""
    ends = np.cumsum(rng.integers(2, 7, SIDE))
    spine = np.searchsorted(ends, np.arange(SIDE), side="right")
    colours = rng.uniform(0.15, 1.1, (spine.max() + 1, 3)) * rng.uniform(0.5, 1.1, (spine.max() + 1, 1))
    edge = np.where(np.isin(np.arange(SIDE), ends - 1), 0.5, 1.0)
    return np.broadcast_to((colours[spine] * edge[:, None])[None], (SIDE, SIDE, 3)) * (
        1 + 0.05 * noise(rng, 1, 1)[..., None]
    )


@pattern
def leaves(rng: np.random.Generator) -> np.ndarray:
    """Foliage."""
    tone = 0.75 + 0.35 * noise(rng, 3, 3) + 0.2 * noise(rng, 1, 1)
    return np.stack([tone * 0.6, tone, tone * 0.45], axis=-1)


@pattern
def art(rng: np.random.Generator) -> np.ndarray:
    """Paintings: blots of a few colours."""
    colours = rng.uniform(0.1, 1.2, (5, 3))
    layer = np.digitize(noise(rng, 10, 10) + 0.15 * noise(rng, 2, 2), [-0.9, -0.2, 0.4, 1.1])
    return colours[layer]


@pattern
def view(rng: np.random.Generator) -> np.ndarray:
    """What a window shows: sky above trees and houses. Row 0 is the lowest."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    height = rows / 150.0
    sky = np.stack([0.75 - 0.25 * height, 0.9 - 0.12 * height, np.full_like(height, 1.1)], axis=-1)
    trees = 50 + 14 * noise(rng, 12, 12)[0] + 5 * noise(rng, 2, 2)[0]
    green = np.array([0.22, 0.33, 0.16]) * (1 + 0.35 * noise(rng, 2, 2))[..., None]
    houses = rng.uniform(40, 95, 8)[columns // 32]
    brick = rng.uniform(0.35, 0.8, (8, 3))[columns // 32]
    panes = (rows % 16 < 9) & (columns % 12 < 6)  # noqa: PLR2004
    brick = np.where(panes[..., None], 0.25, brick)
    shown = np.where((rows < houses)[..., None], brick, sky)
    return np.where((rows < trees[columns])[..., None], green, shown)


@pattern
def screen(rng: np.random.Generator) -> np.ndarray:
    """A dark screen that reflects a little."""
    columns, rows = np.mgrid[:SIDE, :SIDE]
    return 1 + 0.8 * (((rows + columns) % SIDE) / SIDE) + 0 * noise(rng, 1, 1)
