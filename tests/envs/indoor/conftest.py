"""Scenes for the tests: a small one that is written by hand, and generated ones from the cache."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from iap.envs.indoor.scenes.source import generated_folder

PIXEL_M = 0.05
SIDE_M = 5.0
ROOM = ((-2.0, -1.5, 0.0), (2.0, 1.5, 2.4))
CRATE = ((0.5, -0.5, 0.0), (1.0, 0.5, 0.8))


@dataclass(frozen=True)
class SmallScene:
    """A room of 4 × 3 m with a crate, in the format of Gibson.

    Attributes:
        folder: of its files.
    """

    folder: Path

    @property
    def options(self) -> dict[str, object]:
        """The options of an environment in it."""
        return {"scene": str(self.folder), "resolution_m": PIXEL_M}


def write_small_scene(folder: Path, mirrored: bool = False) -> SmallScene:
    """Write the scene; mirrored, y has the other sign."""
    folder.mkdir(parents=True, exist_ok=True)
    sign = -1 if mirrored else 1
    lines = ["mtllib mesh_z_up.mtl"]
    lines += _box(ROOM, "wall", 1, inside=True, sign=sign)
    lines += _box(_shifted(CRATE, 0.3), "furniture", 9, inside=False, sign=sign)
    (folder / "mesh_z_up.obj").write_text("\n".join([*lines, ""]))
    (folder / "mesh_z_up.mtl").write_text("newmtl wall\nKd 1 1 1\nmap_Kd wall.png\nnewmtl furniture\nKd 0.8 0.2 0.1\n")
    shades = np.repeat(np.linspace(90, 230, 64).astype(np.uint8)[:, None], 64, axis=1)
    Image.fromarray(np.stack([shades, shades, 255 - shades], axis=-1)).save(folder / "wall.png")
    (folder / "floors.txt").write_text("0.0\n")
    side = round(SIDE_M / PIXEL_M)
    centre = (np.arange(side) + 0.5) * PIXEL_M - SIDE_M / 2
    x, y = np.meshgrid(centre, sign * centre)
    free = _inside(ROOM, x, y) & ~_inside(_shifted(CRATE, 0.3), x, y)
    Image.fromarray((255 * free).astype(np.uint8)).save(folder / "floor_trav_0.png")
    return SmallScene(folder)


def _shifted(box: tuple, by: float) -> tuple:
    (x0, y0, z0), (x1, y1, z1) = box
    return (x0, y0 + by, z0), (x1, y1 + by, z1)


def _inside(box: tuple, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    (x0, y0, _), (x1, y1, _) = box
    return (x > x0) & (x < x1) & (y > y0) & (y < y1)


def _box(box: tuple, material: str, first: int, inside: bool, sign: int) -> list[str]:
    """The lines of a box whose faces can be seen from inside or outside."""
    low, high = box
    corners = [(x, sign * y, z) for z in (low[2], high[2]) for y in (low[1], high[1]) for x in (low[0], high[0])]
    faces = [(0, 1, 5, 4), (1, 3, 7, 5), (3, 2, 6, 7), (2, 0, 4, 6), (2, 3, 1, 0), (4, 5, 7, 6)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"vt {s} {t}" for s, t in 2 * [(0, 0), (1, 0), (0, 1), (1, 1)]]
    lines.append(f"usemtl {material}")
    for face in faces:
        order = face[::-1] if inside != (sign < 0) else face
        lines.append("f " + " ".join(f"{first + k}/{first + k}" for k in order))
    return lines


@pytest.fixture(scope="session")
def small_scene(tmp_path_factory: pytest.TempPathFactory) -> SmallScene:
    """The room, which tests do not change."""
    return write_small_scene(tmp_path_factory.mktemp("scenes") / "room")


@pytest.fixture
def copied_scene(tmp_path: Path) -> SmallScene:
    """The room, to be damaged."""
    return write_small_scene(tmp_path / "room")


@pytest.fixture(scope="session")
def write_scene() -> Callable[..., SmallScene]:
    """Writes the room to another folder."""
    return write_small_scene


@pytest.fixture(scope="session")
def apartment() -> Path:
    """A generated scene."""
    return generated_folder(0)
