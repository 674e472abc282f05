"""What images a policy was trained on: their dtype and range, and how they are scaled before the encoder."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from iap._validation import NotFiniteError, require_flags, require_name, require_number

Dtype = Literal["uint8", "uint16", "float32"]

BYTE = 255.0
TOLERANCE = 1e-3  # of the range: values this far outside of it are rounding errors


@dataclass(frozen=True)
class ImageFormat:
    """The dtype and range of images, which are those of the environment's observation space.

    Scaled images reach the encoder as (x − low)/(high − low), minus its centre of 0.5, whatever their dtype, so that
    one picture gives the same action as uint8 and as floats. uint8 images from 0 to 255 are scaled by the compiled code
    itself. Preprocessing works on 8 bits: before it, scaled images of another format are rounded to 256 levels.

    Attributes:
        dtype: of the images; float32 stands for float64 too.
        low: the smallest value; None if there is no bound.
        high: the largest value; None if there is no bound.
        scaled: whether images are scaled by these bounds; else floats are taken as they are, such as depth in metres.
    """

    dtype: Dtype = "uint8"
    low: float | None = 0.0
    high: float | None = BYTE
    scaled: bool = True

    def __post_init__(self) -> None:
        require_name("image_format.dtype", self.dtype, Dtype)
        require_flags(self, "scaled")
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                require_number(f"image_format.{name}", getattr(self, name), -np.inf)
        if self.low is None or self.high is None:
            if self.scaled:
                raise ValueError("image_format.scaled must be False without bounds")
        elif not self.low < self.high:
            raise ValueError(f"image_format.low must be less than high, not {self.low} and {self.high}")

    @classmethod
    def of(cls, dtype: np.dtype, low: float, high: float, *, physical: bool = False) -> "ImageFormat":
        """The format of an observation space; physical values, such as metres, are not scaled."""
        name = str(np.dtype(dtype))
        if name not in get_args(Dtype):
            raise ValueError(f"image must be {', '.join(get_args(Dtype))}, not {name}")
        bounds = [float(x) if np.isfinite(x) else None for x in (low, high)]
        return cls(name, *bounds, scaled=not physical and None not in bounds)  # pyright: ignore[reportArgumentType]

    @property
    def is_plain(self) -> bool:
        """Whether images go to the compiled code as they are: uint8 from 0 to 255."""
        return (self.dtype, self.low, self.high, self.scaled) == ("uint8", 0.0, BYTE, True)

    def prepare(self, image: np.ndarray, centre: float = 0.5, *, as_bytes: bool = False) -> np.ndarray:
        """The image for the encoder, uint8 or float32, if it has this format; else an error that names the fix.

        Args:
            image: of any shape.
            centre: of the encoder, subtracted from scaled images.
            as_bytes: whether a scaled image is needed as uint8, which preprocessing works on.
        """
        self.check_dtype(image)
        if self.is_plain:
            return image
        image = image.astype(np.float32, copy=False)
        self._check_range(image)
        if not self.scaled:
            return image
        assert self.low is not None
        assert self.high is not None
        share = (image - np.float32(self.low)) * np.float32(1 / (self.high - self.low))
        if as_bytes:
            return np.rint(np.clip(share, 0, 1) * np.float32(BYTE)).astype(np.uint8)
        return share - np.float32(centre)

    def check_dtype(self, image: np.ndarray) -> None:
        """Refuse an image of another dtype."""
        if image.dtype == self.dtype or (self.dtype == "float32" and image.dtype == np.float64):
            return
        raise TypeError(f"image must be {self}, as the policy was trained, not {image.dtype}: {self._fix(image)}")

    def _fix(self, image: np.ndarray) -> str:
        if self.is_plain:
            if np.issubdtype(image.dtype, np.floating):
                return "if it is from 0 to 1, pass (255 * image).astype(numpy.uint8)"
            return "if it is from 0 to 255, pass image.astype(numpy.uint8)"
        if self.dtype == "float32" and image.dtype == np.uint8 and (self.low, self.high) == (0.0, 1.0):
            return "pass image / 255"
        return f"pass image.astype(numpy.{self.dtype}), after scaling it to that range"

    def _check_range(self, image: np.ndarray) -> None:
        """Refuse NaN, infinity, and values outside of the bounds."""
        least, most = float(image.min()), float(image.max())
        if not (np.isfinite(least) and np.isfinite(most)):
            raise NotFiniteError("image must be finite, but it holds NaN or infinity")
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        margin = 0.0 if self.low is None or self.high is None else TOLERANCE * (self.high - self.low)
        if low - margin <= least and most <= high + margin:
            return
        hint = "divide it by 255" if high == 1 and most <= BYTE and least >= 0 else "scale it to that range"
        raise ValueError(f"image must be {self}, as the policy was trained, but is from {least:g} to {most:g}: {hint}")

    def __str__(self) -> str:
        low, high = ("any value" if x is None else f"{x:g}" for x in (self.low, self.high))
        return f"{self.dtype} from {low} to {high}"
