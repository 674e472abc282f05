"""The quadratic program of `mpc`, compiled: its closed form, its unconstrained minimum, and its constraints."""

import math

import numpy as np

from iap._compile import compiled

ROWS = 6  # constraints per force: four sides of the friction pyramid, smallest and largest normal force
SOLVED, NOT_ALLOWED, NOT_CONVEX, NO_CONTACTS = range(4)  # results of `solve`


@compiled
def solve(state, reference, contacts, feet, body, sums, limits):
    """The unconstrained minimum if it satisfies the limits, the kind of result, the Hessian and the gradient."""
    hessian, gradient = build(state, reference, contacts, feet, body, sums)
    forces = np.zeros(feet.shape)
    if len(gradient) == 0:
        return forces, NO_CONTACTS, hessian, gradient
    best, definite = minimise(hessian, gradient)
    if not definite:
        return forces, NOT_CONVEX, hessian, gradient
    friction, least, most = limits
    if not is_allowed(best, friction, least, most):  # if it is allowed, it is the constrained minimum, too
        return forces, NOT_ALLOWED, hessian, gradient
    steps, legs = stance_forces(contacts)
    for e in range(len(steps)):
        forces[steps[e], legs[e]] = best[3 * e : 3 * e + 3]
    return forces, SOLVED, hessian, gradient


@compiled
def build(state, reference, contacts, feet, body, sums):
    """The Hessian and the gradient over the stance forces, ordered by step and then by leg."""
    inertia, weights, (mass, force_weight, step_s, gravity) = body
    inverse_inertia, rate_map = inertia_and_rates(state[0], state[1], inertia)
    steps, legs = stance_forces(contacts)
    angular = angular_accelerations(steps, legs, feet, inverse_inertia)
    angle_weights = rate_map.T @ np.diag(weights[:3]) @ rate_map
    hessian = build_hessian(steps, angular, angle_weights, weights, sums, mass, force_weight)
    errors = free_errors(state, reference, rate_map, step_s, gravity)
    return hessian, build_gradient(steps, angular, rate_map, weights, errors, step_s, mass)


@compiled
def horizon_sums(horizon, step_s):
    """The joint effect of a force in step j and one in step l, c1[j, l] on velocities and c2[j, l] on positions.

    At the end of step k ≥ j, a force in step j has changed the velocity by step_s, and the position by
    step_s²·(k − j + ½).
    """
    c1 = np.zeros((horizon, horizon))
    c2 = np.zeros((horizon, horizon))
    for j in range(horizon):
        for i in range(horizon):
            for k in range(max(i, j), horizon):
                c1[j, i] += step_s**2
                c2[j, i] += step_s**4 * (k - j + 0.5) * (k - i + 0.5)
    return c1, c2


@compiled
def free_errors(state, reference, rate_map, step_s, gravity):
    """The deviation from the reference at the end of each step without any forces."""
    horizon = len(reference)
    errors = np.empty((horizon, 12))
    for k in range(horizon):
        t = (k + 1) * step_s
        for i in range(3):
            rate = 0.0
            for j in range(3):
                rate += rate_map[i, j] * state[6 + j]
            errors[k, i] = state[i] + t * rate
            errors[k, 3 + i] = state[3 + i] + t * state[9 + i]
            errors[k, 6 + i] = state[6 + i]
            errors[k, 9 + i] = state[9 + i]
        errors[k, 5] -= 0.5 * gravity * t * t
        errors[k, 11] -= gravity * t
        errors[k] -= reference[k]
    return errors


@compiled
def stance_forces(contacts):
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


@compiled
def angular_accelerations(steps, legs, feet, inverse_inertia):
    """The angular acceleration per unit of each force: G = I⁻¹[r]×, side by side, with [r]× f = r × f."""
    arms = np.zeros((3, 3 * len(steps)))
    for e in range(len(steps)):
        x, y, z = feet[steps[e], legs[e]]
        first, second, third = 3 * e, 3 * e + 1, 3 * e + 2
        arms[0, second], arms[0, third] = -z, y
        arms[1, first], arms[1, third] = z, -x
        arms[2, first], arms[2, second] = -y, x
    return inverse_inertia @ arms


@compiled
def inertia_and_rates(roll, pitch, inertia):
    """The inverse inertia in the frame without yaw, and the map from angular velocity to the rates of the angles."""
    sr, cr, sp, cp = math.sin(roll), math.cos(roll), math.sin(pitch), math.cos(pitch)
    rotation = np.array([[cp, sp * sr, sp * cr], [0.0, cr, -sr], [-sp, cp * sr, cp * cr]])
    rates = np.array([[1 / cp, 0.0, 0.0], [0.0, 1.0, 0.0], [sp / cp, 0.0, 1.0]])
    return (rotation / inertia) @ rotation.T, rates


