"""What an agent is: a spec (chosen), parameters (evolved) and a state (carried between steps) → action."""

from iap.policies.describe import Description, Row, blind_baseline, cnn_baseline, describe
from iap.policies.mirrored import MirroredPolicy, policy_of
from iap.policies.normaliser import Moments, Normaliser
from iap.policies.parameters import Block, blocks, flatten, init, unflatten
from iap.policies.policy import Policy
from iap.policies.specs import (
    CNN,
    LSTM,
    MLP,
    Blind,
    Controller,
    ExactRank,
    Linear,
    Mirror,
    MultiRank,
    PolicySpec,
    Products,
    Rank,
    Trans,
    TwoLevel,
    Vision,
    from_json,
    to_json,
)
from iap.policies.state import Actor, Attention, State
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
    "ExactRank",
    "Linear",
    "Mirror",
    "MirroredPolicy",
    "Moments",
    "MultiRank",
    "Normaliser",
    "Params",
    "Policy",
    "PolicySpec",
    "Products",
    "Rank",
    "Row",
    "State",
    "Trans",
    "TwoLevel",
    "Vision",
    "blind_baseline",
    "blocks",
    "cnn_baseline",
    "describe",
    "flatten",
    "from_json",
    "init",
    "policy_of",
    "to_json",
    "unflatten",
]
