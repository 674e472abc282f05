"""`iap attend`: overlays and a table for images, folders and videos, with and without a trained policy."""

import csv

import numpy as np
import pytest
from PIL import Image
from training_cases import iap_here

from iap.viz.frames import frame_rate, frames_of
from iap.viz.videos import VideoWriter

RNG = np.random.default_rng(0)


def rows_of(out):
    with (out / "attention.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture
def images(tmp_path):
    """A folder with three photos of noise with a bright square."""
    folder = tmp_path / "images"
    folder.mkdir()
    for i in range(3):
        picture = RNG.integers(0, 60, (60, 80, 3), dtype=np.uint8)
        picture[20:30, 20 * i : 20 * i + 10] = 255
        Image.fromarray(picture).save(folder / f"photo-{i}.png")
    return folder


@pytest.mark.parametrize("policy", [[], ["--policy", "zoo:seek"], ["--policy", "zoo:obstacle-course"]])
def test_a_folder_gives_an_overlay_for_each_image_and_a_table(images, tmp_path, policy):
    out = tmp_path / "out"
    iap_here("attend", images, *policy, "--out", out)
    assert sorted(path.name for path in out.iterdir()) == ["attention.csv", *(f"photo-{i}.png" for i in range(3))]
    rows = rows_of(out)
    assert [row["image"] for row in rows] == ["photo-0", "photo-1", "photo-2"]
    assert all(0 <= float(row["best_x"]) <= 80 and 0 <= float(row["best_y"]) <= 60 for row in rows)
    with Image.open(out / "photo-0.png") as overlay:
        assert overlay.width > 500


def test_one_image_and_chosen_patches(images, tmp_path):
    out = tmp_path / "out"
    iap_here("attend", images / "photo-1.png", "--patch", 5, "--top-k", 3, "--out", out)
    assert [row["selected"] for row in rows_of(out)] == ["3"]


def test_a_video_gives_a_video(tmp_path):
    with VideoWriter(tmp_path / "in.mp4", fps=12) as video:
        for _ in range(5):
            video.add(RNG.integers(0, 256, (48, 64, 3), dtype=np.uint8))
    assert frame_rate(tmp_path / "in.mp4") == 12
    out = tmp_path / "out"
    iap_here("attend", tmp_path / "in.mp4", "--policy", "zoo:seek", "--max-frames", 4, "--out", out)
    assert len(rows_of(out)) == 4
    frames = list(frames_of(out / "in.mp4"))
    assert len(frames) == 4
    assert frames[0].image.shape[1] > 500
