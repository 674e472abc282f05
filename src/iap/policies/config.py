"""The config of a policy: everything about it that is chosen rather than learnt."""

from dataclasses import dataclass

import numpy as np

from iap._validation import require_count, require_flags, require_names, require_type
from iap.policies.controllers import Controller, Linear
from iap.policies.encoders import Encoder, Rank
from iap.policies.hierarchy import Hierarchy, column_std
from iap.policies.image_format import ImageFormat
from iap.policies.params import ParamSpec, Part
from iap.policies.preprocessing import Channel
from iap.policies.symmetry import Symmetry

MOST_PIXELS = 1 << 23  # height·width·channels of an image: a config from a file cannot allocate all memory


@dataclass(frozen=True)
class PolicyConfig:
    """The config of a policy: the options of the command line and the header of a policy file.

    Attributes:
        image_shape: (height, width, channels) of the camera image.
        sensors: number of sensor values in addition to the image.
        actions: number of action values in [−1, 1].
        encoder: image → features.
        controller: features and sensors → action, or command in a hierarchy.
        frames: number of encoded frames that the controller receives: the newest features, then their differences to
            the features of each earlier frame.
        preprocessing: the encoder's input channels, one kind after the other: the "image" itself; "frame_difference",
            the absolute difference to the last encoded frame (zero where nothing moves); "first_frame_difference", the
            difference to the episode's first frame, six times as strong; "local_contrast_coarse", each pixel minus the
            mean of a square of a third of the image's side; "local_contrast_fine", the same with a twelfth;
            "centred_image", twice the difference of each channel to its mean over the image; "signed_frame_difference",
            four times the difference to the last encoded frame. Differences with a sign are relative to the middle of
            the range, 128 for bytes, and clipped to the range.
        relative_to_first_frame: whether features are differences to those of the episode's first frame, so that
            constants of the episode, such as the camera's pose, cancel.
        first_frame_features: whether the features of the episode's first frame are inputs, after those of the
            current frame.
        normalise: whether the controller's inputs are normalised by running statistics.
        image_every: an image is encoded every `image_every` steps; sensors are inputs at every step.
        hierarchy: None, or a low level that acts on commands of the controller.
        symmetry: None, or the reflection of sensors and actions under which the policy is equivariant.
        image_format: dtype and range of the images, from the environment. None if they are not known, as in files of
            format 3 and before: then uint8 is scaled by 255, floats are taken as they are, and neither is checked.
    """

    image_shape: tuple[int, int, int]
    sensors: int
    actions: int
    encoder: Encoder = Rank()  # noqa: RUF009
    controller: Controller = Linear()  # noqa: RUF009
    frames: int = 1
    preprocessing: tuple[Channel, ...] = ("image",)
    relative_to_first_frame: bool = False
    first_frame_features: bool = False
    normalise: bool = True
    image_every: int = 1
    hierarchy: Hierarchy | None = None
    symmetry: Symmetry | None = None
    image_format: ImageFormat | None = None

    def __post_init__(self) -> None:
        _require_image(self.image_shape)
        require_count("sensors", self.sensors, least=0)
        for name in ("actions", "frames", "image_every"):
            require_count(name, getattr(self, name))
        require_flags(self, "normalise", "relative_to_first_frame", "first_frame_features")
        if self.first_frame_features and (self.frames > 1 or self.relative_to_first_frame):
            raise ValueError("first_frame_features must be False with several frames or relative_to_first_frame")
        require_names("preprocessing", self.preprocessing, Channel)
        require_type("encoder", self.encoder, Encoder)
        require_type("controller", self.controller, Controller)
        require_type("hierarchy", self.hierarchy, Hierarchy, type(None))
        require_type("symmetry", self.symmetry, Symmetry, type(None))
        require_type("image_format", self.image_format, ImageFormat, type(None))
        if self.hierarchy is not None and self.image_every > 1:
            raise ValueError(
                f"image_every must be 1 in a hierarchy, whose high level chooses when to encode, not {self.image_every}"
            )
        self.encoder.check(self.input_shape)

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """The shape of the encoder's input."""
        height, width, channels = self.image_shape
        return height, width, channels * len(self.preprocessing)

    @property
    def encoding_size(self) -> int:
        """The number of features of one frame."""
        return self.encoder.feature_size(self.input_shape)

    @property
    def features_size(self) -> int:
        """The number of features that the controller receives, of all frames."""
        return (self.frames + self.first_frame_features) * self.encoding_size

    @property
    def inputs_size(self) -> int:
        """The number of inputs that are normalised together: features, then sensors."""
        return self.features_size + self.sensors

    @property
    def controller_inputs_size(self) -> int:
        """The number of the controller's inputs: all, unless it is a high level without sensors."""
        if self.hierarchy is None or self.hierarchy.high_level_sensors:
            return self.inputs_size
        return self.features_size

    @property
    def outputs_size(self) -> int:
        """The number of the controller's outputs: an action, or a command and its duration."""
        return self.actions if self.hierarchy is None else self.hierarchy.latent_size + 1

    def formatted(self, image: np.ndarray) -> np.ndarray:
        """An image of the environment as preprocessing receives it; an error if it has another format."""
        if self.image_format is None:
            return image
        as_bytes = self.preprocessing != ("image",)
        return self.image_format.prepare(image, self.encoder.image_centre, as_bytes=as_bytes)

    def param_specs(self) -> dict[Part, list[ParamSpec]]:
        """All arrays of parameters, in the order of θ."""
        encoder = self.encoder.param_specs(self.input_shape)
        inputs, outputs, hierarchy = self.controller_inputs_size, self.outputs_size, self.hierarchy
        if hierarchy is None:
            return {"encoder": encoder, "controller": self.controller.param_specs(inputs, outputs, None)}
        std = column_std(self.features_size, 1.0, self.sensors if hierarchy.high_level_sensors else 0)
        low_inputs = hierarchy.latent_size + self.sensors
        return {
            "encoder": encoder,
            "controller": self.controller.param_specs(inputs, outputs, std),
            "low_level": hierarchy.low_level.param_specs(low_inputs, self.actions, hierarchy.command_std(self.sensors)),
        }


def _require_image(shape: object) -> None:
    if not isinstance(shape, tuple) or len(shape) != 3:  # noqa: PLR2004
        raise ValueError(f"image_shape must be (height, width, channels), not {shape!r}")
    height, width, channels = (require_count("image_shape", n) for n in shape)
    if height * width * channels > MOST_PIXELS:
        raise ValueError(f"image_shape must have at most {MOST_PIXELS} numbers, not {shape}")
