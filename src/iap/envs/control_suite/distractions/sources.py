"""Where backgrounds come from, and which of them are for training and which are held out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from iap.envs.control_suite.distractions import davis
from iap.envs.control_suite.distractions.cache import Picture
from iap.envs.control_suite.distractions.files import FILMS, IMAGES, Film, Stills
from iap.envs.control_suite.distractions.procedural import HELD_OUT_VIDEOS, TRAINING_VIDEOS, ProceduralVideo

PROCEDURAL = "procedural"
SPLITS = ("train", "held-out")
HELD_OUT_OF = 3  # one of so many is held out, where nothing else is agreed

Split = Literal["train", "held-out"]


class Video(Protocol):
    """Frames to show behind the robot; a picture is a video of one."""

    def __len__(self) -> int: ...

    def frame(self, index: int) -> Picture:
        """One frame, square."""
        ...


def find_videos(backgrounds: str, split: Split, most: int | None, side: int) -> Sequence[Video]:
    """The videos to choose from.

    Args:
        backgrounds: "procedural", or the path of a folder of videos (each a folder of frames, or a file), of a folder
            of images, or of one video file.
        split: the videos for training, or those held out. DAVIS-2017 has its own lists; elsewhere one of three, by
            name, is held out, and of a single video the last third.
        most: how many of the training videos to use, the first ones; None uses all. All that are held out are used.
        side: of the square frames, in pixels.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(map(repr, SPLITS))}, not {split!r}")
    used = most if split == "train" else None
    if backgrounds == PROCEDURAL:
        numbers = TRAINING_VIDEOS if split == "train" else HELD_OUT_VIDEOS
        return [ProceduralVideo(number, side) for number in numbers[:used]]
    path = Path(backgrounds).expanduser()
    if path.is_file():
        begin, end = (0.0, 1 - 1 / HELD_OUT_OF) if split == "train" else (1 - 1 / HELD_OUT_OF, 1.0)
        return [Film(path, side, begin, end)]
    for below in davis.FRAMES:
        if (path / below).is_dir():
            path = path / below
            break
    entries = _listed(path)
    if any(entry.name in davis.TRAINING or entry.name in davis.VALIDATION for entry in entries):
        return _of_davis(path, split, used, side)
    videos = _any_videos(path, entries, side)
    chosen = [video for i, video in enumerate(videos) if (i % HELD_OUT_OF == HELD_OUT_OF - 1) == (split == "held-out")]
    if not chosen:
        raise ValueError(f"backgrounds: {path} holds {len(videos)} videos or images, too few to hold one of three out")
    return chosen[:used]


def _of_davis(path: Path, split: Split, used: int | None, side: int) -> list[Video]:
    names = davis.TRAINING if split == "train" else davis.VALIDATION
    return [_of_frames(path / name, side) for name in names[:used]]


def _any_videos(path: Path, entries: Sequence[Path], side: int) -> list[Video]:
    kinds: list[tuple[Callable[[Path], bool], Callable[[Path], Video]]] = [
        (Path.is_dir, lambda folder: _of_frames(folder, side)),
        (lambda file: file.suffix.lower() in FILMS, lambda file: Film(file, side)),
        (lambda file: file.suffix.lower() in IMAGES, lambda file: Stills([file], side)),
    ]
    for is_one, make in kinds:
        if found := [entry for entry in entries if is_one(entry)]:
            return [make(entry) for entry in found]
    raise ValueError(f"backgrounds: the folder {path} holds no videos and no images")


def _of_frames(folder: Path, side: int) -> Stills:
    frames = [entry for entry in _listed(folder) if entry.suffix.lower() in IMAGES]
    if not frames:
        raise ValueError(f"backgrounds: the folder {folder} holds no images")
    return Stills(frames, side)


def _listed(folder: Path) -> list[Path]:
    """What is in a folder, by name, but for hidden files."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise ValueError(f"backgrounds: cannot read the folder {folder}: {error.strerror}") from error
