"""What an agent is: a spec (chosen), parameters (evolved) and a state (carried between steps) → action."""

from iap.policies.describe import Description, Row, blind_baseline, cnn_baseline, describe
from iap.policies.normalization import Moments, Normaliser
from iap.policies.params import Block, blocks, flatten, init, unflatten
from iap.policies.policy import Policy
from iap.policies.specs import (
    CNN,
    LSTM,
    MLP,
    AttentionAgent,
    Blind,
    Controller,
    Encoder,
    Hierarchy,
    Linear,
    MultiHeadRank,
    PolicyConfig,
    Quadratic,
    Rank,
    Symmetry,
    Trans,
    from_json,
    to_json,
)
from iap.policies.state import Actor, Attention, State
from iap.policies.symmetry import SymmetricPolicy, build_policy
from iap.policies.trees import Params

__all__ = [
    "CNN",
    "LSTM",
    "MLP",
    "Actor",
    "Attention",
    "Blind",
    "Block",
    "Controller",
    "Description",
    "AttentionAgent",
    "Linear",
    "Symmetry",
    "SymmetricPolicy",
    "Moments",
    "MultiHeadRank",
    "Normaliser",
    "Params",
    "Policy",
    "PolicyConfig",
    "Quadratic",
    "Rank",
    "Row",
    "State",
    "Trans",
    "Hierarchy",
    "Encoder",
    "blind_baseline",
    "blocks",
    "cnn_baseline",
    "describe",
    "flatten",
    "from_json",
    "init",
    "build_policy",
    "to_json",
    "unflatten",
]
