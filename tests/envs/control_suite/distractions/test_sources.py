import subprocess
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from iap.envs.control_suite.distractions import davis
from iap.envs.control_suite.distractions.cache import Cache
from iap.envs.control_suite.distractions.procedural import HELD_OUT_VIDEOS, TRAINING_VIDEOS, ProceduralVideo
from iap.envs.control_suite.distractions.sources import find_videos
from iap.envs.core import make_env

SIDE = 16


def save(path: Path, shade: int, size: tuple[int, int] = (32, 16)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, shade, shade)).save(path)


def save_video(path: Path, shades: list[int]) -> None:
    frames = b"".join(bytes([shade]) * (64 * 32 * 3) for shade in shades)
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "64x32", "-r", "10", "-i", "-"]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *raw, "-c:v", "mpeg4", "-qscale:v", "1", str(path)]
    subprocess.run(command, input=frames, check=True)


def shades(path: Path, split: str = "train", most: int | None = None) -> list[list[float]]:
    """The brightness of each frame of each video."""
    videos = find_videos(str(path), split, most, SIDE)  # pyright: ignore[reportArgumentType]
    return [[float(video.frame(i).mean()) for i in range(len(video))] for video in videos]


@pytest.fixture
def davis_folder(tmp_path) -> Path:
    for shade, name in enumerate(davis.TRAINING + davis.VALIDATION):
        for frame in range(2):
            save(tmp_path / "DAVIS" / "JPEGImages" / "480p" / name / f"{frame:05d}.png", 2 * shade + frame)
    save(tmp_path / "DAVIS" / "Annotations" / "480p" / "bear" / "00000.png", 255)
    return tmp_path / "DAVIS"


def test_davis_has_60_training_and_30_validation_videos():
    assert (len(davis.TRAINING), len(davis.VALIDATION)) == (60, 30)
    assert not set(davis.TRAINING) & set(davis.VALIDATION)
    assert davis.TRAINING[:4] == ("bear", "bmx-bumps", "boat", "boxing-fisheye")


def test_davis_uses_its_own_split(davis_folder):
    everything = [[2.0 * i, 2.0 * i + 1] for i in range(90)]
    assert shades(davis_folder, most=4) == everything[:4]
    assert shades(davis_folder, most=8) == everything[:8]
    assert shades(davis_folder) == everything[:60]
    assert shades(davis_folder, "held-out", most=4) == everything[60:]
    assert shades(davis_folder / "JPEGImages" / "480p", most=4) == everything[:4]


def test_a_missing_video_of_davis_is_named(davis_folder):
    gone = davis_folder / "JPEGImages" / "480p" / "bmx-bumps"
    for frame in gone.iterdir():
        frame.unlink()
    with pytest.raises(ValueError, match="bmx-bumps contains no images"):
        shades(davis_folder, most=4)
    gone.rmdir()
    with pytest.raises(ValueError, match="bmx-bumps: No such file"):
        shades(davis_folder, most=4)


def test_every_third_image_of_a_folder_is_held_out(tmp_path):
    for i in range(6):
        save(tmp_path / f"{i}.png", 10 * i)
    (tmp_path / "notes.txt").write_text("not an image")
    (tmp_path / ".hidden.png").write_text("not an image")
    assert shades(tmp_path) == [[0.0], [10.0], [30.0], [40.0]]
    assert shades(tmp_path, "held-out") == [[20.0], [50.0]]
    assert shades(tmp_path, most=2) == [[0.0], [10.0]]


def test_the_last_third_of_a_video_file_is_held_out(tmp_path):
    video = tmp_path / "video.avi"
    save_video(video, [20 * i for i in range(9)])
    [train], [held_out] = shades(video), shades(video, "held-out")
    np.testing.assert_allclose(train, [20 * i for i in range(6)], atol=4)
    np.testing.assert_allclose(held_out, [120, 140, 160], atol=4)


def test_a_folder_may_contain_video_files(tmp_path):
    for i in range(3):
        save_video(tmp_path / f"{i}.avi", [50 * i, 50 * i])
    np.testing.assert_allclose(shades(tmp_path), [[0, 0], [50, 50]], atol=4)
    np.testing.assert_allclose(shades(tmp_path, "held-out"), [[100, 100]], atol=4)


