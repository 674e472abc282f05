"""IAP-rank in a policy, against the generic functions of `iap.attention`."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from config_cases import observations, random_policy, ranks
from hypothesis import given
from hypothesis import strategies as st

from iap.attention import (
    KERNELS,
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
from iap.policies import Policy, PolicyConfig, Rank, SelectedPatches

SIDES = np.array([9, 11], np.float32)  # of the image
ALL_VALUES = ("pixels", "centres", "projection")
COMPILED_RANKS = {
    "plain": Rank(patch=2, stride=2, top_k=3),
    "large patches": Rank(patch=3, stride=2, top_k=3, d=5, bias=True),
    "learnt pooling": Rank(patch=2, stride=2, top_k=3, learn_pooling=True),
    "normalised rows": Rank(patch=2, stride=2, top_k=3, normalise_rows=True),
    "all values": Rank(patch=2, stride=2, top_k=4, features=SelectedPatches(ALL_VALUES, 3, "score")),
    "masked": Rank(patch=2, stride=2, top_k=4, features=SelectedPatches(ALL_VALUES[::-1], masked=True)),
}


def config_of(encoder: Rank, image_shape: tuple[int, int, int] = (9, 11, 2)) -> PolicyConfig:
    return PolicyConfig(image_shape, 0, 2, encoder=encoder)


def generic_scores(policy: Policy, image: np.ndarray, key_image: np.ndarray | None = None) -> np.ndarray:
    """The scores by the generic functions, one after the other as in the paper, up to a factor."""
    encoder, params = policy.config.encoder, policy.params["encoder"]
    assert isinstance(encoder, Rank)
    grid = grid_of(image.shape[0], image.shape[1], encoder.patch, encoder.stride)
    offset, scale = np.float32(encoder.pixel_offset), np.float32(encoder.pixel_scale)
    sides = []
    for name, shown in (("query", image), ("key", image if key_image is None else key_image)):
        tokens = place(
            extract((as_pixels(shown) - offset) * scale, encoder.patch, encoder.stride), grid, encoder.positions
        )
        sides.append(project(tokens, params[f"{name}.weight"].T, params.get(f"{name}.bias")))
    features = featurise(encoder.kernel, *sides)
    pooling = 1 + params["pooling"] if "pooling" in params else None
    return rank_scores(*features, pooling=pooling, normalise_rows=encoder.normalise_rows).values


def assert_same_scores(scores: np.ndarray, wanted: np.ndarray, *, rtol: float = 2e-3) -> None:
    """Equal up to one positive factor."""
    largest = np.abs(wanted).max()
    if largest == 0:
        assert not scores.any()
        return
    np.testing.assert_allclose(scores / np.abs(scores).max(), wanted / largest, rtol=rtol, atol=1e-4)


def check_scores(policy: Policy, seed: int = 0) -> None:
    (observation,) = observations(policy.config, 1, seed)
    _, _, attention = policy.act(policy.reset(), observation)
    assert attention is not None
    assert_same_scores(attention.scores, generic_scores(policy, observation["image"]))
    encoder = policy.config.encoder
    assert isinstance(encoder, Rank)
    if encoder.select == "top":
        assert attention.selected.tolist() == top(attention.scores, encoder.top_k).tolist()


@given(ranks(), st.integers(0, 99))
def test_scores_of_a_policy_are_those_of_the_generic_functions(encoder: Rank, seed: int):
    check_scores(random_policy(config_of(encoder), seed), seed)


@pytest.mark.parametrize("name", COMPILED_RANKS)
def test_compiled_scores_are_those_of_the_generic_functions(name: str):
    check_scores(random_policy(config_of(COMPILED_RANKS[name]), compiled=True))


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_compiled_scores_of_every_kernel_are_those_of_the_generic_functions(name: str, normalised: bool):
    kernel = KERNELS[name]
    if isinstance(kernel, Softmax):
        kernel = replace(kernel, normalised=normalised)
    check_scores(random_policy(config_of(Rank(patch=2, stride=2, top_k=3, kernel=kernel)), compiled=True))


def features_of(policy: Policy, observation: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The features of an image, and the selected patches."""
    _, state, attention = policy.act(policy.reset(), observation)
    assert attention is not None
    return state.inputs, attention.selected


def check_selected_values(policy: Policy, seed: int = 0) -> None:
    encoder, params = policy.config.encoder, policy.params["encoder"]
    assert isinstance(encoder, Rank)
    assert isinstance(encoder.features, SelectedPatches)
    (observation,) = observations(policy.config, 1, seed)
    features, selected = features_of(policy, observation)
    tokens = extract(as_pixels(observation["image"]), encoder.patch, encoder.stride)
    centres = centres_of(grid_of(9, 11, encoder.patch, encoder.stride), encoder.patch, encoder.stride)
    kinds = {"pixels": tokens, "centres": (2 * centres + 1) / SIDES - 1}
    if "projection.weight" in params:
        kinds["projection"] = tokens @ params["projection.weight"].T
    values = np.concatenate([kinds[value] for value in encoder.features.values], axis=1)
    if encoder.features.masked:
        wanted = mask(values, selected)
    else:
        wanted = gather(values, np.sort(selected) if encoder.features.order == "image" else selected)
    np.testing.assert_allclose(features, wanted.ravel(), atol=1e-6)
    assert features.dtype == np.float32


@given(ranks().filter(lambda rank: isinstance(rank.features, SelectedPatches)), st.integers(0, 99))
def test_features_are_the_gathered_or_masked_values_of_all_patches(encoder: Rank, seed: int):
    check_selected_values(random_policy(config_of(encoder), seed), seed)


