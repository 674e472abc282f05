"""Selected patches → features: the base of `SelectedPatches`, `PooledMoments` and `SeparableFilters`."""

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
    """The base of what selected patches can become."""

    def size(self, window: Window, channels: int, top_k: int) -> int:
        """The number of features."""
        raise NotImplementedError

    def param_specs(self, window: Window, channels: int) -> list[ParamSpec]:
        """The arrays of parameters, for these patches and this number of channels."""
        raise NotImplementedError

    def forward(
        self, params: Mapping[str, Array], images: Array, scores: Array, selected: Array, window: Window
    ) -> Array:
        """The features of a batch, (n, size)."""
        raise NotImplementedError

    def forward_gated(self, params: Mapping[str, Array], images: Array, gates: Array, window: Window) -> Array | None:
        """The features if each patch (n, L) is selected to a share between 0 and 1; None if that is not defined."""
        return None

    def compile(self, params: Mapping[str, np.ndarray], window: Window, image_shape: Shape, dtype: np.dtype) -> Any:
        """A NamedTuple for which `patch_features` is implemented."""
        raise NotImplementedError
