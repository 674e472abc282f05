"""How large things come out for an image: grids of patches, maps of convolutions, and what is read of them."""

from collections.abc import Sequence

from iap.attention.arrays import require_count
from iap.attention.patches import Grid, grid_of
from iap.policies.encoder_configs import CNN, AttentionAgent, Blind, Encoder, MultiHeadRank, Rank, Trans

Shape = tuple[int, int, int]

CENTRE = 2  # numbers of a patch's centre: row and column
POOLED = 6  # numbers a pooling head gives: centroid (2), second moments (3), mass (1)
LARGE_SIDE = 32  # of an image that a net of the usual kind begins to see with large strides
FEW_PLACES = 6  # a side: what a net of the usual kind ends with


def window_of(encoder: Rank | MultiHeadRank | Trans | AttentionAgent) -> tuple[int, int]:
    """The side of a patch, and from one to the next, in pixels; of patches behind a stem, of all that it sees."""
    stem = encoder.stem if isinstance(encoder, MultiHeadRank) else ()
    side, step = 1, 1
    for size, stride in (*((size, stride) for _, size, stride in stem), (encoder.patch, encoder.stride)):
        side += (size - 1) * step
        step *= stride
    return side, step


def patches_of(encoder: Rank | MultiHeadRank | Trans | AttentionAgent, image_shape: Shape) -> Grid:
    """The grid of patches of an image."""
    return grid_of(image_shape[0], image_shape[1], *window_of(encoder))


def layers_of(encoder: CNN, image_shape: Shape) -> tuple[Shape, ...]:
    """The (filters, size, stride) of each layer; if none are chosen, those of a usual small net for the image."""
    if encoder.layers is not None:
        return encoder.layers
    side = min(image_shape[:2])
    first = ((16, 8, 4), (32, 4, 2)) if side >= LARGE_SIDE else ((16, 4, 2), (32, 3, 2))
    layers: list[Shape] = []
    for filters, size, stride in first:
        size = min(size, side)  # noqa: PLW2901
        layers.append((filters, size, stride))
        side = (side - size) // stride + 1
    while side > FEW_PLACES:
        layers.append((32, 3, 2))
        side = (side - 3) // 2 + 1
    return tuple(layers)


def maps_of(layers: Sequence[Shape], image_shape: Shape) -> list[Shape]:
    """The shapes of the image and of each convolution's output."""
    maps = [image_shape]
    for filters, size, stride in layers:
        height, width, _ = maps[-1]
        require_count("size of layers", size, most=min(height, width), why=f" (what it sees is {height}×{width})")
        grid = grid_of(height, width, size, stride)
        maps.append((grid.rows, grid.columns, filters))
    return maps


def value_size(encoder: Rank, channels: int) -> int:
    """How many numbers are read of a kept patch."""
    sizes = {"pixels": encoder.patch**2 * channels, "centres": CENTRE, "projection": encoder.projection_size}
    return sum(sizes[value] for value in encoder.values)


def products_size(count: int, changes: bool) -> int:
    """How many numbers a layer with products is given: the numbers, their changes, and the product of each two."""
    count *= 1 + changes
    return count + count * (count + 1) // 2


def readout_size(encoder: Encoder, image_shape: Shape) -> int:
    """How many numbers one look gives."""
    match encoder:
        case Rank(order="pooled") | MultiHeadRank():
            return encoder.heads * POOLED
        case Rank():
            rows = patches_of(encoder, image_shape).patches if encoder.masked else encoder.top_k
            return rows * value_size(encoder, image_shape[2])
        case Trans():
            return encoder.rows * encoder.width
        case AttentionAgent():
            return encoder.top_k * CENTRE
        case CNN():
            rows, columns, filters = maps_of(layers_of(encoder, image_shape), image_shape)[-1]
            return rows * columns * filters
        case Blind():
            return 0


def require_fit(encoder: Encoder, image_shape: Shape) -> None:
    """Refuse a encoder that does not fit the image."""
    if isinstance(encoder, CNN):
        maps_of(layers_of(encoder, image_shape), image_shape)
    elif not isinstance(encoder, Blind):
        patches = patches_of(encoder, image_shape).patches
        if isinstance(encoder, Rank | MultiHeadRank | AttentionAgent):
            require_count("top_k", encoder.top_k, most=patches, why=f" (the patches of an image of {image_shape})")
