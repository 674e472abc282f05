"""What a policy is made of, and the policies to compare it with."""

from dataclasses import replace
from typing import NamedTuple

from iap.policies.params import Part, blocks
from iap.policies.specs import CNN, Blind, PolicyConfig


class Row(NamedTuple):
    """One array of a policy's parameters."""

    part: Part
    name: str
    shape: tuple[int, ...]
    parameters: int


class Description(NamedTuple):
    """All arrays of a policy, how many parameters each part has, and all together."""

    rows: list[Row]
    parts: dict[Part, int]
    total: int


def describe(spec: PolicyConfig) -> Description:
    """The parts of a policy with their shapes and parameter counts."""
    rows = [Row(block.part, block.name, block.shape, block.stop - block.start) for block in blocks(spec)]
    parts: dict[Part, int] = {}
    for row in rows:
        parts[row.part] = parts.get(row.part, 0) + row.parameters
    return Description(rows, parts, sum(parts.values()))


def cnn_baseline(spec: PolicyConfig) -> PolicyConfig:
    """The same policy with a usual small CNN for eyes."""
    return replace(spec, encoder=CNN(), keys_every=1)


def blind_baseline(spec: PolicyConfig) -> PolicyConfig:
    """The same policy without eyes: the control for whether the task needs them."""
    return replace(spec, encoder=Blind(), keys_every=1)
