"""Procedural backgrounds: textures with the spectrum of natural images, moving shapes in front of them.

Each number is one video, which is always the same. Training and held-out videos have different numbers.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from PIL import Image

from iap.envs.control_suite.distractions.cache import PICTURES, Picture

TRAINING_VIDEOS = range(60)
HELD_OUT_VIDEOS = range(1000, 1030)
FRAMES = 48
TEXTURE_SIDE = 256
MAX_SHAPES = 7
CACHED_SCENES = 90

Field = Float[np.ndarray, "side side"]


class Shape(NamedTuple):
    """An ellipse or a polygon that moves and turns; lengths are in image sides, speeds per frame."""

    centre: np.ndarray
    velocity: np.ndarray
    radii: np.ndarray
    turn: float
    spin: float
    corners: int
    colours: np.ndarray


class Scene(NamedTuple):
    """The content of a video: a texture that moves by `pan` per frame, and shapes with a grain in front of it."""

    texture: Picture
    grain: Field
    pan: np.ndarray
    shapes: tuple[Shape, ...]


class ProceduralVideo:
    """Video `number`, with frames of `side`² pixels."""

    def __init__(self, number: int, side: int) -> None:
        self._number, self._side = number, side

    def __len__(self) -> int:
        return FRAMES

    def frame(self, index: int) -> Picture:
        """One frame."""
        return PICTURES.get(
            ("procedural", self._number, index, self._side), lambda: _draw(self._number, index, self._side)
        )


@lru_cache(CACHED_SCENES)
def _scene(number: int) -> Scene:
    rng = np.random.default_rng([20210208, number])
    palette = _palette(rng)
    blend, other = (_sigmoid(_natural_field(rng, rng.uniform(1.4, 2.2))) for _ in range(2))
    texture = _mixed(_mixed(palette[0], palette[1], blend), _mixed(palette[2], palette[3], blend), other)
    grain = _natural_field(rng, rng.uniform(0.7, 1.2))
    pan = rng.uniform(0.002, 0.012) * _direction(rng)
    shapes = tuple(_shape(rng, palette) for _ in range(rng.integers(2, MAX_SHAPES + 1)))
    return Scene(_as_bytes(texture + 0.06 * grain[..., None]), grain, pan, shapes)


def _natural_field(rng: np.random.Generator, slope: float) -> Field:
    """Periodic noise with an amplitude proportional to frequency^−slope, of mean 0 and variance 1."""
    frequencies = np.fft.fftfreq(TEXTURE_SIDE)
    radius = np.hypot(frequencies[:, None], np.fft.rfftfreq(TEXTURE_SIDE)[None])
    radius[0, 0] = np.inf
    spectrum = np.fft.rfft2(rng.normal(size=(TEXTURE_SIDE, TEXTURE_SIDE))) / radius**slope
    field = np.fft.irfft2(spectrum, s=(TEXTURE_SIDE, TEXTURE_SIDE))
    return (field / field.std()).astype(np.float32)


def _sigmoid(field: Field) -> Field:
    return 1 / (1 + np.exp(-2 * field))


def _mixed(first: np.ndarray, second: np.ndarray, share: Field) -> np.ndarray:
    return first + (second - first) * share[..., None]


def _palette(rng: np.random.Generator) -> Float[np.ndarray, "4 3"]:
    """Four colours of low saturation: a dark and a light one of each of two hues."""
    hues = rng.uniform() + np.array([0.0, 0.0, 1.0, 1.0]) * rng.uniform(0.1, 0.5)
    saturation, value = rng.uniform(0.15, 0.7, 4), np.array([0.15, 0.6, 0.35, 0.9]) + rng.uniform(-0.1, 0.1, 4)
    wheel = np.clip(np.abs((hues[:, None] * 6 + [0, 4, 2]) % 6 - 3) - 1, 0, 1)
    return value[:, None] * (1 - saturation[:, None] * (1 - wheel))


def _direction(rng: np.random.Generator) -> np.ndarray:
    angle = rng.uniform(0, 2 * math.pi)
    return np.array([math.cos(angle), math.sin(angle)])


def _shape(rng: np.random.Generator, palette: np.ndarray) -> Shape:
    colours = np.clip(palette[rng.integers(4, size=2)] + rng.normal(0, 0.2, (2, 3)), 0, 1)
    return Shape(
        centre=rng.uniform(0, 1, 2),
        velocity=rng.uniform(0, 0.02) * _direction(rng),
        radii=rng.uniform(0.05, 0.22) * np.array([1, rng.uniform(0.4, 1)]),
        turn=rng.uniform(0, 2 * math.pi),
        spin=rng.normal(0, 0.05),
        corners=int(rng.choice([0, 0, 3, 4, 5, 6])),
        colours=colours,
    )


def _draw(number: int, index: int, side: int) -> Picture:
    scene = _scene(number)
    moved = tuple(np.rint(index * scene.pan * TEXTURE_SIDE).astype(int))
    texture = Image.fromarray(np.roll(scene.texture, moved, (0, 1)))
    canvas = np.array(texture.resize((side, side), Image.Resampling.BILINEAR))
    for shape in scene.shapes:
        _paint(canvas, shape, index, scene.grain)
    return canvas


def _paint(canvas: np.ndarray, shape: Shape, index: int, grain: Field) -> None:
    """Paint a shape with soft edges and a brightness gradient; the canvas is periodic."""
    side, reach = len(canvas), shape.radii.max()
    centre = (shape.centre + index * shape.velocity) % 1
    rows, columns = (np.arange(math.floor((c - reach) * side), math.ceil((c + reach) * side)) for c in centre)
    y, x = ((rows + 0.5) / side - centre[0])[:, None], ((columns + 0.5) / side - centre[1])[None]
    angle = shape.turn + index * shape.spin
    across = (math.cos(angle) * x + math.sin(angle) * y) / shape.radii[0]
    along = (math.cos(angle) * y - math.sin(angle) * x) / shape.radii[1]
    distance = np.hypot(across, along)
    if shape.corners:
        sector = 2 * math.pi / shape.corners
        distance *= np.cos(np.arctan2(along, across) % sector - sector / 2) / math.cos(sector / 2)
    share = np.clip((1 - distance) * shape.radii[1] * side / 2 + 0.5, 0, 1)[..., None]
    light = np.clip(0.5 + 0.4 * across, 0, 1)[..., None]
    rough = grain[np.ix_(*(pixels * TEXTURE_SIDE // side % TEXTURE_SIDE for pixels in (rows, columns)))][..., None]
    colour = shape.colours[0] + (shape.colours[1] - shape.colours[0]) * light + 0.06 * rough
    place = np.ix_(rows % side, columns % side)
    canvas[place] = _as_bytes(canvas[place] / 255 * (1 - share) + colour * share)


def _as_bytes(shares: np.ndarray) -> Picture:
    return np.rint(255 * np.clip(shares, 0, 1)).astype(np.uint8)
