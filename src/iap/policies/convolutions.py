"""Convolutions with ReLU, each of which is patches × weights, compiled."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from iap._compile import compiled
from iap.attention.kernels.projection import UNROLLED_STEP, project_image
from iap.policies.sizes import Shape, maps_of
from iap.policies.trees import Affine


class Convolutions:
    """Image → the last layer's output, (rows, columns, filters). It reuses working memory: give each thread its own."""

    def __init__(self, layers: Sequence[Shape], image_shape: Shape, params: Sequence[Affine]) -> None:
        self.shapes = maps_of(layers, image_shape)
        shapes = zip(self.shapes, layers, params, self.shapes[1:], strict=False)
        self._layers = [_Layer(seen[2], layer, affine, given) for seen, layer, affine, given in shapes]

    def __call__(self, image: np.ndarray) -> Float[np.ndarray, "rows columns filters"]:
        """What the last layer gives; without layers the image itself."""
        for layer in self._layers:
            image = layer(image)
        return image


class _Layer:
    def __init__(self, channels: int, layer: Shape, affine: Affine, given: Shape) -> None:
        filters, size, stride = layer
        assert affine.bias is not None
        step = stride * channels
        self._window = size, stride, (0,) * step if step <= UNROLLED_STEP else ()
        weights, biases = np.array(affine.weight), np.array(affine.bias)
        # Bytes are 0..255 and mean 0..1 less a half: weights and biases know.
        self._bytes = weights / np.float32(255), _in_rows(biases - weights.sum(axis=1) / 2, given)
        self._floats = weights, _in_rows(biases, given)
        self._columns = np.zeros((filters, given[1]), np.float32)
        self._projections = np.empty((filters, given[0] * given[1]), np.float32)
        self._given = np.empty(given, np.float32)

    def __call__(self, image: np.ndarray) -> np.ndarray:
        weights, rows = self._bytes if image.dtype == np.uint8 else self._floats
        project_image(image, *self._window, weights, rows, self._columns, self._projections)
        put_positive(self._projections, self._given.reshape(-1, len(weights)))
        return self._given


def _in_rows(biases: np.ndarray, given: Shape) -> np.ndarray:
    return np.repeat(biases[:, None], given[0], axis=1)


@compiled
def put_positive(projections, given):
    """ReLU, with filters last instead of first."""
    for f in range(len(projections)):
        for place in range(len(given)):
            given[place, f] = max(projections[f, place], np.float32(0))
