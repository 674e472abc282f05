"""The parameters of a policy as named arrays, and as the vector θ that evolution strategies search.

Every encoder and controller lists its arrays once, as `ParamSpec`s; θ holds them in that order. Biases come before
weights, and a weight has shape (outputs, inputs), so that θ of AttentionAgent is the published vector.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from iap._validation import require_count
from iap.attention.arrays import require_finite

if TYPE_CHECKING:
    from iap.policies.config import PolicyConfig

Part = Literal["encoder", "controller", "low_level"]
Arrays = dict[str, np.ndarray]  # name → array, of one part
Params = dict[Part, Arrays]

OUTPUT_GAIN = 0.1  # of the last layer at the start: actions near zero


class Columns(NamedTuple):
    """A number for each column of a matrix: `counts[i]` columns have `values[i]`.

    Sizes from a file may be huge, so nothing of the length of a row is allocated before the sizes were checked.
    """

    counts: tuple[int, ...]
    values: tuple[float, ...]


class ParamSpec(NamedTuple):
    """One array of parameters: its name, its shape, and the standard deviation of its initial values.

    `std` is one number, or one number for each column.
    """

    name: str
    shape: tuple[int, ...]
    std: float | Columns

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Random initial values."""
        std = np.repeat(self.std.values, self.std.counts) if isinstance(self.std, Columns) else self.std
        return rng.standard_normal(self.shape, np.float32) * np.asarray(std, np.float32)


class Block(NamedTuple):
    """The place of an array in θ: θ[start:stop]."""

    name: str
    shape: tuple[int, ...]
    start: int
    stop: int
    part: Part


def affine(name: str, inputs: int, outputs: int, *, gain: float = 1.0, bias: bool = True) -> list[ParamSpec]:
    """The arrays of a layer weight·x + bias, initialised in units of 1/√inputs."""
    weight = ParamSpec(f"{name}.weight", (outputs, inputs), gain / math.sqrt(max(1, inputs)))
    return [ParamSpec(f"{name}.bias", (outputs,), 0.0), weight] if bias else [weight]


def blocks(config: "PolicyConfig") -> list[Block]:
    """The arrays of θ, in order."""
    listed, start = [], 0
    for part, specs in config.param_specs().items():
        for spec in specs:
            stop = start + math.prod(spec.shape)
            listed.append(Block(spec.name, spec.shape, start, stop, part))
            start = stop
    return listed


def count_params(config: "PolicyConfig") -> int:
    """The length of θ."""
    return sum(math.prod(spec.shape) for specs in config.param_specs().values() for spec in specs)


def init(config: "PolicyConfig", seed: int) -> Params:
    """Random parameters: weights in units of 1/√fan_in, biases 0, small outputs."""
    rng = np.random.default_rng(require_count("seed", seed, least=0))
    return {part: {spec.name: spec.draw(rng) for spec in specs} for part, specs in config.param_specs().items()}


def flatten(params: Params) -> Float[np.ndarray, " p"]:
    """θ: all arrays in order."""
    leaves = [array.ravel() for arrays in params.values() for array in arrays.values()]
    return np.concatenate(leaves).astype(np.float32, copy=False)


def unflatten(config: "PolicyConfig", theta: Float[np.ndarray, " p"]) -> Params:
    """The inverse of `flatten`; the arrays are read-only views of one copy of θ."""
    theta = np.array(theta, np.float32)
    count = count_params(config)
    if theta.shape != (count,):
        raise ValueError(f"theta must be of shape ({count},) for this policy, not {theta.shape}")
    require_finite("theta", theta)
    theta.flags.writeable = False
    return split(config, theta)


def split(config: "PolicyConfig", theta: Any) -> dict[Part, dict[str, Any]]:
    """θ of any array library as named arrays, without checks: differentiable."""
    params: dict[Part, dict[str, Any]] = {part: {} for part in config.param_specs()}
    for block in blocks(config):
        params[block.part][block.name] = theta[block.start : block.stop].reshape(block.shape)
    return params


def require_params(config: "PolicyConfig", params: Mapping[Part, Mapping[str, np.ndarray]]) -> Params:
    """`params` if their names and shapes are those of the config."""
    given = [(part, name, array.shape) for part, arrays in params.items() for name, array in arrays.items()]
    wanted = [(block.part, block.name, block.shape) for block in blocks(config)]
    if given != wanted:
        raise ValueError(f"params must be arrays {_shapes(wanted)} for this policy, not {_shapes(given)}")
    return {part: dict(arrays) for part, arrays in params.items()}


def _shapes(arrays: list[tuple[Any, str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{part} {name} {shape}" for part, name, shape in arrays) or "(none)"
