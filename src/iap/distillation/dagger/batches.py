"""Batches of labelled steps, and their mirror images."""

from typing import NamedTuple

import numpy as np

from iap.distillation.labelling import Arrays
from iap.policies import Symmetry
from iap.policies.symmetry import SignedPermutation

Axes = tuple[tuple[int, int, int | None], ...]


class Mirror(NamedTuple):
    """The reflection of labelled steps.

    Attributes:
        sensors: of the sensors.
        actions: of the actions.
        maps: for each cost map, the one that becomes it.
        flips: for each cost map, whether its rows, its columns and the sign of its dependent entry are reversed.
    """

    sensors: SignedPermutation
    actions: SignedPermutation
    maps: list[int]
    flips: list[tuple[bool, bool, bool]]

    @classmethod
    def of(cls, symmetry: Symmetry, axes: Axes) -> "Mirror":
        """The reflection of an environment's symmetry."""
        actions = SignedPermutation(symmetry.actions)
        owners = {(row, column): number for number, (row, column, _) in enumerate(axes)}
        maps, flips = [], []
        for row, column, dependent in axes:
            source = owners.get((int(actions.places[row]), int(actions.places[column])))
            if source is None:
                raise ValueError("the symmetry must exchange the cost maps of the teacher's label with each other")
            maps.append(source)
            negative = [entry is not None and actions.signs[entry] < 0 for entry in (row, column, dependent)]
            flips.append((negative[0], negative[1], negative[2]))
        return cls(SignedPermutation(symmetry.sensors, symmetry.offsets), actions, maps, flips)

    def __call__(self, batch: Arrays) -> Arrays:
        """The mirror image of each step."""
        mirrored = dict(batch)
        if batch["images"].ndim > 2:  # noqa: PLR2004 - a blind policy has no images
            mirrored["images"] = batch["images"][:, :, ::-1]
        mirrored["sensors"] = self._each(self.sensors, batch["sensors"])
        mirrored["actions"] = self._each(self.actions, batch["actions"])
        mirrored["weights"] = batch["weights"][:, self.actions.places]
        for name in ("costs", "dependent"):
            if name in batch:
                mirrored[name] = np.stack([self._map(batch[name], name, number) for number in range(len(self.maps))], 1)
        return mirrored

    def _each(self, reflection: SignedPermutation, rows: np.ndarray) -> np.ndarray:
        return rows[:, reflection.places] * reflection.signs + reflection.offsets

    def _map(self, maps: np.ndarray, name: str, number: int) -> np.ndarray:
        rows, columns, sign = self.flips[number]
        chosen = maps[:, self.maps[number]]
        chosen = chosen[:, ::-1] if rows else chosen
        chosen = chosen[:, :, ::-1] if columns else chosen
        return -chosen if sign and name == "dependent" else chosen


def joined(one: Arrays, other: Arrays) -> Arrays:
    """The steps of both batches."""
    return {name: np.concatenate([one[name], other[name]]) for name in one}
