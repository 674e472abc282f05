"""The residual stem against PyTorch's layers, batch norm and its folding, heads with values, and maps."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from config_cases import observations, random_policy, random_theta

from iap.attention import as_pixels
from iap.policies import Policy, PolicyConfig, ResidualRank, count_params, init, unflatten
from iap.policies.encoders.residual_rank.stem import apply_stem
from iap.policies.preprocessing import Channel

ENCODER = ResidualRank(((6, 5, 2), (8, 3, 2)), (1, 2), d=4, heads=3, top_k=5, values=2)
CONFIG = PolicyConfig((20, 24, 3), 0, 2, encoder=ENCODER)
CHANNELS: tuple[Channel, ...] = ("centred_image", "signed_frame_difference")
DEFAULT = PolicyConfig((84, 84, 3), 0, 6, encoder=ResidualRank(), preprocessing=CHANNELS)


def arguments(seed: int = 0, count: int = 6) -> tuple[dict[str, np.ndarray], np.ndarray]:
    params = unflatten(CONFIG, random_theta(CONFIG, seed))["encoder"]
    return params, np.random.default_rng(seed).integers(0, 256, (count, *CONFIG.image_shape), np.uint8)


def test_the_stem_is_pytorchs_convolutions():
    torch = pytest.importorskip("torch")
    params, images = arguments()
    x = torch.tensor(as_pixels(images)).permute(0, 3, 1, 2)
    for i, (size, stride, dilation, residual) in enumerate([(5, 2, 1, 0), (3, 2, 1, 0), (3, 1, 1, 1), (3, 1, 2, 1)]):
        flat, bias = (torch.tensor(params[f"stem.{i}.{part}"]) for part in ("weight", "bias"))
        weight = flat.reshape(len(flat), size, size, -1).permute(0, 3, 1, 2)
        outputs = torch.relu(torch.conv2d(x, weight, bias, stride, size // 2 * dilation, dilation))
        x = x + outputs if residual else outputs
    maps = apply_stem(params, ENCODER.layers(3), as_pixels(images))
    assert maps.shape == (6, 5, 6, 8)
    np.testing.assert_allclose(maps, x.permute(0, 2, 3, 1).numpy(), atol=1e-4)


def test_the_default_has_at_most_25000_parameters_and_a_cell_for_every_four_pixels():
    policy = replace(DEFAULT, actions=1)
    encoder = sum(array.size for array in init(policy, 0)["encoder"].values())
    assert encoder < 25_000
    assert encoder + policy.features_size + 1 == count_params(policy)
    assert ResidualRank().window((84, 84, 6)) == ((21, 21), 4, 4)
    assert ResidualRank().feature_size((84, 84, 6)) == 160


def test_activations_keep_their_size_through_the_stem_at_the_start():
    params = init(DEFAULT, 0)["encoder"]
    images = np.random.default_rng(0).integers(0, 256, (2, 84, 84, 6), np.uint8)
    maps = apply_stem(params, ResidualRank().layers(6), as_pixels(images))
    assert 0.1 < maps.std() < 2


def test_in_training_every_channel_is_normalised_over_the_batch():
    params, images = arguments()
    _, used = ENCODER.forward_normalised(params, images)
    assert list(used) == [f"stem.{i}" for i in range(4)]
    normalised: list[np.ndarray] = []

    def shift(name: str, products: np.ndarray, bias: np.ndarray) -> np.ndarray:
        mean, variance = used[name]
        normalised.append((products - mean) / np.sqrt(variance + 1e-5))
        return normalised[-1] + bias

    apply_stem(params, ENCODER.layers(3), as_pixels(images), shift)
    for outputs in normalised:
        np.testing.assert_allclose(outputs.mean(axis=(0, 1, 2)), 0, atol=1e-4)
        np.testing.assert_allclose(outputs.std(axis=(0, 1, 2)), 1, atol=1e-3)


def test_folded_parameters_give_what_normalised_ones_give_with_the_same_statistics():
    params, images = arguments()
    _, statistics = ENCODER.forward_normalised(params, images)
    others = arguments(seed=1)[1]
    wanted, used = ENCODER.forward_normalised(params, others, statistics)
    assert used.keys() == statistics.keys()
    folded = ENCODER.fold(params, statistics)
    assert {name: array.shape for name, array in folded.items()} == {name: x.shape for name, x in params.items()}
    encoding = ENCODER.forward(folded, others)
    np.testing.assert_allclose(encoding.features, wanted.features, atol=1e-4)
    np.testing.assert_allclose(np.asarray(encoding.log_maps), np.asarray(wanted.log_maps), atol=1e-4)
    assert np.abs(ENCODER.forward_normalised(params, others)[0].features - wanted.features).max() > 1e-2


def test_batch_norm_has_gradients_through_its_statistics():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    params, images = arguments()
    weights = np.random.default_rng(3).standard_normal((6, ENCODER.feature_size(CONFIG.image_shape)), np.float32)

    def loss(given: Any, xp: Any, batch: Any) -> Any:
        return xp.sum(ENCODER.forward_normalised(given, batch)[0].features * xp.asarray(weights))

    tensors = {name: torch.tensor(array, requires_grad=True) for name, array in params.items()}
    loss(tensors, torch, torch.tensor(images)).backward()
    by_jax = jax.grad(lambda given: loss(given, jax.numpy, jax.numpy.asarray(images)))(
        {name: jax.numpy.asarray(array) for name, array in params.items()}
    )
    for name, tensor in tensors.items():
        assert tensor.grad is not None
        scale = max(1.0, float(tensor.grad.abs().max()))
        np.testing.assert_allclose(tensor.grad / scale, by_jax[name] / scale, atol=1e-4, err_msg=name)
    grown = {name: 3 * array if name == "stem.1.weight" else array for name, array in params.items()}
    features = [ENCODER.forward_normalised(each, images)[0].features for each in (params, grown)]
    np.testing.assert_allclose(*features, atol=1e-3)  # the size of normalised weights does not matter


def test_maps_are_distributions_whose_peak_is_the_best_cell():
    params, images = arguments()
    encoding = ENCODER.forward(params, images)
    assert encoding.log_maps is not None
    assert encoding.selected is not None
    maps = np.exp(encoding.log_maps)
    assert maps.shape == (6, 3, 30)
    np.testing.assert_allclose(maps.sum(axis=2), 1, atol=1e-5)
    best = encoding.selected.reshape(6, 3, 5)[:, :, 0]
    np.testing.assert_array_equal(maps.argmax(axis=2), best)


def test_features_are_moments_and_mean_values_of_each_heads_cells():
    params, images = arguments()
    encoding = ENCODER.forward(params, images)
    assert encoding.selected is not None
    assert encoding.log_maps is not None
    maps = apply_stem(params, ENCODER.layers(3), as_pixels(images)).reshape(6, 30, 8)
    values = (maps @ params["value.weight"].T + params["value.bias"]).reshape(6, 30, 3, 2)
    rows, columns = np.indices((5, 6)).reshape(2, -1)
    centres = np.stack([(4 * rows + 2) / 10 - 1, (4 * columns + 2) / 12 - 1], axis=1)  # edges at ±1
    features = encoding.features.reshape(6, 3, 8)
    for n, head in np.ndindex(6, 3):
        cells = encoding.selected[n].reshape(3, 5)[head]
        scores = encoding.log_maps[n, head, cells]  # up to a constant
        weights = ((scores - scores.min()) / (scores.max() - scores.min())) ** 2
        centroid = weights @ centres[cells] / weights.sum()
        np.testing.assert_allclose(features[n, head, :2], centroid, atol=1e-3)
        assert features[n, head, 5] == pytest.approx(weights.mean(), abs=1e-3)
        np.testing.assert_allclose(features[n, head, 6:], weights @ values[n, cells, head] / weights.sum(), atol=1e-3)


def test_compiled_features_of_a_whole_image_are_those_of_the_forward_pass():
    policy = random_policy(DEFAULT, compiled=False)
    params = init(DEFAULT, 1)
    plain, compiled = Policy(DEFAULT, params, compiled=False), Policy(DEFAULT, params)
    state, other = plain.reset(), compiled.reset()
    for observation in observations(policy.config, 2):
        _, state, _ = plain.act(state, observation)
        _, other, _ = compiled.act(other, observation)
        np.testing.assert_allclose(state.inputs, other.inputs, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stem": ()}, "stem must be a tuple of at least one"),
        ({"stem": ((4, 4, 2),)}, "sizes of stem must be odd, not 4"),
        ({"dilations": [1]}, "dilations must be a tuple"),
        ({"dilations": (0,)}, "dilations must be between 1 and"),
        ({"values": -1}, "values must be"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        replace(ENCODER, **options)


def test_more_cells_than_there_are_cannot_be_selected():
    with pytest.raises(ValueError, match="top_k must be between 1 and 30"):
        replace(CONFIG, encoder=replace(ENCODER, top_k=31))
