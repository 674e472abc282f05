"""What is chosen about a policy, not evolved: the command line's config and the policy file's header in one."""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from iap.attention.arrays import require_count
from iap.attention.features import ReLU, Softmax
from iap.attention.positions import Positions
from iap.policies.codec import Codec
from iap.policies.encoder_configs import (
    CNN,
    AttentionAgent,
    Blind,
    Encoder,
    MultiHeadRank,
    Rank,
    Trans,
    require_flags,
    require_names,
    require_type,
)
from iap.policies.sizes import readout_size, require_fit

__all__ = [
    "CNN",
    "LSTM",
    "MLP",
    "Blind",
    "Controller",
    "AttentionAgent",
    "Linear",
    "Symmetry",
    "MultiHeadRank",
    "PolicyConfig",
    "Quadratic",
    "Rank",
    "Trans",
    "Hierarchy",
    "Encoder",
    "from_json",
    "to_json",
]
Sight = Literal["image", "frame_difference", "first_frame_difference", "local_contrast_coarse", "local_contrast_fine"]
MOST_PIXELS = 1 << 23  # numbers, eight megapixels of grey: a spec that came in a file cannot ask for all of the memory


@dataclass(frozen=True)
class Linear:
    """One layer."""


@dataclass(frozen=True)
class MLP:
    """Layers of tanh units, then a linear one."""

    hidden: tuple[int, ...] = (16,)

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, tuple) or not self.hidden:
            raise ValueError(f"hidden must be a tuple of layer sizes, not {self.hidden!r}")
        for units in self.hidden:
            require_count("hidden", units)


@dataclass(frozen=True)
class LSTM:
    """A recurrent layer, then a linear one."""

    units: int = 16

    def __post_init__(self) -> None:
        require_count("units", self.units)


@dataclass(frozen=True)
class Quadratic:
    """One layer, on the numbers and the products of each two of them: a force may be one of place times place.

    Attributes:
        changes: whether by how much each number has changed since the last step counts among the numbers, five times as
            strong: what is to be balanced must not fall fast.
    """

    changes: bool = False

    def __post_init__(self) -> None:
        require_flags(self, "frame_difference")


Controller = Linear | MLP | LSTM | Quadratic


@dataclass(frozen=True)
class Hierarchy:
    """A high level that looks and commands, and a low level that acts at every step on the command and the sensors.

    Attributes:
        latent: how many numbers the command has.
        max_command_steps: for how many steps at most the high level can hold its command; it chooses from 1 on.
        low: the low level.
        senses: whether the high level feels the sensors beside what it sees; the low level always does.
        gain: of the low level for commands at the start: they have to be followed from the start to be told good from
            bad, and at a gain of 2 most are followed as far as can be.
    """

    latent: int = 2
    max_command_steps: int = 10
    low: Controller = Linear()
    senses: bool = True
    gain: float = 2.0

    def __post_init__(self) -> None:
        require_count("latent", self.latent)
        require_count("max_command_steps", self.max_command_steps)
        require_type("low", self.low, *get_args(Controller))
        require_flags(self, "senses")
        require_type("gain", self.gain, float, int)
        if not 0 < self.gain < math.inf:
            raise ValueError(f"gain must be positive and finite, not {self.gain}")


@dataclass(frozen=True)
class Symmetry:
    """What left and right are: how a mirror changes sensors and actions. What is left empty, the environment tells.

    Attributes:
        sensors: for each number in the mirror, which number it is out of it, counted from 1; negative if its sign
            changes.
        actions: the same for actions.
        offsets: what is added to each sensor after that; all 0 if not given.
    """

    sensors: tuple[int, ...] = ()
    actions: tuple[int, ...] = ()
    offsets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("sensors", "actions"):
            places = getattr(self, name)
            if sorted(map(abs, places)) != list(range(1, len(places) + 1)):
                raise ValueError(f"mirror.{name} must hold each of 1 to {len(places)} once, with a sign, not {places}")
        if self.offsets and len(self.offsets) != len(self.sensors):
            raise ValueError(f"mirror.offsets must be {len(self.sensors)}, one a sensor, not {len(self.offsets)}")


