"""Generates an apartment from a seed, and writes it as a scene folder: the same seed gives the same bytes."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import UInt8

from iap._files import write_whole
from iap._validation import require_count
from iap.envs.indoor.generator.atlas import TEXEL_M, Atlas, paint_atlas
from iap.envs.indoor.generator.furnishing import LOW_M, Furnishing, furnish
from iap.envs.indoor.generator.furniture import draw_palette
from iap.envs.indoor.generator.layout import Layout, draw_layout
from iap.envs.indoor.generator.light import draw_lights, light_patches
from iap.envs.indoor.generator.materials import SIDE, draw_patterns
from iap.envs.indoor.generator.shapes import Patch, Rect
from iap.envs.indoor.generator.surfaces import build_surfaces, draw_styles
from iap.envs.indoor.scenes.images import png

VERSION = 1  # of the generator: seeds give other scenes in another version
HELD_OUT_SCENES = 0  # the first seed of each range
TRAINING_SCENES = 1 << 30
LAST_SCENE = (1 << 31) - 1
PIXEL_M = 0.01
COMPRESSION = 1  # of the PNG files
Split = Literal["train", "held-out"]


def scene_seed(split: Split, number: int) -> int:
    """The seed of the scene with a number: training and held-out scenes have disjoint seeds."""
    number = require_count("number", number, least=0, most=TRAINING_SCENES - 1)
    return number + (TRAINING_SCENES if split == "train" else HELD_OUT_SCENES)


def generate_scene(seed: int, out: str | Path, faces: int = 0) -> Path:
    """Write the scene of a seed to a folder, which is created.

    Args:
        seed: up to 2³⁰ − 1 for held-out scenes, and from 2³⁰ to 2³¹ − 1 for training scenes.
        out: the folder; files of a scene in it are replaced.
        faces: least number of triangles: large ones are divided until there are so many.
    """
    seed = require_count("seed", seed, least=0, most=LAST_SCENE)
    faces = require_count("faces", faces, least=0, most=2_000_000)
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"out must be a folder, and {out} is a file")
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng((VERSION, seed))
    layout = draw_layout(rng)
    furnishing = furnish(rng, layout, draw_palette(rng))
    patches, solid = build_surfaces(rng, layout, draw_styles(rng, layout), furnishing)
    grids = light_patches(patches, draw_lights(rng, layout, solid))
    shifts = rng.integers(0, SIDE, (len(patches), 2))
    shifts[[patch.pattern in ("view", "books") for patch in patches], 1] = 0  # these have a lowest row
    patterns = draw_patterns(rng)
    atlases: dict[str, tuple[Atlas, list[int]]] = {}
    for kind in TEXEL_M:
        chosen = [i for i, patch in enumerate(patches) if patch.kind == kind]
        if chosen:
            atlases[kind] = paint_atlas(kind, patches, chosen, grids, patterns, shifts), chosen
    for kind, (atlas, _) in atlases.items():
        write_whole(out / f"{kind}.png", png(atlas.pixels, COMPRESSION))
    write_whole(out / "mesh_z_up.mtl", _mtl(atlases).encode())
    write_whole(out / "mesh_z_up.obj", _obj(patches, atlases, faces).encode())
    write_whole(out / "floors.txt", b"0.0\n")
    free, outline = floor_images(layout, furnishing)
    write_whole(out / "floor_0.png", png(outline, COMPRESSION))
    write_whole(out / "floor_trav_0.png", png(free, COMPRESSION))
    return out


def floor_images(layout: Layout, furnishing: Furnishing) -> tuple[UInt8[np.ndarray, "S S"], UInt8[np.ndarray, "S S"]]:
    """Where the floor is free (255), and where there is floor at all, on a square around the origin."""
    side = 2 * math.ceil((max(layout.size) / 2 + 0.5) / PIXEL_M)

    def cells(rect: Rect) -> tuple[slice, slice]:
        rows, columns = (
            (round(a / PIXEL_M) + side // 2 for a in pair) for pair in ((rect.y0, rect.y1), (rect.x0, rect.x1))
        )
        return slice(*rows), slice(*columns)

    outline = np.zeros((side, side), np.uint8)
    for number in range(len(layout.rooms)):
        outline[cells(layout.inside(number))] = 255
    for door in layout.doors:
        outline[cells(door.footprint.grown(0.02))] = 255
    free = outline.copy()
    for part in (part for _, part in (*layout.gates, *furnishing.parts) if part.low[2] < LOW_M):
        free[cells(part.footprint)] = 0
    return free, outline


def _mtl(atlases: dict[str, tuple[Atlas, list[int]]]) -> str:
    return "".join(f"newmtl {kind}\nKd 1 1 1\nmap_Kd {kind}.png\n" for kind in atlases)


def _obj(patches: list[Patch], atlases: dict[str, tuple[Atlas, list[int]]], faces: int) -> str:
    """The mesh, material by material."""
    lines = ["mtllib mesh_z_up.mtl"]
    known = 0
    divide = _divisor(patches, faces)
    for kind, (atlas, chosen) in atlases.items():
        lines.append(f"usemtl {kind}")
        for place, i in enumerate(chosen):
            patch = patches[i]
            shares, polygons = divide(patch)
            corners = np.array(patch.origin) + shares[:, :1] * np.array(patch.u) + shares[:, 1:] * np.array(patch.v)
            lines += [f"v {x:.4f} {y:.4f} {z:.4f}" for x, y, z in corners]
            lines += [f"vt {s:.6f} {t:.6f}" for s, t in atlas.texcoords(place, shares)]
            for polygon in polygons:
                lines.append("f " + " ".join(f"{known + k + 1}/{known + k + 1}" for k in polygon))
            known += len(shares)
    return "\n".join([*lines, ""])


Divided = tuple[np.ndarray, list[tuple[int, ...]]]


def _divisor(patches: list[Patch], faces: int) -> Callable[[Patch], Divided]:
    """How to divide rectangles so that the mesh has enough triangles: into squares of one size."""
    whole = [patch for patch in patches if len(patch.outline) == 4]  # noqa: PLR2004
    sizes = np.array([[np.linalg.norm(patch.u), np.linalg.norm(patch.v)] for patch in whole])
    step = math.inf
    if faces:
        step = math.sqrt(float((sizes[:, 0] * sizes[:, 1]).sum()) * 2 / faces)
        while 2 * float(np.prod(np.ceil(sizes / step), axis=1).sum()) < faces:
            step *= 0.95

    def divide(patch: Patch) -> Divided:
        outline = np.array(patch.outline)
        columns, rows = (max(1, math.ceil(float(np.linalg.norm(side)) / step)) for side in (patch.u, patch.v))
        if len(outline) != 4 or rows * columns == 1:  # noqa: PLR2004
            return outline, [tuple(range(len(outline)))]
        t, s = np.mgrid[: rows + 1, : columns + 1]
        shares = np.stack([s.ravel() / columns, t.ravel() / rows], axis=1)
        at = np.arange((rows + 1) * (columns + 1)).reshape(rows + 1, columns + 1)
        quads = [(at[r, c], at[r, c + 1], at[r + 1, c + 1], at[r + 1, c]) for r in range(rows) for c in range(columns)]
        return shares, quads

    return divide
