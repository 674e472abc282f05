"""All distractions of a task: they change its appearance per episode or per step, and never its motion."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from iap._validation import require_count
from iap.envs.control_suite.distractions.background import BackgroundDistraction
from iap.envs.control_suite.distractions.camera_pose import CameraDistraction
from iap.envs.control_suite.distractions.colour import ColourDistraction
from iap.envs.control_suite.distractions.public_camera import PublicCameraDistraction
from iap.envs.control_suite.distractions.sources import Split, find_videos

KINDS = ("background", "camera", "colour")
SCALES = {"easy": 0.1, "medium": 0.2, "hard": 0.3}
VIDEOS = {0.1: 4, 0.2: 8}  # number of training videos up to these scales; all above them
SIDE, SMALL_SIDE = 512, 256  # pixels of the sky's six faces: writing them takes about 10 ms and 2 ms
SMALL_IMAGE = 128

Distraction = BackgroundDistraction | CameraDistraction | ColourDistraction


@dataclass(frozen=True)
class DistractionOptions:
    """The options of `SuiteTask` that concern distractions, with the same names and meanings."""

    distractions: str | Sequence[str] = KINDS
    difficulty: str | float | None = None
    dynamic: bool = False
    backgrounds: str = "procedural"
    videos: int | Literal["all"] | None = None
    split: Split = "train"
    public_camera: bool = False

    @property
    def scale(self) -> float:
        """The scale of the difficulty; 0 without distractions."""
        return 0.0 if self.difficulty is None else scale_of(self.difficulty)

    @property
    def video_count(self) -> int | None:
        """The number of training videos; None is all of them."""
        if self.videos is None:
            return video_count(self.scale)
        if self.videos == "all":
            return None
        if isinstance(self.videos, str):
            raise ValueError(f'videos must be a number, "all" or None, not {self.videos!r}')
        return require_count("videos", self.videos)


class Distractions:
    """Some of background, camera and colour; each has its own random stream."""

    def __init__(self, parts: dict[str, Distraction]) -> None:
        self._parts = parts

    @property
    def background(self) -> BackgroundDistraction | None:
        """The replacement of the sky, if there is one."""
        part = self._parts.get("background")
        return part if isinstance(part, BackgroundDistraction) else None

    def reset(self, visual_seed: int) -> None:
        """Draw the appearance of an episode, which depends on the seed only."""
        for kind, part in self._parts.items():
            part.reset(np.random.default_rng([visual_seed, KINDS.index(kind)]))

    def advance(self) -> None:
        """Advance by one step of the task."""
        for part in self._parts.values():
            part.advance()

    def apply(self, data: Any) -> None:
        """Write the appearance into the model and the simulator's state, before a camera renders them."""
        for part in self._parts.values():
            part.apply(data)


def make_distractions(
    model: Any, domain: str, camera: int, size: tuple[int, int], options: DistractionOptions
) -> Distractions:
    """The distractions of a model that was just loaded, for images of `camera` at `size`."""
    chosen, scale, dynamic = require_kinds(options.distractions), options.scale, options.dynamic
    videos = options.video_count
    parts: dict[str, Distraction] = {}
    if not scale:
        return Distractions(parts)
    if "background" in chosen:
        side = SMALL_SIDE if dynamic or max(size) <= SMALL_IMAGE else SIDE
        found = find_videos(options.backgrounds, options.split, videos, side)
        parts["background"] = BackgroundDistraction(model, domain, found, side, dynamic)
    if "camera" in chosen:
        kind = PublicCameraDistraction if options.public_camera else CameraDistraction
        parts["camera"] = kind(model, camera, scale, dynamic)
    if "colour" in chosen:
        parts["colour"] = ColourDistraction(model, scale, dynamic)
    return Distractions(parts)


def scale_of(difficulty: str | float) -> float:
    """The scale of a difficulty: that of its name, or the number itself."""
    if isinstance(difficulty, str):
        if difficulty not in SCALES:
            raise ValueError(f"difficulty must be {', '.join(SCALES)} or a number in 0..1, not {difficulty!r}")
        return SCALES[difficulty]
    if isinstance(difficulty, bool) or not isinstance(difficulty, Real):
        raise TypeError(f"difficulty must be {', '.join(SCALES)} or a number in 0..1, not {difficulty!r}")
    if not 0 <= difficulty <= 1:
        raise ValueError(f"difficulty must be between 0 and 1, not {difficulty}")
    return float(difficulty)


def video_count(scale: float) -> int | None:
    """The default number of training videos at a scale; None is all of them."""
    return next((count for most, count in VIDEOS.items() if scale <= most), None)


def require_kinds(kinds: object) -> tuple[str, ...]:
    """`kinds` as names of distractions."""
    names = (kinds,) if isinstance(kinds, str) else kinds
    if not isinstance(names, Sequence) or not all(name in KINDS for name in names):
        raise ValueError(f"distractions must be some of {', '.join(KINDS)}, not {kinds!r}")
    return tuple(names)
