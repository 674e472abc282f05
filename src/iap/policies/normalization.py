"""Running statistics of the controller's inputs: computed per episode, merged exactly, then applied."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from jaxtyping import Float

CLIP = 5.0  # standard deviations
FLAT = 1e-6  # an input with a smaller standard deviation is a constant, and is only centred


@dataclass(frozen=True, eq=False)
class Moments:
    """The number of rows, their mean, and the sum of squared differences to it; all in float64.

    Two sets of moments merge to those of all rows together (Chan et al.), so any number of workers can compute them.
    Merged in a fixed order, they are the same to the last bit.
    """

    count: int
    mean: Float[np.ndarray, " d"]
    m2: Float[np.ndarray, " d"]

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 0:
            raise ValueError(f"count must be a whole number, at least 0, not {self.count!r}")
        for name in ("mean", "m2"):
            x = np.array(getattr(self, name), np.float64)  # a copy
            if x.ndim != 1 or not np.isfinite(x).all():
                raise ValueError(f"{name} must be a vector of finite numbers, not {x}")
            x.flags.writeable = False
            object.__setattr__(self, name, x)
        if self.mean.shape != self.m2.shape:
            raise ValueError(f"mean and m2 must be of one length, not {len(self.mean)} and {len(self.m2)}")
        if (self.m2 < 0).any():
            raise ValueError(f"m2 must not be negative, but one is {self.m2.min()}")

    @classmethod
    def none(cls, size: int) -> Self:
        """The moments of no rows."""
        return cls(0, np.zeros(size), np.zeros(size))

    @classmethod
    def of(cls, rows: Float[np.ndarray, "n d"] | Sequence[np.ndarray]) -> Self:
        """The moments of these rows."""
        x = np.asarray(rows, np.float64)
        if x.ndim != 2:  # noqa: PLR2004
            raise ValueError(f"rows must be (n, d), not of shape {x.shape}")
        if len(x) == 0:
            return cls.none(x.shape[1])
        mean = x.mean(axis=0)
        return cls(len(x), mean, np.square(x - mean).sum(axis=0))

    def merge(self, other: "Moments") -> Self:
        """The moments of both sets of rows together."""
        if other.mean.shape != self.mean.shape:
            raise ValueError(f"moments of {len(self.mean)} numbers cannot merge with moments of {len(other.mean)}")
        if other.count == 0:
            return self
        count = self.count + other.count
        apart = other.mean - self.mean
        mean = self.mean + apart * (other.count / count)
        m2 = self.m2 + other.m2 + apart**2 * (self.count * other.count / count)
        return type(self)(count, mean, m2)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """As named arrays."""
        return {"count": np.array(self.count, np.int64), "mean": self.mean, "m2": self.m2}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """The inverse of `to_arrays`."""
        if missing := {"count", "mean", "m2"} - set(arrays):
            raise ValueError(f"a normaliser needs count, mean and m2: {', '.join(sorted(missing))} missing")
        count = np.asarray(arrays["count"])
        if count.size != 1 or not np.issubdtype(count.dtype, np.integer):
            raise ValueError(f"count must be one whole number, not {count}")
        return cls(int(count.reshape(())), arrays["mean"], arrays["m2"])

    def to_json(self) -> dict[str, Any]:
        """As numbers and lists, which JSON represents exactly."""
        return {"count": self.count, "mean": self.mean.tolist(), "m2": self.m2.tolist()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`."""
        if not isinstance(data, Mapping) or set(data) != {"count", "mean", "m2"}:
            raise ValueError(f"a normaliser holds count, mean and m2, not {data!r}"[:200])
        vectors = []
        for name in ("mean", "m2"):
            if not isinstance(data[name], list) or not all(type(x) in (int, float) for x in data[name]):
                raise ValueError(f"{name} must be a list of numbers, not {data[name]!r}"[:200])
            try:
                vectors.append(np.array(data[name], np.float64))
            except OverflowError:
                raise ValueError(f"{name} holds a number too large for a float") from None
        return cls(data["count"], *vectors)


@dataclass(frozen=True, eq=False)
class Normaliser(Moments):
    """Moments that normalise the controller's inputs: the part of a policy that is measured rather than learnt."""

    def apply(self, x: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """(x − mean)/std, clipped to ±5, as float32; x itself if there were no rows."""
        mean, scale, clip = self.coefficients
        return np.clip((np.asarray(x, np.float32) - mean) * scale, -clip, clip).astype(np.float32)

    @cached_property
    def coefficients(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Mean, 1/standard deviation (1 for constants), and the clipping bound."""
        if self.count == 0:
            return np.zeros(len(self.mean)), np.ones(len(self.mean)), math.inf
        std = np.sqrt(self.m2 / self.count)
        return self.mean.copy(), 1 / np.where(std < FLAT, 1.0, std), CLIP
