"""What pooling heads may be told beside colours, and readouts that are counted from an episode's first look."""

from dataclasses import replace

import numpy as np
import pytest
from policy_cases import observations, some_policy

from iap.attention import as_pixels, extract
from iap.policies import Policy, PolicyConfig, Rank
from iap.policies.readout import scaled_centres
from iap.policies.specs import from_json, to_json
from iap.policies.state import Attention
from iap.policies.trees import RankParams

SHAPE = (12, 10, 3)
VISION = Rank(patch=2, stride=2, top_k=7, order="pooled", heads=3)


def spec_of(**changes) -> PolicyConfig:
    return PolicyConfig(SHAPE, 0, 2, encoder=replace(VISION, **changes))


def look(policy: Policy, image: np.ndarray) -> tuple[np.ndarray, Attention]:
    _, state, attention = policy.act(policy.begin(), {"image": image, "sensors": np.zeros(0)})
    assert attention is not None
    return state.inputs, attention


def pooled(policy: Policy, image: np.ndarray, chosen: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Centroids, moments and mass by array operations, one head a row."""
    encoder, params = policy.spec.encoder, policy.params.encoder
    assert isinstance(encoder, Rank)
    assert isinstance(params, RankParams)
    heads = params.heads
    assert heads is not None
    assert heads.bias is not None
    colours = extract(as_pixels(image), encoder.patch, encoder.stride)[chosen].reshape(len(chosen), -1, 3).mean(axis=1)
    centres = scaled_centres(encoder, SHAPE)[chosen]
    told = np.hstack([colours, centres]) if encoder.position_weighted else colours
    rows = []
    for weight, bias in zip(heads.weight, heads.bias, strict=True):
        weights = np.maximum(told @ weight + bias, 0) * shares
        if not weights.any():
            rows.append(np.zeros(6))
            continue
        y, x = np.average(centres, axis=0, weights=weights)
        (yy, yx), (_, xx) = np.cov(centres.T, aweights=weights, ddof=0)
        rows.append([y, x, yy, yx, xx, weights.sum() / shares.sum()])
    return np.array(rows)


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_heads_weigh_by_colour_place_and_score(placed, soft, seed):
    policy = some_policy(spec_of(position_weighted=placed, score_weighted=soft), seed=seed)
    image = np.random.default_rng(seed).integers(0, 256, SHAPE, np.uint8)
    readout, attention = look(policy, image)
    kept = attention.scores[attention.selected].astype(float)
    shares = (kept - kept.min()) / np.ptp(kept) if soft and np.ptp(kept) > 0 else np.ones(len(kept))
    np.testing.assert_allclose(readout.reshape(3, 6), pooled(policy, image, attention.selected, shares), atol=2e-5)


def test_the_least_of_the_kept_patches_counts_for_nothing_if_pooling_is_soft():
    policy = some_policy(spec_of(score_weighted=True))
    image = np.random.default_rng(1).integers(0, 256, SHAPE, np.uint8)
    readout, attention = look(policy, image)
    kept = attention.scores[attention.selected].astype(float)
    shares = (kept - kept.min()) / np.ptp(kept)
    without = pooled(policy, image, attention.selected[:-1], shares[:-1])
    np.testing.assert_allclose(readout.reshape(3, 6), without, atol=2e-5)


@pytest.mark.parametrize("frames", [1, 2, 4])
def test_anchored_readouts_are_counted_from_the_first_look(frames):
    free = some_policy(replace(spec_of(), frames=1, normalise=False))
    relative_to_first_frame = some_policy(replace(spec_of(), frames=frames, relative_to_first_frame=True, normalise=False))
    relative_to_first_frame = Policy(relative_to_first_frame.spec, replace(relative_to_first_frame.params, encoder=free.params.encoder))
    seen = observations(free.spec, count=6)
    state, looks = relative_to_first_frame.begin(), []
    for observation in seen:
        looks.append(look(free, observation["image"])[0])
        _, state, _ = relative_to_first_frame.act(state, observation)
        before = [looks[-1] - past for past in looks[-2::-1][: frames - 1]]
        missing = [np.zeros_like(looks[0])] * (frames - 1 - len(before))
        wanted = np.concatenate([looks[-1] - looks[0], *before, *missing])
        np.testing.assert_allclose(state.inputs, wanted, atol=1e-6)


def test_a_policy_that_recalls_receives_each_readout_beside_the_first():
    spec = replace(spec_of(), frames=1, normalise=False)
    free, first_frame_features = some_policy(spec), some_policy(replace(spec, first_frame_features=True))
    first_frame_features = Policy(first_frame_features.spec, replace(first_frame_features.params, encoder=free.params.encoder))
    seen = observations(spec, count=4)
    first, _ = look(free, seen[0]["image"])
    state = first_frame_features.begin()
    for observation in seen:
        _, state, _ = first_frame_features.act(state, observation)
        now, _ = look(free, observation["image"])
        np.testing.assert_allclose(state.inputs, np.concatenate([now, first]), atol=1e-6)


@pytest.mark.parametrize("other", [{"frames": 2}, {"relative_to_first_frame": True}])
def test_what_is_recalled_is_not_mixed_with_other_looks(other):
    with pytest.raises(ValueError, match="first_frame_features must be False with several frames, and with relative_to_first_frame readouts"):
        replace(spec_of(), **{"frames": 1, "first_frame_features": True, **other})


def test_specs_from_before_there_were_these_options_can_be_read():
    old = to_json(spec_of())
    for name in ("placed", "soft"):
        del old["encoder"][name]
    del old["preprocessing"], old["relative_to_first_frame"], old["first_frame_features"]
    assert from_json(old) == spec_of()
