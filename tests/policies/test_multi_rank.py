"""Several heads rank with the same queries and keys, and each tells where its own patches lie."""

import numpy as np
from policy_cases import observations, some_policy

from iap.attention import ReLU
from iap.attention.arrays import Scaled
from iap.attention.features import featurise
from iap.attention.patches import as_pixels, extract
from iap.attention.ranking import rank_scores
from iap.policies import MultiRank, Policy, PolicySpec, blocks, flatten, init, unflatten
from iap.policies.readout import scaled_centres
from iap.policies.trees import MultiRankParams

VISION = MultiRank(patch=3, stride=2, d=5, heads=3, keep=7)
SPEC = PolicySpec((20, 24, 3), sensors=0, actions=2, vision=VISION)


def scores_by_the_book(params, image):
    """Each head's scores by the generic functions: its gains go into the queries' features."""
    tokens = extract(as_pixels(image), VISION.patch, VISION.stride)
    queries, keys = (tokens @ side.weight.T + side.bias for side in (params.query, params.key))
    queries, keys = featurise(ReLU(), queries, keys)
    return [rank_scores(Scaled(queries.values * gains, queries.log_scale), keys).values for gains in params.gains]


def test_heads_tell_where_the_patches_lie_that_linear_attention_ranks_best_by_their_gains():
    policy, image = some_policy(SPEC, seed=1), observations(SPEC, 1, seed=1)[0]["image"]
    params, centres = policy.params.vision, scaled_centres(VISION, SPEC.seen_shape).astype(float)
    assert isinstance(params, MultiRankParams)
    wanted, chosen = [], set()
    for scores in scores_by_the_book(params, image):
        best = np.argsort(-scores)[: VISION.keep]
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
    assert set(attention.chosen) == chosen
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
