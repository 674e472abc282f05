from collections.abc import Sequence

import numpy as np
import pytest

from iap.envs.quadruped.simulation.mujoco import MujocoSimulator
from iap.envs.quadruped.simulation.protocol import SEGMENTS, Box, View
from iap.locomotion.robots import load_robot
from iap.locomotion.trajectory_generator import TROT, WALK, StrideParameters, TrajectoryGenerator

A1 = load_robot("a1")
GROUND = Box("floor", (0, 0, -0.5), (100, 100, 1), friction=0.7)
WALL = Box("wall", (3, 0, 0.5), (0.2, 1, 1), colour=(0, 0, 1))
CAMERA = View((0.28, 0, 0.04), (64, 64), fov_deg=90)
STANDING_M = (0, 0, 0.27)


def simulator(*views: View, terrain: Sequence[Box] = (GROUND,), yaw_rad: float = 0.0) -> MujocoSimulator:
    made = MujocoSimulator(A1, views, max_boxes=3)
    made.reset(terrain, STANDING_M, yaw_rad)
    return made


def walk(sim: MujocoSimulator, gait: StrideParameters, steps: int, steering: float = 0.0) -> np.ndarray:
    """Position and uprightness of the trunk after each step."""
    legs = TrajectoryGenerator(gait, A1.pose_rad, 0.02)
    legs.reset(0.25)
    path = np.empty((steps, 4))
    for i in range(steps):
        sim.step(legs.advance(steering=steering))
        _, x, y, _ = sim.state().quaternion
        path[i] = *sim.state().position_m, 1 - 2 * (x * x + y * y)
    return path


def yaw(sim: MujocoSimulator) -> float:
    w, _, _, z = sim.state().quaternion
    return 2 * np.arctan2(z, w)


@pytest.mark.parametrize(("gait", "speed_m_s"), [(TROT, 1.0), (WALK, 0.2)])
def test_an_open_loop_gait_is_stable_for_twenty_seconds(gait, speed_m_s):
    path = walk(simulator(), gait, 1000)
    assert path[:, 2].min() > 0.18
    assert path[:, 3].min() > 0.95
    assert path[-1, 0] == pytest.approx(20 * speed_m_s, rel=0.2)


@pytest.mark.parametrize("steering", [-1, -0.5, 0.5, 1])
def test_positive_steering_turns_to_the_left(steering):
    sim = simulator()
    path = walk(sim, TROT, 50, steering)
    assert 0.3 < yaw(sim) * np.sign(steering) < 2.5
    assert path[:, 3].min() > 0.9


def test_foot_forces_sum_to_the_weight():
    sim = simulator()
    for _ in range(100):
        sim.step(A1.pose_rad)
    forces = sim.foot_forces()
    np.testing.assert_allclose(forces.sum(axis=0), [0, 0, 12.458 * 9.81], atol=2)
    assert (forces[:, 2] > 15).all()


def test_a_motor_gives_the_commanded_torque_up_to_its_limit():
    sim = simulator()
    gives_torque = np.arange(12) >= 9
    sim.step(np.array([*A1.pose_rad[:9], 3, -4, 1000]), gives_torque)
    np.testing.assert_allclose(sim._data.actuator_force[9:], [3, -4, 55])
    sim.step(A1.pose_rad + 10, ~gives_torque & False)
    np.testing.assert_allclose(sim._data.actuator_force, [20, 55, 55] * 4)


def test_motors_track_angles_after_a_reset():
    fresh, used = simulator(), simulator()
    used.step(np.ones(12), np.ones(12, bool))
    used.reset([GROUND], STANDING_M, 0)
    for sim in (fresh, used):
        sim.step(A1.pose_rad)
    np.testing.assert_array_equal(fresh.state().angles_rad, used.state().angles_rad)


def test_a_wall_stops_the_trunk():
    path = walk(simulator(terrain=[GROUND, Box("wall", (1, 0, 1), (0.2, 20, 2))]), TROT, 60)
    assert 0.4 < path[:, 0].max() < 0.65


def test_feet_pass_through_walls():
    on_ground, in_wall = simulator(), simulator(terrain=[GROUND, Box("wall", (0, 0, 0.015), (20, 20, 0.03))])
    for _ in range(30):
        on_ground.step(A1.pose_rad)
        in_wall.step(A1.pose_rad)
    np.testing.assert_array_equal(on_ground.state().position_m, in_wall.state().position_m)
    assert in_wall.state().position_m[2] > 0.24


def test_a_view_has_the_right_segments_and_depths():
    sim = simulator(CAMERA, terrain=[GROUND, WALL])
    segments, depth, image = sim.segments(), sim.depth(), sim.image()
    middle = 32, 32
    assert SEGMENTS[segments[middle]] == "wall"
    assert depth[middle] == pytest.approx(3 - 0.1 - 0.28, abs=0.01)
    assert image[middle].argmax() == 2
    assert SEGMENTS[segments[0, 0]] == "sky"
    assert depth[0, 0] > 50
    assert SEGMENTS[segments[-1, 0]] == "floor"
    below = 31.5 / 32  # tangent of the angle of the last row
    assert depth[-1, 0] == pytest.approx((0.27 + 0.04) / below, rel=0.01)
    sim.close()


def test_a_view_can_look_down_and_show_the_feet():
    down = View((0.0, 0, -0.1), (24, 32), fov_deg=120, pitch_rad=np.pi / 2, shows_robot=True)
    sim = simulator(down)
    assert {SEGMENTS[i] for i in np.unique(sim.segments())} == {"floor", "robot"}
    assert np.median(sim.depth()) == pytest.approx(0.17, abs=0.01)
    sim.close()


def test_a_rotated_box_is_rendered_rotated():
    across = simulator(CAMERA, terrain=[GROUND, WALL])
    along = simulator(CAMERA, terrain=[GROUND, Box("wall", (3, 0, 0.5), (0.2, 1, 1), yaw_rad=np.pi / 2)])
    wall = SEGMENTS.index("wall")
    assert (across.segments() == wall).sum() > 2 * (along.segments() == wall).sum() > 0
    across.close()
    along.close()


def test_a_reset_removes_the_old_terrain():
    sim, fresh = simulator(CAMERA, terrain=[GROUND, WALL]), simulator(CAMERA)
    assert (sim.image() != fresh.image()).any()
    sim.reset([GROUND], STANDING_M, 0)
    np.testing.assert_array_equal(sim.image(), fresh.image())
    np.testing.assert_array_equal(walk(sim, TROT, 20), walk(fresh, TROT, 20))
    sim.close()
    fresh.close()


def test_too_many_boxes_are_refused():
    with pytest.raises(ValueError, match="terrain must have at most 3 boxes, not 4"):
        simulator(terrain=[GROUND] * 4)
