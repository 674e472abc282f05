"""Image → input channels of the encoder, for batches of PyTorch tensors; the same bytes as the compiled code."""

import torch
from torch.nn.functional import avg_pool2d

from iap.policies.preprocessing import (
    CENTRED_GAIN,
    COARSE_SQUARES,
    FINE_SQUARES,
    FIRST_FRAME_GAIN,
    ROUNDING,
    SIGNED_GAIN,
    Channel,
)

HALF = 0.5  # before rounding quotients of whole numbers down, so that they stay whole


def preprocess(
    channels: tuple[Channel, ...], images: torch.Tensor, previous: torch.Tensor, first: torch.Tensor
) -> torch.Tensor:
    """The encoder's input, (n, H, W, channels), of the images' dtype.

    Args:
        channels: the kinds of channels.
        images: (n, H, W, C), uint8 or float.
        previous: the frames that were encoded before.
        first: the episodes' first frames.
    """
    if channels == ("image",):
        return images
    is_bytes = images.dtype == torch.uint8
    x, most = images.to(torch.float32 if is_bytes else images.dtype), 255.0 if is_bytes else 1.0
    parts = []
    for kind in channels:
        if kind == "image":
            parts.append(x)
        elif kind == "frame_difference":
            parts.append((x - previous.to(x.dtype)).abs())
        elif kind == "first_frame_difference":
            parts.append((FIRST_FRAME_GAIN * (x - first.to(x.dtype)).abs()).clamp(max=most))
        elif kind == "signed_frame_difference":
            grey = 128.0 if is_bytes else 0.5
            parts.append((SIGNED_GAIN * (x - previous.to(x.dtype)) + grey).clamp(0, most))
        elif kind == "centred_image":
            parts.append(
                _centred(images) if is_bytes else (CENTRED_GAIN * (x - x.mean((1, 2), True)) + 0.5).clamp(0, 1)
            )
        else:
            squares = COARSE_SQUARES if kind == "local_contrast_coarse" else FINE_SQUARES
            reach = max(1, min(x.shape[1], x.shape[2]) // (2 * squares))
            parts.append(_contrast(x, reach, is_bytes=is_bytes))
    return torch.cat(parts, dim=3).to(images.dtype)


def _centred(images: torch.Tensor) -> torch.Tensor:
    """Bytes minus the mean of their channel, times a gain, plus 128; by sums of integers, which are exact."""
    whole = images.to(torch.int64)
    pixels = whole.shape[1] * whole.shape[2]
    offset = torch.div(128 * pixels - CENTRED_GAIN * whole.sum((1, 2), True), pixels, rounding_mode="floor")
    return (CENTRED_GAIN * whole + offset).clamp(0, 255).float()


def _contrast(x: torch.Tensor, reach: int, *, is_bytes: bool) -> torch.Tensor:
    """Each number minus the mean of the square around it, plus the middle of the range."""
    planes = x.permute(0, 3, 1, 2)
    ones = torch.ones_like(planes[:1, :1])
    sums, pixels = _sums(planes, reach), _sums(ones, reach)
    if is_bytes:
        scaled = ((planes + 128) * pixels - sums).clamp(min=0)
        contrast = ((scaled + HALF) / pixels).floor().clamp(max=255)
    else:
        contrast = (planes - sums / pixels + (0.5 + ROUNDING)).clamp(0, 1)
    return contrast.permute(0, 2, 3, 1)


def _sums(planes: torch.Tensor, reach: int) -> torch.Tensor:
    """The sum over the square around each place, cut off by the image; exact for whole numbers."""
    side = 2 * reach + 1
    columns = avg_pool2d(planes, (side, 1), 1, (reach, 0), divisor_override=1)
    return avg_pool2d(columns, (1, side), 1, (0, reach), divisor_override=1)
