import json
from importlib import resources

import numpy as np
import pytest

from iap.envs.quadruped.robots import Mass, load_robot, rotation

A1 = load_robot("a1")
MIRROR = np.array([1, -1, 1])


def point(kg: float, place: list[float]) -> Mass:
    return Mass(kg, np.array(place), np.zeros((3, 3)))


def test_the_a1_weighs_what_its_maker_says():
    facts = json.loads(resources.files("iap.envs.quadruped").joinpath("a1.json").read_text())
    assert sum(link["mass_kg"] for link in facts["links"]) == pytest.approx(12.458)
    assert A1.mass_kg == pytest.approx(12.458)


def test_the_a1_has_twelve_motors_in_the_order_of_its_legs():
    trunk, *moved = A1.bodies
    assert trunk.motor is None
    assert [body.name for body in moved] == [
        f"{leg}_{part}" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "upper", "lower")
    ]
    motors = [body.motor for body in moved if body.motor]
    assert [motor.torque_nm for motor in motors] == [20, 55, 55] * 4
    assert [motor.damping for motor in motors] == [1, 2, 2] * 4
    assert {motor.stiffness for motor in motors} == {100}
    for motor, angle in zip(motors, A1.pose_rad, strict=True):
        assert motor.range_rad is not None
        assert motor.range_rad[0] < angle < motor.range_rad[1]


def test_the_a1_is_its_own_mirror_image():
    bodies = {body.name: body for body in A1.bodies}
    for name, body in bodies.items():
        other = bodies[name.replace("L_", "?").replace("R_", "L_").replace("?", "R_")]
        np.testing.assert_allclose(body.position_m, other.position_m * MIRROR)
        np.testing.assert_allclose(body.mass.com_m, other.mass.com_m * MIRROR, atol=1e-12)
        np.testing.assert_allclose(body.mass.inertia, MIRROR[:, None] * other.mass.inertia * MIRROR, atol=1e-12)


def test_masses_that_are_joined_have_the_inertia_of_all_their_points():
    whole = point(1, [0, 0, 0]) + point(3, [0, 4, 0])
    assert whole.kg == 4
    np.testing.assert_allclose(whole.com_m, [0, 3, 0])
    np.testing.assert_allclose(whole.inertia, np.diag([12, 0, 12]))  # 1·3² + 3·1²


def test_a_mass_that_is_turned_takes_its_inertia_along():
    turned = (point(1, [1, 0, 0]) + point(1, [-1, 0, 0])).moved(np.array([0, 0, 5]), rotation((0, 0, np.pi / 2)))
    np.testing.assert_allclose(turned.com_m, [0, 0, 5])
    np.testing.assert_allclose(turned.inertia, np.diag([2, 0, 2]), atol=1e-12)


def test_rotations_are_about_fixed_axes_x_first():
    np.testing.assert_allclose(rotation((np.pi / 2, 0, np.pi / 2)) @ [0, 1, 0], [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(rotation((0, np.pi / 2, 0)) @ [1, 0, 0], [0, 0, -1], atol=1e-12)


def test_an_unknown_robot_is_named():
    with pytest.raises(ValueError, match=r"robot must be one of a1.*, not 'b2'"):
        load_robot("b2")
