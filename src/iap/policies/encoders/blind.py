"""No image: the baseline that shows whether a task needs one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap.attention.arrays import Array, namespace
from iap.policies.encoders.base import Encoder, Encoding, Shape, encode
from iap.policies.params import ParamSpec


@dataclass(frozen=True)
class Blind(Encoder):
    """No features: the controller receives the sensors alone."""

    uses_image: ClassVar[bool] = False

    def feature_size(self, image_shape: Shape) -> int:
        """None."""
        return 0

    def param_specs(self, image_shape: Shape) -> list[ParamSpec]:
        """None."""
        return []

    def forward(self, params: Mapping[str, Array], images: Array, uniforms: Array | None = None) -> Encoding:
        """No features for each image."""
        xp = namespace(images=images)
        return Encoding(xp.zeros((images.shape[0], 0), dtype=xp.float32))

    def compile(self, params: Mapping[str, np.ndarray], image_shape: Shape, dtype: np.dtype) -> "BlindArrays":
        """Nothing to compile."""
        return BlindArrays(0)


class BlindArrays(NamedTuple):
    """No arrays; one unused number, because Numba has no empty NamedTuple."""

    nothing: Any


@implements(encode, BlindArrays)
@compiled(inner=True)
def encode_blind(encoder, image, context):
    """No features."""
    return np.empty(0, np.float32), np.empty(0, np.float32), np.empty(0, np.int64), context.keys
