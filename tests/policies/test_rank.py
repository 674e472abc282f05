"""IAP-rank through the policy, against the generic functions of `iap.attention`."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import observations, ranks, some_policy

from iap.attention import (
    Kernel,
    ReLU,
    Softmax,
    as_pixels,
    centres_of,
    extract,
    featurise,
    gather,
    grid_of,
    mask,
    place,
    project,
    rank_scores,
    top,
)
from iap.policies import Policy, PolicyConfig, Rank
from iap.policies.trees import RankParams

SIDES = np.array([9, 11], np.float32)  # of the image


def spec_of(encoder: Rank, image_shape: tuple[int, int, int] = (9, 11, 3), **changes) -> PolicyConfig:
    return PolicyConfig(image_shape, 0, 2, encoder=encoder, **changes)


def vision_params(policy: Policy) -> RankParams:
    assert isinstance(policy.params.encoder, RankParams)
    return policy.params.encoder


def generic_scores(policy: Policy, image: np.ndarray, key_image: np.ndarray | None = None) -> np.ndarray:
    """The scores by the reference functions, one after the other as the paper does it, up to a factor."""
    encoder, params = policy.spec.encoder, vision_params(policy)
    assert isinstance(encoder, Rank)
    grid = grid_of(image.shape[0], image.shape[1], encoder.patch, encoder.stride)
    sides = []
    for layer, seen in ((params.query, image), (params.key, image if key_image is None else key_image)):
        placed = place(extract(as_pixels(seen), encoder.patch, encoder.stride), grid, encoder.positions)
        sides.append(project(placed, layer.weight.T, layer.bias))
    features = featurise(encoder.kernel, *sides)
    pooling = None if params.pooling is None else 1 + params.pooling
    return rank_scores(*features, pooling=pooling, normalise_rows=encoder.normalise_rows).values


def same_scores(scores: np.ndarray, wanted: np.ndarray, *, rtol: float = 2e-3) -> None:
    """Equal up to one positive factor."""
    largest = np.abs(wanted).max()
    if largest == 0:
        assert not scores.any()
        return
    np.testing.assert_allclose(scores / np.abs(scores).max(), wanted / largest, rtol=rtol, atol=1e-4)


@given(ranks(), st.integers(0, 99))
def test_scores_of_a_policy_are_those_of_the_generic_functions(encoder, seed):
    policy = some_policy(spec_of(encoder), seed)
    (seen,) = observations(policy.spec, 1, seed)
    _, _, attention = policy.act(policy.begin(), seen)
    assert attention is not None
    same_scores(attention.scores, generic_scores(policy, seen["image"]))


def test_every_kernel_scores_as_the_generic_functions_do(kernel: Kernel):
    policy = some_policy(spec_of(Rank(patch=2, stride=2, top_k=3, kernel=kernel)))
    (seen,) = observations(policy.spec, 1)
    _, _, attention = policy.act(policy.begin(), seen)
    assert attention is not None
    same_scores(attention.scores, generic_scores(policy, seen["image"]))
    assert attention.selected.tolist() == top(attention.scores, 3).tolist()


def readout_of(policy: Policy, seen: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    _, state, attention = policy.act(policy.begin(), seen)
    assert attention is not None
    return state.inputs, attention.selected


@given(ranks(), st.integers(0, 99))
def test_what_is_read_is_what_gather_and_mask_give_of_all_values(encoder, seed):
    if encoder.order == "pooled":
        encoder = replace(encoder, order="score")
    policy = some_policy(spec_of(encoder), seed)
    params = vision_params(policy)
    (seen,) = observations(policy.spec, 1, seed)
    readout, chosen = readout_of(policy, seen)
    tokens = extract(as_pixels(seen["image"]), encoder.patch, encoder.stride)
    centres = centres_of(grid_of(9, 11, encoder.patch, encoder.stride), encoder.patch, encoder.stride)
    everything = {"pixels": tokens, "centres": (2 * centres + 1) / SIDES - 1}
    if params.projection is not None:
        everything["projection"] = tokens @ params.projection.weight.T
    values = np.concatenate([everything[value] for value in encoder.values], axis=1)
    if encoder.masked:
        wanted = mask(values, chosen)
    else:
        wanted = gather(values, np.sort(chosen) if encoder.order == "image" else chosen)
    np.testing.assert_allclose(readout, wanted.ravel(), atol=1e-6)
    assert readout.dtype == np.float32


def test_masked_and_gathered_read_the_same_rows():
    values = ("pixels", "centres")
    gathered = some_policy(spec_of(Rank(patch=2, stride=2, top_k=4, values=values)))
    masked = some_policy(spec_of(Rank(patch=2, stride=2, top_k=4, values=values, masked=True)))
    masked = Policy(masked.spec, replace(masked.params, encoder=gathered.params.encoder))
    (seen,) = observations(gathered.spec, 1)
    (rows, chosen), (in_place, also_chosen) = readout_of(gathered, seen), readout_of(masked, seen)
    assert chosen.tolist() == also_chosen.tolist()
    in_place = in_place.reshape(20, -1)
    assert np.array_equal(in_place[np.sort(chosen)].ravel(), rows)
    assert not np.delete(in_place, chosen, axis=0).any()


def test_centres_lie_between_the_edges_of_the_image_at_plus_and_minus_one():
    policy = some_policy(spec_of(Rank(patch=2, stride=2, top_k=16), image_shape=(8, 8, 1)))
    readout, _ = readout_of(policy, observations(policy.spec, 1)[0])
    rows, columns = readout.reshape(16, 2).T
    assert rows.reshape(4, 4)[:, 0].tolist() == [-0.75, -0.25, 0.25, 0.75]
    assert columns.reshape(4, 4)[0].tolist() == [-0.75, -0.25, 0.25, 0.75]


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 99), st.sampled_from([1, 3]))
def test_pooled_readout_is_what_a_loop_over_heads_and_patches_gives(patch, heads, seed, channels):
    encoder = Rank(patch=patch, stride=2, top_k=6, order="pooled", heads=heads)
    policy = some_policy(spec_of(encoder, image_shape=(9, 11, channels)), seed)
    layer = vision_params(policy).heads
    assert layer is not None
    assert layer.bias is not None
    (seen,) = observations(policy.spec, 1, seed)
    readout, chosen = readout_of(policy, seen)
    tokens = extract(as_pixels(seen["image"]), patch, 2)
    centres = (2 * centres_of(grid_of(9, 11, patch, 2), patch, 2) + 1) / SIDES - 1
    wanted = []
    for a, b in zip(layer.weight, layer.bias, strict=True):
        weights = [max(0.0, float(a @ tokens[i].reshape(-1, channels).mean(axis=0) + b)) for i in chosen]
        mass = sum(weights)
        if mass == 0:
            wanted += [0.0] * 6
            continue
        row = sum(w * centres[i, 0] for w, i in zip(weights, chosen, strict=True)) / mass
        column = sum(w * centres[i, 1] for w, i in zip(weights, chosen, strict=True)) / mass
        apart = centres[chosen] - [row, column]
        products = (apart[:, 0] ** 2, apart[:, 0] * apart[:, 1], apart[:, 1] ** 2)
        wanted += [row, column, *(float(np.dot(weights, x)) / mass for x in products), mass / len(chosen)]
    np.testing.assert_allclose(readout, wanted, atol=1e-5)


def test_heads_that_see_none_of_their_colour_read_zeros():
    policy = some_policy(spec_of(Rank(patch=1, stride=1, top_k=5, order="pooled", heads=2)))
    layer = vision_params(policy).heads
    assert layer is not None
    blind = replace(layer, bias=np.full(2, -100, np.float32))
    policy = Policy(policy.spec, replace(policy.params, encoder=replace(vision_params(policy), heads=blind)))
    readout, _ = readout_of(policy, observations(policy.spec, 1)[0])
    assert readout.tolist() == [0.0] * 12


def test_sampled_patches_repeat_with_the_state_and_change_with_look_and_seed():
    policy = some_policy(spec_of(Rank(patch=1, stride=1, top_k=5, select="sample")))
    (seen,) = observations(policy.spec, 1)

    def drawn(state) -> list[int]:
        _, _, attention = policy.act(state, seen)
        assert attention is not None
        return attention.selected.tolist()

    first = policy.begin(seed=3)
    _, second, _ = policy.act(first, seen)
    assert drawn(first) == drawn(first) == drawn(policy.begin(seed=3))
    assert drawn(second) != drawn(first)
    assert drawn(policy.begin(seed=4)) != drawn(first)


def test_patches_are_sampled_in_proportion_to_their_scores():
    policy = some_policy(spec_of(Rank(patch=3, stride=3, top_k=1, select="sample", kernel=Softmax(projections=4))))
    (seen,) = observations(policy.spec, 1)
    counts = np.zeros(9)
    draws = 2000
    for seed in range(draws):
        _, _, attention = policy.act(policy.begin(seed), seen)
        assert attention is not None
        counts[attention.selected] += 1
    shares = attention.scores / attention.scores.sum()  # pyright: ignore[reportPossiblyUnboundVariable]
    np.testing.assert_allclose(counts / draws, shares, atol=5 * np.sqrt(0.25 / draws))


@given(ranks(), st.integers(0, 99))
def test_stored_keys_give_the_same_as_new_ones_while_the_image_stays(encoder, seed):
    fresh = some_policy(spec_of(encoder), seed)
    stored = Policy(replace(fresh.spec, keys_every=3), fresh.params)
    (seen,) = observations(fresh.spec, 1, seed)
    state, other = fresh.begin(seed), stored.begin(seed)
    for _ in range(4):
        _, state, wanted = fresh.act(state, seen)
        _, other, attention = stored.act(other, seen)
        assert wanted is not None
        assert attention is not None
        same_scores(attention.scores, wanted.scores)


@pytest.mark.parametrize("kernel", [ReLU(), Softmax()])
def test_keys_are_those_of_the_last_refresh_and_queries_those_of_now(kernel: Kernel):
    spec = spec_of(Rank(patch=2, stride=2, top_k=3, kernel=kernel), keys_every=2)
    policy = some_policy(spec)
    seen = [observation["image"] for observation in observations(spec, 5)]
    state = policy.begin()
    for step, image in enumerate(seen):
        _, state, attention = policy.act(state, {"image": image, "sensors": np.zeros(0)})
        assert attention is not None
        same_scores(attention.scores, generic_scores(policy, image, key_image=seen[step - step % 2]))
