"""IAP-rank with several heads that share queries and keys, against the generic functions of `iap.attention`."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from config_cases import observations, random_policy

from iap.attention import ReLU
from iap.attention.arrays import Scaled
from iap.attention.features import featurise
from iap.attention.patches import as_pixels, extract
from iap.attention.ranking import rank_scores
from iap.policies import MultiHeadRank, Policy, PolicyConfig, init
from iap.policies.encoders.attention_config import scaled_centres
from iap.policies.encoders.convolutions import apply_convolutions

ENCODER = MultiHeadRank(patch=3, stride=2, d=5, heads=3, top_k=7)
CONFIG = PolicyConfig((20, 24, 2), sensors=0, actions=2, encoder=ENCODER)
WITH_STEM = replace(ENCODER, stem=((4, 3, 1), (5, 2, 2)))
STEM_CONFIG = replace(CONFIG, encoder=WITH_STEM)


def generic_scores(encoder: MultiHeadRank, params: Mapping[str, np.ndarray], image: np.ndarray) -> list[np.ndarray]:
    """Each head's scores by the generic functions: its gains multiply the queries' features."""
    maps = as_pixels(image)
    for i, (filters, size, stride) in enumerate(encoder.stem):
        rows = (maps.shape[0] - size) // stride + 1
        outputs = extract(maps, size, stride) @ params[f"stem.{i}.weight"].T + params[f"stem.{i}.bias"]
        maps = np.maximum(outputs, 0).reshape(rows, -1, filters)
    tokens = extract(maps, encoder.patch, encoder.stride)
    queries, keys = (tokens @ params[f"{side}.weight"].T + params[f"{side}.bias"] for side in ("query", "key"))
    queries, keys = featurise(ReLU(), queries, keys)
    return [rank_scores(Scaled(queries.values * gains, queries.log_scale), keys).values for gains in params["gains"]]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("encoder", [ENCODER, WITH_STEM], ids=["no stem", "stem"])
def test_features_are_the_moments_of_the_patches_that_each_head_ranks_best(encoder: MultiHeadRank, compiled: bool):
    config = replace(CONFIG, encoder=encoder)
    policy, image = random_policy(config, 1, compiled=compiled), observations(config, 1, seed=1)[0]["image"]
    centres = scaled_centres(encoder.window(config.input_shape), config.input_shape[:2]).astype(float)
    wanted, selected = [], set()
    for scores in generic_scores(encoder, policy.params["encoder"], image):
        best = np.argsort(-scores)[: encoder.top_k]
        own = scores[best]
        weights = ((own - own.min()) / (own.max() - own.min())) ** 2
        centroid = weights @ centres[best] / weights.sum()
        offsets = centres[best] - centroid
        spread = (offsets * weights[:, None]).T @ offsets / weights.sum()
        wanted += [*centroid, spread[0, 0], spread[0, 1], spread[1, 1], weights.mean()]
        selected |= set(best)
    _, state, attention = policy.act(policy.reset(), {"image": image, "sensors": np.zeros(0, np.float32)})
    np.testing.assert_allclose(state.inputs, wanted, atol=1e-4)
    assert attention is not None
    assert set(attention.selected) == selected
    assert attention.scores.min() >= 0
    assert attention.scores.max() == 1


def test_a_head_with_equal_scores_gives_zeros():
    params = init(CONFIG, 0)
    params["encoder"]["gains"] = np.repeat(np.array([[0], [1], [0]], np.float32), ENCODER.d, axis=1)
    for compiled in (True, False):
        policy = Policy(CONFIG, params, compiled=compiled)
        _, state, _ = policy.act(policy.reset(), observations(CONFIG, 1)[0])
        features = state.inputs.reshape(ENCODER.heads, -1)
        assert not features[[0, 2]].any()
        assert features[1].all()


@pytest.mark.parametrize(("place", "inside"), [((7, 7), True), ((8, 7), False), ((7, 8), False)])
def test_the_window_behind_a_stem_covers_all_pixels_that_a_patch_depends_on(place: tuple[int, int], inside: bool):
    params = random_policy(STEM_CONFIG, 2, compiled=False).params["encoder"]
    image = observations(STEM_CONFIG, 1, seed=2)[0]["image"]
    window = WITH_STEM.window(STEM_CONFIG.input_shape)
    assert (window.patch, window.stride) == (8, 4)

    def first_patch() -> np.ndarray:
        maps = apply_convolutions(params, "stem", WITH_STEM.stem, as_pixels(image[None]))
        return np.array(maps[0, : ENCODER.patch, : ENCODER.patch])

    before = first_patch()
    image[place] = 255 - image[place]
    assert np.array_equal(before, first_patch()) != inside


def test_a_stem_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="stem must hold"):
        MultiHeadRank(stem=((4, 3),))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="size of stem must be"):
        MultiHeadRank(stem=((4, 0, 1),))
    with pytest.raises(ValueError, match="patch must be"):
        replace(CONFIG, encoder=MultiHeadRank(stem=((4, 19, 1),)))
