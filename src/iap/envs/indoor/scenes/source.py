"""Where the scenes of an environment come from: a folder of the user, or generated ones of a split."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from iap._validation import require_count, require_number
from iap.envs.indoor.generator.apartment import TRAINING_SCENES, VERSION, Split, generate_scene, scene_seed
from iap.envs.indoor.scenes.cache import GENERATED, cached_folder
from iap.envs.indoor.scenes.folder import RESOLUTION_M, mesh_path


@dataclass(frozen=True)
class SceneSource:
    """Scenes by number.

    Attributes:
        scene: the folder of a scene, or a folder of such folders; None for generated scenes.
        split: of the generated scenes: "train" or "held-out".
        scenes: number of the generated scenes.
        floor: number of the floor, of scenes in folders.
        resolution_m: side of a pixel of their traversability maps.
    """

    scene: str | None = None
    split: Split = "train"
    scenes: int = 100
    floor: int = 0
    resolution_m: float = RESOLUTION_M

    def __post_init__(self) -> None:
        if self.split not in get_args(Split):
            raise ValueError(f"split must be one of {', '.join(map(repr, get_args(Split)))}, not {self.split!r}")
        require_count("scenes", self.scenes, most=TRAINING_SCENES)
        require_count("floor", self.floor, least=0)
        require_number("resolution_m", self.resolution_m, 0.001, 1.0)
        if self.scene is not None:
            self.folders()

    def folders(self) -> list[Path]:
        """The scene folders that the user gave."""
        assert self.scene is not None
        given = Path(self.scene)
        if not given.is_dir():
            raise FileNotFoundError(f"scene must be a folder, and there is none at {given}")
        inner = sorted(path for path in given.iterdir() if (path / "floors.txt").exists())
        if (given / "floors.txt").exists() or not inner:
            mesh_path(given)
            return [given]
        return inner

    def draw(self, rng: np.random.Generator) -> Path:
        """The folder of a random scene; it is generated if it is not in the cache."""
        if self.scene is not None:
            folders = self.folders()
            return folders[int(rng.integers(len(folders)))]
        return generated_folder(scene_seed(self.split, int(rng.integers(self.scenes))))


def generated_folder(seed: int, faces: int = 0) -> Path:
    """The folder of a generated scene with at least so many triangles, in the cache."""
    name = f"v{VERSION}-{seed}" + (f"-{faces}" if faces else "")
    return cached_folder(GENERATED, name, lambda out: generate_scene(seed, out, faces))
