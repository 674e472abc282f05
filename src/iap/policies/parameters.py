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
    Blind,
    Controller,
    ExactRank,
    Linear,
    MultiRank,
    PolicySpec,
    Products,
    Rank,
    Trans,
)
from iap.policies.trees import (
    Affine,
    ExactRankParams,
    LayersParams,
    LSTMParams,
    MultiRankParams,
    Params,
    RankParams,
    TransParams,
)

Part = Literal["vision", "controller", "low"]
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


def init(spec: PolicySpec, seed: int) -> Params:
    """Parameters in units of 1/√fan_in, biases 0, and a small output; a high level's commands follow what it sees."""
    rng = np.random.default_rng(require_count("seed", seed, least=0))

    def draw(_part: Part, _name: str, shape: tuple[int, ...], std: Deviation) -> np.ndarray:
        return rng.standard_normal(shape, np.float32) * np.asarray(std, np.float32)

    return build(spec, draw)


def flatten(params: Params) -> Float[np.ndarray, " p"]:
    """θ: all leaves in the order of their fields."""
    return np.concatenate([leaf.ravel() for leaf in _leaves(params)]).astype(np.float32, copy=False)


def unflatten(spec: PolicySpec, theta: Float[np.ndarray, " p"]) -> Params:
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


def blocks(spec: PolicySpec) -> list[Block]:
    """The arrays of θ, in its order."""
    listed: list[Block] = []

    def note(part: Part, name: str, shape: tuple[int, ...], _std: Deviation) -> np.ndarray:
        start = listed[-1].stop if listed else 0
        listed.append(Block(name, shape, start, start + math.prod(shape), part))
        return np.empty(0, np.float32)

    build(spec, note)
    return listed


def require_params(spec: PolicySpec, params: Params) -> Params:
    """`params` if they are of this spec."""
    given, wanted = [leaf.shape for leaf in _leaves(params)], [block.shape for block in blocks(spec)]
    if given != wanted:
        raise ValueError(f"params must be arrays of shapes {wanted} for this spec, not {given}")
    return params


def build(spec: PolicySpec, make: Callable[[Part, str, tuple[int, ...], Deviation], np.ndarray]) -> Params:
    """The tree of a spec, its arrays made by `make` in θ's order."""
    vision = _vision(spec, partial(make, "vision"))
    controller, low = partial(make, "controller"), partial(make, "low")
    outputs = spec.outputs_size
    if spec.level is None:
        return Params(vision, _controller(spec.controller, controller, spec.inputs_size, outputs), None)
    seen = _columns(spec.features_size, 1.0, spec.sensors if spec.level.senses else 0)
    told = _columns(spec.level.latent, spec.level.gain * math.sqrt(spec.level.latent), spec.sensors)
    return Params(
        vision,
        _controller(spec.controller, controller, spec.controller_inputs_size, outputs, seen),
        _controller(spec.level.low, low, spec.level.latent + spec.sensors, spec.actions, told),
    )


def _columns(leading: int, gain: float, sensors: int) -> np.ndarray:
    """The standard deviation of each column of a last layer: leading inputs at a gain, then sensors near zero."""
    return np.repeat([gain / math.sqrt(max(1, leading)), OUTPUT_GAIN / math.sqrt(max(1, sensors))], [leading, sensors])


def _vision(
    spec: PolicySpec, make: Make
) -> RankParams | MultiRankParams | TransParams | ExactRankParams | LayersParams | None:
    channels = spec.seen_shape[2]
    match spec.vision:
        case Rank() as vision:
            return _rank(vision, spec.seen_shape, make)
        case MultiRank() as vision:
            *_, seen = maps_of(vision.stem, spec.seen_shape)
            width = vision.patch**2 * seen[2]
            return MultiRankParams(
                stem=_convolutions(make, "stem", vision.stem, spec.seen_shape),
                query=_affine(make, "query", width, vision.d),
                key=_affine(make, "key", width, vision.d),
                gains=make("gains", (vision.heads, vision.d), 1.0),
            )
        case Trans() as vision:
            width = vision.positions.width(vision.patch**2 * channels)
            patches = patches_of(vision, spec.seen_shape).patches
            return TransParams(
                query=_affine(make, "query", width, vision.d, bias=False),
                key=_affine(make, "key", width, vision.d, bias=False),
                value=_affine(make, "value", width, vision.width, bias=False),
                pooling=make("pooling", (vision.rows, patches), 1 / math.sqrt(patches)),
            )
        case ExactRank() as vision:
            width = vision.patch**2 * channels
            return ExactRankParams(
                query=_affine(make, "query", width, vision.d), key=_affine(make, "key", width, vision.d)
            )
        case CNN() as vision:
            layers = layers_of(vision, spec.seen_shape)
            return LayersParams(_convolutions(make, "layers", layers, spec.seen_shape))
        case Blind():
            return None


def _convolutions(make: Make, name: str, layers: Sequence[Shape], image_shape: Shape) -> tuple[Affine, ...]:
    shapes = zip(layers, maps_of(layers, image_shape), strict=False)
    return tuple(
        _affine(make, f"{name}.{i}", size**2 * seen[2], filters) for i, ((filters, size, _), seen) in enumerate(shapes)
    )


def _rank(vision: Rank, image_shape: tuple[int, int, int], make: Make) -> RankParams:
    channels = image_shape[2]
    pixels = vision.patch**2 * channels
    width = vision.positions.width(pixels)
    patches = patches_of(vision, image_shape).patches
    return RankParams(
        query=_affine(make, "query", width, vision.d, bias=vision.bias),
        key=_affine(make, "key", width, vision.d, bias=vision.bias),
        pooling=make("pooling", (patches,), 0.0) if vision.learn_pooling else None,
        projection=_affine(make, "projection", pixels, vision.projected, bias=False)
        if "projection" in vision.values
        else None,
        heads=_affine(make, "heads", channels + 2 * vision.placed, vision.heads) if vision.order == "pooled" else None,
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
        case Products(changes=changes):
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
