"""The ranges of the Distracting Control Suite: 10,000 draws are inside them and fill them."""

import math
from typing import Any

import numpy as np
import pytest

from iap.envs.control_suite.distractions.background import Moment, draw_moment, ground_alpha, play
from iap.envs.control_suite.distractions.camera_pose import (
    draw_motion,
    draw_place,
    mount_of,
    place_ranges,
    position,
    walk,
)
from iap.envs.control_suite.distractions.colour import colour_ranges, draw_colours, walk_colours
from iap.envs.control_suite.distractions.combined import scale_of, video_count
from iap.envs.control_suite.distractions.sources import find_videos
from iap.envs.control_suite.loading import loaded
from iap.envs.control_suite.tasks import DISTRACTING_TASKS, domain_of

DRAWS = 10_000
SCALES = {"easy": 0.1, "medium": 0.2, "hard": 0.3}
HALF_TURN = math.pi
CAMERAS = {  # radius, azimuth, polar angle of the models' cameras
    "ball_in_cup": (math.hypot(1, 0.8), -HALF_TURN / 2, math.atan2(1, 0.8)),
    "cartpole": (math.hypot(4, 1), -HALF_TURN / 2, math.atan2(4, 1)),
    "cheetah": (3.004, -1.583, 1.521),
    "finger": (math.hypot(1, 0.8), -HALF_TURN / 2, math.atan2(1, 0.8)),
    "reacher": (0.75, 0.0, 0.0),
    "walker": (2.347, -1.575, 1.020),
}

each_task = pytest.mark.parametrize("task", DISTRACTING_TASKS)
each_difficulty = pytest.mark.parametrize("difficulty", SCALES)


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    found = {}
    for task in DISTRACTING_TASKS:
        with loaded(task, seed=0) as env:
            found[task] = env.physics.model.ptr
    return found


def assert_fills(drawn: np.ndarray, low: Any, high: Any) -> None:
    low, high = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
    width = high - low
    assert (drawn >= low - 1e-9).all()
    assert (drawn <= high + 1e-9).all()
    assert (drawn.min(axis=0) <= low + 0.01 * width).all()
    assert (drawn.max(axis=0) >= high - 0.01 * width).all()
    middle = np.abs(drawn.mean(axis=0) - (low + high) / 2)
    assert (middle <= 0.02 * width + 1e-9).all()


@each_task
@each_difficulty
def test_camera_positions_fill_their_ranges(models, task, difficulty):
    s = SCALES[difficulty]
    mount = mount_of(models[task], 0)
    radius, azimuth, polar = CAMERAS[domain_of(task)]
    np.testing.assert_allclose(mount.own[:3], CAMERAS[domain_of(task)], atol=1e-3)
    low, high = place_ranges(mount.own, scale_of(difficulty))
    rng = np.random.default_rng(0)
    drawn = np.array([draw_place(low, high, rng) for _ in range(DRAWS)])
    assert_fills(drawn[:, 0], low.radius_m, high.radius_m)
    np.testing.assert_allclose(
        (low.radius_m, high.radius_m), (radius * (1 - 0.5 * s), radius * (1 + 1.5 * s)), rtol=1e-3
    )
    angle = s * HALF_TURN / 2
    assert_fills(drawn[:, 3], -angle, angle)
    lowest, highest = polar - angle, polar + angle
    if task != "reacher-easy":  # clipped to the upper quadrant; azimuths in [−π, 0] are not clipped
        lowest, highest = max(lowest, 0), min(highest, HALF_TURN / 2)
    np.testing.assert_allclose((low.polar, high.polar), (lowest, highest), atol=1e-3)
    assert_fills(drawn[:, 2], low.polar, high.polar)
    np.testing.assert_allclose((low.azimuth, high.azimuth), (azimuth - angle, azimuth + angle), atol=1e-3)
    assert_fills(drawn[:, 1], low.azimuth, high.azimuth)


@each_task
@each_difficulty
def test_material_colours_fill_their_ranges(models, task, difficulty):
    s = SCALES[difficulty]
    own = models[task].mat_rgba[:, :3].astype(float)
    rng = np.random.default_rng(0)
    ranges = colour_ranges(own, scale_of(difficulty))
    drawn = np.array([draw_colours(*ranges, rng) for _ in range(DRAWS)])
    assert_fills(drawn, np.maximum(own - s, 0), np.minimum(own + s, 1))


@each_task
@each_difficulty
def test_every_frame_of_the_videos_of_a_difficulty_is_drawn(task, difficulty):
    count = {"easy": 4, "medium": 8, "hard": 60}[difficulty]
    videos = find_videos("procedural", "train", video_count(scale_of(difficulty)), side=8)
    assert len(videos) == count
    assert len(find_videos("procedural", "held-out", video_count(scale_of(difficulty)), side=8)) == 30
    rng = np.random.default_rng(0)
    drawn = np.array([draw_moment(videos, rng) for _ in range(DRAWS)])
    assert set(drawn[:, 0]) == set(range(count))
    assert {tuple(each) for each in drawn[:, [1, 2]]} == {(i, way) for i in range(len(videos[0])) for way in (-1, 1)}
    alpha = {"reacher": 0.0, "walker": 1.0, "cheetah": 1.0}.get(domain_of(task), 0.3)
    assert ground_alpha(domain_of(task)) == alpha


@each_task
def test_a_moving_camera_covers_its_range_below_its_speed_limit(models, task):
    s = 0.2
    own = mount_of(models[task], 0).own
    low, high = place_ranges(own, s)
    rng = np.random.default_rng(1)
    place, motion = draw_place(low, high, rng), draw_motion(own, s, rng)
    limit_m, roll_limit = 0.4 * s * own.radius_m / 4, HALF_TURN * s / 50
    visited, speeds_m = [place], []
    for _ in range(3000):
        assert np.linalg.norm(motion.velocity_m) <= limit_m * 1.02
        assert abs(motion.roll) <= roll_limit * 1.001
        before_m = position(place)
        place, motion = walk(place, motion, low, high, own, s, rng)
        visited.append(place)
        speeds_m.append(np.linalg.norm(position(place) - before_m))
    places = np.array(visited)
    assert (places >= np.array(low) - 1e-9).all()
    assert (places <= np.array(high) + 1e-9).all()
    assert (np.ptp(places, axis=0) > 0.9 * (np.array(high) - low)).all()
    assert max(speeds_m) > 0.9 * limit_m


def test_dynamic_colours_change_by_3_percent_of_the_scale_and_stay_in_range():
    s = 0.3
    grey = np.full((1000, 3), 0.5)
    rng = np.random.default_rng(0)
    walked = walk_colours(grey, grey - 1, grey + 1, s, rng)
    assert np.std(walked - grey) == pytest.approx(0.03 * s, rel=0.05)
    low, high = colour_ranges(grey[:20], s)
    colours = draw_colours(low, high, rng)
    for _ in range(1000):
        colours = walk_colours(colours, low, high, s, rng)
        assert ((low <= colours) & (colours <= high)).all()


def test_videos_reverse_at_both_ends():
    moment = Moment(0, 2, 1)
    frames = []
    for _ in range(8):
        moment = play(moment, 4)
        frames.append(moment.frame)
    assert frames == [3, 2, 1, 0, 1, 2, 3, 2]
    assert play(Moment(0, 0, 1), 1).frame == 0
