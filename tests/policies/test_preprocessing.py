"""The encoder's input channels, against plain array operations."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from config_cases import observations, random_policy

from iap.policies import CNN, Encoder, Policy, PolicyConfig, Rank, Trans
from iap.policies.preprocessing import Channel, preprocess_image

CONTRASTS = [("local_contrast_coarse", 3, (12, 10, 3)), ("local_contrast_fine", 12, (60, 50, 1))]


def local_contrast(image: np.ndarray, squares: int) -> np.ndarray:
    """Each pixel minus the mean of the square around it, of which `squares` fit into a side; grey where equal."""
    reach, pixels = max(1, min(image.shape[:2]) // (2 * squares)), image.astype(float)
    out = np.empty_like(pixels)
    for y, x in np.ndindex(*image.shape[:2]):
        square = pixels[max(y - reach, 0) : y + reach + 1, max(x - reach, 0) : x + reach + 1]
        out[y, x] = pixels[y, x] - square.mean(axis=(0, 1))
    grey, most = (128, 255) if image.dtype == np.uint8 else (0.5, 1)
    return np.clip(out + grey + 1e-6, 0, most).astype(image.dtype)


def images_of(shape: tuple[int, int, int], dtype: Any, count: int = 4) -> list[np.ndarray]:
    drawn = np.random.default_rng(0).integers(0, 256, (count, *shape), np.uint8)
    return list(drawn if dtype == np.uint8 else (drawn / 255).astype(dtype))


def channel_of(channel: Channel, image: np.ndarray, previous: np.ndarray, first: np.ndarray) -> np.ndarray:
    most = 255 if image.dtype == np.uint8 else 1
    values: dict[Channel, np.ndarray] = {
        "image": image,
        "frame_difference": np.abs(image.astype(float) - previous),
        "first_frame_difference": np.minimum(6 * np.abs(image.astype(float) - first), most),
        "local_contrast_coarse": local_contrast(image, 3),
        "local_contrast_fine": local_contrast(image, 12),
        "centred_image": around_grey(2 * (image - image.mean(axis=(0, 1), dtype=float)) + 1e-6, most),
        "signed_frame_difference": around_grey(4 * (image.astype(float) - previous), most),
    }
    return values[channel].astype(image.dtype)


def around_grey(differences: np.ndarray, most: int) -> np.ndarray:
    """Differences with a sign as pixels: relative to the middle of the range, clipped to it."""
    return np.clip(differences + (128 if most == 255 else 0.5), 0, most)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("channel", get_args(Channel))
@pytest.mark.parametrize("shape", [(12, 10, 3), (60, 50, 1)])
def test_each_channel_is_what_array_operations_give(channel: Channel, shape: tuple[int, int, int], dtype: Any):
    first, previous, image, _ = images_of(shape, dtype)
    out = preprocess_image((channel,), image, previous, first)
    assert out.dtype == image.dtype
    assert out.shape == shape
    np.testing.assert_allclose(out, channel_of(channel, image, previous, first), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_several_kinds_of_channels_are_concatenated_in_their_order(dtype: Any):
    first, previous, image, _ = images_of((12, 10, 2), dtype)
    channels: tuple[Channel, ...] = get_args(Channel)[::-1]
    out = preprocess_image(channels, image, previous, first)
    wanted = [channel_of(channel, image, previous, first) for channel in channels]
    np.testing.assert_allclose(out, np.concatenate(wanted, axis=2), atol=1e-5)


@pytest.mark.parametrize(("contrast", "squares", "shape"), CONTRASTS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(
    ("encoder", "compiled"),
    [
        (Rank(patch=2, stride=2), False),
        (Trans(patch=2, stride=2), False),
        (CNN(((2, 3, 2),)), False),
        (CNN(((2, 3, 2),)), True),
    ],
    ids=["rank", "trans", "cnn", "compiled cnn"],
)
def test_a_policy_with_preprocessing_acts_as_one_whose_images_are_preprocessed(
    encoder: Encoder, compiled: bool, dtype: Any, contrast: Channel, squares: int, shape: tuple[int, int, int]
):
    channels: tuple[Channel, ...] = (contrast, "frame_difference", "first_frame_difference")
    config = PolicyConfig(shape, 0, 2, encoder=encoder, frames=2, preprocessing=channels)
    policy = random_policy(config, compiled=compiled)
    plain_config = replace(config, image_shape=config.input_shape, preprocessing=("image",))
    plain = Policy(plain_config, policy.params, compiled=compiled)
    images = images_of(shape, dtype)
    previous, state, other = images[0], policy.reset(), plain.reset()
    frame = images[0].copy()  # a camera that draws every image into the same memory
    for image in images:
        frame[:] = image
        shown = np.concatenate([channel_of(channel, image, previous, images[0]) for channel in channels], axis=2)
        action, state, _ = policy.act(state, {"image": frame, "sensors": np.empty(0)})
        wanted, other, _ = plain.act(other, {"image": shown, "sensors": np.empty(0)})
        np.testing.assert_allclose(action, wanted, atol=1e-5)
        previous = image


def test_features_of_an_episode_start_without_differences():
    config = PolicyConfig((12, 10, 2), 0, 2, encoder=Rank(2, 2), preprocessing=("frame_difference",))
    policy = random_policy(config)
    (observation,) = observations(config, 1)
    _, state, _ = policy.act(policy.reset(), observation)
    blank = Policy(replace(config, preprocessing=("image",)), policy.params, compiled=False)
    _, wanted, _ = blank.act(blank.reset(), {"image": np.zeros((12, 10, 2), np.uint8), "sensors": np.empty(0)})
    np.testing.assert_array_equal(state.inputs, wanted.inputs)
