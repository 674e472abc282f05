"""The sources of background videos, and their split into training and held-out videos."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from iap.envs.control_suite.distractions import davis
from iap.envs.control_suite.distractions.cache import Picture
from iap.envs.control_suite.distractions.files import IMAGES, VIDEO_FILES, ImageSequence, VideoFile
from iap.envs.control_suite.distractions.procedural import HELD_OUT_VIDEOS, TRAINING_VIDEOS, ProceduralVideo

PROCEDURAL = "procedural"
SPLITS = ("train", "held-out")
HELD_OUT_OF = 3  # one of three videos is held out, unless the dataset has its own split

Split = Literal["train", "held-out"]


class Video(Protocol):
    """Frames to show behind the robot; an image is a video of one frame."""

    def __len__(self) -> int: ...

    def frame(self, index: int) -> Picture:
        """One square frame."""
        ...


def find_videos(backgrounds: str, split: Split, most: int | None, side: int) -> Sequence[Video]:
    """The videos of a split.

    Args:
        backgrounds: "procedural", or the path of a folder of videos (each a folder of frames, or a file), of a folder
            of images, or of one video file.
        split: "train" or "held-out". DAVIS-2017 has its own split. Of other folders every third video by name is held
            out, and of a single video the last third.
        most: use the first so many training videos; None uses all. Held-out videos are always all used.
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
        start, end = (0.0, 1 - 1 / HELD_OUT_OF) if split == "train" else (1 - 1 / HELD_OUT_OF, 1.0)
        return [VideoFile(path, side, start, end)]
    for below in davis.FRAMES:
        if (path / below).is_dir():
            path = path / below
            break
    entries = _entries(path)
    if any(entry.name in davis.TRAINING or entry.name in davis.VALIDATION for entry in entries):
        return _davis_videos(path, split, used, side)
    videos = _any_videos(path, entries, side)
    chosen = [video for i, video in enumerate(videos) if (i % HELD_OUT_OF == HELD_OUT_OF - 1) == (split == "held-out")]
    if not chosen:
        raise ValueError(
            f"backgrounds: {path} contains {len(videos)} videos or images, too few to hold out every third"
        )
    return chosen[:used]


def _davis_videos(path: Path, split: Split, used: int | None, side: int) -> list[Video]:
    names = davis.TRAINING if split == "train" else davis.VALIDATION
    return [_frame_folder(path / name, side) for name in names[:used]]


def _any_videos(path: Path, entries: Sequence[Path], side: int) -> list[Video]:
    kinds: list[tuple[Callable[[Path], bool], Callable[[Path], Video]]] = [
        (Path.is_dir, lambda folder: _frame_folder(folder, side)),
        (lambda file: file.suffix.lower() in VIDEO_FILES, lambda file: VideoFile(file, side)),
        (lambda file: file.suffix.lower() in IMAGES, lambda file: ImageSequence([file], side)),
    ]
    for is_one, make in kinds:
        if found := [entry for entry in entries if is_one(entry)]:
            return [make(entry) for entry in found]
    raise ValueError(f"backgrounds: the folder {path} contains no videos and no images")


def _frame_folder(folder: Path, side: int) -> ImageSequence:
    frames = [entry for entry in _entries(folder) if entry.suffix.lower() in IMAGES]
    if not frames:
        raise ValueError(f"backgrounds: the folder {folder} contains no images")
    return ImageSequence(frames, side)


def _entries(folder: Path) -> list[Path]:
    """The files and folders in a folder, sorted by name, without hidden ones."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise ValueError(f"backgrounds: cannot read the folder {folder}: {error.strerror}") from error
