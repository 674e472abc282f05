"""What is chosen about a policy, not evolved: the command line's config and the policy file's header in one."""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from iap.attention.arrays import require_count
from iap.attention.features import ReLU, Softmax
from iap.attention.positions import Positions
from iap.policies.sizes import readout_size, require_fit
from iap.policies.tagged import Codec
from iap.policies.vision_specs import (
    CNN,
    Blind,
    ExactRank,
    MultiRank,
    Rank,
    Trans,
    Vision,
    require_flags,
    require_names,
    require_type,
)

__all__ = [
    "CNN",
    "LSTM",
    "MLP",
    "Blind",
    "Controller",
    "ExactRank",
    "Linear",
    "Mirror",
    "MultiRank",
    "PolicySpec",
    "Products",
    "Rank",
    "Trans",
    "TwoLevel",
    "Vision",
    "from_json",
    "to_json",
]
Sight = Literal["image", "changes", "departures", "contrast", "detail"]
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
class Products:
    """One layer, on the numbers and the products of each two of them: a force may be one of place times place.

    Attributes:
        changes: whether by how much each number has changed since the last step counts among the numbers, five times as
            strong: what is to be balanced must not fall fast.
    """

    changes: bool = False

    def __post_init__(self) -> None:
        require_flags(self, "changes")


Controller = Linear | MLP | LSTM | Products


@dataclass(frozen=True)
class TwoLevel:
    """A high level that looks and commands, and a low level that acts at every step on the command and the sensors.

    Attributes:
        latent: how many numbers the command has.
        longest_hold: for how many steps at most the high level can hold its command; it chooses from 1 on.
        low: the low level.
        senses: whether the high level feels the sensors beside what it sees; the low level always does.
        gain: of the low level for commands at the start: they have to be followed from the start to be told good from
            bad, and at a gain of 2 most are followed as far as can be.
    """

    latent: int = 2
    longest_hold: int = 10
    low: Controller = Linear()
    senses: bool = True
    gain: float = 2.0

    def __post_init__(self) -> None:
        require_count("latent", self.latent)
        require_count("longest_hold", self.longest_hold)
        require_type("low", self.low, *get_args(Controller))
        require_flags(self, "senses")
        require_type("gain", self.gain, float, int)
        if not 0 < self.gain < math.inf:
            raise ValueError(f"gain must be positive and finite, not {self.gain}")


