"""Policies: a config (chosen), parameters (learnt) and a state (carried between steps) → action."""

from iap.policies.config import PolicyConfig
from iap.policies.controllers import CONTROLLERS, GRU, LSTM, MLP, Controller, Linear, Quadratic
from iap.policies.describe import Description, Row, blind_baseline, cnn_baseline, describe
from iap.policies.encoders import (
    CNN,
    ENCODERS,
    AttentionAgent,
    Blind,
    Encoder,
    MultiHeadRank,
    PooledMoments,
    Rank,
    ResidualRank,
    SelectedPatches,
    SeparableFilters,
    Trans,
)
from iap.policies.encoders.base import Attention
from iap.policies.format.kinds import from_json, to_json
from iap.policies.hierarchy import Hierarchy
from iap.policies.normalization import Moments, Normaliser
from iap.policies.params import Block, Columns, Params, ParamSpec, blocks, count_params, flatten, init, unflatten
from iap.policies.policy import Policy
from iap.policies.serialization import EnvReference, PolicyFile, PolicyFileError
from iap.policies.step import State
from iap.policies.symmetry import Symmetry

__all__ = [
    "CNN",
    "CONTROLLERS",
    "ENCODERS",
    "GRU",
    "LSTM",
    "MLP",
    "Attention",
    "AttentionAgent",
    "Blind",
    "Block",
    "Columns",
    "Controller",
    "Description",
    "Encoder",
    "EnvReference",
    "Hierarchy",
    "Linear",
    "Moments",
    "MultiHeadRank",
    "Normaliser",
    "ParamSpec",
    "Params",
    "Policy",
    "PolicyConfig",
    "PolicyFile",
    "PolicyFileError",
    "PooledMoments",
    "Quadratic",
    "Rank",
    "ResidualRank",
    "Row",
    "SelectedPatches",
    "SeparableFilters",
    "State",
    "Symmetry",
    "Trans",
    "blind_baseline",
    "blocks",
    "cnn_baseline",
    "count_params",
    "describe",
    "flatten",
    "from_json",
    "init",
    "to_json",
    "unflatten",
]
