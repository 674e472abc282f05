"""Features of images by attention, for the policies of Stable-Baselines3."""

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from iap.interop.torch import Encoder
from iap.policies import Attention, PooledMoments, Rank
from iap.policies.encoders.base import Encoder as EncoderConfig
from iap.policies.encoders.base import Shape

IMAGE_AXES = 3
DEFAULT = Rank(patch=4, stride=4, d=8, top_k=10, bias=True, features=PooledMoments(8, True, True))
OWN = ""  # the key of an observation that is an image


class AttentionExtractor(BaseFeaturesExtractor):
    """An encoder of this package for every image of an observation; other entries are passed on.

    For CnnPolicy, whose observation is an image, and MultiInputPolicy, whose observation is a dict with images:

        PPO("CnnPolicy", env, policy_kwargs={
            "features_extractor_class": AttentionExtractor,
            "features_extractor_kwargs": {"encoder": Rank(patch=4, top_k=10)}})

    Images may have their channels first, as Stable-Baselines3 transposes them, or last.

    Attributes:
        encoders: a module for each image.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space,
        encoder: EncoderConfig = DEFAULT,
        normalized_image: bool = False,
        seed: int = 0,
    ) -> None:
        """An extractor for an observation space.

        Args:
            observation_space: a Box image, or a Dict with at least one.
            encoder: the config of the encoder; each image has its own parameters.
            normalized_image: whether images are floats in a range of their own; otherwise they are bytes, which
                Stable-Baselines3 divides by 255.
            seed: of the initial parameters.
        """
        entries = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {OWN: observation_space}
        images = {key: tuple(space.shape or ()) for key, space in entries.items() if is_image(space)}
        if not images:
            raise ValueError(f"observation_space must be an image or a Dict with one, not {observation_space}")
        shapes = {key: image_shape(shape) for key, shape in images.items()}
        sizes = {
            key: encoder.feature_size(shapes[key]) if key in shapes else get_flattened_obs_dim(space)
            for key, space in entries.items()
        }
        super().__init__(observation_space, sum(sizes.values()))
        self._channels_first = {key: channels_first(shape) for key, shape in images.items()}
        self._keys, self._is_dict = list(entries), isinstance(observation_space, spaces.Dict)
        self._is_byte = {key: entries[key].dtype == np.uint8 and not normalized_image for key in images}
        self.encoders = torch.nn.ModuleDict(
            {f"image_{key}": Encoder(encoder, shape, seed=seed) for key, shape in shapes.items()}
        )

    def forward(self, observations: torch.Tensor | dict[str, torch.Tensor]) -> torch.Tensor:
        """All features, in the order of the observation's entries."""
        entries = observations if isinstance(observations, dict) else {OWN: observations}
        parts = []
        for key in self._keys:
            if key in self._channels_first:
                parts.append(self.encoder_of(key)(self._pixels(key, entries[key])).features)
            else:
                parts.append(entries[key].flatten(1))
        return torch.cat(parts, dim=1)

    def encoder_of(self, key: str) -> Encoder:
        """The module of one image."""
        module = self.encoders[f"image_{key}"]
        assert isinstance(module, Encoder)
        return module

    @torch.no_grad()
    def attention(self, observations: torch.Tensor | dict[str, torch.Tensor]) -> dict[str, list[Attention]]:
        """What each image of a batch attends to, by the image's key ("" for an observation that is an image).

        Args:
            observations: as `forward` takes them, after Stable-Baselines3's preprocessing.
        """
        entries = observations if isinstance(observations, dict) else {OWN: observations}
        attended = {}
        for key in self._channels_first:
            encoder = self.encoder_of(key)
            if encoder.window is None:
                continue
            encoding = encoder(self._pixels(key, entries[key]))
            scores = encoding.scores.cpu().numpy()
            count = len(scores)
            selected = [[]] * count if encoding.selected is None else encoding.selected.cpu().numpy()
            attended[key] = [
                Attention(scores[i], np.asarray(selected[i], np.int64), *encoder.window) for i in range(count)
            ]
        return attended

    def _pixels(self, key: str, images: torch.Tensor) -> torch.Tensor:
        """(n, H, W, C); bytes, which were divided by 255, around 0."""
        if self._channels_first[key]:
            images = images.permute(0, 2, 3, 1)
        images = images.float()
        return images - 0.5 if self._is_byte[key] else images


def is_image(space: gymnasium.Space) -> bool:
    """Whether a space is one of images, by its number of axes."""
    return isinstance(space, spaces.Box) and len(space.shape) == IMAGE_AXES


def channels_first(shape: tuple[int, ...]) -> bool:
    """Whether (C, H, W) rather than (H, W, C): the channels are the smaller number."""
    return shape[0] < shape[2]


def image_shape(shape: tuple[int, ...]) -> Shape:
    """(height, width, channels)."""
    first, second, third = shape
    return (second, third, first) if channels_first(shape) else (first, second, third)
