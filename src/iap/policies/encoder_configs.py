"""How a policy may look: the encoders to choose from, each with all that is chosen about it."""

from dataclasses import dataclass
from typing import Literal, get_args

from iap.attention.arrays import require_count
from iap.attention.features import Kernel, ReLU, Softmax
from iap.attention.positions import Positions
from iap.attention.selection import check_samplable

Value = Literal["pixels", "centres", "projection"]
Order = Literal["score", "image", "pooled"]
Select = Literal["top", "sample"]
ScaleBy = Literal["input", "d"]

# No use reaches these: they keep a spec that came in a file from asking for all of the memory.
MOST_DIMENSIONS = 1 << 10
MOST_PROJECTIONS = 1 << 14


@dataclass(frozen=True)
class Rank:
    """IAP-rank: linear attention scores every patch, and a few are kept.

    Attributes:
        patch: side of a patch in pixels.
        stride: pixels from one patch to the next.
        d: dimensions of queries and keys.
        top_k: l, how many patches are kept.
        kernel: which attention.
        positions: how patches are told where they are.
        values: what is read of a kept patch: its "pixels", its "centres" (row and column, ±1), a learnt "projection".
        projected: v, how many numbers the projection makes of a patch.
        order: of kept patches: by "score", by place in the "image", or "pooled" by heads, which asks for no order.
        heads: how many heads pool; each weighs patches by relu(a·mean colour + b), and tells centroid (2), second
            moments (3) and mass (1).
        placed: whether heads weigh patches by their place too, relu(a·mean colour + c·centre + b): each then tells of
            what lies on its side of the image.
        soft: whether heads weigh patches by their scores too, counted from the least that is kept: a patch that comes
            or goes then changes little.
        masked: whether all L patches are read, in place, those not kept as zeros; else only those kept ("gathered").
        select: the "top" scores, or a "sample" drawn by them.
        learn_pooling: whether P, the weight of each of the L queries, is evolved; else all ones.
        normalise_rows: whether each query's attention sums to one.
        bias: whether queries and keys have biases.
    """

    patch: int = 4
    stride: int = 4
    d: int = 4
    top_k: int = 10
    kernel: Kernel = ReLU()
    positions: Positions = Positions()
    values: tuple[Value, ...] = ("centres",)
    projected: int = 4
    order: Order = "image"
    heads: int = 4
    placed: bool = False
    soft: bool = False
    masked: bool = False
    select: Select = "top"
    learn_pooling: bool = False
    normalise_rows: bool = False
    bias: bool = False

    def __post_init__(self) -> None:
        _check_attention(self.patch, self.stride, self.d, self.kernel)
        require_type("positions", self.positions, Positions)
        for name in ("top_k", "projected", "heads"):
            require_count(name, getattr(self, name))
        require_names("values", self.values, Value)
        _require_name("order", self.order, Order)
        _require_name("select", self.select, Select)
        require_flags(self, "placed", "soft", "masked", "learn_pooling", "normalise_rows", "bias")
        if self.masked and self.order != "image":
            raise ValueError(
                f'order must be "image" with masked=True, which leaves patches in place, not {self.order!r}'
            )
        if self.order == "pooled" and self.values != ("centres",):
            raise ValueError(f'values must be ("centres",) with order="pooled", not {self.values!r}')
        if self.select == "sample":
            check_samplable(self.kernel)


@dataclass(frozen=True)
class MultiHeadRank:
    """IAP-rank with several heads: each ranks all patches in its own way, keeps a few, and tells where they lie.

    Queries and keys are the heads' in common, with ReLU features; a head has but a gain for each of these features,
    r_h = (1/L)·K′(g_h ∘ Q′ᵀ1). Its patches count by the square of how far their scores lie above the least that is
    kept: then a patch that comes or goes changes little, and a gradient can tell the eyes what would have been better.

    Attributes:
        patch: side of a patch in pixels.
        stride: pixels from one patch to the next.
        d: dimensions of queries and keys, which have biases.
        heads: how many; each tells centroid (2), second moments (3) and mass (1).
        top_k: l, how many patches each head keeps.
        stem: (filters, size, stride) of convolutions with ReLU that come first: queries and keys are then a deeper
            function of a larger patch, and `patch` and `stride` count places of what the stem gives, not pixels.
    """

    patch: int = 4
    stride: int = 2
    d: int = 8
    heads: int = 4
    top_k: int = 20
    stem: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        _check_layers("stem", self.stem)
        _check_attention(self.patch, self.stride, self.d, ReLU())
        require_count("heads", self.heads, most=MOST_DIMENSIONS)
        require_count("top_k", self.top_k)


