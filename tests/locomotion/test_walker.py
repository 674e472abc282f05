import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from iap.locomotion import walker_kernels
from iap.locomotion.gait import FootState
from iap.locomotion.mpc import QPError
from iap.locomotion.robots import LAIKAGO
from iap.locomotion.walker import Command, Motion, Walker

HEIGHT_M = 0.45
ON_GROUND = np.ones(4, bool)
AXES = np.eye(3)


def standing(rotation: np.ndarray = AXES, touching: np.ndarray = ON_GROUND, velocity=(0.0, 0.0, 0.0)) -> Motion:
    """A body with its feet below its hips."""
    toes = np.pad(LAIKAGO.stance_m, ((0, 0), (0, 1)), constant_values=LAIKAGO.toe_radius_m - HEIGHT_M)
    position = np.array([2.0, -1.0, HEIGHT_M])
    return Motion(position, rotation, np.array(velocity), np.zeros(3), LAIKAGO.legs.angles(toes), touching)


def start(motion: Motion) -> Walker:
    walker = Walker(LAIKAGO)
    walker.reset(motion)
    return walker


@pytest.mark.parametrize("angles", [(0.1, -0.2, 0.3), (-0.4, 0.5, 3.0), (0.0, 0.0, 0.0)])
def test_measured_orientation_and_contacts_are_converted(angles):
    turned = Rotation.from_euler("xyz", angles)
    rates = np.array([0.1, 0.2, 0.3])
    quaternion = turned.as_quat(scalar_first=True)
    motion = Motion.empty()
    motion.measure(np.zeros(3), quaternion, np.zeros(3), rates, np.zeros(12), np.array([0.0, 0.5, 2.0, 100.0]))
    assert motion.touching.tolist() == [False, False, True, True]
    np.testing.assert_allclose(motion.rotation, turned.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(motion.angular_velocity_rad_s, turned.apply(rates))
    np.testing.assert_allclose(motion.roll_pitch, angles[:2], atol=1e-12)
    level = Rotation.from_euler("z", angles[2]).as_matrix()
    np.testing.assert_allclose(walker_kernels.heading_of(motion.rotation), level, atol=1e-12)


def test_legs_in_stance_give_torques_that_carry_the_weight():
    motion = standing()
    walker = start(motion)
    commands, gives_torque = walker.step(motion, Command(height_m=HEIGHT_M))
    assert gives_torque.all()
    jacobians = LAIKAGO.legs.jacobians(motion.angles_rad)
    forces = [np.linalg.solve(jacobians[leg].T, commands.reshape(4, 3)[leg]) for leg in range(4)]
    np.testing.assert_allclose(forces, -walker._forces, atol=1e-9)
    share = -np.sum(forces, axis=0)[2] / (LAIKAGO.mpc.mass_kg * 9.8)
    assert 1 < share < 1.3  # more than the weight, since two legs will lift off soon


def test_a_foot_lifts_off_by_the_gait_towards_the_commanded_landing():
    motion = standing(velocity=(0.3, 0.0, 0.0))
    walker = start(motion)
    offsets = np.arange(12.0).reshape(4, 3) / 100
    command = Command(offsets_m=offsets, velocity_m_s=(0.3, 0.0), height_m=HEIGHT_M)
    while walker.time_s < 0.0499:
        walker.step(motion, command)
    commands, gives_torque = walker.step(motion, command)
    assert walker.states.tolist() == [FootState.STANCE, FootState.SWING, FootState.SWING, FootState.STANCE]
    assert gives_torque.reshape(4, 3).all(axis=1).tolist() == [True, False, False, True]
    ahead = 0.3 * (0.2 + 0.15)  # a swing, and half a stance
    for leg in (1, 2):
        place = (*(motion.position_m[:2] + LAIKAGO.stance_m[leg] + [ahead, 0]), LAIKAGO.toe_radius_m)
        np.testing.assert_allclose(walker.landings_m[leg], place + offsets[leg], atol=1e-9)
        np.testing.assert_allclose(commands.reshape(4, 3)[leg], motion.angles_rad[leg], atol=0.02)


def test_landings_rotate_with_the_body():
    yaw, pitch = 0.5, -0.4
    rotation = Rotation.from_euler("xyz", (0, pitch, yaw)).as_matrix()
    motion = standing(rotation, velocity=(0.2 * math.cos(yaw), 0.2 * math.sin(yaw), 0.0))
    landings = start(motion).next_landings(motion, (0.2, 0.0), HEIGHT_M) - motion.position_m
    level = Rotation.from_euler("z", -yaw).apply(landings)
    np.testing.assert_allclose(level[:, 0], LAIKAGO.stance_m[:, 0] * math.cos(pitch) + 0.2 * 0.35, atol=1e-9)
    np.testing.assert_allclose(level[:, 1], LAIKAGO.stance_m[:, 1], atol=1e-9)
    below = LAIKAGO.stance_m[:, 0] * -math.sin(pitch) - HEIGHT_M + LAIKAGO.toe_radius_m
    np.testing.assert_allclose(level[:, 2], below, atol=1e-9)


def test_a_foot_without_contact_moves_down_within_a_limit():
    walker = start(standing())
    lost = standing(touching=np.array([False, True, True, True]))
    command = Command(height_m=HEIGHT_M)
    commands, gives_torque = walker.step(lost, command)
    assert walker.states[0] == FootState.LOST
    assert not gives_torque[:3].any()
    target = LAIKAGO.legs.toes(commands.reshape(4, 3))[0] + lost.position_m
    np.testing.assert_allclose(target, walker.landings_m[0] - [0, 0, 0.3 * 0.005], atol=1e-9)
    lost_s = np.full(4, 10.0)
    swings = (walker.landings_m, walker.landings_m, np.zeros(4))
    targets = walker_kernels.foot_targets(walker.states, np.full(4, -1.0), walker.toes_m, swings, lost_s, False)
    np.testing.assert_allclose(targets[0], walker.landings_m[0] - [0, 0, 0.1])


def test_on_stairs_a_foot_without_contact_continues_from_the_end_of_its_swing():
    landing = np.array([1.0, 0.2, 0.3])
    swings = (np.zeros((4, 3)), np.tile(landing, (4, 1)), np.full(4, 0.07))
    toes, lifts_first = np.zeros((4, 3)), True
    arrived, gone = (np.full(4, int(state)) for state in (FootState.SWING, FootState.LOST))
    end = walker_kernels.foot_targets(arrived, np.ones(4), toes, swings, np.zeros(4), lifts_first)
    after = walker_kernels.foot_targets(gone, np.full(4, -1.0), toes, swings, np.full(4, 0.1), lifts_first)
    np.testing.assert_allclose(end - after, np.tile([0, 0, 0.3 * 0.1], (4, 1)), atol=1e-12)


def test_the_ground_is_the_plane_through_the_feet():
    heading = walker_kernels.heading_of(Rotation.from_euler("z", 0.7).as_matrix())
    position = np.array([3.0, 2.0, 1.0])
    feet = np.array([(x, y, 0.5 * x - 0.45) for x in (0.25, -0.19) for y in (-0.1, 0.1)]) @ heading.T + position
    slope, ground = walker_kernels.ground_below(feet, position, heading)
    assert slope == pytest.approx(0.5)
    assert ground == pytest.approx(position[2] - 0.45)


def test_early_contacts_last_until_the_stance_begins():
    contacts = np.zeros((6, 4), bool)
    contacts[3:, :2] = True
    walker_kernels.correct_contacts(
        contacts, np.array([FootState.EARLY, FootState.SWING, FootState.STANCE, FootState.LOST])
    )
    assert contacts.T.astype(int).tolist() == [
        [1, 1, 1, 1, 1, 1],
        [0, 0, 0, 1, 1, 1],
        [1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ]


def test_nan_is_an_error():
    motion = standing()
    walker = start(motion)
    with pytest.raises(QPError):
        walker.step(motion._replace(velocity_m_s=np.full(3, np.nan)), Command())
