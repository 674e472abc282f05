"""The condensed program against matrix exponentials, and its forces against a dense solver."""

import numpy as np
import pytest
import quadprog
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from iap.locomotion.gait import TROT, WALK
from iap.locomotion.mpc import GRAVITY, ConvexMPC, MPCConfig, QPError
from iap.locomotion.robots import LAIKAGO

CONFIG = LAIKAGO.mpc
STEPS = CONFIG.horizon


def case(seed: int, roughness: float = 1.0, gait=TROT):
    """A random state near the reference, and feet below it."""
    rng = np.random.default_rng(seed)
    state = np.zeros(12)
    state[:2] = rng.normal(0, 0.05 * roughness, 2)
    state[5] = 0.42 + rng.normal(0, 0.02 * roughness)
    state[6:] = rng.normal(0, 0.2 * roughness, 6)
    state[9] += 0.37
    times = CONFIG.step_s * np.arange(1, STEPS + 1)
    reference = np.zeros((STEPS, 12))
    reference[:, 3], reference[:, 5], reference[:, 9] = 0.37 * times, 0.42, 0.37
    reference[:, 1] = rng.normal(0, 0.1)
    contacts = gait.contacts(rng.uniform(0, 2), STEPS, CONFIG.step_s)
    feet = np.pad(LAIKAGO.stance_m, ((0, 0), (0, 1)), constant_values=-0.42) + rng.normal(0, 0.04, (STEPS, 4, 3))
    return state, reference, contacts, feet


def dense_program(state, reference, contacts, feet):
    """Σ ‖x_k − x*_k‖²_W + α‖f‖² over all forces, from matrix exponentials; forces of legs in swing are removed."""
    rotation = Rotation.from_euler("xyz", [state[0], state[1], 0]).as_matrix()
    inertia = rotation @ np.diag(CONFIG.inertia) @ rotation.T
    pitch = state[1]
    turning_from_rates = np.array([[np.cos(pitch), 0, 0], [0, 1, 0], [-np.sin(pitch), 0, 1]])
    flow = np.zeros((13, 13))
    flow[0:3, 6:9] = np.linalg.inv(turning_from_rates)
    flow[3:6, 9:12] = np.eye(3)
    flow[11, 12] = 1
    x = np.append(state, -GRAVITY)
    reach = np.zeros((STEPS, 13, 12 * STEPS))
    free = np.zeros((STEPS, 13))
    response = np.zeros((13, 12 * STEPS))
    for k in range(STEPS):
        push = np.zeros((13, 12))
        for leg in range(4):
            torques = np.array([np.cross(feet[k, leg], force) for force in np.eye(3)]).T
            push[6:9, 3 * leg : 3 * leg + 3] = np.linalg.solve(inertia, torques)
            push[9:12, 3 * leg : 3 * leg + 3] = np.eye(3) / CONFIG.mass_kg
        both = np.zeros((25, 25))
        both[:13] = np.hstack([flow, push])
        step = expm(both * CONFIG.step_s)
        response = step[:13, :13] @ response
        response[:, 12 * k : 12 * k + 12] = step[:13, 13:]
        x = step[:13, :13] @ x
        reach[k], free[k] = response, x
    weights = np.diag([*CONFIG.weights, 0])
    errors = free - np.pad(reference, ((0, 0), (0, 1)), constant_values=-GRAVITY)
    hessian = 2 * np.sum([r.T @ weights @ r for r in reach], axis=0) + 2 * CONFIG.force_weight * np.eye(12 * STEPS)
    gradient = 2 * np.sum([r.T @ weights @ e for r, e in zip(reach, errors, strict=True)], axis=0)
    in_stance = np.repeat(contacts.ravel(), 3)
    return hessian[np.ix_(in_stance, in_stance)], gradient[in_stance]


def dense_forces(hessian, gradient, contacts):
    count = len(gradient) // 3
    weight = CONFIG.mass_kg * GRAVITY
    rows = np.array([(1, 0, 0.45), (-1, 0, 0.45), (0, 1, 0.45), (0, -1, 0.45), (0, 0, 1), (0, 0, -1)])
    bounds = np.tile([0, 0, 0, 0, 0.1 * weight, -10 * weight], count)
    solution = quadprog.solve_qp(hessian, -gradient, np.kron(np.eye(count), rows.T), bounds)[0]
    forces = np.zeros((STEPS, 4, 3))
    forces[contacts] = solution.reshape(-1, 3)
    return forces


@pytest.mark.parametrize("gait", [TROT, WALK], ids=["trot", "walk"])
@pytest.mark.parametrize("seed", range(5))
def test_the_closed_form_is_the_program_of_matrix_exponentials(seed, gait):
    problem = case(seed, gait=gait)
    hessian, gradient = dense_program(*problem)
    ours = ConvexMPC(CONFIG).program(*problem)
    np.testing.assert_allclose(ours[0], hessian, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(ours[1], gradient, rtol=1e-9, atol=1e-12)


def test_forces_are_those_of_a_dense_solver_with_and_without_active_constraints():
    mpc = ConvexMPC(CONFIG)
    for seed in range(30):
        problem = case(seed, roughness=seed / 10)
        expected = dense_forces(*dense_program(*problem), problem[2])
        np.testing.assert_allclose(mpc.forces(*problem), expected, atol=1e-3)
    assert 0 < mpc.constrained < mpc.solved


def test_forces_at_rest_equal_the_weight():
    state, reference = np.zeros(12), np.zeros((STEPS, 12))
    state[5] = reference[:, 5] = 0.42
    contacts = np.ones((STEPS, 4), bool)
    corners = np.array([(x, y, -0.42) for x in (0.2, -0.2) for y in (-0.1, 0.1)])
    forces = ConvexMPC(CONFIG).forces(state, reference, contacts, np.tile(corners, (STEPS, 1, 1)))
    np.testing.assert_allclose(forces[0, :, 2].sum(), CONFIG.mass_kg * GRAVITY, rtol=0.05)
    np.testing.assert_allclose(forces[0, :, 2], forces[0, 0, 2])
    np.testing.assert_allclose(forces[..., :2].sum(axis=1), 0, atol=1e-9)


def test_feet_in_swing_have_no_force_and_limits_hold():
    for seed in range(20):
        problem = case(seed, roughness=4)
        forces = ConvexMPC(CONFIG).forces(*problem)
        contacts = problem[2]
        assert (forces[~contacts] == 0).all()
        pushing = forces[contacts]
        assert (np.abs(pushing[:, :2]) <= CONFIG.friction * pushing[:, 2:] + 1e-6).all()
        assert (pushing[:, 2] >= 0.1 * CONFIG.mass_kg * GRAVITY - 1e-6).all()


def test_without_contacts_all_forces_are_zero():
    state, reference, _, feet = case(0)
    assert not ConvexMPC(CONFIG).forces(state, reference, np.zeros((STEPS, 4), bool), feet).any()


@pytest.mark.parametrize("which", range(2))
def test_nan_is_an_error(which):
    problem = list(case(0))
    problem[which] = problem[which] * np.nan
    with pytest.raises(QPError, match="finite"):
        ConvexMPC(CONFIG).forces(*problem)


def test_an_infeasible_program_is_an_error():
    impossible = MPCConfig(CONFIG.mass_kg, CONFIG.inertia, least_share=0.5, most_share=0.1)
    with pytest.raises(QPError, match="no solution"):
        ConvexMPC(impossible).forces(*case(0))
