"""What changes the look of a task from episode to episode, or within it, and never its motion."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from iap.envs.control_suite.distractions.background import BackgroundDistraction
from iap.envs.control_suite.distractions.camera_pose import CameraDistraction
from iap.envs.control_suite.distractions.colour import ColourDistraction
from iap.envs.control_suite.distractions.sources import Split, find_videos

KINDS = ("background", "camera", "colour")
SCALES = {"easy": 0.1, "medium": 0.2, "hard": 0.3}
VIDEOS = {0.1: 4, 0.2: 8}  # up to these scales; above, all there are
SIDE, SMALL_SIDE = 512, 256  # of the sky's six faces: writing them takes about 10 ms and 2 ms
SMALL_IMAGE = 128

Part = BackgroundDistraction | CameraDistraction | ColourDistraction


class Distractions:
    """Some of background, camera and colour; each has a random stream of its own."""

    def __init__(self, parts: dict[str, Part]) -> None:
        self._parts = parts

    @property
    def background(self) -> BackgroundDistraction | None:
        """What is in place of the sky."""
        part = self._parts.get("background")
        return part if isinstance(part, BackgroundDistraction) else None

    def begin(self, visual_seed: int) -> None:
        """Choose the look of an episode, which depends on the seed and nothing else."""
        for kind, part in self._parts.items():
            part.begin(np.random.default_rng([visual_seed, KINDS.index(kind)]))

    def advance(self) -> None:
        """Let a step of the task pass."""
        for part in self._parts.values():
            part.advance()

    def show(self, data: Any) -> None:
        """Put the look into the model and the simulator's state, for a camera to see."""
        for part in self._parts.values():
            part.show(data)


def distractions_of(
    model: Any,
    domain: str,
    camera: int,
    size: tuple[int, int],
    *,
    kinds: str | Sequence[str],
    difficulty: str | float | None,
    dynamic: bool,
    backgrounds: str,
    split: Split,
) -> Distractions:
    """The distractions of a model that was just loaded, seen through `camera` at `size`; the rest as `SuiteTask`'s."""
    chosen = require_kinds(kinds)
    scale = 0.0 if difficulty is None else scale_of(difficulty)
    parts: dict[str, Part] = {}
    if not scale:
        return Distractions(parts)
    if "background" in chosen:
        side = SMALL_SIDE if dynamic or max(size) <= SMALL_IMAGE else SIDE
        videos = find_videos(backgrounds, split, video_count(scale), side)
        parts["background"] = BackgroundDistraction(model, domain, videos, side, dynamic)
    if "camera" in chosen:
        parts["camera"] = CameraDistraction(model, camera, scale, dynamic)
    if "colour" in chosen:
        parts["colour"] = ColourDistraction(model, scale, dynamic)
    return Distractions(parts)


def scale_of(difficulty: str | float) -> float:
    """The scale of a difficulty, which is one itself if it is a number."""
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
    """How many of the training videos a scale has; None is all of them."""
    return next((count for most, count in VIDEOS.items() if scale <= most), None)


def require_kinds(kinds: object) -> tuple[str, ...]:
    """`kinds` as names of distractions."""
    names = (kinds,) if isinstance(kinds, str) else kinds
    if not isinstance(names, Sequence) or not all(name in KINDS for name in names):
        raise ValueError(f"distractions must be some of {', '.join(KINDS)}, not {kinds!r}")
    return tuple(names)
