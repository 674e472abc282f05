"""Parameters to θ and back: each leaf of the tree, in the order of its fields, is a block of θ.

Each part states its shapes once, in `build`, which is told how an array is made: drawn anew, cut out of θ, or only
listed. Biases come before weights, and a weight is (outputs, inputs), so that θ of AttentionAgent is the published one.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from iap.attention.arrays import require_count, require_finite
from iap.policies.sizes import Shape, layers_of, maps_of, patches_of, products_size
from iap.policies.specs import (
    CNN,
    LSTM,
    MLP,
    AttentionAgent,
    Blind,
    Controller,
    Linear,
    MultiHeadRank,
    PolicyConfig,
    Quadratic,
    Rank,
    Trans,
)
from iap.policies.trees import (
    Affine,
    AttentionAgentParams,
    LayersParams,
    LSTMParams,
    MultiHeadRankParams,
    Params,
    RankParams,
    TransParams,
)

Part = Literal["encoder", "controller", "low"]
Deviation = float | np.ndarray  # of all entries, or of each column
Make = Callable[[str, tuple[int, ...], Deviation], np.ndarray]  # name, shape, standard deviation → array

OUTPUT_GAIN = 0.1  # of the last layer at the start: near-zero actions, from which all directions are open


class Block(NamedTuple):
    """Where in θ an array lies: θ[start:stop]."""

    name: str
    shape: tuple[int, ...]
    start: int
    stop: int
    part: Part


def init(spec: PolicyConfig, seed: int) -> Params:
    """Parameters in units of 1/√fan_in, biases 0, and a small output; a high level's commands follow what it sees."""
    rng = np.random.default_rng(require_count("seed", seed, least=0))

    def draw(_part: Part, _name: str, shape: tuple[int, ...], std: Deviation) -> np.ndarray:
        return rng.standard_normal(shape, np.float32) * np.asarray(std, np.float32)

    return build(spec, draw)


def flatten(params: Params) -> Float[np.ndarray, " p"]:
    """θ: all leaves in the order of their fields."""
    return np.concatenate([leaf.ravel() for leaf in _leaves(params)]).astype(np.float32, copy=False)


def unflatten(spec: PolicyConfig, theta: Float[np.ndarray, " p"]) -> Params:
    """The inverse of `flatten`."""
    theta = np.array(theta, np.float32)  # a copy, which no caller can change
    count = blocks(spec)[-1].stop
    if theta.shape != (count,):
        raise ValueError(f"theta must be of shape ({count},) for this spec, not {theta.shape}")
    require_finite("theta", theta)
    theta.flags.writeable = False
    start = 0

    def cut(_part: Part, _name: str, shape: tuple[int, ...], _std: Deviation) -> np.ndarray:
        nonlocal start
        start += math.prod(shape)
        return theta[start - math.prod(shape) : start].reshape(shape)

    return build(spec, cut)


def blocks(spec: PolicyConfig) -> list[Block]:
    """The arrays of θ, in its order."""
    listed: list[Block] = []

    def note(part: Part, name: str, shape: tuple[int, ...], _std: Deviation) -> np.ndarray:
        start = listed[-1].stop if listed else 0
        listed.append(Block(name, shape, start, start + math.prod(shape), part))
        return np.empty(0, np.float32)

    build(spec, note)
    return listed


def require_params(spec: PolicyConfig, params: Params) -> Params:
    """`params` if they are of this spec."""
    given, wanted = [leaf.shape for leaf in _leaves(params)], [block.shape for block in blocks(spec)]
    if given != wanted:
        raise ValueError(f"params must be arrays of shapes {wanted} for this spec, not {given}")
    return params


def build(spec: PolicyConfig, make: Callable[[Part, str, tuple[int, ...], Deviation], np.ndarray]) -> Params:
    """The tree of a spec, its arrays made by `make` in θ's order."""
    encoder = _vision(spec, partial(make, "encoder"))
    controller, low = partial(make, "controller"), partial(make, "low")
    outputs = spec.outputs_size
    if spec.hierarchy is None:
        return Params(encoder, _controller(spec.controller, controller, spec.inputs_size, outputs), None)
    seen = _columns(spec.features_size, 1.0, spec.sensors if spec.hierarchy.high_level_sensors else 0)
    told = _columns(
        spec.hierarchy.latent_size, spec.hierarchy.command_gain * math.sqrt(spec.hierarchy.latent_size), spec.sensors
    )
    return Params(
        encoder,
        _controller(spec.controller, controller, spec.controller_inputs_size, outputs, seen),
        _controller(spec.hierarchy.low_level, low, spec.hierarchy.latent_size + spec.sensors, spec.actions, told),
    )


def _columns(leading: int, gain: float, sensors: int) -> np.ndarray:
    """The standard deviation of each column of a last layer: leading inputs at a gain, then sensors near zero."""
    return np.repeat([gain / math.sqrt(max(1, leading)), OUTPUT_GAIN / math.sqrt(max(1, sensors))], [leading, sensors])