def test_the_centre_square_of_an_image_is_used(tmp_path):
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, 20:40] = 200
    for i in range(2):
        Image.fromarray(wide).save(tmp_path / f"{i}.png")
    assert find_videos(str(tmp_path), "train", None, SIDE)[0].frame(0).min() > 150


@pytest.mark.parametrize("name", ["0.png", "0.avi"])
def test_a_broken_file_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(b"not an image")
    with pytest.raises(ValueError, match=f"cannot read the (image|video) .*{name}"):
        shades(tmp_path)
    with pytest.raises(ValueError, match=f"cannot read the video .*{name}"):
        shades(tmp_path / name)


def test_an_environment_names_the_background_that_it_cannot_read(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.jpg").write_bytes(b"not an image")
    env = make_env("iap/cheetah-run-v0", size=(8, 8), difficulty="easy", backgrounds=str(tmp_path))
    with pytest.raises(ValueError, match=r"cannot read the image .*\d\.jpg"):
        env.reset(seed=0)
    env.close()


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match=f"{tmp_path} contains no videos and no images"):
        make_env("iap/cheetah-run-v0", size=(8, 8), difficulty="easy", backgrounds=str(tmp_path))


def test_a_folder_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"cannot read the folder .*below: Not a directory"):
        shades(tmp_path / "file" / "below")


def test_too_few_images_for_a_split_are_refused(tmp_path):
    save(tmp_path / "0.png", 0)
    with pytest.raises(ValueError, match="too few to hold out every third"):
        shades(tmp_path, "held-out")


def test_a_file_is_decoded_once(tmp_path):
    for i in range(2):
        save(tmp_path / f"{i}.png", 77)
    [video, _] = find_videos(str(tmp_path), "train", None, SIDE)
    before = video.frame(0)
    (tmp_path / "0.png").unlink()
    assert video.frame(0) is before
    with pytest.raises(ValueError, match="read-only"):
        before[:] = 0


def test_the_cache_drops_the_least_recently_used_image():
    cache, made = Cache(capacity_bytes=2 * 3 * SIDE**2), []

    def get(key: str) -> None:
        cache.get(key, lambda: made.append(key) or np.zeros((SIDE, SIDE, 3), np.uint8))

    for key in ("a", "b", "a", "c", "a", "b"):
        get(key)
    assert made == ["a", "b", "c", "b"]


def test_training_and_held_out_procedural_videos_share_no_frame():
    assert not set(TRAINING_VIDEOS) & set(HELD_OUT_VIDEOS)
    pictures = {ProceduralVideo(n, SIDE).frame(0).tobytes() for n in [*TRAINING_VIDEOS[:10], *HELD_OUT_VIDEOS[:10]]}
    assert len(pictures) == 20


def test_procedural_videos_change_gradually():
    for number in TRAINING_VIDEOS[:4]:
        video = ProceduralVideo(number, 256)
        first, second, last = (video.frame(i).astype(int) for i in (0, 1, len(video) - 1))
        assert 0 < np.abs(second - first).mean() < 0.8 * np.abs(last - first).mean()


def test_procedural_images_have_the_spectrum_of_natural_images():
    pictures = np.stack([ProceduralVideo(n, 256).frame(0).mean(axis=2) for n in TRAINING_VIDEOS[:8]])
    spectrum = np.abs(np.fft.fft2(pictures - pictures.mean(axis=(1, 2), keepdims=True))).mean(axis=0)
    radius = np.hypot(*np.meshgrid(*[np.fft.fftfreq(256, 1 / 256)] * 2))
    bands = [2, 4, 8, 16, 32, 64]
    amplitudes = [spectrum[(radius >= low) & (radius < 2 * low)].mean() for low in bands]
    slope = np.polyfit(np.log(bands), np.log(amplitudes), 1)[0]
    assert -2 < slope < -0.8  # of natural images it is about -1


def test_a_procedural_image_is_the_same_at_any_size():
    small, large = (ProceduralVideo(3, side).frame(5).astype(float) for side in (256, 512))
    assert np.abs(large.reshape(256, 2, 256, 2, 3).mean(axis=(1, 3)) - small).mean() < 6