@dataclass(frozen=True)
class Mirror:
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
class PolicySpec:
    """All that is chosen about a policy.

    Attributes:
        image_shape: (height, width, channels).
        sensors: how many numbers come beside the image.
        actions: how many numbers in [−1, 1] go out.
        vision: image → readout.
        controller: readout and sensors → action (or command).
        frames: how many looks' readouts the controller sees: the newest, then its differences to those before.
        sees: what the vision is shown, one set of channels after the other: the "image" itself; its "changes", by how
            much each pixel has changed since the last look (what stands still, such as a background, is black, and at
            the first look all is); its "departures", the same since the episode's first look and six times as strong,
            so that whatever has moved, and where it was at first, is bright all over; its "contrast", by how much each
            pixel stands out from the mean of what is around it, a square of a third of the image's side; its "detail",
            the same with a twelfth, which is what is thin.
        anchored: whether readouts are told as differences to the first look of the episode: what is the same throughout
            an episode, such as where the camera stands, then hardly matters.
        recalls: whether the readout of the episode's first look is told beside this one's: what that showed, such as a
            pole that hangs straight down in the image of a tilted camera, holds throughout.
        normalise: whether running statistics of what the controller receives are applied to it.
        look_every: the image is looked at every so many steps; sensors are felt at each.
        keys_every: keys are refreshed every so many looks, queries at each (Rank only).
        level: None, or a policy of two levels.
        mirror: None, or what left and right are, for a policy that treats them alike.
    """

    image_shape: tuple[int, int, int]
    sensors: int
    actions: int
    vision: Vision = Rank()  # noqa: RUF009
    controller: Controller = Linear()
    frames: int = 1
    sees: tuple[Sight, ...] = ("image",)
    anchored: bool = False
    recalls: bool = False
    normalise: bool = True
    look_every: int = 1
    keys_every: int = 1
    level: TwoLevel | None = None
    mirror: Mirror | None = None

    def __post_init__(self) -> None:
        _require_image(self.image_shape)
        require_count("sensors", self.sensors, least=0)
        for name in ("actions", "frames", "look_every", "keys_every"):
            require_count(name, getattr(self, name))
        require_flags(self, "normalise", "anchored", "recalls")
        if self.recalls and (self.frames > 1 or self.anchored):
            raise ValueError("recalls must be False with several frames, and with anchored readouts")
        require_names("sees", self.sees, Sight)
        require_type("vision", self.vision, *get_args(Vision))
        require_type("controller", self.controller, *get_args(Controller))
        require_type("level", self.level, TwoLevel, type(None))
        require_type("mirror", self.mirror, Mirror, type(None))
        if self.keys_every > 1 and not isinstance(self.vision, Rank):
            raise ValueError(f"keys_every must be 1 unless vision is Rank, not {self.keys_every}")
        if self.level is not None and self.look_every > 1:
            raise ValueError(f"look_every must be 1 with two levels, which choose when to look, not {self.look_every}")
        if self.level is not None and _remembers(self.level.low) and _remembers(self.controller):
            raise ValueError("controller must have no memory above a low level that has one: an LSTM, or changes")
        require_fit(self.vision, self.seen_shape)

    @property
    def seen_shape(self) -> tuple[int, int, int]:
        """Of what the vision is shown."""
        height, width, channels = self.image_shape
        return height, width, channels * len(self.sees)

    @property
    def readout_size(self) -> int:
        """How many numbers one look gives."""
        return readout_size(self.vision, self.seen_shape)

    @property
    def features_size(self) -> int:
        """How many numbers the controller receives of this look and others."""
        return (self.frames + self.recalls) * self.readout_size

    @property
    def inputs_size(self) -> int:
        """How many numbers the controller receives: features, then sensors."""
        return self.features_size + self.sensors

    @property
    def controller_inputs_size(self) -> int:
        """How many of the inputs the controller receives: all, unless it is a high level that does not feel sensors."""
        return self.inputs_size if self.level is None or self.level.senses else self.features_size

    @property
    def outputs_size(self) -> int:
        """How many numbers the controller gives: an action, or a command and how long to hold it."""
        return self.actions if self.level is None else self.level.latent + 1


def _remembers(controller: Controller) -> bool:
    return isinstance(controller, LSTM) or controller == Products(changes=True)


def _require_image(shape: object) -> None:
    if not isinstance(shape, tuple) or len(shape) != 3:  # noqa: PLR2004
        raise ValueError(f"image_shape must be (height, width, channels), not {shape!r}")
    height, width, channels = (require_count("image_shape", n) for n in shape)
    if height * width * channels > MOST_PIXELS:
        raise ValueError(f"image_shape must have at most {MOST_PIXELS} numbers, not {shape}")


Spec = TypeVar("Spec")
KINDS: dict[str, type] = {
    "policy": PolicySpec,
    "rank": Rank,
    "multi-rank": MultiRank,
    "trans": Trans,
    "exact-rank": ExactRank,
    "cnn": CNN,
    "blind": Blind,
    "linear": Linear,
    "mlp": MLP,
    "lstm": LSTM,
    "products": Products,
    "two-level": TwoLevel,
    "mirror": Mirror,
    "relu": ReLU,
    "softmax": Softmax,
    "positions": Positions,
}
CODEC = Codec(KINDS)


def to_json(spec: Any) -> dict[str, Any]:
    """A spec as plain JSON, each part tagged with its `kind`."""
    return CODEC.write(spec)


def from_json(data: Any, kind: type[Spec] = PolicySpec) -> Spec:
    """The inverse of `to_json`; fields left out take their defaults, and whatever is wrong is a ValueError."""
    return CODEC.read("spec", data, (kind,))