@compiled
def build_hessian(steps, angular, angle_weights, weights, sums, mass, force_weight):
    """By pairs of forces, e = (step j, leg) and f = (step l, leg), where T maps angular velocity to rates of angles.

    H_ef = 2{c2[j,l](GᵀTᵀW_rpy T G + W_xyz/m²) + c1[j,l](GᵀW_ω G + W_v/m²)} + 2αI.
    """
    c1, c2 = sums
    count = len(steps)
    by_angles = angular.T @ angle_weights
    by_roll, by_pitch, by_yaw = angular
    hessian = np.empty((3 * count, 3 * count))
    for e in range(count):
        first = 0
        while first <= e:
            last = _end_of_step(steps, first, e)
            on_positions, on_velocities = c2[steps[e], steps[first]], c1[steps[e], steps[first]]
            for i in range(3):
                row = 3 * e + i
                roll = on_positions * by_angles[row, 0] + on_velocities * by_roll[row] * weights[6]
                pitch = on_positions * by_angles[row, 1] + on_velocities * by_pitch[row] * weights[7]
                yaw = on_positions * by_angles[row, 2] + on_velocities * by_yaw[row] * weights[8]
                for f in range(3 * first, 3 * last):
                    hessian[row, f] = 2 * (roll * by_roll[f] + pitch * by_pitch[f] + yaw * by_yaw[f])
                linear = 2 * (on_positions * weights[3 + i] + on_velocities * weights[9 + i]) / mass**2
                for f in range(3 * first + i, 3 * last, 3):
                    hessian[row, f] += linear
            first = last
    for i in range(3 * count):
        hessian[i, i] += 2 * force_weight
        hessian[:i, i] = hessian[i, :i]
    return hessian


@compiled
def _end_of_step(steps, first, most):
    """The end of the forces that act in the same step as the first, up to `most`."""
    last = first + 1
    while last <= most and steps[last] == steps[first]:
        last += 1
    return last


@compiled
def build_gradient(steps, angular, rate_map, weights, errors, step_s, mass):
    """The effect of each force on the errors of its own and all later steps."""
    gradient = np.zeros(3 * len(steps))
    weighted = errors * weights
    weighted[:, :3] = np.ascontiguousarray(weighted[:, :3]) @ rate_map
    for e in range(len(steps)):
        for k in range(steps[e], len(errors)):
            on_position, on_velocity = step_s**2 * (k - steps[e] + 0.5), step_s
            for i in range(3):
                entry = (on_position * weighted[k, 3 + i] + on_velocity * weighted[k, 9 + i]) / mass
                for j in range(3):
                    entry += angular[j, 3 * e + i] * (on_position * weighted[k, j] + on_velocity * weighted[k, 6 + j])
                gradient[3 * e + i] += 2 * entry
    return gradient


@compiled
def minimise(hessian, gradient):
    """The unconstrained minimum by Cholesky factorisation, and whether the Hessian is positive definite."""
    size = len(gradient)
    upper = np.empty((size, size + 1))  # H = UᵀU, row by row, with the right-hand side as an additional column
    best = np.empty(size)
    for i in range(size):
        row = upper[i, i:]
        row[:-1] = hessian[i, i:]
        row[-1] = -gradient[i]
        for k in range(0, i - 3, 4):  # four rows at a time, in order: fewer loads and stores
            a, b, c, d = upper[k, i:], upper[k + 1, i:], upper[k + 2, i:], upper[k + 3, i:]
            at_a, at_b, at_c, at_d = a[0], b[0], c[0], d[0]
            for j in range(len(row)):
                row[j] = row[j] - at_a * a[j] - at_b * b[j] - at_c * c[j] - at_d * d[j]
        for k in range(i - i % 4, i):
            a = upper[k, i:]
            at_a = a[0]
            for j in range(len(row)):
                row[j] -= at_a * a[j]
        if not row[0] > 0:
            return best, False
        row *= 1 / np.sqrt(row[0])
    for i in range(size - 1, -1, -1):
        total = upper[i, size]
        for j in range(i + 1, size):
            total -= upper[i, j] * best[j]
        best[i] = total / upper[i, i]
    return best, True


@compiled
def is_allowed(forces, friction, least, most):
    """Whether each force is inside its friction pyramid, with a normal force between the limits."""
    for e in range(0, len(forces), 3):
        grip = friction * forces[e + 2]
        if not abs(forces[e]) <= grip or not abs(forces[e + 1]) <= grip or not least <= forces[e + 2] <= most:
            return False
    return True


@compiled
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
