"""The teacher of the task with all feet: safe footholds, and all others that are as safe."""

import numpy as np
import pytest

from iap.envs.protocols import PrivilegedTeacher, find_protocol
from iap.envs.quadruped.footsteps.ground_cameras import EDGE_M
from iap.envs.quadruped.footsteps.teacher import CELLS, FOOT_AXES, TOLERANCE_M
from iap.envs.quadruped.footsteps.terrain import KINDS
from iap.locomotion.walker_kernels import heading_of

LEAST_RETURN = {"step-stones": 2.3, "stone-grid": 2.3, "stairs": 1.2}


@pytest.mark.parametrize("kind", KINDS)
def test_the_teacher_walks_far_and_its_footholds_are_safe(kind, footsteps, walk):
    env = footsteps(kind)
    assert find_protocol(env, PrivilegedTeacher) is env
    total, ended = walk(env, lambda env: env.label().action, seed=3, steps=160)
    assert ended is None
    assert total > LEAST_RETURN[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_cells_without_cost_are_safe_places_and_the_teachers_cell_is_one(kind, footsteps):
    env = footsteps(kind)
    env.reset(seed=1)
    for _ in range(25):
        label = env.label()
        env.step(label.action)
    label, ranges = env.label(), env.ranges
    assert label.axes == FOOT_AXES
    assert label.costs is not None
    assert label.costs.shape == (4, *CELLS)
    default = env.default_command()
    landings = env.walker.next_landings(env.motion, default.velocity_m_s, default.height_m)
    heading = heading_of(env.motion.rotation)[:2, :2]
    for foot, (row, column, _) in enumerate(FOOT_AXES):
        if label.weights is None or label.weights[row] == 0:
            continue  # nothing is in reach
        i, j = ((label.action[[row, column]] + 1) / 2 * CELLS).astype(int).clip(0, np.array(CELLS) - 1)
        assert label.costs[foot, i, j] < 0.02 / TOLERANCE_M  # within a cell
        nearest = label.costs[foot].min()  # of a cell to the candidates around its centre
        offsets = (np.argwhere(label.costs[foot] < nearest + 0.01) + 0.5) / CELLS
        low, high = np.array((ranges.forward_m, ranges.left_m)).T
        places = landings[foot, :2] + (low + offsets * (high - low)) @ heading.T
        assert np.isfinite(env.terrain.heights(places, EDGE_M - 0.01)).all()


def test_the_label_of_the_mirror_image_is_the_mirror_image_of_the_label(footsteps):
    env, mirrored = footsteps("step-stones", last_action=False), footsteps("step-stones", last_action=False)
    env.reset(seed=4)
    mirrored.reset(seed=4, options={"mirrored": True})
    signed = np.array(env.symmetry["actions"])
    reflected = env.label().action[np.abs(signed) - 1] * np.sign(signed)
    np.testing.assert_allclose(mirrored.label().action, reflected, atol=0.15)  # candidates are a centimetre apart


def test_the_last_action_can_be_left_out_of_the_sensors(footsteps):
    env = footsteps("stairs", last_action=False)
    observation, _ = env.reset(seed=0)
    assert observation["sensors"].shape == (34,)
    assert len(env.symmetry["sensors"]) == 34


def test_with_a_part_of_the_action_the_label_has_no_maps(footsteps):
    env = footsteps("step-stones", footholds="x")
    env.reset(seed=0)
    label = env.label()
    assert label.action.shape == (4,)
    assert label.costs is None
