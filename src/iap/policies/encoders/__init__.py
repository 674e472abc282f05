"""Encoders: image → features. Each is one file; one line here registers it."""

from iap._registry import Registry
from iap.policies.encoders.attention_agent import AttentionAgent
from iap.policies.encoders.base import Context, Encoder, Encoding, Window, encode
from iap.policies.encoders.blind import Blind
from iap.policies.encoders.cnn import CNN
from iap.policies.encoders.multi_head_rank import MultiHeadRank
from iap.policies.encoders.pooled_moments import PooledMoments
from iap.policies.encoders.rank import Rank
from iap.policies.encoders.residual_rank import ResidualRank
from iap.policies.encoders.selected_patches import SelectedPatches
from iap.policies.encoders.separable_filters import SeparableFilters
from iap.policies.encoders.trans import Trans

ENCODERS: Registry[type[Encoder]] = Registry("encoder", group="iap.encoders")
ENCODERS.register("rank", Rank)
ENCODERS.register("multi-head-rank", MultiHeadRank)
ENCODERS.register("residual-rank", ResidualRank)
ENCODERS.register("trans", Trans)
ENCODERS.register("attention-agent", AttentionAgent)
ENCODERS.register("cnn", CNN)
ENCODERS.register("blind", Blind)

__all__ = [
    "CNN",
    "ENCODERS",
    "AttentionAgent",
    "Blind",
    "Context",
    "Encoder",
    "Encoding",
    "MultiHeadRank",
    "PooledMoments",
    "Rank",
    "ResidualRank",
    "SelectedPatches",
    "SeparableFilters",
    "Trans",
    "Window",
    "encode",
]
