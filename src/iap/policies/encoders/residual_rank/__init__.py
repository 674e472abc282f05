"""IAP-rank heads with values on a residual convolutional stem."""

from iap.policies.encoders.residual_rank.encoder import ResidualRank

__all__ = ["ResidualRank"]
