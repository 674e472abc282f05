import resource
import subprocess

import imageio_ffmpeg
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from iap.attention import grid_of
from iap.policies import Attention
from iap.viz.videos import VideoWriter, compose

GREEN = np.full((480, 720, 3), (60, 160, 60), np.uint8)


def moving_square(count: int, size: tuple[int, int] = (64, 96)) -> list[np.ndarray]:
    """Dark frames with a bright square that moves to the right."""
    frames = np.full((count, *size, 3), 30, np.uint8)
    for i, frame in enumerate(frames):
        frame[10:30, 4 + 8 * i : 24 + 8 * i] = (220, 200, 40)
    return list(frames)


def read_mp4(path, size: tuple[int, int]) -> tuple[str, np.ndarray]:
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


def attend(image: np.ndarray, patch: int, stride: int, selected: list[int]) -> Attention:
    grid = grid_of(image.shape[0], image.shape[1], patch, stride)
    return Attention(np.arange(grid.patches, dtype=np.float32), np.array(selected, np.int64), grid, patch, stride)


def red_pixels(picture: np.ndarray) -> np.ndarray:
    return (picture[..., 0] > 200) & (picture[..., 1:].max(axis=-1) < 45)


def write(path, frames) -> None:
    with VideoWriter(path, fps=10) as video:
        for frame in frames:
            video.add(frame)


def test_an_mp4_holds_every_frame_at_the_frame_rate(tmp_path):
    frames = moving_square(6)
    write(tmp_path / "a.mp4", frames)
    description, shown = read_mp4(tmp_path / "a.mp4", (64, 96))
    assert all(word in description for word in ("Video: h264", "yuv420p", "96x64", "10 fps"))
    assert len(shown) == 6
    for frame, decoded in zip(frames, shown, strict=True):
        assert np.abs(frame.astype(int) - decoded).mean() < 4
    assert [file.name for file in tmp_path.iterdir()] == ["a.mp4"]


def test_a_gif_holds_every_frame(tmp_path):
    frames = moving_square(6)
    write(tmp_path / "a.GIF", frames)
    shown = read_gif(tmp_path / "a.GIF")
    assert len(shown) == 6
    for frame, decoded in zip(frames, shown, strict=True):
        assert np.abs(frame.astype(int) - decoded).mean() < 4


def test_odd_sides_are_padded_by_repeating_an_edge(tmp_path):
    write(tmp_path / "a.mp4", moving_square(3, (31, 63)))
    description, shown = read_mp4(tmp_path / "a.mp4", (32, 64))
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
    with pytest.raises(ValueError, match=r"path must end in .mp4 or .gif, not 'a.avi'"):
        VideoWriter(tmp_path / "a.avi")
    with pytest.raises(ValueError, match="fps must be"):
        VideoWriter(tmp_path / "a.mp4", fps=0)


def test_the_scene_is_unchanged_except_for_the_insets_in_its_upper_corners():
    camera = np.full((96, 96, 3), 100, np.uint8)
    frame = compose(GREEN, camera, attend(camera, 7, 4, [0, 300]), 12.5, 3)
    assert frame.shape == (520, 720, 3)
    rows, columns = np.nonzero((frame[:480] != GREEN).any(axis=-1))
    assert (rows.min(), columns.min(), columns.max()) == (8, 8, 711)
    assert rows.max() < 210
    assert not ((columns > 230) & (columns < 490)).any()
    assert red_pixels(frame[8:180, 8:180]).any()
    assert not red_pixels(frame[8:180, 230:]).any()


def test_exactly_the_attended_patch_is_red():
    camera = np.full((20, 20, 3), 100, np.uint8)
    frame = compose(None, camera, attend(camera, 4, 4, [6]), 0, 0)
    red = red_pixels(frame[:489, :489])
    expected = np.zeros_like(red)
    expected[9 + 96 : 9 + 192, 9 + 96 : 9 + 192] = True
    np.testing.assert_array_equal(red, expected)


def test_a_single_attended_pixel_of_a_large_image_is_visible():
    camera = np.full((240, 320, 3), 100, np.uint8)
    frame = compose(GREEN, camera, attend(camera, 1, 1, [120 * 320 + 160]), 0, 0)
    assert red_pixels(frame[:180]).sum() > 60
    none = compose(GREEN, camera, attend(camera, 1, 1, []), 0, 0)
    assert not red_pixels(none).any()


def test_a_higher_score_is_brighter_in_the_heat_map():
    camera = np.full((10, 10, 1), 2.5, np.float32)
    frame = compose(None, camera, attend(camera, 1, 1, [3]), 0, 0).astype(int)
    first = frame.shape[1] // 2 + 20
    column = frame[20:480:48, first].sum(axis=-1)
    assert (np.diff(column) > 0).all()


def test_the_return_and_the_step_are_written_below_and_change_nothing_above():
    camera = np.full((96, 96, 3), 100, np.uint8)
    before, after = (compose(GREEN, camera, None, total, 7) for total in (12.5, 812.5))
    np.testing.assert_array_equal(before[:480], after[:480])
    assert (before[480:, :300] != after[480:, :300]).any()
    later = compose(GREEN, camera, None, 12.5, 8)
    np.testing.assert_array_equal(before[:, :600], later[:, :600])
    assert (before[480:, 600:] != later[480:, 600:]).any()


@st.composite
def cameras(draw) -> np.ndarray:
    shape = draw(st.integers(4, 300)), draw(st.integers(4, 300)), draw(st.sampled_from([1, 2, 3, 4]))
    if draw(st.booleans()):
        return np.random.default_rng(0).random(shape, np.float32)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@given(cameras(), st.sampled_from([None, (64, 64), (101, 333), (480, 641)]), st.integers(1, 4))
def test_all_frames_of_a_video_have_one_even_size_for_any_camera(camera, size, patch):
    scene = None if size is None else np.zeros((*size, 3), np.uint8)
    attention = attend(camera, patch, patch, [0])
    frames = [compose(scene, camera, one, total, 1) for one in (attention, None) for total in (0, -1e6)]
    assert len({frame.shape for frame in frames}) == 1
    assert all(side % 2 == 0 for side in frames[0].shape[:2])
    assert all(frame.dtype == np.uint8 for frame in frames)


def test_only_the_centres_of_patches_that_overlap_many_times_are_red():
    camera = np.full((100, 100, 3), 90, np.uint8)
    wide, narrow = (
        red_pixels(compose(GREEN, camera, attend(camera, patch, 4, [45]), total=0.0, step=0)).sum()
        for patch in (12, 20)
    )
    assert 0 < narrow < wide / 2
