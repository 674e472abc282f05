"""2^y, sin and cos as plain arithmetic, so that loops over them become vector code."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from iap._compile import compiled

SMALLEST_EXPONENT = np.float32(-125)
ROUNDER = np.float32(1.5 * 2**23)  # adding it moves the integer part of a float32 to the low bits
QUARTER = np.float32(0.25)

# No reordering: the optimiser would remove the rounding in exp2 if it assumed associativity.
EXACT = {"contract"}


def _fit(function, degree: int, half_width: float) -> np.ndarray:
    """Polynomial coefficients, lowest first, of a near-minimax fit on [−half_width, half_width]."""
    nodes = half_width * np.cos(np.linspace(0, np.pi, 512))
    fitted = np.polynomial.Chebyshev.fit(nodes, function(nodes), degree)
    return fitted.convert(kind=np.polynomial.Polynomial).coef.astype(np.float32)


E0, E1, E2, E3, E4, E5 = _fit(np.exp2, 5, 0.5)
S1, S3, S5, S7, S9 = _fit(lambda t: np.sin(2 * np.pi * t), 9, 0.25)[1::2]


@intrinsic
def _times_power_of_two(context, p, z):
    """p·2^k, where the low bits of z are the integer k."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(32)
        bits_p, bits_z = (builder.bitcast(a, word) for a in arguments)
        exponent = builder.shl(bits_z, ir.Constant(word, 23))
        return builder.bitcast(builder.add(bits_p, exponent), ir.FloatType())

    return types.float32(types.float32, types.float32), generate


@compiled(fastmath=EXACT)
def exp2(y):
    """2^y for y ≤ 127, with relative error 3e-7, and at least 2⁻¹²⁵."""
    y = max(y, SMALLEST_EXPONENT)
    z = y + ROUNDER
    r = y - (z - ROUNDER)
    return _times_power_of_two(E0 + r * (E1 + r * (E2 + r * (E3 + r * (E4 + r * E5)))), z)  # pyright: ignore[reportCallIssue]


@compiled(fastmath=EXACT)
def _sine_of_turns(t):
    """sin 2πt for |t| ≤ ¼."""
    square = t * t
    return t * (S1 + square * (S3 + square * (S5 + square * (S7 + square * S9))))


@compiled(fastmath=EXACT)
def sine(t):
    """sin 2πt for |t| ≤ ½."""
    s = _sine_of_turns(QUARTER - abs(abs(t) - QUARTER))
    return s if t >= 0 else -s


@compiled(fastmath=EXACT)
def cosine(t):
    """cos 2πt for |t| ≤ ½."""
    return _sine_of_turns(QUARTER - abs(t))
