"""Frames of videos: the scene, the policy's image, the scores, the title, and the return beside its references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap.attention import grid_of
from iap.policies import Attention
from iap.viz.composition import DEPTH, Film, camera_picture, compose, side_by_side
from iap.viz.lettering import OUTLINE, Label, coloured, with_labels
from iap.viz.return_bar import FILLED, Reference, return_bar

GREEN = np.full((480, 720, 3), (60, 160, 60), np.uint8)
GREY = np.full((96, 96, 3), 100, np.uint8)
SCENE = np.s_[8:488, 8:728]  # where the scene is in a frame without a title


def attend(image: np.ndarray, patch: int, stride: int, selected: list[int]) -> Attention:
    grid = grid_of(image.shape[0], image.shape[1], patch, stride)
    return Attention(np.arange(grid.patches, dtype=np.float32), np.array(selected, np.int64), grid, patch, stride)


def lines(picture: np.ndarray) -> np.ndarray:
    return (picture == OUTLINE).all(axis=-1)


def test_nothing_covers_the_scene():
    frame = compose(GREEN, GREY, attend(GREY, 7, 4, [0, 300]), 12.5, 3)
    np.testing.assert_array_equal(frame[SCENE], GREEN)
    assert lines(frame[:, 728:]).any()


def test_exactly_the_attended_patch_is_outlined_and_keeps_its_colours():
    camera = np.full((20, 20, 3), 100, np.uint8)
    picture = side_by_side(camera, attend(camera, 4, 4, [6]))[9:489, 9:489]
    rows, columns = np.nonzero(lines(picture))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (96, 191, 96, 191)
    assert (picture[100:188, 100:188] == 100).all()
    assert (picture[200:, :] == 100).all()


def test_a_single_attended_pixel_of_a_large_image_is_visible():
    camera = np.full((240, 320, 3), 100, np.uint8)
    frames = [compose(GREEN, camera, attend(camera, 1, 1, picked), 0, 0) for picked in ([120 * 320 + 160], [])]
    assert lines(frames[0][:400]).sum() > 60
    assert not lines(frames[1]).any()


def test_only_the_centres_of_patches_that_overlap_many_times_are_outlined():
    camera = np.full((100, 100, 3), 90, np.uint8)
    wide, narrow = (
        np.ptp(np.nonzero(lines(side_by_side(camera, attend(camera, patch, 4, [45]))[:480]))[0]) for patch in (12, 20)
    )
    assert narrow < wide / 2


def test_a_higher_score_is_brighter_in_the_heat_map():
    camera = np.full((10, 10, 1), 2.5, np.float32)
    picture = side_by_side(camera, attend(camera, 1, 1, [3])).astype(int)
    column = picture[20:480:48, picture.shape[1] // 2 + 20].sum(axis=-1)
    assert (np.diff(column) > 0).all()


def test_task_goal_policy_and_step_are_a_title_above_the_same_frame():
    plain = compose(GREEN, GREY, None, 1.0, 3)
    titles = [Film("Seek"), Film("Seek", "Find it."), Film("Seek", "Find it.", "9 parameters")]
    frames = [compose(GREEN, GREY, None, 1.0, 3, film) for film in titles]
    for frame in frames:
        np.testing.assert_array_equal(frame[-len(plain) :], plain)
    above = len(frames[0]) - len(plain)
    assert above > 40
    assert (frames[0][:above] != frames[1][:above]).any()
    assert (frames[1][:above] != frames[2][:above]).any()
    later = compose(GREEN, GREY, None, 1.0, 4, titles[2])
    assert (frames[2][:above] != later[:above]).any()
    np.testing.assert_array_equal(frames[2][above:], later[above:])


def filled(bar: np.ndarray) -> int:
    return int((bar == FILLED).all(axis=-1).any(axis=0).sum())


def test_the_bar_grows_with_the_return_from_0_to_the_references():
    references = (Reference("random", -1.0), Reference("best", 9.0))
    widths = [filled(return_bar(800, total, references)) for total in (0.0, 3.0, 6.0, 9.0)]
    assert widths == sorted(widths)
    assert widths[3] == pytest.approx(3 * widths[1], rel=0.05)
    assert filled(return_bar(800, 90.0, references)) < 800  # a better return than all stays on the scale


@pytest.mark.parametrize("values", [(), (0.0,), (2.0, 2.0), (-3.0, 5.0, 5.1)])
def test_references_change_the_bar_and_not_its_size(values):
    references = tuple(Reference("a name", value) for value in values)
    bar = return_bar(700, 1.0, references)
    assert bar.shape == return_bar(700, 1.0).shape
    assert (bar != return_bar(700, 2.0, references)).any()


def test_near_and_far_have_the_colours_of_the_scale_also_when_one_frame_shows_less():
    image = np.linspace(0.2, 0.4, 64, dtype=np.float32).reshape(8, 8, 1)
    picture = camera_picture(image, "m", (0.0, 0.8))
    np.testing.assert_array_equal(picture, coloured((image[..., 0] / 0.8).astype(float), DEPTH))
    whole = camera_picture(image, "m")
    np.testing.assert_array_equal(whole[[0, -1], [0, -1]], coloured(np.array([0.0, 1.0]), DEPTH))
    shown = compose(GREEN, image, None, 0.0, 1, Film(image_unit="m"))
    assert shown.shape[0] == compose(GREEN, image, None, 0.0, 1).shape[0]


def test_parts_of_an_image_are_named():
    image = np.zeros((48, 32, 1), np.float32)
    plain, named = (compose(GREEN, image, None, 0.0, 1, Film(image_parts=parts)) for parts in ((), ("front", "belly")))
    rows = np.nonzero((plain != named).any(axis=(1, 2)))[0]
    assert np.ptp(rows) > 100  # one name at the top, one in the middle


def test_a_label_is_near_its_point_and_covers_no_other_point_or_label():
    labels = [Label("agent", 0.5, 0.5), Label("target", 0.5, 0.53), Label("", 0.2, 0.2), Label("far away", 1.5, 0.5)]
    one, two, mark, outside = ((with_labels(GREEN, [label]) != GREEN).any(axis=-1) for label in labels)
    assert not outside.any()
    assert 0 < mark.sum() < one.sum()
    rows, columns = np.nonzero(one)
    assert abs(rows - 240).max() < 120
    assert abs(columns - 360).max() < 120
    both = (with_labels(GREEN, labels) != GREEN).any(axis=-1)
    assert both.sum() > 1.5 * max(one.sum(), two.sum())


@st.composite
def cameras(draw) -> np.ndarray:
    shape = draw(st.integers(4, 300)), draw(st.integers(4, 300)), draw(st.sampled_from([1, 2, 3, 4]))
    if draw(st.booleans()):
        return np.random.default_rng(0).random(shape, np.float32)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@given(cameras(), st.sampled_from([None, (64, 64), (101, 333), (480, 641)]), st.integers(1, 4))
def test_all_frames_of_a_video_have_one_even_size_for_any_camera(camera, size, patch):
    scene = None if size is None else np.zeros((*size, 3), np.uint8)
    film = Film("task", "goal", "policy", (Reference("random", 0.5),))
    attention = attend(camera, patch, patch, [0])
    frames = [
        compose(scene, camera, attention, total, 1, film, labels)
        for total in (0, -1e6)
        for labels in ((), [Label("a", 0, 1)])
    ]
    assert len({frame.shape for frame in frames}) == 1
    assert all(side % 2 == 0 for side in frames[0].shape[:2])
    assert all(frame.dtype == np.uint8 for frame in frames)
