"""The moments of pooling heads, against array operations and loops over heads and patches."""

from dataclasses import replace

import numpy as np
import pytest
from config_cases import observations, random_policy
from hypothesis import given
from hypothesis import strategies as st

from iap.attention import as_pixels, centres_of, extract, grid_of
from iap.policies import Attention, Policy, PolicyConfig, PooledMoments, Rank, from_json, to_json
from iap.policies.encoders.attention_config import scaled_centres

SHAPE = (12, 10, 2)


def config_of(features: PooledMoments, patch: int = 2, shape: tuple[int, int, int] = SHAPE) -> PolicyConfig:
    return PolicyConfig(shape, 0, 2, encoder=Rank(patch=patch, stride=2, top_k=7, features=features))


def encode(policy: Policy, image: np.ndarray) -> tuple[np.ndarray, Attention]:
    """The features of one image, and the attention."""
    _, state, attention = policy.act(policy.reset(), {"image": image, "sensors": np.zeros(0)})
    assert attention is not None
    return state.inputs, attention


def pooled(policy: Policy, image: np.ndarray, selected: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Centroids, moments and mass by array operations, one head a row."""
    encoder, params = policy.config.encoder, policy.params["encoder"]
    assert isinstance(encoder, Rank)
    assert isinstance(encoder.features, PooledMoments)
    patches = extract(as_pixels(image), encoder.patch, encoder.stride)[selected]
    colours = patches.reshape(len(selected), -1, SHAPE[2]).mean(axis=1)
    centres = scaled_centres(encoder.window(SHAPE), SHAPE[:2])[selected]
    inputs = np.hstack([colours, centres]) if encoder.features.position_weighted else colours
    rows = []
    for weight, bias in zip(params["heads.weight"], params["heads.bias"], strict=True):
        weights = np.maximum(inputs @ weight + bias, 0) * shares
        if not weights.any():
            rows.append(np.zeros(6))
            continue
        y, x = np.average(centres, axis=0, weights=weights)
        (yy, yx), (_, xx) = np.cov(centres.T, aweights=weights, ddof=0)
        rows.append([y, x, yy, yx, xx, weights.sum() / shares.sum()])
    return np.array(rows)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("position_weighted", [False, True])
@pytest.mark.parametrize("score_weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_heads_weigh_patches_by_colour_position_and_score(
    position_weighted: bool, score_weighted: bool, seed: int, compiled: bool
):
    config = config_of(PooledMoments(3, position_weighted, score_weighted))
    policy = random_policy(config, seed, compiled=compiled)
    image = np.random.default_rng(seed).integers(0, 256, SHAPE, np.uint8)
    features, attention = encode(policy, image)
    own = attention.scores[attention.selected].astype(float)
    shares = (own - own.min()) / np.ptp(own) if score_weighted and np.ptp(own) > 0 else np.ones(len(own))
    np.testing.assert_allclose(features.reshape(3, 6), pooled(policy, image, attention.selected, shares), atol=2e-5)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_least_selected_patch_has_no_weight_if_patches_are_weighed_by_score(compiled: bool):
    policy = random_policy(config_of(PooledMoments(3, score_weighted=True)), compiled=compiled)
    image = np.random.default_rng(1).integers(0, 256, SHAPE, np.uint8)
    features, attention = encode(policy, image)
    own = attention.scores[attention.selected].astype(float)
    shares = (own - own.min()) / np.ptp(own)
    without = pooled(policy, image, attention.selected[:-1], shares[:-1])
    np.testing.assert_allclose(features.reshape(3, 6), without, atol=2e-5)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 99), st.sampled_from([1, 2, 3]))
def test_moments_are_those_of_a_loop_over_heads_and_patches(patch: int, heads: int, seed: int, channels: int):
    compiled = channels == 2  # as in the other tests, so that no further code is compiled
    config = config_of(PooledMoments(heads), patch, (9, 11, channels))
    policy = random_policy(config, seed, compiled=compiled)
    params = policy.params["encoder"]
    (observation,) = observations(config, 1, seed)
    features, attention = encode(policy, observation["image"])
    selected = attention.selected
    tokens = extract(as_pixels(observation["image"]), patch, 2)
    centres = (2 * centres_of(grid_of(9, 11, patch, 2), patch, 2) + 1) / np.array([9, 11], np.float32) - 1
    wanted = []
    for a, b in zip(params["heads.weight"], params["heads.bias"], strict=True):
        weights = [max(0.0, float(a @ tokens[i].reshape(-1, channels).mean(axis=0) + b)) for i in selected]
        mass = sum(weights)
        if mass == 0:
            wanted += [0.0] * 6
            continue
        row = sum(w * centres[i, 0] for w, i in zip(weights, selected, strict=True)) / mass
        column = sum(w * centres[i, 1] for w, i in zip(weights, selected, strict=True)) / mass
        offsets = centres[selected] - [row, column]
        products = (offsets[:, 0] ** 2, offsets[:, 0] * offsets[:, 1], offsets[:, 1] ** 2)
        wanted += [row, column, *(float(np.dot(weights, x)) / mass for x in products), mass / len(selected)]
    np.testing.assert_allclose(features, wanted, atol=1e-5)


@pytest.mark.parametrize("compiled", [True, False])
def test_heads_without_a_patch_of_their_colour_give_zeros(compiled: bool):
    config = config_of(PooledMoments(2))
    params = random_policy(config).params
    params["encoder"]["heads.bias"] = np.full(2, -100, np.float32)
    features, _ = encode(Policy(config, params, compiled=compiled), observations(config, 1)[0]["image"])
    assert features.tolist() == [0.0] * 12


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("frames", [1, 2, 4])
def test_features_relative_to_the_first_frame_are_differences_to_it(frames: int, compiled: bool):
    free = random_policy(replace(config_of(PooledMoments(3)), normalise=False), compiled=compiled)
    config = replace(free.config, frames=frames, relative_to_first_frame=True)
    relative = random_policy(config)
    relative = Policy(config, {**relative.params, "encoder": free.params["encoder"]}, compiled=compiled)
    state, encoded = relative.reset(), []
    for observation in observations(config, 6):
        encoded.append(encode(free, observation["image"])[0])
        _, state, _ = relative.act(state, observation)
        differences = [encoded[-1] - past for past in encoded[-2::-1][: frames - 1]]
        missing = [np.zeros_like(encoded[0])] * (frames - 1 - len(differences))
        wanted = np.concatenate([encoded[-1] - encoded[0], *differences, *missing])
        np.testing.assert_allclose(state.inputs, wanted, atol=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_features_of_the_first_frame_are_inputs_besides_those_of_this_one(compiled: bool):
    free = random_policy(replace(config_of(PooledMoments(3)), normalise=False), compiled=compiled)
    config = replace(free.config, first_frame_features=True)
    params = random_policy(config).params
    policy = Policy(config, {**params, "encoder": free.params["encoder"]}, compiled=compiled)
    episode = observations(config, 4)
    first, _ = encode(free, episode[0]["image"])
    state = policy.reset()
    for observation in episode:
        _, state, _ = policy.act(state, observation)
        now, _ = encode(free, observation["image"])
        np.testing.assert_allclose(state.inputs, np.concatenate([now, first]), atol=1e-6)


@pytest.mark.parametrize("other", [{"frames": 2}, {"relative_to_first_frame": True}])
def test_features_of_the_first_frame_exclude_several_frames_and_relative_features(other: dict[str, int]):
    with pytest.raises(
        ValueError, match="first_frame_features must be False with several frames or relative_to_first_frame"
    ):
        replace(config_of(PooledMoments()), first_frame_features=True, **other)


def test_a_config_without_these_options_is_read_with_their_defaults():
    config = config_of(PooledMoments(3))
    written = to_json(config)
    for name in ("position_weighted", "score_weighted"):
        del written["encoder"]["features"][name]
    for name in ("preprocessing", "relative_to_first_frame", "first_frame_features"):
        del written[name]
    assert from_json(written) == config
