import resource
import subprocess

import imageio_ffmpeg
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from iap.attention import grid_of
from iap.policies.state import Attention
from iap.viz.videos import VideoWriter, compose

GREEN = np.full((480, 720, 3), (60, 160, 60), np.uint8)


def frames_of(count: int, size: tuple[int, int] = (64, 96)) -> list[np.ndarray]:
    """Dark frames with a bright square that moves to the right."""
    frames = np.full((count, *size, 3), 30, np.uint8)
    for i, frame in enumerate(frames):
        frame[10:30, 4 + 8 * i : 24 + 8 * i] = (220, 200, 40)
    return list(frames)


def read_mp4(path, size: tuple[int, int]) -> tuple[str, np.ndarray]:
    """What ffmpeg tells of the film, and its frames."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stderr.decode(), np.frombuffer(done.stdout, np.uint8).reshape(-1, *size, 3)


def read_gif(path) -> list[np.ndarray]:
    with Image.open(path) as film:
        frames = []
        for i in range(getattr(film, "n_frames", 1)):
            film.seek(i)
            frames.append(np.asarray(film.convert("RGB")))
    return frames


def look(image: np.ndarray, patch: int, stride: int, chosen: list[int]) -> Attention:
    grid = grid_of(image.shape[0], image.shape[1], patch, stride)
    return Attention(np.arange(grid.patches, dtype=np.float32), np.array(chosen, np.int64), grid, patch, stride)


def reds(picture: np.ndarray) -> np.ndarray:
    return (picture[..., 0] > 200) & (picture[..., 1:].max(axis=-1) < 45)


def write(path, frames) -> None:
    with VideoWriter(path, fps=10) as video:
        for frame in frames:
            video.add(frame)


def test_an_mp4_shows_every_frame_at_its_time(tmp_path):
    frames = frames_of(6)
    write(tmp_path / "a.mp4", frames)
    told, shown = read_mp4(tmp_path / "a.mp4", (64, 96))
    assert all(word in told for word in ("Video: h264", "yuv420p", "96x64", "10 fps"))
    assert len(shown) == 6
    for frame, seen in zip(frames, shown, strict=True):
        assert np.abs(frame.astype(int) - seen).mean() < 4
    assert [file.name for file in tmp_path.iterdir()] == ["a.mp4"]


def test_a_gif_shows_every_frame(tmp_path):
    frames = frames_of(6)
    write(tmp_path / "a.GIF", frames)
    shown = read_gif(tmp_path / "a.GIF")
    assert len(shown) == 6
    for frame, seen in zip(frames, shown, strict=True):
        assert np.abs(frame.astype(int) - seen).mean() < 4


def test_odd_sides_are_made_even_by_repeating_an_edge(tmp_path):
    write(tmp_path / "a.mp4", frames_of(3, (31, 63)))
    told, shown = read_mp4(tmp_path / "a.mp4", (32, 64))
    assert "64x32" in told
    assert np.abs(shown[0][-1].astype(int) - shown[0][-2]).mean() < 4


def test_an_error_on_the_way_leaves_the_old_film_and_nothing_beside(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(b"old")

    def interrupted():
        yield frames_of(1)[0]
        raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        write(path, interrupted())
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.mp4"]


@pytest.mark.parametrize("name", ["a.mp4", "a.gif"])
def test_a_disk_that_fills_up_is_told_and_leaves_nothing(name, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (40, 64, 64, 3), dtype=np.uint8)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # which ffmpeg inherits
    try:
        with pytest.raises(OSError, match=f"{name} could not be written"):
            write(tmp_path / name, noise)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_film_without_a_frame_is_refused(tmp_path):
    with pytest.raises(ValueError, match="without a frame"), VideoWriter(tmp_path / "a.gif"):
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
def test_a_frame_that_does_not_fit_is_refused(second, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "a.mp4", [frames_of(1)[0], second])
    assert list(tmp_path.iterdir()) == []


def test_where_no_film_can_be_written_is_told_before_the_first_frame(tmp_path):
    (tmp_path / "taken.mp4").mkdir()
    with pytest.raises(FileNotFoundError), VideoWriter(tmp_path / "none" / "a.mp4"):
        pytest.fail("it let a frame be made")
    with pytest.raises(IsADirectoryError, match="is a folder"), VideoWriter(tmp_path / "taken.mp4"):
        pytest.fail("it let a frame be made")
    with pytest.raises(ValueError, match=r"path must end in .mp4 or .gif, not 'a.avi'"):
        VideoWriter(tmp_path / "a.avi")
    with pytest.raises(ValueError, match="fps must be"):
        VideoWriter(tmp_path / "a.mp4", fps=0)


def test_the_scene_stays_as_it_is_but_for_the_views_in_its_upper_corners():
    camera = np.full((96, 96, 3), 100, np.uint8)
    frame = compose(GREEN, camera, look(camera, 7, 4, [0, 300]), 12.5, 3)
    assert frame.shape == (520, 720, 3)
    rows, columns = np.nonzero((frame[:480] != GREEN).any(axis=-1))
    assert (rows.min(), columns.min(), columns.max()) == (8, 8, 711)
    assert rows.max() < 210
    assert not ((columns > 230) & (columns < 490)).any()
    assert reds(frame[8:180, 8:180]).any()
    assert not reds(frame[8:180, 230:]).any()


def test_exactly_the_attended_patch_is_red():
    camera = np.full((20, 20, 3), 100, np.uint8)
    frame = compose(None, camera, look(camera, 4, 4, [6]), 0, 0)
    red = reds(frame[:489, :489])
    wanted = np.zeros_like(red)
    wanted[9 + 96 : 9 + 192, 9 + 96 : 9 + 192] = True
    np.testing.assert_array_equal(red, wanted)


def test_a_single_attended_pixel_of_a_large_image_can_be_seen():
    camera = np.full((240, 320, 3), 100, np.uint8)
    frame = compose(GREEN, camera, look(camera, 1, 1, [120 * 320 + 160]), 0, 0)
    assert reds(frame[:180]).sum() > 60
    none = compose(GREEN, camera, look(camera, 1, 1, []), 0, 0)
    assert not reds(none).any()


def test_a_higher_score_is_brighter_in_the_heat_map():
    camera = np.full((10, 10, 1), 2.5, np.float32)
    frame = compose(None, camera, look(camera, 1, 1, [3]), 0, 0).astype(int)
    first = frame.shape[1] // 2 + 20
    column = frame[20:480:48, first].sum(axis=-1)
    assert (np.diff(column) > 0).all()


def test_the_return_and_the_step_are_told_below_and_change_nothing_above():
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
def test_every_frame_of_a_film_has_one_even_size_whatever_the_camera(camera, size, patch):
    scene = None if size is None else np.zeros((*size, 3), np.uint8)
    attended = look(camera, patch, patch, [0])
    frames = [compose(scene, camera, seen, total, 1) for seen in (attended, None) for total in (0, -1e6)]
    assert len({frame.shape for frame in frames}) == 1
    assert all(side % 2 == 0 for side in frames[0].shape[:2])
    assert all(frame.dtype == np.uint8 for frame in frames)


def test_of_patches_that_overlap_many_times_over_the_middles_are_red():
    camera = np.full((100, 100, 3), 90, np.uint8)
    wide, narrow = (
        reds(compose(GREEN, camera, look(camera, patch, 4, [45]), total=0.0, step=0)).sum() for patch in (12, 20)
    )
    assert 0 < narrow < wide / 2
