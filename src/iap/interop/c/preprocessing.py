"""Image → input channels of the encoder in C. Local contrast of bytes is computed with exact integer sums."""

from iap.interop.c.source import Source, filled
from iap.interop.kept_frames import frame_of
from iap.policies.config import PolicyConfig
from iap.policies.preprocessing import COARSE_SQUARES, FINE_SQUARES, FIRST_FRAME_GAIN, SIGNED_GAIN

CHANNEL = {
    "image": "out[i * SHOWN_CHANNELS + $place] = image[i * CHANNELS + c];",
    "frame_difference": """const $type a = image[i * CHANNELS + c], b = previous[i * CHANNELS + c];
            out[i * SHOWN_CHANNELS + $place] = ($type)(a > b ? a - b : b - a);""",
    "signed_frame_difference": """const $type a = image[i * CHANNELS + c], b = previous[i * CHANNELS + c];
            const $wide value = $signed_gain * (($wide)a - ($wide)b) + $grey;
            out[i * SHOWN_CHANNELS + $place] = ($type)(value < 0 ? 0 : value < $most ? value : $most);""",
    "first_frame_difference": """const $type a = image[i * CHANNELS + c], b = first[i * CHANNELS + c];
            const $wide difference = $gain * (a > b ? a - b : b - a);
            out[i * SHOWN_CHANNELS + $place] = ($type)(difference < $most ? difference : $most);""",
}
CENTRED_BYTES = """
/* Twice the difference of each number to the mean of its channel, plus 128. */
static void put_centred_image(const $type *image, $type *out)
{
    for (int c = 0; c < CHANNELS; ++c) {
        const int64_t pixels = (int64_t)HEIGHT * WIDTH;
        int64_t sum = 0;
        for (int i = 0; i < HEIGHT * WIDTH; ++i) {
            sum += image[i * CHANNELS + c];
        }
        const int offset = (int)((640 * pixels - 2 * sum) / pixels) - 512; /* rounded down */
        for (int i = 0; i < HEIGHT * WIDTH; ++i) {
            const int value = 2 * image[i * CHANNELS + c] + offset;
            out[i * SHOWN_CHANNELS + $place] = ($type)(value < 0 ? 0 : value < 255 ? value : 255);
        }
    }
}
"""
CENTRED_FLOATS = """
/* Twice the difference of each number to the mean of its channel, plus a half. */
static void put_centred_image(const $type *image, $type *out)
{
    for (int c = 0; c < CHANNELS; ++c) {
        double sum = 0.0;
        for (int i = 0; i < HEIGHT * WIDTH; ++i) {
            sum += (double)image[i * CHANNELS + c];
        }
        const float offset = (float)(0.500001 - 2.0 * sum / (HEIGHT * WIDTH));
        for (int i = 0; i < HEIGHT * WIDTH; ++i) {
            const float value = 2.0f * image[i * CHANNELS + c] + offset;
            out[i * SHOWN_CHANNELS + $place] = value < 0.0f ? 0.0f : value < 1.0f ? value : 1.0f;
        }
    }
}
"""
POINTWISE = """
static void put_$kind($arguments, $type *out)
{
    for (int i = 0; i < HEIGHT * WIDTH; ++i) {
        for (int c = 0; c < CHANNELS; ++c) {
            $statement
        }
    }
}
"""
CONTRAST = """
/* Each number minus the mean of the square around it, $reach pixels to each side, plus the middle of the range.
 * columns: sums over the lines of the square; sums: of columns from the left, constant outside the image.
 */
static void put_$kind(const $type *restrict image, $sum *restrict columns, $sum *restrict sums, $type *restrict out)
{
    enum { SIDE = (2 * $reach + 1) * CHANNELS, START = ($reach + 1) * CHANNELS };
    int32_t widths[LINE];
    for (int i = 0; i < LINE; ++i) {
        const int x = i / CHANNELS, left = x < $reach ? x : $reach, right = WIDTH - 1 - x;
        widths[i] = left + (right < $reach ? right : $reach) + 1;
    }
    for (int y = 0; y < HEIGHT; ++y) {
        const int top = y > $reach ? y - $reach : 0, bottom = y + $reach < HEIGHT ? y + $reach : HEIGHT - 1;
        $type line[LINE];
$advance        for (int i = 0; i < START; ++i) {
            sums[i] = 0;
        }
        $sum running[CHANNELS] = {0};
        for (int x = 0; x < WIDTH + $reach; ++x) {
            for (int c = 0; c < CHANNELS; ++c) {
                running[c] += x < WIDTH ? columns[x * CHANNELS + c] : 0;
                sums[START + x * CHANNELS + c] = running[c];
            }
        }
        for (int i = 0; i < LINE; ++i) {
            const $sum total = sums[i + SIDE] - sums[i];
            const int32_t pixels = (bottom - top + 1) * widths[i];
            const $type value = image[y * LINE + i];
$result            line[i] = ($type)(contrast < $most ? contrast : $most);
        }
        for (int x = 0; x < WIDTH; ++x) {
            for (int c = 0; c < CHANNELS; ++c) {
                out[(y * WIDTH + x) * SHOWN_CHANNELS + $place] = line[x * CHANNELS + c];
            }
        }
    }
}
"""
SLIDING = """
        if (y == 0) {
            for (int i = 0; i < LINE; ++i) {
                columns[i] = 0;
            }
        }
        for (int line = y == 0 ? 0 : y + $reach; line <= bottom; ++line) {
            for (int i = 0; i < LINE; ++i) {
                columns[i] += image[line * LINE + i];
            }
        }
        if (y > $reach) {
            for (int i = 0; i < LINE; ++i) {
                columns[i] -= image[(top - 1) * LINE + i];
            }
        }
"""
SUMMED = """
        for (int i = 0; i < LINE; ++i) {
            columns[i] = 0;
        }
        for (int line = top; line <= bottom; ++line) {
            for (int i = 0; i < LINE; ++i) {
                columns[i] += image[line * LINE + i];
            }
        }
"""
# A half before the division keeps whole numbers whole, whatever the rounding of a float: see EXACT_PIXELS.
BYTE_RESULT = """
            const int32_t scaled = ((int32_t)value + 128) * pixels - total;
            const int contrast = (int)(((float)(scaled > 0 ? scaled : 0) + 0.5f) / (float)pixels);
"""
LARGE_BYTE_RESULT = """
            const int32_t scaled = ((int32_t)value + 128) * pixels - total;
            const int contrast = scaled > 0 ? scaled / pixels : 0;
"""
FLOAT_RESULT = """
            const float difference = value - total / (float)pixels + 0.500001f;
            const float contrast = difference > 0.0f ? difference : 0.0f;
"""
EXACT_PIXELS = 2000  # of a square: up to here a quotient of floats is exact enough to be rounded down


