"""The paper's mathematics on NumPy, JAX or PyTorch arrays: image → patches → scores → selected patches."""

from iap.attention.arrays import Array, Scaled
from iap.attention.exact import attention_matrix, exact_scores
from iap.attention.features import KERNELS, Kernel, ReLU, Softmax, draw_projections, featurise, project
from iap.attention.mixing import layer_norm, merge_heads, mix
from iap.attention.moments import weighted_moments
from iap.attention.patches import Grid, as_pixels, centres_of, extract, grid_of
from iap.attention.positions import Positions, place, sinusoidal
from iap.attention.ranking import pool_queries, rank_scores, score_keys, sum_heads
from iap.attention.selection import gather, mask, sample, soft_top_k, top

__all__ = [
    "KERNELS",
    "Array",
    "Grid",
    "Kernel",
    "Positions",
    "ReLU",
    "Scaled",
    "Softmax",
    "as_pixels",
    "attention_matrix",
    "centres_of",
    "draw_projections",
    "exact_scores",
    "extract",
    "featurise",
    "gather",
    "grid_of",
    "layer_norm",
    "mask",
    "merge_heads",
    "mix",
    "place",
    "pool_queries",
    "project",
    "rank_scores",
    "sample",
    "score_keys",
    "sinusoidal",
    "soft_top_k",
    "sum_heads",
    "top",
    "weighted_moments",
]
