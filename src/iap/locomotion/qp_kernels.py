"""The quadratic program of `mpc` solved where no limit binds, and its limits, compiled."""

import numpy as np

from iap._compile import compiled
from iap.locomotion.mpc_kernels import build, list_pushes

ROWS = 6  # of constraints on the force of a foot: four sides of the friction pyramid, least and most pressure
SOLVED, NOT_ALLOWED, NOT_CONVEX, NO_CONTACTS = range(4)  # what came of the unconstrained program


@compiled
def solve(state, reference, contacts, feet, body, sums, limits):
    """Forces that minimise the program if they are allowed, what came of it, the Hessian and the gradient."""
    hessian, gradient = build(state, reference, contacts, feet, body, sums)
    forces = np.zeros(feet.shape)
    if len(gradient) == 0:
        return forces, NO_CONTACTS, hessian, gradient
    best, definite = unconstrained(hessian, gradient)
    if not definite:
        return forces, NOT_CONVEX, hessian, gradient
    friction, least, most = limits
    if not is_allowed(best, friction, least, most):  # if it is, nothing within the limits can be better
        return forces, NOT_ALLOWED, hessian, gradient
    steps, legs = list_pushes(contacts)
    for e in range(len(steps)):
        forces[steps[e], legs[e]] = best[3 * e : 3 * e + 3]
    return forces, SOLVED, hessian, gradient


@compiled
def unconstrained(hessian, gradient):
    """Where the gradient vanishes, by Cholesky's factor; the second result says whether there is one."""
    size = len(gradient)
    upper = np.empty((size, size + 1))  # H = UᵀU, row by row, with the right-hand side as one column more
    best = np.empty(size)
    for i in range(size):
        row = upper[i, i:]
        row[:-1] = hessian[i, i:]
        row[-1] = -gradient[i]
        for k in range(0, i - 3, 4):  # four rows at a time, one after the other: less to load and store
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
    """Whether each force lies in its friction pyramid and presses as much as it should."""
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