@dataclass(frozen=True)
class PolicyConfig:
    """All that is chosen about a policy.

    Attributes:
        image_shape: (height, width, channels).
        sensors: how many numbers come beside the image.
        actions: how many numbers in [−1, 1] go out.
        encoder: image → readout.
        controller: readout and sensors → action (or command).
        frames: how many looks' readouts the controller preprocessing: the newest, then its differences to those before.
        preprocessing: what the encoder is shown, one set of channels after the other: the "image" itself; its "frame_difference", by how
            much each pixel has changed since the last look (what stands still, such as a background, is black, and at
            the first look all is); its "first_frame_difference", the same since the episode's first look and six times as strong,
            so that whatever has moved, and where it was at first, is bright all over; its "local_contrast_coarse", by how much each
            pixel stands out from the mean of what is around it, a square of a third of the image's side; its "local_contrast_fine",
            the same with a twelfth, which is what is thin.
        relative_to_first_frame: whether readouts are told as differences to the first look of the episode: what is the same throughout
            an episode, such as where the camera stands, then hardly matters.
        first_frame_features: whether the readout of the episode's first look is told beside this one's: what that showed, such as a
            pole that hangs straight down in the image of a tilted camera, holds throughout.
        normalise: whether running statistics of what the controller receives are applied to it.
        image_every: the image is looked at every so many steps; sensors are felt at each.
        keys_every: keys are refreshed every so many looks, queries at each (Rank only).
        level: None, or a policy of two levels.
        mirror: None, or what left and right are, for a policy that treats them alike.
    """

    image_shape: tuple[int, int, int]
    sensors: int
    actions: int
    encoder: Encoder = Rank()  # noqa: RUF009
    controller: Controller = Linear()
    frames: int = 1
    preprocessing: tuple[Sight, ...] = ("image",)
    relative_to_first_frame: bool = False
    first_frame_features: bool = False
    normalise: bool = True
    image_every: int = 1
    keys_every: int = 1
    level: Hierarchy | None = None
    mirror: Symmetry | None = None

    def __post_init__(self) -> None:
        _require_image(self.image_shape)
        require_count("sensors", self.sensors, least=0)
        for name in ("actions", "frames", "image_every", "keys_every"):
            require_count(name, getattr(self, name))
        require_flags(self, "normalise", "relative_to_first_frame", "first_frame_features")
        if self.first_frame_features and (self.frames > 1 or self.relative_to_first_frame):
            raise ValueError(
                "first_frame_features must be False with several frames, and with relative_to_first_frame readouts"
            )
        require_names("preprocessing", self.preprocessing, Sight)
        require_type("encoder", self.encoder, *get_args(Encoder))
        require_type("controller", self.controller, *get_args(Controller))
        require_type("level", self.hierarchy, Hierarchy, type(None))
        require_type("mirror", self.mirror, Symmetry, type(None))
        if self.keys_every > 1 and not isinstance(self.encoder, Rank):
            raise ValueError(f"keys_every must be 1 unless encoder is Rank, not {self.keys_every}")
        if self.hierarchy is not None and self.image_every > 1:
            raise ValueError(
                f"image_every must be 1 with two levels, which choose when to look, not {self.image_every}"
            )
        if self.hierarchy is not None and _remembers(self.hierarchy.low_level) and _remembers(self.controller):
            raise ValueError("controller must have no memory above a low level that has one: an LSTM, or changes")
        require_fit(self.encoder, self.input_shape)

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Of what the encoder is shown."""
        height, width, channels = self.image_shape
        return height, width, channels * len(self.preprocessing)

    @property
    def readout_size(self) -> int:
        """How many numbers one look gives."""
        return readout_size(self.encoder, self.input_shape)

    @property
    def features_size(self) -> int:
        """How many numbers the controller receives of this look and others."""
        return (self.frames + self.first_frame_features) * self.readout_size

    @property
    def inputs_size(self) -> int:
        """How many numbers the controller receives: features, then sensors."""
        return self.features_size + self.sensors

    @property
    def controller_inputs_size(self) -> int:
        """How many of the inputs the controller receives: all, unless it is a high level that does not feel sensors."""
        return self.inputs_size if self.hierarchy is None or self.hierarchy.high_level_sensors else self.features_size

    @property
    def outputs_size(self) -> int:
        """How many numbers the controller gives: an action, or a command and how long to hold it."""
        return self.actions if self.hierarchy is None else self.hierarchy.latent_size + 1


def _remembers(controller: Controller) -> bool:
    return isinstance(controller, LSTM) or controller == Quadratic(changes=True)


def _require_image(shape: object) -> None:
    if not isinstance(shape, tuple) or len(shape) != 3:  # noqa: PLR2004
        raise ValueError(f"image_shape must be (height, width, channels), not {shape!r}")
    height, width, channels = (require_count("image_shape", n) for n in shape)
    if height * width * channels > MOST_PIXELS:
        raise ValueError(f"image_shape must have at most {MOST_PIXELS} numbers, not {shape}")


Spec = TypeVar("Spec")
KINDS: dict[str, type] = {
    "policy": PolicyConfig,
    "rank": Rank,
    "multi-head-rank": MultiHeadRank,
    "trans": Trans,
    "attention-agent": AttentionAgent,
    "cnn": CNN,
    "blind": Blind,
    "linear": Linear,
    "mlp": MLP,
    "lstm": LSTM,
    "quadratic": Quadratic,
    "hierarchy": Hierarchy,
    "mirror": Symmetry,
    "relu": ReLU,
    "softmax": Softmax,
    "positions": Positions,
}
CODEC = Codec(KINDS)


def to_json(spec: Any) -> dict[str, Any]:
    """A spec as plain JSON, each part tagged with its `kind`."""
    return CODEC.write(spec)


def from_json(data: Any, kind: type[Spec] = PolicyConfig) -> Spec:
    """The inverse of `to_json`; fields left out take their defaults, and whatever is wrong is a ValueError."""
    return CODEC.read("spec", data, (kind,))