def _vision(
    spec: PolicyConfig, make: Make
) -> RankParams | MultiHeadRankParams | TransParams | AttentionAgentParams | LayersParams | None:
    channels = spec.input_shape[2]
    match spec.encoder:
        case Rank() as encoder:
            return _rank(encoder, spec.input_shape, make)
        case MultiHeadRank() as encoder:
            *_, seen = maps_of(encoder.stem, spec.input_shape)
            width = encoder.patch**2 * seen[2]
            return MultiHeadRankParams(
                stem=_convolutions(make, "stem", encoder.stem, spec.input_shape),
                query=_affine(make, "query", width, encoder.d),
                key=_affine(make, "key", width, encoder.d),
                gains=make("gains", (encoder.heads, encoder.d), 1.0),
            )
        case Trans() as encoder:
            width = encoder.positions.width(encoder.patch**2 * channels)
            patches = patches_of(encoder, spec.input_shape).patches
            return TransParams(
                query=_affine(make, "query", width, encoder.d, bias=False),
                key=_affine(make, "key", width, encoder.d, bias=False),
                value=_affine(make, "value", width, encoder.width, bias=False),
                pooling=make("pooling", (encoder.rows, patches), 1 / math.sqrt(patches)),
            )
        case AttentionAgent() as encoder:
            width = encoder.patch**2 * channels
            return AttentionAgentParams(
                query=_affine(make, "query", width, encoder.d), key=_affine(make, "key", width, encoder.d)
            )
        case CNN() as encoder:
            layers = layers_of(encoder, spec.input_shape)
            return LayersParams(_convolutions(make, "layers", layers, spec.input_shape))
        case Blind():
            return None


def _convolutions(make: Make, name: str, layers: Sequence[Shape], image_shape: Shape) -> tuple[Affine, ...]:
    shapes = zip(layers, maps_of(layers, image_shape), strict=False)
    return tuple(
        _affine(make, f"{name}.{i}", size**2 * seen[2], filters) for i, ((filters, size, _), seen) in enumerate(shapes)
    )


def _rank(encoder: Rank, image_shape: tuple[int, int, int], make: Make) -> RankParams:
    channels = image_shape[2]
    pixels = encoder.patch**2 * channels
    width = encoder.positions.width(pixels)
    patches = patches_of(encoder, image_shape).patches
    return RankParams(
        query=_affine(make, "query", width, encoder.d, bias=encoder.bias),
        key=_affine(make, "key", width, encoder.d, bias=encoder.bias),
        pooling=make("pooling", (patches,), 0.0) if encoder.learn_pooling else None,
        projection=_affine(make, "projection", pixels, encoder.projection_size, bias=False)
        if "projection" in encoder.values
        else None,
        heads=_affine(make, "heads", channels + 2 * encoder.position_weighted, encoder.heads)
        if encoder.order == "pooled"
        else None,
    )


def _controller(
    controller: Controller, make: Make, inputs: int, outputs: int, deviations: np.ndarray | None = None
) -> LayersParams | LSTMParams:
    """A controller's arrays; `deviations` are those of the columns where the inputs go straight to the outputs."""
    match controller:
        case Linear() if deviations is not None:
            bias = make("output.bias", (outputs,), 0.0)
            return LayersParams((Affine(bias, make("output.weight", (outputs, inputs), deviations)),))
        case Linear():
            return LayersParams((_affine(make, "output", inputs, outputs, gain=OUTPUT_GAIN),))
        case MLP(hidden=hidden):
            sizes = (inputs, *hidden)
            layers = [_affine(make, f"hidden.{i}", sizes[i], units) for i, units in enumerate(hidden)]
            return LayersParams((*layers, _affine(make, "output", hidden[-1], outputs, gain=OUTPUT_GAIN)))
        case Quadratic(changes=changes):
            return LayersParams((_affine(make, "output", products_size(inputs, changes), outputs, gain=OUTPUT_GAIN),))
        case LSTM(units=units):
            return LSTMParams(
                bias_hh=make("bias_hh", (4 * units,), 0.0),
                bias_ih=make("bias_ih", (4 * units,), 0.0),
                weight_hh=make("weight_hh", (4 * units, units), 1 / math.sqrt(units)),
                weight_ih=make("weight_ih", (4 * units, inputs), 1 / math.sqrt(max(1, inputs))),
                output=_affine(make, "output", units, outputs, gain=OUTPUT_GAIN),
            )


def _affine(make: Make, name: str, inputs: int, outputs: int, *, gain: float = 1.0, bias: bool = True) -> Affine:
    return Affine(
        bias=make(f"{name}.bias", (outputs,), 0.0) if bias else None,
        weight=make(f"{name}.weight", (outputs, inputs), gain / math.sqrt(max(1, inputs))),
    )


def _leaves(tree: Any) -> Iterator[np.ndarray]:
    if isinstance(tree, np.ndarray):
        yield tree
    elif isinstance(tree, tuple):
        for branch in tree:
            yield from _leaves(branch)
    elif tree is not None:
        for field in fields(tree):
            yield from _leaves(getattr(tree, field.name))
