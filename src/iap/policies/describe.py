"""The arrays and parameter counts of a policy, and the baselines to compare it with."""

from dataclasses import replace
from typing import NamedTuple

from iap.policies.config import PolicyConfig
from iap.policies.encoders import CNN, Blind
from iap.policies.params import Part, blocks


class Row(NamedTuple):
    """One array of a policy's parameters."""

    part: Part
    name: str
    shape: tuple[int, ...]
    parameters: int


class Description(NamedTuple):
    """All arrays of a policy, the parameters of each part, and of all parts together."""

    rows: list[Row]
    parts: dict[Part, int]
    total: int


def describe(config: PolicyConfig) -> Description:
    """The parts of a policy with their shapes and parameter counts."""
    rows = [Row(block.part, block.name, block.shape, block.stop - block.start) for block in blocks(config)]
    parts: dict[Part, int] = {}
    for row in rows:
        parts[row.part] = parts.get(row.part, 0) + row.parameters
    return Description(rows, parts, sum(parts.values()))


def cnn_baseline(config: PolicyConfig) -> PolicyConfig:
    """The same policy with the default CNN as its encoder."""
    return replace(config, encoder=CNN())


def blind_baseline(config: PolicyConfig) -> PolicyConfig:
    """The same policy without an image: the baseline that shows whether the task needs one."""
    return replace(config, encoder=Blind())
