"""IAP-trans and the CNN, against plain re-implementations."""

import itertools

import numpy as np
import pytest
from config_cases import observations, random_policy

from iap.attention import as_pixels, attention_matrix, extract, grid_of, layer_norm, place
from iap.attention.features import ReLU
from iap.policies import CNN, PolicyConfig, Trans
from iap.policies.encoders.base import Shape
from iap.policies.encoders.convolutions import Layers


@pytest.mark.parametrize(("residual", "normed", "normalise_rows"), list(itertools.product([False, True], repeat=3)))
@pytest.mark.parametrize(("rows", "value_size"), [(2, 3), (3, 2)])
def test_trans_is_pooling_times_the_explicit_matrix_times_values(
    residual: bool, normed: bool, normalise_rows: bool, rows: int, value_size: int
):
    encoder = Trans(2, 2, 3, rows, value_size, ReLU(), Trans().positions, residual, normed, normalise_rows)
    policy = random_policy(PolicyConfig((8, 10, 2), 1, 2, encoder=encoder), compiled=True)
    params = policy.params["encoder"]
    (observation,) = observations(policy.config, 1)
    action, state, attention = policy.act(policy.reset(), observation)
    x = place(extract(as_pixels(observation["image"]), 2, 2), grid_of(8, 10, 2, 2), encoder.positions)
    queries, keys, values = (x @ params[f"{name}.weight"].T for name in ("query", "key", "value"))
    a = attention_matrix(ReLU(), queries, keys, normalise_rows=normalise_rows).true()
    wanted = params["pooling"] @ (a @ values + (values if residual else 0))
    wanted = layer_norm(wanted) if normed else wanted
    np.testing.assert_allclose(state.inputs[:-1], wanted.ravel(), rtol=1e-3, atol=1e-4)
    assert attention is not None
    assert len(attention.selected) == 0
    received = np.abs(params["pooling"]).mean(axis=0) @ a
    np.testing.assert_allclose(attention.scores / attention.scores.sum(), received / received.sum(), atol=1e-5)
    assert action.dtype == np.float32


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("layers", [((4, 3, 2),), ((3, 4, 2), (5, 2, 1), (2, 3, 3)), None])
@pytest.mark.parametrize("shape", [(20, 25, 2), (33, 32, 1)])
def test_the_cnn_is_pytorchs_convolutions(layers: Layers | None, shape: Shape, compiled: bool):
    torch = pytest.importorskip("torch")
    policy = random_policy(PolicyConfig(shape, 0, 2, encoder=CNN(layers)), compiled=compiled)
    params = policy.params["encoder"]
    (observation,) = observations(policy.config, 1)
    _, state, attention = policy.act(policy.reset(), observation)
    x = torch.tensor(observation["image"]).permute(2, 0, 1)[None] / 255 - 0.5
    for i in range(len(params) // 2):
        flat, bias = params[f"layers.{i}.weight"], params[f"layers.{i}.bias"]
        size = round((flat.shape[1] / x.shape[1]) ** 0.5)
        weight = flat.reshape(len(flat), size, size, -1).transpose(0, 3, 1, 2)
        stride = layers[i][2] if layers else {0: 4 if min(shape[:2]) >= 32 else 2}.get(i, 2)
        x = torch.relu(torch.conv2d(x, torch.tensor(weight.copy()), torch.tensor(bias), stride))
    wanted = x[0].permute(1, 2, 0).numpy().ravel()
    np.testing.assert_allclose(state.inputs, wanted, rtol=1e-4, atol=1e-4)
    assert attention is None


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 50, 1), (8, 8, 3), (24, 32, 1), (32, 32, 3), (100, 100, 3), (240, 320, 3)]
)
def test_the_default_cnn_fits_any_image_and_its_last_layer_is_small(shape: Shape):
    config = PolicyConfig(shape, 0, 2, encoder=CNN())
    assert 0 < config.features_size <= 32 * 6 * 6 * max(1, 2 * max(shape[:2]) // min(shape[:2]))
