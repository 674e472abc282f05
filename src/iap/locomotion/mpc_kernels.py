"""The loops behind `mpc`, compiled: the condensed quadratic program in closed form."""

import math

import numpy as np

from iap._compile import compiled


@compiled
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


@compiled
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


@compiled
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


@compiled
def turnings(steps, legs, feet, inverse_inertia):
    """How forces turn the body: G = I⁻¹[r]× of each, side by side, with [r]× f = r × f."""
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
    """The inverse inertia in the frame without yaw, and the map from turning speed to the rates of the angles."""
    sr, cr, sp, cp = math.sin(roll), math.cos(roll), math.sin(pitch), math.cos(pitch)
    rotation = np.array([[cp, sp * sr, sp * cr], [0.0, cr, -sr], [-sp, cp * sr, cp * cr]])
    rates = np.array([[1 / cp, 0.0, 0.0], [0.0, 1.0, 0.0], [sp / cp, 0.0, 1.0]])
    return (rotation / inertia) @ rotation.T, rates


@compiled
def build(state, reference, contacts, feet, body, sums):
    """The Hessian and the gradient over the stance forces, in the order of steps and then legs."""
    inertia, weights, (mass, force_weight, step_s, gravity) = body
    inverse_inertia, rate_map = inertia_and_rates(state[0], state[1], inertia)
    steps, legs = list_pushes(contacts)
    turning = turnings(steps, legs, feet, inverse_inertia)
    angle_weights = rate_map.T @ np.diag(weights[:3]) @ rate_map
    hessian = build_hessian(steps, turning, angle_weights, weights, sums, mass, force_weight)
    errors = free_errors(state, reference, rate_map, step_s, gravity)
    return hessian, build_gradient(steps, turning, rate_map, weights, errors, step_s, mass)


@compiled
def build_hessian(steps, turning, angle_weights, weights, sums, mass, force_weight):
    """By pairs of forces, e = (step j, leg) and f = (step l, leg), where T maps turning speeds to rates of angles.

    H_ef = 2{c2[j,l](GᵀTᵀW_rpy T G + W_xyz/m²) + c1[j,l](GᵀW_ω G + W_v/m²)} + 2αI.
    """
    c1, c2 = sums
    count = len(steps)
    angle_pulls = turning.T @ angle_weights
    by_roll, by_pitch, by_yaw = turning
    hessian = np.empty((3 * count, 3 * count))
    for e in range(count):
        first = 0
        while first <= e:
            last = _end_of_step(steps, first, e)
            on_places, on_speeds = c2[steps[e], steps[first]], c1[steps[e], steps[first]]
            for i in range(3):
                row = 3 * e + i
                pull_roll = on_places * angle_pulls[row, 0] + on_speeds * by_roll[row] * weights[6]
                pull_pitch = on_places * angle_pulls[row, 1] + on_speeds * by_pitch[row] * weights[7]
                pull_yaw = on_places * angle_pulls[row, 2] + on_speeds * by_yaw[row] * weights[8]
                for f in range(3 * first, 3 * last):
                    hessian[row, f] = 2 * (pull_roll * by_roll[f] + pull_pitch * by_pitch[f] + pull_yaw * by_yaw[f])
                straight = 2 * (on_places * weights[3 + i] + on_speeds * weights[9 + i]) / mass**2
                for f in range(3 * first + i, 3 * last, 3):
                    hessian[row, f] += straight
            first = last
    for i in range(3 * count):
        hessian[i, i] += 2 * force_weight
        hessian[:i, i] = hessian[i, :i]
    return hessian


@compiled
def _end_of_step(steps, first, most):
    """Where the forces end that act in the same step as the first, up to this one."""
    last = first + 1
    while last <= most and steps[last] == steps[first]:
        last += 1
    return last


@compiled
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
                    entry += turning[j, 3 * e + i] * (on_place * weighted[k, j] + on_speed * weighted[k, 6 + j])
                gradient[3 * e + i] += 2 * entry
    return gradient
