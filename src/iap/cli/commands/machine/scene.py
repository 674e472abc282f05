"""`iap scene`: indoor scenes in the folder format of Gibson."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from iap.cli.console import Command


@dataclass(frozen=True)
class SceneGenerate(Command):
    """Generate an apartment from a seed: mesh, textures with baked light, and traversability map.

    The same seed gives the same files. Takes a few seconds.
    Example: iap scene generate --seed 7 --out apartment
    """

    out: Path
    """The folder, which is created; files of a scene in it are replaced."""
    seed: int = 0
    """Of everything random; seeds below 2^30 are those of held-out scenes, and those from 2^30 of training scenes."""
    faces: int = 0
    """Least number of triangles: large ones are divided until there are so many."""

    def run(self, console: Console) -> None:
        """Write the folder."""
        from iap.envs.indoor.generator.apartment import generate_scene

        _report(console, generate_scene(self.seed, self.out, self.faces))


@dataclass(frozen=True)
class SceneConvert(Command):
    """Convert a glTF room (.glb or .gltf, y up, in metres) to a scene folder.

    The traversability map is found from the mesh: there is floor, and nothing up to 0.8 m above it.
    Example: iap scene convert room.glb --out room
    """

    file: tyro.conf.Positional[Path]
    """The .glb or .gltf file."""
    out: Path
    """The folder, which is created; files of a scene in it are replaced."""
    floors: tuple[float, ...] = ()
    """Heights of the floors in metres; by default one, the lowest large horizontal area."""
    centre: bool = True
    """Whether the middle of the mesh is moved to the origin, around which the maps lie."""

    def run(self, console: Console) -> None:
        """Write the folder."""
        from iap.envs.indoor.conversion.convert import convert_scene

        _report(console, convert_scene(self.file, self.out, self.floors, self.centre))


@dataclass(frozen=True)
class Scene(Command):
    """Generate an indoor scene, or convert one, in the folder format of Gibson.

    Example: iap scene generate --seed 7 --out apartment
    """

    action: (
        Annotated[SceneGenerate, tyro.conf.subcommand("generate")]
        | Annotated[SceneConvert, tyro.conf.subcommand("convert")]
    )

    def run(self, console: Console) -> None:
        """Run the chosen action."""
        self.action.run(console)


def _report(console: Console, folder: Path) -> None:
    """Read the folder as the environments do, and say what is in it."""
    from iap.envs.indoor.scenes.folder import read_scene

    scene = read_scene(folder)
    area = scene.map.free.sum() * scene.map.resolution_m**2
    console.print(
        f"wrote {folder}: {scene.faces:,} triangles, {len(scene.meshes)} materials, {area:.1f} m² of free floor\n"
        f"use it: iap.make_env('iap/PointNav-v0', scene='{folder}')",
        soft_wrap=True,
        highlight=False,
    )
