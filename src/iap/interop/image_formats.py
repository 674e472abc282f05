"""The image formats that exported policies support."""

from iap.policies import PolicyConfig


def require_exported_format(config: PolicyConfig, form: str) -> None:
    """Refuse a policy whose images are scaled by other bounds than those of bytes: exports do not scale them."""
    images = config.image_format
    if config.encoder.uses_image and images is not None and images.scaled and not images.is_plain:
        raise ValueError(
            f"a policy for images of {images}, which are scaled, has no {form}: train it on uint8 images from 0 to 255"
        )
