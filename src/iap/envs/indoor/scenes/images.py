"""Images of a scene: textures, and maps seen from above."""

import io
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from iap.envs.indoor.scenes.errors import SceneError, read_bytes

LARGEST_SIDE = 16_384
LARGEST_PIXELS = 8_192**2


def read_image(path: Path, mode: str) -> UInt8[np.ndarray, "H W *C"]:
    """An image file in a mode of Pillow: "RGB" or "L"."""
    from PIL import Image

    content = read_bytes(path)
    try:
        with Image.open(io.BytesIO(content)) as image:
            width, height = image.size
            if max(width, height) > LARGEST_SIDE or width * height > LARGEST_PIXELS:
                raise SceneError(path, f"has {width}×{height} pixels, more than the {LARGEST_PIXELS:,} that are read")
            return np.array(image.convert(mode))
    except SceneError:
        raise
    except Exception as error:  # Pillow raises many kinds of errors for damaged files
        raise SceneError(path, f"is not a whole image ({error})") from error


def png(pixels: UInt8[np.ndarray, "H W *C"], compression: int = 6) -> bytes:
    """The content of a PNG file."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", compress_level=compression)
    return stream.getvalue()
