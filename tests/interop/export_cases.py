"""Policies and observations that exported policies are tested with."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

import numpy as np

import iap
from iap._observations import sensors_of
from iap.attention import ReLU, Softmax
from iap.attention.positions import Positions
from iap.interop.recording import RecordedStep
from iap.policies import (
    CNN,
    GRU,
    LSTM,
    MLP,
    Encoder,
    Hierarchy,
    Linear,
    MultiHeadRank,
    Normaliser,
    Policy,
    PolicyConfig,
    PooledMoments,
    Quadratic,
    Rank,
    SelectedPatches,
    SeparableFilters,
    Symmetry,
    Trans,
    init,
)
from iap.policies.encoders.residual_rank import ResidualRank
from iap.policies.preprocessing import Channel
from iap.zoo import zoo_file, zoo_names

IMAGE = (17, 22, 3)
FLAT = {
    "pixels of patches": Rank(
        3,
        2,
        5,
        4,
        features=SelectedPatches(("pixels", "centres", "projection"), order="score"),
        positions=Positions("concat"),
    ),
    "masked patches": Rank(4, 4, 3, 6, features=SelectedPatches(("projection",), masked=True), bias=True),
    "learnt pooling": Rank(1, 1, 2, 40, features=PooledMoments(2, score_weighted=True), learn_pooling=True),
    "patches apart": Rank(2, 5, 4, 3, features=PooledMoments(3, position_weighted=True)),
    "heads without stem": MultiHeadRank(4, 2, 4, 3, 8),
    "heads with stem": MultiHeadRank(2, 1, 6, 2, 5, stem=((6, 3, 2), (4, 3, 1))),
    "residual": ResidualRank(((4, 5, 2), (6, 3, 2)), (1, 2), 3, 4, 5, 2),
    "residual without values": ResidualRank(((5, 3, 3),), (), 3, 2, 4, 0),
    "separable filters": Rank(
        4, 4, 3, 7, features=SeparableFilters(5), normalise_rows=True, pixel_offset=0.2, pixel_scale=2.0
    ),
    "positive features": Rank(3, 2, 5, 4, Softmax(projections=7), bias=True, learn_pooling=True),
    "hyperbolic features": Rank(4, 2, 4, 4, Softmax("hyperbolic", 6, normalised=True), positions=Positions("concat")),
    "trigonometric features": Rank(3, 3, 4, 4, Softmax("trigonometric", 9), normalise_rows=True),
    "FAVOR++ features": Rank(3, 3, 6, 5, Softmax("favor++", 8), pixel_offset=-0.1, pixel_scale=1.5),
    "trans": Trans(3, 2, 4, 3, 5, bias=True, positions=Positions("concat"), pixel_offset=0.3, pixel_scale=2.0),
    "trans without residual": Trans(
        4, 3, 4, 6, 2, Softmax("hyperbolic", 5), residual=False, layer_norm=False, normalise_rows=False
    ),
    "trans with ReLU": Trans(4, 4, 5, 2, 3, ReLU()),
    "cnn": CNN(((5, 4, 2), (7, 3, 2))),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "frames": {"frames": 3, "controller": MLP((6, 5))},
    "relative frames": {"frames": 2, "relative_to_first_frame": True, "controller": GRU(5)},
    "first frame": {"first_frame_features": True, "controller": LSTM(5), "image_every": 3},
    "all channels": {"preprocessing": get_args(Channel), "controller": Quadratic(deltas=True)},
    "hierarchy": {"hierarchy": Hierarchy(3, 5, GRU(4), high_level_sensors=True), "controller": LSTM(4)},
    "no normaliser": {"normalise": False, "controller": Linear()},
    "signed difference": {"preprocessing": ("centred_image", "signed_frame_difference"), "controller": Linear()},
    "symmetry": {
        "symmetry": Symmetry((-1, 3, 2), (2, 1), (0.5, 0.0, 0.0)),
        "hierarchy": Hierarchy(2, 4),
        "frames": 2,
        "preprocessing": ("first_frame_difference", "local_contrast_fine"),
    },
}


def built_cases() -> dict[str, Policy]:
    """A policy for each encoder and for each option, with random parameters and a random normaliser."""
    configs = {name: PolicyConfig(IMAGE, 3, 2, encoder) for name, encoder in FLAT.items()}
    configs |= {f"{name}, symmetric": _symmetric(FLAT[name]) for name in ("separable filters", "trans")}
    encoders = [FLAT["patches apart"], FLAT["heads with stem"]]
    for number, (name, options) in enumerate(OPTIONS.items()):
        configs[name] = PolicyConfig(IMAGE, 3, 2, encoders[number % 2], **options)
    return {name: with_random_numbers(config) for name, config in configs.items()}


def distilled_case() -> Policy:
    """The policy of a preset that is distilled: convolutions and heads, and a GRU below a linear level."""
    return with_random_numbers(iap.presets["cheetah-run-distilled"].policy)


def _symmetric(encoder: Encoder) -> PolicyConfig:
    return PolicyConfig(IMAGE, 3, 2, encoder, symmetry=OPTIONS["symmetry"]["symmetry"])


def with_random_numbers(config: PolicyConfig) -> Policy:
    """Random parameters of unit size, so that outputs depend on every input."""
    rng = np.random.default_rng(1)
    params: Any = {
        part: {name: array + rng.normal(0, 0.1, array.shape).astype(np.float32) for name, array in arrays.items()}
        for part, arrays in init(config, 0).items()
    }
    rows = rng.normal(0.2, 0.5, (50, config.inputs_size))
    return Policy(config, params, Normaliser.of(rows), compiled=False)


def zoo_policy(name: str) -> Policy:
    """A policy of the zoo, in plain NumPy."""
    policy = Policy.load(zoo_file(name))
    return Policy(policy.config, policy.params, policy.normaliser, env=policy.env, compiled=False)


def image_type_of_zoo(name: str) -> str:
    """The dtype of the images that a policy of the zoo was trained with."""
    return "float32" if name.startswith(("step-stones", "stone-grid", "stairs")) else "uint8"  # depths


ZOO = zoo_names()


def observations(config: PolicyConfig, image_type: str, steps: int) -> Iterator[dict[str, np.ndarray]]:
    """Smooth images that drift, with noise, so that scores differ and frames are alike; and random sensors."""
    rng = np.random.default_rng(2)
    height, width, channels = config.image_shape
    rows, columns = np.mgrid[:height, :width][..., None] / max(height, width)
    waves = rng.uniform(2, 9, (2, channels))
    for step in range(steps):
        image = np.sin(waves[0] * rows + 0.1 * step) + np.cos(waves[1] * columns - 0.07 * step)
        image = image / 4 + 0.5 + rng.normal(0, 0.05, image.shape)
        bounded = np.clip(image, 0, 1)
        shown = (bounded * 255).astype(np.uint8) if image_type == "uint8" else bounded.astype(np.float32)
        yield {"image": shown, "sensors": rng.normal(0, 0.5, config.sensors).astype(np.float32)}


def recorded(policy: Policy, image_type: str, steps: int = 12, episodes: int = 2) -> list[RecordedStep]:
    """What a policy does in some episodes: computed once, and compared with each exported format."""
    rows = []
    for _ in range(episodes):
        state = policy.reset()
        for number, observation in enumerate(observations(policy.config, image_type, steps)):
            image = observation["image"] if policy.needs_image(state) else None
            action, state, attention = policy.act(state, observation)
            attended = (None, None) if attention is None else (attention.scores, attention.selected)
            rows.append(RecordedStep(number == 0, image, sensors_of(observation), action, *attended))
    return rows


def worst_difference(exported: Any, steps: Sequence[RecordedStep]) -> float:
    """The largest difference of actions; both must need images at the same steps and select the same patches."""
    worst, state, shown = 0.0, None, None
    for step in steps:
        state = exported.reset() if step.starts else state
        assert exported.needs_image(state) == (step.image is not None)
        shown = shown if step.image is None else step.image
        action, state, seen = exported.act(state, {"image": shown, "sensors": step.sensors})
        worst = max(worst, float(np.abs(action - step.action).max()))
        assert (step.scores is None) == (seen is None)
        if step.scores is not None and step.selected is not None:
            np.testing.assert_allclose(_scaled(seen.scores), _scaled(step.scores), atol=1e-3)
            if step.scores.any():  # equal scores select by their rounding
                assert set(seen.selected.tolist()) == set(step.selected.tolist())
    return worst


def _scaled(scores: np.ndarray) -> np.ndarray:
    """With the largest magnitude 1: scores are known up to one factor."""
    return scores / max(np.abs(scores).max(initial=0), np.finfo(np.float32).tiny)