@dataclass(frozen=True)
class Trans:
    """IAP-trans: attention mixes the patches' values, and a learnt P compresses the L rows to `rows`.

    Attributes:
        patch: side of a patch in pixels.
        stride: pixels from one patch to the next.
        d: dimensions of queries and keys.
        rows: l, the rows of P.
        width: v, the length of a value, a learnt projection of a patch.
        kernel: which attention.
        positions: how patches are told where they are.
        residual: whether the values themselves are added to what attention makes of them.
        layer_norm: whether each row is brought to mean 0 and variance 1; the controller has the gains.
        normalise_rows: whether each query's attention sums to one, so that the residual is of the same size.
    """

    patch: int = 4
    stride: int = 4
    d: int = 4
    rows: int = 4
    width: int = 4
    kernel: Kernel = Softmax()
    positions: Positions = Positions()
    residual: bool = True
    layer_norm: bool = True
    normalise_rows: bool = True

    def __post_init__(self) -> None:
        _check_attention(self.patch, self.stride, self.d, self.kernel)
        require_type("positions", self.positions, Positions)
        require_count("rows", self.rows)
        require_count("width", self.width)
        require_flags(self, "residual", "layer_norm", "normalise_rows")


@dataclass(frozen=True)
class AttentionAgent:
    """AttentionAgent (Tang et al. 2020): exact softmax attention; the kept patches' centres in order of importance.

    Attributes:
        patch: side of a patch in pixels.
        stride: pixels from one patch to the next.
        d: dimensions of queries and keys, which have biases.
        top_k: K, how many patches are kept.
        scale_by: logits are divided by the root of the "input" dimension (as published), or of "d".
        linear: whether linear, row-normalised attention takes the place of the exact one.
        kernel: of the linear attention.
    """

    patch: int = 7
    stride: int = 4
    d: int = 4
    top_k: int = 10
    scale_by: ScaleBy = "input"
    linear: bool = False
    kernel: Kernel = Softmax("favor++", projections=256)

    def __post_init__(self) -> None:
        _check_attention(self.patch, self.stride, self.d, self.kernel)
        require_count("top_k", self.top_k)
        _require_name("scale_by", self.scale_by, ScaleBy)
        require_flags(self, "linear")


@dataclass(frozen=True)
class CNN:
    """Convolutions with ReLU, all of whose outputs are read: the usual way, as a baseline.

    Attributes:
        layers: (filters, size, stride) of each; None for a usual small net for the image.
    """

    layers: tuple[tuple[int, int, int], ...] | None = None

    def __post_init__(self) -> None:
        if self.layers is None:
            return
        _check_layers("layers", self.layers)
        if not self.layers:
            raise ValueError("layers must be a tuple of at least one (filters, size, stride), or None for a usual net")


@dataclass(frozen=True)
class Blind:
    """No image at all: the control for whether a task needs eyes."""


Encoder = Rank | MultiHeadRank | Trans | AttentionAgent | CNN | Blind


def _check_attention(patch: object, stride: object, d: object, kernel: object) -> None:
    require_count("patch", patch)
    require_count("stride", stride)
    require_count("d", d, most=MOST_DIMENSIONS)
    require_type("kernel", kernel, ReLU, Softmax)
    if isinstance(kernel, Softmax):
        require_count("projections", kernel.projections, most=MOST_PROJECTIONS)


def _check_layers(name: str, layers: object) -> None:
    if not isinstance(layers, tuple):
        raise ValueError(f"{name} must be a tuple of (filters, size, stride), not {layers!r}")
    for layer in layers:
        if not isinstance(layer, tuple) or len(layer) != 3:  # noqa: PLR2004
            raise ValueError(f"{name} must hold (filters, size, stride), not {layer!r}")
        for part, value in zip(("filters", "size", "stride"), layer, strict=True):
            require_count(f"{part} of {name}", value)


def require_names(name: str, names: object, known: object) -> None:
    """Refuse what is not a tuple of some of the known names, each at most once."""
    if not isinstance(names, tuple) or not names:
        raise ValueError(f"{name} must be a tuple of {', '.join(get_args(known))}, not {names!r}")
    for each in names:
        _require_name(name, each, known)
    if len(set(names)) < len(names):
        raise ValueError(f"{name} must name each at most once, not {names!r}")


def _require_name(name: str, value: object, names: object) -> None:
    if not isinstance(value, str) or value not in get_args(names):
        raise ValueError(f"{name} must be one of {', '.join(get_args(names))}, not {value!r}")


def require_flags(spec: object, *names: str) -> None:
    """Refuse fields that are not True or False."""
    for name in names:
        require_type(name, getattr(spec, name), bool)


def require_type(name: str, value: object, *types: type) -> None:
    """Refuse what is of none of these types."""
    if not isinstance(value, types):
        wanted = ", ".join("None" if t is type(None) else t.__name__ for t in types)
        raise TypeError(f"{name} must be {wanted}, not {value!r}")
