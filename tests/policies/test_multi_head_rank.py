"""Several heads rank with the same queries and keys, and each tells where its own patches lie."""

from dataclasses import replace

import numpy as np
import pytest
from policy_cases import observations, some_policy

from iap.attention import ReLU
from iap.attention.arrays import Scaled
from iap.attention.features import featurise
from iap.attention.patches import as_pixels, extract
from iap.attention.ranking import rank_scores
from iap.policies import MultiHeadRank, Policy, PolicyConfig, blocks, flatten, init, unflatten
from iap.policies.convolutions import Convolutions
from iap.policies.readout import scaled_centres
from iap.policies.sizes import window_of
from iap.policies.trees import MultiHeadRankParams

VISION = MultiHeadRank(patch=3, stride=2, d=5, heads=3, top_k=7)
SPEC = PolicyConfig((20, 24, 3), sensors=0, actions=2, encoder=VISION)
WITH_STEM = replace(VISION, stem=((4, 3, 1), (5, 2, 2)))
STEMMED = replace(SPEC, encoder=WITH_STEM)


def scores_by_the_book(params, image):
    """Each head's scores by the generic functions: its gains go into the queries' features."""
    shown = as_pixels(image)
    for layer, size, stride in zip(params.stem, (3, 2), (1, 2), strict=False):
        rows = (shown.shape[0] - size) // stride + 1
        shown = np.maximum(extract(shown, size, stride) @ layer.weight.T + layer.bias, 0).reshape(
            rows, -1, len(layer.bias)
        )
    tokens = extract(shown, VISION.patch, VISION.stride)
    queries, keys = (tokens @ side.weight.T + side.bias for side in (params.query, params.key))
    queries, keys = featurise(ReLU(), queries, keys)
    return [rank_scores(Scaled(queries.values * gains, queries.log_scale), keys).values for gains in params.gains]


@pytest.mark.parametrize("spec", [SPEC, STEMMED])
def test_heads_tell_where_the_patches_lie_that_linear_attention_ranks_best_by_their_gains(spec):
    policy, image = some_policy(spec, seed=1), observations(spec, 1, seed=1)[0]["image"]
    params, centres = policy.params.encoder, scaled_centres(spec.encoder, spec.input_shape).astype(float)
    assert isinstance(params, MultiHeadRankParams)
    wanted, chosen = [], set()
    for scores in scores_by_the_book(params, image):
        best = np.argsort(-scores)[: VISION.top_k]
        kept = scores[best]
        weights = ((kept - kept.min()) / (kept.max() - kept.min())) ** 2
        middle = weights @ centres[best] / weights.sum()
        apart = centres[best] - middle
        spread = (apart * weights[:, None]).T @ apart / weights.sum()
        wanted += [*middle, spread[0, 0], spread[0, 1], spread[1, 1], weights.mean()]
        chosen |= set(best)
    _, state, attention = policy.act(policy.begin(), {"image": image, "sensors": np.zeros(0, np.float32)})
    np.testing.assert_allclose(state.inputs, wanted, atol=1e-4)
    assert attention is not None
    assert set(attention.selected) == chosen
    assert attention.scores.min() >= 0
    assert attention.scores.max() == 1


def test_a_head_that_prefers_no_patch_tells_nothing():
    theta = flatten(init(SPEC, 0))
    for block in blocks(SPEC):
        if block.name == "gains":
            theta[block.start : block.stop] = np.repeat([0.0, 1.0, 0.0], VISION.d)
    policy = Policy(SPEC, unflatten(SPEC, theta))
    _, state, _ = policy.act(policy.begin(), observations(SPEC, 1)[0])
    told = state.inputs.reshape(VISION.heads, -1)
    assert not told[[0, 2]].any()
    assert told[1].all()


@pytest.mark.parametrize(("place", "within"), [((7, 7), True), ((8, 7), False), ((7, 8), False)])
def test_a_patch_behind_a_stem_is_all_that_the_stem_sees_of_the_image_for_it(place, within):
    params, image = some_policy(STEMMED, seed=2).params.encoder, observations(STEMMED, 1, seed=2)[0]["image"]
    assert isinstance(params, MultiHeadRankParams)
    assert window_of(WITH_STEM) == (8, 4)
    see = Convolutions(WITH_STEM.stem, STEMMED.input_shape, params.stem)
    side = VISION.patch
    before = see(image)[:side, :side].copy()
    image[place] = 255 - image[place]
    assert np.array_equal(before, see(image)[:side, :side]) != within


def test_a_stem_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="stem must hold"):
        MultiHeadRank(stem=((4, 3),))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="size of stem must be"):
        MultiHeadRank(stem=((4, 0, 1),))
    with pytest.raises(ValueError, match="patch must be"):
        replace(SPEC, encoder=MultiHeadRank(stem=((4, 19, 1),)))
