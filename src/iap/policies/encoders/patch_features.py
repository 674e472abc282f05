"""Selected patches → features: what `SelectedPatches` and `PooledMoments` have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from iap._compile import dispatched
from iap.attention.arrays import Array
from iap.policies.encoders.base import Shape, Window
from iap.policies.params import ParamSpec

CENTRE = 2  # numbers of a patch's centre: row and column


@dispatched
def patch_features(features, image, scores, selected) -> Any:
    """Compiled code: the features of the selected patches of one image."""


@dataclass(frozen=True)
class PatchFeatures:
    """The base of `SelectedPatches` and `PooledMoments`."""

    def size(self, window: Window, channels: int, top_k: int) -> int:
        """The number of features."""
        raise NotImplementedError

    def param_specs(self, pixels: int, channels: int) -> list[ParamSpec]:
        """The arrays of parameters, for patches with this number of pixel values and of channels."""
        raise NotImplementedError

    def forward(
        self, params: Mapping[str, Array], images: Array, scores: Array, selected: Array, window: Window
    ) -> Array:
        """The features of a batch, (n, size)."""
        raise NotImplementedError

    def compile(self, params: Mapping[str, np.ndarray], window: Window, image_shape: Shape, dtype: np.dtype) -> Any:
        """A NamedTuple for which `patch_features` is implemented."""
        raise NotImplementedError
