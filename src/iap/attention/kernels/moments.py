"""Moments of weighted patches, compiled: the counterpart of `iap.attention.moments`."""

import numpy as np

from iap._compile import compiled
from iap.attention.selection import EQUAL


@compiled
def put_moments(weights, centres, selected, divisor, out):
    """Write centroid (2), second central moments (3) and mass / divisor of weighted patches into `out[:6]`.

    Without mass, `out` stays as it is. All sums are float64, so that central moments lose no digits.
    """
    mass = row = column = rows = both = columns = 0.0
    for i in range(len(selected)):
        weight = weights[i]
        if weight > 0:
            y, x = centres[selected[i], 0], centres[selected[i], 1]
            mass += weight
            row += weight * y
            column += weight * x
            rows += weight * y * y
            both += weight * y * x
            columns += weight * x * x
    if mass > 0:
        row, column = row / mass, column / mass
        out[0], out[1] = row, column
        out[2] = rows / mass - row * row
        out[3] = both / mass - row * column
        out[4] = columns / mass - column * column
        out[5] = mass / divisor


@compiled
def shares_above_least(scores, selected):
    """How far each selected score lies above the smallest selected one, from 0 to 1, in float64; all 1 if equal."""
    values = scores[selected].astype(np.float64)
    least, most = np.min(values), np.max(values)
    return (values - least) / (most - least) if differ(least, most) else np.ones(len(selected))


@compiled
def differ(least, most):
    """Whether scores differ by more than rounding."""
    return most - least > EQUAL * max(abs(least), abs(most))
