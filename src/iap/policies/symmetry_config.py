"""What a reflection does to sensors and actions."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Symmetry:
    """How a reflection of left and right changes sensors and actions; fields left empty are taken from the environment.

    Attributes:
        sensors: for each reflected sensor, the number of the sensor it equals, counted from 1; negative if its sign
            changes.
        actions: the same for actions.
        offsets: added to each reflected sensor; all 0 if not given.
    """

    sensors: tuple[int, ...] = ()
    actions: tuple[int, ...] = ()
    offsets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("sensors", "actions"):
            places = getattr(self, name)
            if sorted(map(abs, places)) != list(range(1, len(places) + 1)):
                raise ValueError(
                    f"symmetry.{name} must hold each of 1 to {len(places)} once, with a sign, not {places}"
                )
        if self.offsets and len(self.offsets) != len(self.sensors):
            raise ValueError(f"symmetry.offsets must be {len(self.sensors)}, one a sensor, not {len(self.offsets)}")


class SignedPermutation:
    """A reflection of a vector: a permutation with signs and offsets."""

    def __init__(self, signed: tuple[int, ...], offsets: tuple[float, ...] = ()) -> None:
        numbers = np.array(signed, np.int64)
        self.places = np.abs(numbers) - 1
        self.signs = np.sign(numbers).astype(np.float32)
        self.offsets = np.array(offsets or np.zeros(len(numbers)), np.float32)

    def __call__(self, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The reflected vector."""
        return (x[self.places] * self.signs + self.offsets).astype(np.float32)
