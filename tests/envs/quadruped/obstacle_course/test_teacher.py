"""The teacher of the obstacle course: it walks through the gaps, and its label of the mirror image is mirrored."""

import gymnasium
import numpy as np
import pytest

import iap
from iap.envs.protocols import PrivilegedTeacher, find_protocol
from iap.envs.quadruped.obstacle_course.course import Course, Wall
from iap.envs.quadruped.obstacle_course.teacher import CLEARANCE_M, wanted_heading

COURSE = Course((Wall(3.0, 1.3, gap_at_left=True),), 3.0, 0.0, 0.0, 0.0, left_foot_first=True)


@pytest.fixture
def env() -> gymnasium.Env:
    return iap.make_env("iap/ObstacleCourse-v0", residuals=False)


def test_the_teacher_walks_through_all_gaps(env) -> None:
    teacher = find_protocol(env, PrivilegedTeacher)
    assert teacher is not None
    env.reset(seed=3)
    env.get_wrapper_attr("set_rendering")(False)
    steps = [env.step(teacher.label().action) for _ in range(500)]
    assert not any(terminated for _, _, terminated, _, _ in steps)
    assert sum(float(reward) for _, reward, _, _, _ in steps) > 11


def test_the_label_of_the_mirror_image_is_the_mirror_image_of_the_label(env) -> None:
    course = env.unwrapped
    env.reset(seed=4)
    label = course.label().action
    env.reset(seed=4, options={"mirrored": True})
    signed = np.array(course.symmetry["actions"])
    np.testing.assert_allclose(course.label().action, label[np.abs(signed) - 1] * np.sign(signed), atol=1e-5)


def test_the_teacher_goes_straight_where_the_gap_is_ahead_and_else_to_its_near_end() -> None:
    assert wanted_heading(COURSE, 1.0, 0.9) == 0
    assert wanted_heading(COURSE, 1.0, -0.5) > 0
    near_end = 3.0 / 2 - 1.3 + CLEARANCE_M
    assert wanted_heading(COURSE, 1.0, near_end) == 0
    assert wanted_heading(COURSE, 1.0, near_end - 0.1) > 0


def test_residuals_of_single_motors_are_zero() -> None:
    env = iap.make_env("iap/ObstacleCourse-v0")
    env.reset(seed=0)
    action = env.unwrapped.label().action  # pyright: ignore[reportAttributeAccessIssue]
    assert action.shape == (17,)
    assert not action[5:].any()
    env.close()
