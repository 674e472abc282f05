"""An encoder as a PyTorch module."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from iap.interop.torch.arrays import Arrays
from iap.policies.encoders.base import Encoder as EncoderConfig
from iap.policies.encoders.base import Encoding, Shape


class Encoder(nn.Module):
    """Images → features, scores and selected patches, through the encoder's array-API forward pass.

    Example:
        >>> import torch
        >>> from iap.interop.torch import Encoder
        >>> from iap.policies import Rank
        >>> encoder = Encoder(Rank(top_k=5), (32, 32, 3))
        >>> features, scores, selected = encoder(torch.rand(7, 32, 32, 3))
        >>> features.shape, scores.shape, selected.shape
        (torch.Size([7, 10]), torch.Size([7, 64]), torch.Size([7, 5]))
    """

    def __init__(
        self,
        config: EncoderConfig,
        image_shape: Shape,
        params: Mapping[str, np.ndarray] | None = None,
        *,
        seed: int = 0,
    ) -> None:
        """A module for images of one shape.

        Args:
            config: the encoder's config, such as `Rank(patch=2)`.
            image_shape: (height, width, channels).
            params: its arrays; random ones by default.
            seed: of the random arrays.
        """
        super().__init__()
        config.check(image_shape)
        self.config, self.image_shape = config, image_shape
        self.feature_size = config.feature_size(image_shape)
        self.window = config.window(image_shape)
        self.params = Arrays(_random(config, image_shape, seed) if params is None else params)

    def forward(self, images: torch.Tensor, uniforms: torch.Tensor | None = None) -> Encoding:
        """Encode (n, H, W, C) images: uint8, or floats as they are.

        Args:
            images: the images.
            uniforms: (n, L) numbers from (0, 1) for encoders that sample patches; random ones by default.
        """
        if tuple(images.shape[1:]) != self.image_shape:
            raise ValueError(f"images must be of shape (n, *{self.image_shape}), not {tuple(images.shape)}")
        if self.config.samples and uniforms is None:
            assert self.window is not None
            uniforms = torch.rand(len(images), self.window.grid.patches, device=images.device)
        return self.config.forward(self.params.tensors(), images, uniforms)


def _random(config: EncoderConfig, image_shape: Shape, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {spec.name: spec.draw(rng) for spec in config.param_specs(image_shape)}
