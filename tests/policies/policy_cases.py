"""Combinations of parts whose compiled steps are tested.

A compiled step takes seconds to compile for each combination of parts. So tests of arbitrary configs run plain NumPy,
and compiled steps are tested on `CASES`, which reach every branch of the compiled code.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from config_cases import observations as observations_of_bytes

from iap.attention import KERNELS, Kernel, ReLU, Softmax
from iap.policies import (
    CNN,
    GRU,
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
    PooledMoments,
    Quadratic,
    Rank,
    ResidualRank,
    SelectedPatches,
    SeparableFilters,
    Trans,
)

Case = tuple[PolicyConfig, type]  # and the dtype of the images


def small(kernel: Kernel) -> Kernel:
    """The kernel with few random projections."""
    return kernel if isinstance(kernel, ReLU) else replace(kernel, projections=8)


def case(encoder: Encoder, controller: Controller = Linear(), dtype: type = np.uint8, **options: Any) -> Case:  # noqa: B008
    return PolicyConfig((12, 16, 2), 3, 2, encoder=encoder, controller=controller, **options), dtype


def _rank_cases() -> dict[str, Case]:
    relu, positive, trigonometric, hyperbolic, favor = (
        small(KERNELS[name]) for name in ("relu", "positive", "trigonometric", "hyperbolic", "favor++")
    )
    rank, short = Rank(2, 2, top_k=5), Hierarchy(max_command_steps=3)
    all_values = SelectedPatches(("pixels", "centres", "projection"), order="score")
    return {
        "rank relu, frames": case(replace(rank, kernel=relu), frames=3, image_every=2),
        "rank positive, stored keys": case(
            replace(rank, kernel=positive, keys_every=2, features=all_values), MLP((4, 3)), np.float32
        ),
        "rank trigonometric, masked": case(
            replace(rank, kernel=trigonometric, features=SelectedPatches(("projection",), masked=True)), GRU(3)
        ),
        "rank hyperbolic, sampled": case(
            replace(rank, kernel=hyperbolic, select="sample", bias=True), LSTM(3), np.float32, hierarchy=short
        ),
        "rank favor++, learnt pooling": case(
            replace(rank, kernel=favor, learn_pooling=True, normalise_rows=True, features=PooledMoments(2)),
            hierarchy=short,
        ),
        "rank separable filters": case(
            replace(rank, features=SeparableFilters(4), bias=True, top_k=12, pixel_offset=0.1, pixel_scale=3.0)
        ),
        "rank separable filters, scaled floats": case(
            replace(rank, kernel=positive, features=SeparableFilters(3), pixel_offset=-0.2, pixel_scale=0.5),
            dtype=np.float32,
        ),
        "rank moments": case(
            replace(rank, features=PooledMoments(3, position_weighted=True, score_weighted=True), top_k=40),
            dtype=np.float32,
            preprocessing=("frame_difference", "local_contrast_fine"),
            relative_to_first_frame=True,
            frames=2,
        ),
    }


def _mixing_cases() -> dict[str, Case]:
    relu, positive, trigonometric, hyperbolic, favor = (
        small(KERNELS[name]) for name in ("relu", "positive", "trigonometric", "hyperbolic", "favor++")
    )
    trans = Trans(2, 2, rows=2, value_size=3)
    agent = AttentionAgent(3, 2, top_k=4, linear=True)
    return {
        "trans relu": case(replace(trans, kernel=relu), first_frame_features=True),
        "trans positive": case(
            replace(trans, kernel=positive, residual=False), dtype=np.float32, preprocessing=("first_frame_difference",)
        ),
        "trans trigonometric": case(replace(trans, kernel=trigonometric, normalise_rows=False)),
        "trans scaled pixels": case(replace(trans, bias=True, pixel_offset=0.2, pixel_scale=4.0), dtype=np.float32),
        "trans hyperbolic": case(replace(trans, kernel=hyperbolic, layer_norm=False)),
        "trans favor++": case(replace(trans, kernel=favor), preprocessing=("image", "local_contrast_coarse")),
        "attention agent": case(AttentionAgent(3, 2, top_k=4), LSTM(4)),
        "attention agent floats": case(AttentionAgent(3, 2, top_k=4, scale_by="d"), dtype=np.float32),
        "attention agent relu": case(replace(agent, kernel=relu)),
        "attention agent positive": case(replace(agent, kernel=positive)),
        "attention agent trigonometric": case(replace(agent, kernel=Softmax("trigonometric", 64))),
        "attention agent hyperbolic": case(replace(agent, kernel=hyperbolic), dtype=np.float32),
        "attention agent favor++": case(replace(agent, kernel=favor)),
    }


def _other_cases() -> dict[str, Case]:
    stem = ((3, 3, 1), (2, 2, 2))
    return {
        "multi-head rank": case(MultiHeadRank(3, 2, heads=2, top_k=6), hierarchy=Hierarchy(low_level=GRU(3))),
        "multi-head rank with stem": case(
            MultiHeadRank(2, 1, heads=2, top_k=6, stem=stem), Quadratic(), np.float32, image_every=2
        ),
        "residual rank": case(
            ResidualRank(((6, 5, 2),), (1, 2), d=3, heads=2, top_k=20, values=2),
            preprocessing=("centred_image", "signed_frame_difference"),
        ),
        "residual rank floats": case(
            ResidualRank(((4, 3, 2), (5, 3, 1)), (2,), d=3, heads=2, top_k=40, values=0), MLP((3,)), np.float32
        ),
        "cnn": case(CNN(((3, 4, 2), (2, 2, 1)))),
        "cnn floats": case(CNN(), dtype=np.float32, hierarchy=Hierarchy(low_level=Quadratic(deltas=True))),
        "blind gru": case(Blind(), GRU(4), hierarchy=Hierarchy(low_level=MLP((3,)))),
        "blind quadratic": case(Blind(), Quadratic(deltas=True), hierarchy=Hierarchy(low_level=LSTM(3))),
        "blind mlp": case(Blind(), MLP((3,)), image_every=2),
    }


CASES = _rank_cases() | _mixing_cases() | _other_cases()


def observations(config: PolicyConfig, count: int, seed: int = 0, dtype: type = np.uint8) -> list[dict[str, Any]]:
    """Random images, bytes or floats from 0 to 1, and random sensors."""
    drawn = observations_of_bytes(config, count, seed)
    if dtype is np.uint8:
        return drawn
    return [observation | {"image": (observation["image"] / 255).astype(dtype)} for observation in drawn]