def emit_preprocessing(source: Source, config: PolicyConfig) -> None:
    """`preprocess(state, image, shown)`, and the frames that the state keeps."""
    height, width, channels = config.image_shape
    pixel, is_bytes = f"{source.name}_pixel", source.pixel == "uint8_t"
    names = {
        "type": pixel,
        "wide": "int" if is_bytes else "float",
        "gain": FIRST_FRAME_GAIN if is_bytes else f"{FIRST_FRAME_GAIN}.0f",
        "most": "255" if is_bytes else "1.0f",
        "signed_gain": SIGNED_GAIN if is_bytes else f"{SIGNED_GAIN}.0f",
        "grey": "128" if is_bytes else "0.5f",
    }
    source.size("LINE", width * channels)
    calls, reaches = "", []
    for number, kind in enumerate(config.preprocessing):
        place = f"{number * channels} + c"
        if kind.startswith("local_contrast"):
            squares = COARSE_SQUARES if kind.endswith("coarse") else FINE_SQUARES
            reach = max(1, min(height, width) // (2 * squares))
            reaches.append(reach)
            _emit_contrast(source, kind, reach, place, names)
            calls += f"    put_{kind}(image, state->columns, state->sums, state->shown);\n"
            continue
        if kind == "centred_image":
            source.code(CENTRED_BYTES if is_bytes else CENTRED_FLOATS, place=place, **names)
            calls += "    put_centred_image(image, state->shown);\n"
            continue
        if kind not in CHANNEL:
            raise ValueError(f"preprocessing {kind!r} has no C code")
        kept = frame_of(kind)
        statement = CHANNEL[kind]
        arguments = f"const {pixel} *image" + (f", const {pixel} *{kept}" if kept else "")
        statement = filled(statement, place=place, **names)
        source.code(POINTWISE, kind=kind, arguments=arguments, statement=statement, type=pixel)
        calls += f"    put_{kind}(image, " + (f"state->{kept}_image, " if kept else "") + "state->shown);\n"
    if reaches:
        number = "int32_t" if is_bytes else "float"
        source.work(number, "columns", width * channels)
        source.work(number, "sums", (width + 2 * max(reaches) + 1) * channels)
    source.work(pixel, "shown", height * width * channels * len(config.preprocessing))
    source.code(f"static void preprocess({source.name}_state *state, const {pixel} *image)\n{{\n{calls}}}")


def _emit_contrast(source: Source, kind: str, reach: int, place: str, names: dict[str, object]) -> None:
    is_bytes = source.pixel == "uint8_t"
    result = FLOAT_RESULT
    if is_bytes:
        result = BYTE_RESULT
        if (2 * reach + 1) ** 2 > EXACT_PIXELS:
            result = LARGE_BYTE_RESULT
    source.code(
        CONTRAST,
        kind=kind,
        reach=reach,
        place=place,
        sum="int32_t" if is_bytes else "float",
        advance=filled(SLIDING if is_bytes else SUMMED, reach=reach).lstrip("\n"),
        result=result.lstrip("\n"),
        type=names["type"],
        most=names["most"],
    )
