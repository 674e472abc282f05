"""IAP-trans, the CNN and changes, against plain re-implementations."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from policy_cases import observations, some_policy

from iap.attention import as_pixels, attention_matrix, extract, grid_of, layer_norm, place
from iap.attention.features import ReLU
from iap.policies import CNN, PolicyConfig, Rank, Trans
from iap.policies.trees import LayersParams, TransParams


@pytest.mark.parametrize(("residual", "normed", "normalise_rows"), list(itertools.product([False, True], repeat=3)))
@pytest.mark.parametrize(("rows", "width"), [(2, 3), (3, 2)])
def test_trans_is_pooling_times_the_explicit_matrix_times_values(residual, normed, normalise_rows, rows, width):
    encoder = Trans(2, 2, 3, rows, width, ReLU(), Trans().positions, residual, normed, normalise_rows)
    policy = some_policy(PolicyConfig((8, 10, 3), 1, 2, encoder=encoder))
    params = policy.params.encoder
    assert isinstance(params, TransParams)
    (seen,) = observations(policy.spec, 1)
    action, state, attention = policy.act(policy.begin(), seen)
    x = place(extract(as_pixels(seen["image"]), 2, 2), grid_of(8, 10, 2, 2), encoder.positions)
    queries, keys, values = (x @ layer.weight.T for layer in (params.query, params.key, params.value))
    a = attention_matrix(ReLU(), queries, keys, normalise_rows=normalise_rows).true()
    wanted = params.pooling @ (a @ values + (values if residual else 0))
    wanted = layer_norm(wanted) if normed else wanted
    np.testing.assert_allclose(state.inputs[:-1], wanted.ravel(), rtol=1e-3, atol=1e-4)
    assert attention is not None
    assert len(attention.selected) == 0
    received = np.abs(params.pooling).mean(axis=0) @ a
    np.testing.assert_allclose(attention.scores / attention.scores.sum(), received / received.sum(), atol=1e-5)
    assert action.dtype == np.float32


@pytest.mark.parametrize("layers", [((4, 3, 2),), ((3, 4, 2), (5, 2, 1), (2, 3, 3)), None])
@pytest.mark.parametrize("shape", [(20, 25, 3), (33, 32, 1)])
def test_the_cnn_is_pytorchs_convolutions(layers, shape):
    torch = pytest.importorskip("torch")
    policy = some_policy(PolicyConfig(shape, 0, 2, encoder=CNN(layers)))
    params = policy.params.encoder
    assert isinstance(params, LayersParams)
    (seen,) = observations(policy.spec, 1)
    _, state, attention = policy.act(policy.begin(), seen)
    x = torch.tensor(seen["image"]).permute(2, 0, 1)[None] / 255 - 0.5
    for i, layer in enumerate(params.layers):
        assert layer.bias is not None
        size = round((layer.weight.shape[1] / x.shape[1]) ** 0.5)
        weight = layer.weight.reshape(len(layer.weight), size, size, -1).transpose(0, 3, 1, 2)
        stride = layers[i][2] if layers else {0: 4 if min(shape[:2]) >= 32 else 2}.get(i, 2)
        x = torch.relu(torch.conv2d(x, torch.tensor(weight.copy()), torch.tensor(layer.bias), stride))
    wanted = x[0].permute(1, 2, 0).numpy().ravel()
    np.testing.assert_allclose(state.inputs, wanted, rtol=1e-4, atol=1e-4)
    assert attention is None


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 50, 1), (8, 8, 3), (24, 32, 1), (32, 32, 3), (100, 100, 3), (240, 320, 3)]
)
def test_the_usual_cnn_fits_any_image_and_ends_with_few_places(shape):
    spec = PolicyConfig(shape, 0, 2, encoder=CNN())
    assert 0 < spec.readout_size <= 32 * 6 * 6 * max(1, 2 * max(shape[:2]) // min(shape[:2]))


def standing_out(image: np.ndarray, times: int) -> np.ndarray:
    """Each pixel less the mean of a square that fits so often into a side, as it lies in the image; grey if equal."""
    reach, pixels = max(1, min(image.shape[:2]) // (2 * times)), image.astype(float)
    out = np.empty_like(pixels)
    for y, x in np.ndindex(*image.shape[:2]):
        square = pixels[max(y - reach, 0) : y + reach + 1, max(x - reach, 0) : x + reach + 1]
        out[y, x] = pixels[y, x] - square.mean(axis=(0, 1))
    grey, most = (128, 255) if image.dtype == np.uint8 else (0.5, 1)
    return np.clip(out + grey + 1e-6, 0, most).astype(image.dtype)


@pytest.mark.parametrize(("sight", "times", "shape"), [("local_contrast_coarse", 3, (12, 10, 3)), ("local_contrast_fine", 12, (60, 50, 1))])
@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize("encoder", [Rank(patch=2, stride=2), Trans(patch=2, stride=2), CNN(((2, 3, 2),))])
def test_a_policy_that_sees_what_stands_out_changes_and_departs_acts_as_one_that_is_shown_them(
    encoder, floats, sight, times, shape
):
    sees = some_policy(PolicyConfig(shape, 0, 2, encoder=encoder, frames=2, preprocessing=(sight, "frame_difference", "first_frame_difference")))
    shown = some_policy(replace(preprocessing.spec, image_shape=sees.spec.input_shape, preprocessing=("image",)))
    kind = np.float32 if floats else np.uint8
    images = [(o["image"] / (255 if floats else 1)).astype(kind) for o in observations(preprocessing.spec, 4)]
    before, state, state_of_shown = images[0], sees.begin(), shown.begin()
    frame = images[0].copy()  # a camera that draws every image over the last one
    for image in images:
        frame[:] = image
        change = np.abs(image.astype(float) - before).astype(kind)
        departed = np.minimum(6 * np.abs(image.astype(float) - images[0]), 1 if floats else 255).astype(kind)
        all_three = np.concatenate([standing_out(image, times), change, departed], axis=2)
        action, state, _ = sees.act(state, {"image": frame, "sensors": np.empty(0)})
        wanted, state_of_shown, _ = shown.act(state_of_shown, {"image": all_three, "sensors": np.empty(0)})
        np.testing.assert_allclose(action, wanted, atol=1e-5)
        before = image