@pytest.mark.parametrize("name", COMPILED_RANKS)
def test_compiled_features_are_the_gathered_or_masked_values_of_all_patches(name: str):
    check_selected_values(random_policy(config_of(COMPILED_RANKS[name]), compiled=True))


@pytest.mark.parametrize("compiled", [True, False])
def test_masked_and_gathered_features_have_the_same_rows(compiled: bool):
    values = ("pixels", "centres")
    rank = Rank(patch=2, stride=2, top_k=4, features=SelectedPatches(values))
    gathered = random_policy(config_of(rank), compiled=compiled)
    config = config_of(replace(rank, features=SelectedPatches(values, masked=True)))
    params = random_policy(config).params
    masked = Policy(config, {**params, "encoder": gathered.params["encoder"]}, compiled=compiled)
    (observation,) = observations(config, 1)
    (rows, selected), (in_place, also_selected) = features_of(gathered, observation), features_of(masked, observation)
    assert selected.tolist() == also_selected.tolist()
    in_place = in_place.reshape(20, -1)
    assert np.array_equal(in_place[np.sort(selected)].ravel(), rows)
    assert not np.delete(in_place, selected, axis=0).any()


@pytest.mark.parametrize("compiled", [True, False])
def test_centres_are_relative_to_the_edges_of_the_image_at_plus_and_minus_one(compiled: bool):
    policy = random_policy(config_of(Rank(patch=2, stride=2, top_k=16), (8, 8, 2)), compiled=compiled)
    features, _ = features_of(policy, observations(policy.config, 1)[0])
    rows, columns = features.reshape(16, 2).T
    tolerance = 0 if compiled else 1e-6
    np.testing.assert_allclose(rows.reshape(4, 4)[:, 0], [-0.75, -0.25, 0.25, 0.75], atol=tolerance, rtol=0)
    np.testing.assert_allclose(columns.reshape(4, 4)[0], [-0.75, -0.25, 0.25, 0.75], atol=tolerance, rtol=0)


@pytest.mark.parametrize("compiled", [True, False])
def test_sampled_patches_depend_on_the_seed_and_the_number_of_frames_only(compiled: bool):
    config = config_of(Rank(patch=1, stride=2, top_k=5, select="sample"))
    policy = random_policy(config, compiled=compiled)
    (observation,) = observations(config, 1)

    def drawn(state: Any) -> list[int]:
        _, _, attention = policy.act(state, observation)
        assert attention is not None
        return attention.selected.tolist()

    first = policy.reset(seed=3)
    _, second, _ = policy.act(first, observation)
    assert drawn(first) == drawn(first) == drawn(policy.reset(seed=3))
    assert drawn(second) != drawn(first)
    assert drawn(policy.reset(seed=4)) != drawn(first)


@pytest.mark.parametrize("compiled", [True, False])
def test_patches_are_sampled_in_proportion_to_their_scores(compiled: bool):
    config = config_of(Rank(patch=3, stride=2, top_k=1, select="sample"), (7, 7, 2))
    policy = random_policy(config, compiled=compiled)
    (observation,) = observations(config, 1)
    draws = 2000 if compiled else 500
    counts, scores = np.zeros(9), np.zeros(9)
    for seed in range(draws):
        _, _, attention = policy.act(policy.reset(seed), observation)
        assert attention is not None
        counts[attention.selected] += 1
        scores = attention.scores
    np.testing.assert_allclose(counts / draws, scores / scores.sum(), atol=5 * np.sqrt(0.25 / draws))


def check_stored_keys_of_one_image(encoder: Rank, seed: int, *, compiled: bool) -> None:
    fresh = random_policy(config_of(replace(encoder, keys_every=1)), seed, compiled=compiled)
    stored = Policy(config_of(replace(encoder, keys_every=3)), fresh.params, compiled=compiled)
    (observation,) = observations(fresh.config, 1, seed)
    state, other = fresh.reset(seed), stored.reset(seed)
    for _ in range(4):
        _, state, wanted = fresh.act(state, observation)
        _, other, attention = stored.act(other, observation)
        assert wanted is not None
        assert attention is not None
        assert_same_scores(attention.scores, wanted.scores)


@given(ranks(), st.integers(0, 99))
def test_stored_keys_give_the_same_scores_as_new_ones_while_the_image_stays(encoder: Rank, seed: int):
    check_stored_keys_of_one_image(encoder, seed, compiled=False)


@pytest.mark.parametrize("kernel", [ReLU(), Softmax()], ids=["relu", "softmax"])
def test_compiled_stored_keys_give_the_same_scores_as_new_ones_while_the_image_stays(kernel: Kernel):
    check_stored_keys_of_one_image(Rank(patch=2, stride=2, top_k=3, kernel=kernel), 1, compiled=True)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("kernel", [ReLU(), Softmax()], ids=["relu", "softmax"])
def test_keys_are_those_of_the_last_update_and_queries_those_of_this_frame(kernel: Kernel, compiled: bool):
    config = config_of(Rank(patch=2, stride=2, top_k=3, kernel=kernel, keys_every=2))
    policy = random_policy(config, compiled=compiled)
    images = [observation["image"] for observation in observations(config, 5)]
    state = policy.reset()
    for step, image in enumerate(images):
        _, state, attention = policy.act(state, {"image": image, "sensors": np.zeros(0)})
        assert attention is not None
        assert_same_scores(attention.scores, generic_scores(policy, image, key_image=images[step - step % 2]))
