"""Policy configs as JSON: the names of all dataclasses that they are made of."""

from typing import Any, TypeVar

from iap.attention.features import ReLU, Softmax
from iap.attention.positions import Positions
from iap.policies.config import PolicyConfig
from iap.policies.controllers import CONTROLLERS
from iap.policies.encoders import ENCODERS, PooledMoments, SelectedPatches, SeparableFilters
from iap.policies.format.codec import Codec
from iap.policies.hierarchy import Hierarchy
from iap.policies.image_format import ImageFormat
from iap.policies.symmetry import Symmetry

T = TypeVar("T")

PARTS: dict[str, type] = {
    "policy": PolicyConfig,
    "hierarchy": Hierarchy,
    "symmetry": Symmetry,
    "image-format": ImageFormat,
    "selected-patches": SelectedPatches,
    "pooled-moments": PooledMoments,
    "separable-filters": SeparableFilters,
    "relu": ReLU,
    "softmax": Softmax,
    "positions": Positions,
}


def policy_kinds() -> dict[str, type]:
    """All kinds, including everything that is registered so far."""
    return {**PARTS, **ENCODERS, **CONTROLLERS}


CODEC = Codec(policy_kinds)


def to_json(config: Any) -> dict[str, Any]:
    """A config as JSON, each part tagged with its `kind`."""
    return CODEC.write(config)


def from_json(data: Any, kind: type[T] = PolicyConfig) -> T:
    """The inverse of `to_json`; missing fields take their defaults, and any defect is a ValueError."""
    return CODEC.read("config", data, (kind,))
