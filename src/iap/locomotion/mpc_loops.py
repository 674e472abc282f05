"""The loops behind `mpc`, compiled: the condensed quadratic program in closed form, and its unconstrained minimum."""

import numpy as np
from numba import njit

ROWS = 6  # of constraints on the force of a foot: four sides of the friction pyramid, least and most pressure


@njit(cache=True)
def cross_matrix(r):
    """[r]×, so that [r]× f = r × f."""
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])


@njit(cache=True)
def horizon_sums(horizon, step_s):
    """How often a force in step j and one in step l act together, c1[j, l] on speeds and c2[j, l] on places.

    A force in step j has changed the speed by step_s, and the place by step_s²·(k − j + ½), at the end of step k ≥ j.
    """
    c1 = np.zeros((horizon, horizon))
    c2 = np.zeros((horizon, horizon))
    for j in range(horizon):
        for i in range(horizon):
            for k in range(max(i, j), horizon):
                c1[j, i] += step_s**2
                c2[j, i] += step_s**4 * (k - j + 0.5) * (k - i + 0.5)
    return c1, c2


@njit(cache=True)
def free_errors(state, reference, rate_map, step_s, gravity):
    """By how much the body would miss the reference at the end of each step if nothing pushed it."""
    horizon = len(reference)
    errors = np.empty((horizon, 12))
    for k in range(horizon):
        t = (k + 1) * step_s
        for i in range(3):
            turned = 0.0
            for j in range(3):
                turned += rate_map[i, j] * state[6 + j]
            errors[k, i] = state[i] + t * turned
            errors[k, 3 + i] = state[3 + i] + t * state[9 + i]
            errors[k, 6 + i] = state[6 + i]
            errors[k, 9 + i] = state[9 + i]
        errors[k, 5] -= 0.5 * gravity * t * t
        errors[k, 11] -= gravity * t
        errors[k] -= reference[k]
    return errors


@njit(cache=True)
def list_pushes(contacts):
    """The step and the leg of each force that can act."""
    steps = np.empty(contacts.size, np.int64)
    legs = np.empty(contacts.size, np.int64)
    count = 0
    for j in range(contacts.shape[0]):
        for leg in range(contacts.shape[1]):
            if contacts[j, leg]:
                steps[count], legs[count] = j, leg
                count += 1
    return steps[:count], legs[:count]


@njit(cache=True)
def turnings(steps, legs, feet, inverse_inertia):
    """G = I⁻¹[r]× of each force: how it turns the body."""
    turning = np.empty((len(steps), 3, 3))
    for e in range(len(steps)):
        turning[e] = inverse_inertia @ cross_matrix(feet[steps[e], legs[e]])
    return turning


@njit(cache=True)
def build(state, reference, contacts, feet, inverse_inertia, rate_map, weights, sums, constants):
    """The Hessian and the gradient over the stance forces, in the order of steps and then legs."""
    mass, force_weight, step_s, gravity = constants
    steps, legs = list_pushes(contacts)
    turning = turnings(steps, legs, feet, inverse_inertia)
    angle_weights = rate_map.T @ np.diag(weights[:3]) @ rate_map
    hessian = build_hessian(steps, turning, angle_weights, weights, sums, mass, force_weight)
    errors = free_errors(state, reference, rate_map, step_s, gravity)
    return hessian, build_gradient(steps, turning, rate_map, weights, errors, step_s, mass)


@njit(cache=True)
def build_hessian(steps, turning, angle_weights, weights, sums, mass, force_weight):
    """By pairs of forces, e = (step j, leg) and f = (step l, leg), where T maps turning speeds to rates of angles.

    H_ef = 2{c2[j,l](GᵀTᵀW_rpy T G + W_xyz/m²) + c1[j,l](GᵀW_ω G + W_v/m²)} + 2αI.
    """
    c1, c2 = sums
    count = len(steps)
    hessian = np.empty((3 * count, 3 * count))
    pull = np.empty((3, 3))
    for e in range(count):
        angle_pull = turning[e].T @ angle_weights
        for f in range(e + 1):
            on_places, on_speeds = c2[steps[e], steps[f]], c1[steps[e], steps[f]]
            for i in range(3):
                for k in range(3):
                    pull[i, k] = on_places * angle_pull[i, k] + on_speeds * turning[e, k, i] * weights[6 + k]
            for i in range(3):
                for j in range(3):
                    entry = 0.0
                    for k in range(3):
                        entry += pull[i, k] * turning[f, k, j]
                    hessian[3 * e + i, 3 * f + j] = 2 * entry
                hessian[3 * e + i, 3 * f + i] += 2 * (on_places * weights[3 + i] + on_speeds * weights[9 + i]) / mass**2
    for i in range(3 * count):
        hessian[i, i] += 2 * force_weight
        hessian[:i, i] = hessian[i, :i]
    return hessian


@njit(cache=True)
def build_gradient(steps, turning, rate_map, weights, errors, step_s, mass):
    """Of a force, all that it does to the errors in the steps from its own on."""
    gradient = np.zeros(3 * len(steps))
    weighted = errors * weights
    weighted[:, :3] = np.ascontiguousarray(weighted[:, :3]) @ rate_map
    for e in range(len(steps)):
        for k in range(steps[e], len(errors)):
            on_place, on_speed = step_s**2 * (k - steps[e] + 0.5), step_s
            for i in range(3):
                entry = (on_place * weighted[k, 3 + i] + on_speed * weighted[k, 9 + i]) / mass
                for j in range(3):
                    entry += turning[e, j, i] * (on_place * weighted[k, j] + on_speed * weighted[k, 6 + j])
                gradient[3 * e + i] += 2 * entry
    return gradient


@njit(cache=True)
def unconstrained(hessian, gradient):
    """Where the gradient vanishes, by Cholesky's factor; the second result says whether there is one."""
    size = len(gradient)
    upper = hessian.copy()  # H = UᵀU, row by row, so that the inner loops run along memory
    best = -gradient
    for k in range(size):
        if not upper[k, k] > 0:
            return best, False
        pivot = 1 / np.sqrt(upper[k, k])
        for j in range(k, size):
            upper[k, j] *= pivot
        best[k] *= pivot
        for i in range(k + 1, size):
            factor = upper[k, i]
            best[i] -= factor * best[k]
            for j in range(i, size):
                upper[i, j] -= factor * upper[k, j]
    for i in range(size - 1, -1, -1):
        total = best[i]
        for j in range(i + 1, size):
            total -= upper[i, j] * best[j]
        best[i] = total / upper[i, i]
    return best, True


@njit(cache=True)
def is_allowed(forces, friction, least, most):
    """Whether each force lies in its friction pyramid and presses as much as it should."""
    for e in range(0, len(forces), 3):
        grip = friction * forces[e + 2]
        if abs(forces[e]) > grip or abs(forces[e + 1]) > grip or not least <= forces[e + 2] <= most:
            return False
    return True


@njit(cache=True)
def constraints(count, friction, least, most):
    """The same as columns C and bounds b of Cᵀ·forces ≥ b."""
    columns = np.zeros((3 * count, ROWS * count))
    bounds = np.zeros(ROWS * count)
    for e in range(count):
        for axis in range(2):
            for side in range(2):
                row = ROWS * e + 2 * axis + side
                columns[3 * e + axis, row] = 1.0 - 2.0 * side
                columns[3 * e + 2, row] = friction
        columns[3 * e + 2, ROWS * e + 4], bounds[ROWS * e + 4] = 1.0, least
        columns[3 * e + 2, ROWS * e + 5], bounds[ROWS * e + 5] = -1.0, -most
    return columns, bounds
