"""Robot descriptions: masses and symmetry; the controller's model against the simulator."""

import json
from importlib import resources

import numpy as np
import pytest

from iap.envs.quadruped.simulation.mujoco import MujocoSimulator
from iap.envs.quadruped.simulation.protocol import Box
from iap.envs.rendering.camera import load_mujoco
from iap.locomotion.kinematics import LEGS
from iap.locomotion.robots import LAIKAGO, Mass, load_robot, rotation

A1 = load_robot("a1")
MIRROR = np.array([1, -1, 1])


def point(kg: float, position: list[float]) -> Mass:
    return Mass(kg, np.array(position), np.zeros((3, 3)))


@pytest.fixture(scope="module")
def standing() -> MujocoSimulator:
    """A Laikago at rest in an asymmetric pose."""
    simulator = MujocoSimulator(load_robot("laikago"), max_boxes=1)
    simulator.reset([Box("floor", (0, 0, -0.5), (9, 9, 1))], (0.3, -0.2, 0.6), 0.4)
    simulator.state().angles_rad[:] += np.random.default_rng(0).uniform(-0.4, 0.4, 12)
    load_mujoco().mj_forward(simulator.model, simulator._data)
    return simulator


@pytest.mark.parametrize(("name", "mass_kg"), [("a1", 12.458), ("laikago", 25.567)])
def test_masses_are_those_of_the_manufacturer(name, mass_kg):
    facts = json.loads(resources.files("iap.locomotion").joinpath(f"{name}.json").read_text())
    assert sum(link["mass_kg"] for link in facts["links"]) == pytest.approx(mass_kg)
    assert load_robot(name).mass_kg == pytest.approx(mass_kg)
    simulator = MujocoSimulator(load_robot(name), max_boxes=1)
    assert simulator.model.body_mass.sum() == pytest.approx(mass_kg)
    simulator.close()


def test_the_a1_has_twelve_motors_in_the_order_of_its_legs():
    trunk, *moved = A1.bodies
    assert trunk.motor is None
    assert [body.name for body in moved] == [f"{leg}_{part}" for leg in LEGS for part in ("hip", "upper", "lower")]
    motors = [body.motor for body in moved if body.motor]
    assert [motor.torque_nm for motor in motors] == [20, 55, 55] * 4
    assert [motor.damping for motor in motors] == [1, 2, 2] * 4
    assert {motor.stiffness for motor in motors} == {100}
    for motor, angle in zip(motors, A1.pose_rad, strict=True):
        assert motor.range_rad is not None
        assert motor.range_rad[0] < angle < motor.range_rad[1]


def test_the_a1_is_mirror_symmetric():
    bodies = {body.name: body for body in A1.bodies}
    for name, body in bodies.items():
        other = bodies[name.replace("L_", "?").replace("R_", "L_").replace("?", "R_")]
        np.testing.assert_allclose(body.position_m, other.position_m * MIRROR)
        np.testing.assert_allclose(body.mass.com_m, other.mass.com_m * MIRROR, atol=1e-12)
        np.testing.assert_allclose(body.mass.inertia, MIRROR[:, None] * other.mass.inertia * MIRROR, atol=1e-12)


def test_kinematics_and_jacobians_are_those_of_the_simulator(standing):
    state, data = standing.state(), standing._data
    angles = state.angles_rad.reshape(4, 3)
    trunk = data.xmat[standing.model.body("chassis").id].reshape(3, 3)
    toes, jacobians = LAIKAGO.legs.toes(angles), LAIKAGO.legs.jacobians(angles)
    for leg, name in enumerate(LEGS):
        geom = standing.model.geom(name).id
        np.testing.assert_allclose(state.position_m + trunk @ toes[leg], data.geom_xpos[geom], atol=1e-9)
        theirs = np.zeros((3, standing.model.nv))
        load_mujoco().mj_jacGeom(standing.model, data, theirs, None, geom)
        np.testing.assert_allclose(trunk @ jacobians[leg], theirs[:, 6 + 3 * leg : 9 + 3 * leg], atol=1e-9)


def test_the_controller_has_the_mass_centre_and_inertia_of_the_standing_robot():
    simulator = MujocoSimulator(load_robot("laikago"), max_boxes=1)
    simulator.reset([], (0, 0, 0), 0.0)
    model, data = simulator.model, simulator._data
    trunk = model.body("chassis").id
    assert LAIKAGO.mpc.mass_kg == pytest.approx(25.567)
    np.testing.assert_allclose(data.subtree_com[trunk], LAIKAGO.com_m, atol=0.002)
    inertia = np.zeros((3, 3))
    for body in range(trunk, model.nbody):
        frame, offset = data.ximat[body].reshape(3, 3), data.xipos[body] - data.subtree_com[trunk]
        inertia += frame @ np.diag(model.body_inertia[body]) @ frame.T
        inertia += model.body_mass[body] * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    np.testing.assert_allclose(np.diag(inertia), LAIKAGO.mpc.inertia, rtol=0.05)


def test_the_sum_of_masses_has_the_inertia_of_all_points():
    total = point(1, [0, 0, 0]) + point(3, [0, 4, 0])
    assert total.kg == 4
    np.testing.assert_allclose(total.com_m, [0, 3, 0])
    np.testing.assert_allclose(total.inertia, np.diag([12, 0, 12]))  # 1·3² + 3·1²


def test_a_moved_mass_has_a_rotated_inertia():
    moved = (point(1, [1, 0, 0]) + point(1, [-1, 0, 0])).moved(np.array([0, 0, 5]), rotation((0, 0, np.pi / 2)))
    np.testing.assert_allclose(moved.com_m, [0, 0, 5])
    np.testing.assert_allclose(moved.inertia, np.diag([2, 0, 2]), atol=1e-12)


def test_rotations_are_about_fixed_axes_x_first():
    np.testing.assert_allclose(rotation((np.pi / 2, 0, np.pi / 2)) @ [0, 1, 0], [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(rotation((0, np.pi / 2, 0)) @ [1, 0, 0], [0, 0, -1], atol=1e-12)


def test_an_unknown_robot_is_refused_by_name():
    with pytest.raises(ValueError, match=r"robot must be one of a1.*, not 'b2'"):
        load_robot("b2")
