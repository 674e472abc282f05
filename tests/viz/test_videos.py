import resource
import subprocess

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from iap.viz.videos import VideoWriter


def moving_square(count: int, size: tuple[int, int] = (64, 96)) -> list[np.ndarray]:
    """Dark frames with a bright square that moves to the right."""
    frames = np.full((count, *size, 3), 30, np.uint8)
    for i, frame in enumerate(frames):
        frame[10:30, 4 + 8 * i : 24 + 8 * i] = (220, 200, 40)
    return list(frames)


def read_video(path, size: tuple[int, int]) -> tuple[str, np.ndarray]:
    """The description by ffmpeg, and the frames."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stderr.decode(), np.frombuffer(done.stdout, np.uint8).reshape(-1, *size, 3)


def read_gif(path) -> list[np.ndarray]:
    with Image.open(path) as video:
        frames = []
        for i in range(getattr(video, "n_frames", 1)):
            video.seek(i)
            frames.append(np.asarray(video.convert("RGB")))
    return frames


def write(path, frames) -> None:
    with VideoWriter(path, fps=10) as video:
        for frame in frames:
            video.add(frame)


def test_an_mp4_holds_every_frame_at_the_frame_rate(tmp_path):
    frames = moving_square(6)
    write(tmp_path / "a.mp4", frames)
    description, shown = read_video(tmp_path / "a.mp4", (64, 96))
    assert all(word in description for word in ("Video: h264", "yuv420p", "96x64", "10 fps"))
    assert len(shown) == 6
    for frame, decoded in zip(frames, shown, strict=True):
        assert np.abs(frame.astype(int) - decoded).mean() < 4
    assert [file.name for file in tmp_path.iterdir()] == ["a.mp4"]


def test_a_webm_holds_every_frame(tmp_path):
    frames = moving_square(4)
    write(tmp_path / "a.webm", frames)
    description, shown = read_video(tmp_path / "a.webm", (64, 96))
    assert "Video: vp9" in description
    assert len(shown) == 4
    for frame, decoded in zip(frames, shown, strict=True):
        assert np.abs(frame.astype(int) - decoded).mean() < 4


def test_a_gif_holds_every_frame(tmp_path):
    frames = moving_square(6)
    write(tmp_path / "a.GIF", frames)
    shown = read_gif(tmp_path / "a.GIF")
    assert len(shown) == 6
    for frame, decoded in zip(frames, shown, strict=True):
        assert np.abs(frame.astype(int) - decoded).mean() < 4


def test_odd_sides_are_padded_by_repeating_an_edge(tmp_path):
    write(tmp_path / "a.mp4", moving_square(3, (31, 63)))
    description, shown = read_video(tmp_path / "a.mp4", (32, 64))
    assert "64x32" in description
    assert np.abs(shown[0][-1].astype(int) - shown[0][-2]).mean() < 4


def test_an_error_leaves_the_old_video_and_no_other_file(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(b"old")

    def interrupted():
        yield moving_square(1)[0]
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        write(path, interrupted())
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.mp4"]


@pytest.mark.parametrize("name", ["a.mp4", "a.gif"])
def test_a_full_disk_is_an_error_and_leaves_no_file(name, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (40, 64, 64, 3), dtype=np.uint8)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # which ffmpeg inherits
    try:
        with pytest.raises(OSError, match=f"{name} could not be written"):
            write(tmp_path / name, noise)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_video_without_frames_is_refused(tmp_path):
    with pytest.raises(ValueError, match="without frames"), VideoWriter(tmp_path / "a.gif"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (np.zeros((64, 94, 3), np.uint8), r"frame must be of shape \(64, 96, 3\) like the first"),
        (np.zeros((64, 96, 3), np.float32), "frame must be .* uint8"),
        (np.zeros((64, 96), np.uint8), "frame must be .* uint8"),
    ],
)
def test_a_frame_of_another_size_or_type_is_refused(second, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "a.mp4", [moving_square(1)[0], second])
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_path_is_an_error_before_the_first_frame(tmp_path):
    (tmp_path / "taken.mp4").mkdir()
    with pytest.raises(FileNotFoundError), VideoWriter(tmp_path / "none" / "a.mp4"):
        pytest.fail("no error before the first frame")
    with pytest.raises(IsADirectoryError, match="is a folder"), VideoWriter(tmp_path / "taken.mp4"):
        pytest.fail("no error before the first frame")
    with pytest.raises(ValueError, match=r"path must end in .mp4 or .webm or .gif, not 'a.avi'"):
        VideoWriter(tmp_path / "a.avi")
    with pytest.raises(ValueError, match="fps must be"):
        VideoWriter(tmp_path / "a.mp4", fps=0)
