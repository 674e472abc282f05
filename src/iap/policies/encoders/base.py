"""The interface of all encoders: image → features, differentiable in batches, and compiled for one image."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from iap._compile import dispatched
from iap.attention.arrays import Array
from iap.attention.patches import Grid
from iap.policies.params import ParamSpec

Shape = tuple[int, int, int]  # height, width, channels
Statistics = dict[str, tuple[Array, Array]]  # mean and variance of each channel, by layer
NO_SCORES = np.empty(0, np.float32)
NO_SELECTION = np.empty(0, np.int64)
NO_KEYS = np.empty((0, 0, 0), np.float32)
NO_UNIFORMS = np.empty(0, np.float32)


class Window(NamedTuple):
    """The patches that an encoder scores: their grid, their side and their stride, in pixels of the image."""

    grid: Grid
    patch: int
    stride: int


class Attention(NamedTuple):
    """What a policy attended to in one frame.

    Attributes:
        scores: of each patch, up to one positive factor.
        selected: indices of the selected patches, best first.
        grid: rows and columns of patches.
        patch: side of a patch in pixels.
        stride: pixels from one patch to the next.
    """

    scores: Float[np.ndarray, " L"]
    selected: Int[np.ndarray, " l"]
    grid: Grid
    patch: int
    stride: int


class Encoding(NamedTuple):
    """A batch of encoded images.

    Attributes:
        features: (n, feature_size).
        scores: (n, L), the scores of the patches, up to one positive factor for each image; None without attention.
        selected: (n, l), the indices of the selected patches, best first; None if none are selected.
        log_maps: (n, heads, L), the logarithm of each head's softmax over the patches, for supervision with keypoints:
            −log_maps of a keypoint's patch is the cross-entropy. None for encoders that do not support it.
    """

    features: Array
    scores: Array | None = None
    selected: Array | None = None
    log_maps: Array | None = None


class Context(NamedTuple):
    """The inputs of an encoder besides the image.

    Attributes:
        keys: stored keys of an earlier image, (heads, D, L); empty if there are none.
        frame: the number of images of the episode that were encoded before.
        uniforms: one random number from (0, 1) for each patch, for encoders that sample patches; empty otherwise.
    """

    keys: Any
    frame: int
    uniforms: Any


@dispatched
def encode(encoder, image, context) -> Any:
    """Compiled code: encode one image → features, scores, selected patches, keys to store.

    `encoder` is the NamedTuple that `Encoder.compile` returns; its class selects the implementation.
    """


@dataclass(frozen=True)
class Encoder:
    """The base of all encoders: a frozen config and the functions that belong to it.

    A new encoder is one file with a subclass and one line in `encoders/__init__.py` (or an entry point of the group
    `iap.encoders`). It has to override `feature_size`, `param_specs` and `forward`; without `compile` it runs `forward`
    on NumPy arrays, one image at a time.
    """

    uses_image: ClassVar[bool] = True
    image_centre: ClassVar[float] = 0.5  # subtracted from pixels between 0 and 1

    @property
    def samples(self) -> bool:
        """Whether patches are drawn at random, with one number from (0, 1) for each patch."""
        return False

    def check(self, image_shape: Shape) -> None:
        """Raise a ValueError if the encoder does not fit images of this shape."""

    def feature_size(self, image_shape: Shape) -> int:
        """The number of features of an image."""
        raise NotImplementedError

    def param_specs(self, image_shape: Shape) -> list[ParamSpec]:
        """The encoder's arrays of parameters, in the order of θ."""
        raise NotImplementedError

    def window(self, image_shape: Shape) -> Window | None:
        """The patches that are scored; None for an encoder without attention."""
        return None

    def forward(self, params: Mapping[str, Array], images: Array, uniforms: Array | None = None) -> Encoding:
        """Encode a batch (n, H, W, C) of uint8 or float images of any array library, differentiably.

        Args:
            params: the arrays of `param_specs`, by name.
            images: the images, after preprocessing.
            uniforms: (n, L) random numbers from (0, 1), for encoders that sample patches.
        """
        raise NotImplementedError

    def forward_soft(self, params: Mapping[str, Array], images: Array, softness: float) -> Encoding:
        """As `forward`, with a selection that is smooth in the parameters: distillation trains with it.

        Only encoders whose features jump when a patch enters or leaves the selection override it.

        Args:
            params: the arrays of `param_specs`, by name.
            images: the images, after preprocessing.
            softness: the width of the transition, in units of the encoder's own; at 0 the selection is that of
                `forward`.
        """
        return self.forward(params, images)

    def forward_normalised(
        self, params: Mapping[str, Array], images: Array, statistics: Statistics | None = None
    ) -> tuple[Encoding, Statistics]:
        """As `forward`, with batch norm where the encoder has it: distillation trains with it.

        `fold` gives parameters with which `forward` returns the same. Encoders without batch norm do not override it.

        Args:
            params: the arrays of `param_specs`, by name.
            images: the images, after preprocessing.
            statistics: mean and variance of each normalised layer; those of the batch if None.

        Returns:
            The encoding, and the statistics that were used.
        """
        return self.forward(params, images), {}

    def fold(self, params: Mapping[str, Array], statistics: Statistics) -> dict[str, Array]:
        """Parameters with which `forward` returns what `forward_normalised` returns with these statistics."""
        return dict(params)

    def forward_frame(
        self, params: Mapping[str, np.ndarray], image: np.ndarray, context: Context
    ) -> tuple[Encoding, np.ndarray]:
        """Encode one frame of an episode with NumPy: the encoding as a batch of one, and the keys to store.

        Only encoders that store keys between frames override it.
        """
        uniforms = context.uniforms[None] if context.uniforms.size else None
        return self.forward(params, image[None], uniforms), context.keys

    def compile(self, params: Mapping[str, np.ndarray], image_shape: Shape, dtype: np.dtype) -> Any:
        """A NamedTuple of arrays for which `encode` is implemented, for images of one dtype; None if there is none."""
        return None
