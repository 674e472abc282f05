"""Kernels and the feature maps φ that make attention linear: K(u, v) = E[φ(u)·φ(v)]."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Float

from iap._registry import Registry
from iap.attention.arrays import (
    Array,
    Scaled,
    like,
    namespace,
    require_count,
    require_finite,
    require_floats,
    require_same_dtype,
)
from iap.attention.primitives import relu

MapName = Literal["positive", "trigonometric", "hyperbolic", "favor++"]
MAPS: tuple[MapName, ...] = ("positive", "trigonometric", "hyperbolic", "favor++")


@dataclass(frozen=True)
class ReLU:
    """K(u, v) = relu(u)·relu(v): deterministic, and the fastest kernel."""

    @property
    def signed(self) -> bool:
        """Whether features, and therefore scores, can be negative."""
        return False


@dataclass(frozen=True)
class Softmax:
    """K(u, v) = exp(x·y), with x = u/d^¼, or x = d^¼·u/‖u‖ if normalised.

    Attributes:
        features: the random feature map; "trigonometric" features can be negative, the others cannot.
        projections: m, the number of random projections ω; 15 suffice in reinforcement learning.
        normalised: whether queries and keys are scaled to one norm.
        seed: the seed of ω, which is drawn once and never learnt.
    """

    features: MapName = "positive"
    projections: int = 15
    normalised: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.features not in MAPS:
            raise ValueError(f"features must be one of {', '.join(MAPS)}, not {self.features!r}")
        require_count("projections", self.projections)
        require_count("seed", self.seed, least=0)

    @property
    def signed(self) -> bool:
        """Whether features, and therefore scores, can be negative."""
        return self.features == "trigonometric"


Kernel = ReLU | Softmax

KERNELS: Registry[Kernel] = Registry("kernel", entries={"relu": ReLU(), **{name: Softmax(name) for name in MAPS}})


def project(
    tokens: Float[Array, "*batch L c"],
    weights: Float[Array, "*heads c d"],
    bias: Float[Array, "*heads 1 d"] | None = None,
) -> Float[Array, "*batch L d"]:
    """Queries or keys: X′W + bias. A leading axis of `weights` is one of heads."""
    require_floats("tokens", tokens, least_rank=2)
    require_finite("weights", require_floats("weights", weights, least_rank=2))
    require_same_dtype(tokens=tokens, weights=weights)
    if tokens.shape[-1] != weights.shape[-2]:
        raise ValueError(
            f"weights take {weights.shape[-2]} numbers a patch (shape {tuple(weights.shape)}), "
            f"but the patches have {tokens.shape[-1]}"
        )
    namespace(tokens=tokens, weights=weights)
    if weights.ndim > 2:  # noqa: PLR2004
        tokens = tokens[..., None, :, :]
    projected = tokens @ weights
    if bias is None:
        return projected
    require_finite("bias", require_floats("bias", bias))
    namespace(tokens=tokens, bias=bias)
    require_same_dtype(tokens=tokens, bias=bias)
    return projected + bias


def featurise(
    kernel: Kernel, queries: Float[Array, "*batch L d"], keys: Float[Array, "*batch L d"]
) -> tuple[Scaled, Scaled]:
    """φ(queries) and φ(keys): φ(q)·φ(k) is an unbiased estimate of K(q, k), and exact for ReLU."""
    for name, x in (("queries", queries), ("keys", keys)):
        require_floats(name, x, least_rank=2)
    require_same_dtype(queries=queries, keys=keys)
    xp = namespace(queries=queries, keys=keys)
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"queries have {queries.shape[-1]} dimensions, but keys have {keys.shape[-1]}")
    if isinstance(kernel, ReLU):
        return _relu(queries), _relu(keys)
    x, y = softmax_inputs(kernel, queries), softmax_inputs(kernel, keys)
    omega = like(draw_projections(kernel.projections, x.shape[-1], kernel.seed), x)
    match kernel.features:
        case "positive":
            return _positive(x, omega), _positive(y, omega)
        case "trigonometric":
            return _trigonometric(x, omega), _trigonometric(y, omega)
        case "hyperbolic":
            both = xp.concat([omega, -omega], axis=0)  # 2m features, which gives the factor √½
            return _positive(x, both), _positive(y, both)
        case "favor++":
            a = favor_plus_plus_parameter(x, y)
            return _favor_plus_plus(x, omega, a), _favor_plus_plus(y, omega, a)


def softmax_inputs(kernel: Softmax, u: Float[Array, "*batch L d"]) -> Float[Array, "*batch L d"]:
    """The x of exp(x·y): u/d^¼, or d^¼·u/‖u‖ (and 0 where u is 0)."""
    xp = namespace(u=u)
    quarter = u.shape[-1] ** 0.25
    if not kernel.normalised:
        return u / quarter
    largest = xp.max(xp.abs(u), axis=-1, keepdims=True)
    u = u / xp.where(largest > 0, largest, xp.ones_like(largest))  # so that ‖u‖² neither overflows nor underflows
    squared = xp.sum(u * u, axis=-1, keepdims=True)
    return u * (quarter / xp.sqrt(xp.where(squared > 0, squared, xp.ones_like(squared))))


@lru_cache(maxsize=64)
def draw_projections(m: int, d: int, seed: int) -> Float[np.ndarray, "m d"]:
    """ω: rows of N(0, I_d), orthogonal within each block of d rows."""
    require_count("projections", m)
    require_count("d", d)
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(math.ceil(m / d)):
        q, r = np.linalg.qr(rng.standard_normal((d, d)))
        haar = q * np.sign(np.diag(r))  # without the signs, QR does not give uniformly distributed rotations
        lengths = np.linalg.norm(rng.standard_normal((d, d)), axis=1, keepdims=True)
        blocks.append(lengths * haar.T)
    omega = np.concatenate(blocks)[:m].astype(np.float32)
    omega.flags.writeable = False
    return omega


def _relu(u: Array) -> Scaled:
    return Scaled(relu(u), namespace(u=u).zeros_like(u[..., :1, :1]))


def _half_squared_norm(x: Array) -> Array:
    return 0.5 * namespace(x=x).sum(x * x, axis=-1, keepdims=True)


def _positive(x: Array, omega: Array) -> Scaled:
    """φ = exp(ω·x − ‖x‖²/2)/√m."""
    xp = namespace(x=x)
    exponents = x @ omega.T - _half_squared_norm(x)
    return Scaled(xp.ones_like(exponents[..., :1, :1]) / math.sqrt(omega.shape[0]), exponents)


def _trigonometric(x: Array, omega: Array) -> Scaled:
    """φ = exp(‖x‖²/2)·(sin ω·x, cos ω·x)/√m. Erratum: the paper prints ω₁ instead of ω_m in the last cosine."""
    xp = namespace(x=x)
    angles = x @ omega.T
    waves = xp.concat([xp.sin(angles), xp.cos(angles)], axis=-1)
    return Scaled(waves / math.sqrt(omega.shape[0]), _half_squared_norm(x))


def _favor_plus_plus(x: Array, omega: Array, a: Array) -> Scaled:
    """φ = D/√m·exp(A‖ω‖² + B·ω·x − ‖x‖²/2), with B = √(1 − 4A), D = (1 − 4A)^(d/4)."""
    xp = namespace(x=x)
    m, d = omega.shape
    spread = 1 - 4 * a
    exponents = (
        a * xp.sum(omega * omega, axis=-1)
        + xp.sqrt(spread) * (x @ omega.T)
        - _half_squared_norm(x)
        + (d / 4) * xp.log(spread)
    )
    return Scaled(xp.ones_like(exponents[..., :1, :1]) / math.sqrt(m), exponents)


def favor_plus_plus_parameter(x: Array, y: Array) -> Array:
    """A, which minimises the variance at the mean squared norm of q + k over all pairs."""
    xp = namespace(x=x, y=y)
    d = x.shape[-1]
    s = (
        xp.mean(xp.sum(x * x, axis=-1), axis=-1)
        + xp.mean(xp.sum(y * y, axis=-1), axis=-1)
        + 2 * xp.sum(xp.mean(x, axis=-2) * xp.mean(y, axis=-2), axis=-1)
    )
    s = xp.maximum(s, xp.zeros_like(s))[..., None, None]  # rounding can make it negative if k = −q
    t = 2 * s + d
    # ρ = (√(t² + 8ds) − t)/4s, in a form without cancellation at small s or overflow at large s
    rho = 2 * d / (t * (1 + xp.sqrt(1 + 8 * (d / t) * (s / t))))
    return (1 - 1 / rho) / 8
