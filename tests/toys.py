"""A toy encoder and a toy controller, with and without compiled code, as another package would define them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap.attention import as_pixels
from iap.attention.arrays import Array, namespace
from iap.policies import Columns, Controller, Encoder, ParamSpec
from iap.policies.controllers import control
from iap.policies.encoders import Encoding, encode
from iap.policies.encoders.base import Shape


@dataclass(frozen=True)
class ToyEncoder(Encoder):
    """The mean colour of each quadrant of the image, times a gain; without compiled code."""

    def feature_size(self, image_shape: Shape) -> int:
        return 4 * image_shape[2]

    def param_specs(self, image_shape: Shape) -> list[ParamSpec]:
        return [ParamSpec("gain", (self.feature_size(image_shape),), 1.0)]

    def forward(self, params: Mapping[str, Array], images: Array, uniforms: Array | None = None) -> Encoding:
        xp = namespace(images=images)
        n, height, width, channels = images.shape
        pixels = as_pixels(images)[:, : height // 2 * 2, : width // 2 * 2, :]
        quadrants = xp.reshape(pixels, (n, 2, height // 2, 2, width // 2, channels))
        return Encoding(xp.reshape(xp.mean(quadrants, axis=(2, 4)), (n, -1)) * params["gain"])


@dataclass(frozen=True)
class CompiledToyEncoder(ToyEncoder):
    """The same with compiled code."""

    def compile(self, params: Mapping[str, np.ndarray], image_shape: Shape, dtype: np.dtype) -> "ToyEncoderArrays":
        scale, shift = (1 / 255, -0.5) if dtype == np.uint8 else (1.0, 0.0)
        return ToyEncoderArrays(np.array(params["gain"]), scale, shift)


class ToyEncoderArrays(NamedTuple):
    gain: Any
    scale: Any
    shift: Any


@implements(encode, ToyEncoderArrays)
@compiled(inner=True)
def encode_toy(encoder, image, context):
    rows, columns, channels = image.shape[0] // 2, image.shape[1] // 2, image.shape[2]
    sums = np.zeros((2, 2, channels))
    for y in range(2 * rows):
        for x in range(2 * columns):
            for c in range(channels):
                sums[y // rows, x // columns, c] += image[y, x, c]
    features = np.empty(4 * channels, np.float32)
    for i in range(len(features)):
        mean = sums.ravel()[i] / (rows * columns)
        features[i] = (mean * encoder.scale + encoder.shift) * encoder.gain[i]
    return features, np.empty(0, np.float32), np.empty(0, np.int64), context.keys


@dataclass(frozen=True)
class ToyController(Controller):
    """A leaky sum of weighted inputs for each output, through tanh; without compiled code.

    Attributes:
        decay: the share of the last sum that stays.
    """

    decay: float = 0.5

    def state_size(self, inputs: int) -> int:
        return inputs

    def param_specs(self, inputs: int, outputs: int, output_std: Columns | None) -> list[ParamSpec]:
        return [ParamSpec("weight", (outputs, inputs), 1 / math.sqrt(max(1, inputs)))]

    def step(self, params: Mapping[str, Array], state: Array, inputs: Array) -> tuple[Array, Array]:
        xp = namespace(inputs=inputs)
        after = self.decay * state + inputs
        return xp.tanh(after @ params["weight"].T), after


@dataclass(frozen=True)
class CompiledToyController(ToyController):
    """The same with compiled code."""

    def compile(self, params: Mapping[str, np.ndarray]) -> "ToyControllerArrays":
        return ToyControllerArrays(np.array(params["weight"]), np.float32(self.decay))


class ToyControllerArrays(NamedTuple):
    weight: Any
    decay: Any


@implements(control, ToyControllerArrays)
@compiled(inner=True)
def control_toy(controller, inputs, state):
    after = controller.decay * state + inputs
    outputs = np.empty(len(controller.weight), np.float32)
    for i in range(len(outputs)):
        outputs[i] = math.tanh(np.sum(controller.weight[i] * after))
    return outputs, after
