"""What evolves: trees of float32 arrays, and of nothing else."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Affine:
    """A layer: weight·x + bias."""

    bias: Float[np.ndarray, " outputs"] | None
    weight: Float[np.ndarray, "outputs inputs"]


@dataclass(frozen=True, eq=False)
class RankParams:
    """Of IAP-rank: what it does not use is None. P is 1 + `pooling`, so that it starts as all ones."""

    query: Affine
    key: Affine
    pooling: Float[np.ndarray, " L"] | None
    projection: Affine | None
    heads: Affine | None


@dataclass(frozen=True, eq=False)
class MultiHeadRankParams:
    """Of IAP-rank with several heads, which have stem, queries and keys in common."""

    stem: tuple[Affine, ...]
    query: Affine
    key: Affine
    gains: Float[np.ndarray, "heads d"]


@dataclass(frozen=True, eq=False)
class TransParams:
    """Of IAP-trans."""

    query: Affine
    key: Affine
    value: Affine
    pooling: Float[np.ndarray, "l L"]


@dataclass(frozen=True, eq=False)
class AttentionAgentParams:
    """Of AttentionAgent's encoder."""

    query: Affine
    key: Affine


@dataclass(frozen=True, eq=False)
class LayersParams:
    """Of a CNN, an MLP or a linear controller."""

    layers: tuple[Affine, ...]


@dataclass(frozen=True, eq=False)
class LSTMParams:
    """Of an LSTM: gates i, f, g, o in the rows, and two biases, as in PyTorch."""

    bias_hh: Float[np.ndarray, " 4*units"]
    bias_ih: Float[np.ndarray, " 4*units"]
    weight_hh: Float[np.ndarray, "4*units units"]
    weight_ih: Float[np.ndarray, "4*units inputs"]
    output: Affine


@dataclass(frozen=True, eq=False)
class Params:
    """All that evolves."""

    encoder: RankParams | MultiHeadRankParams | TransParams | AttentionAgentParams | LayersParams | None
    controller: LayersParams | LSTMParams
    low: LayersParams | LSTMParams | None
