"""The best patches in C, and the centres of patches."""

from iap.attention.selection import EQUAL
from iap.interop.c.source import Source, float_literal
from iap.policies.encoders.base import Window

DIFFER = """
/* Whether scores differ by more than rounding. */
static int differ(float least, float most)
{
    const float size = fabsf(least) > fabsf(most) ? fabsf(least) : fabsf(most);
    return most - least > $equal * size;
}
"""
SELECT = """
/* The best of the patches' scores, best first; of equal scores the first patch. Blocks without one are skipped. */
static void select_top(const float *scores, ${name}_index *selected)
{
    float best[TOP_K] = {0};
    int found = 0;
    for (int start = 0; start < PATCHES; start += BLOCK) {
        const int stop = start + BLOCK < PATCHES ? start + BLOCK : PATCHES;
        float peak = scores[start];
        for (int j = start + 1; j < stop; ++j) {
            peak = scores[j] > peak ? scores[j] : peak;
        }
        if (found == TOP_K && !(peak > best[TOP_K - 1])) {
            continue;
        }
        for (int j = start; j < stop; ++j) {
            const float score = scores[j];
            if (found < TOP_K) {
                ++found;
            } else if (!(score > best[TOP_K - 1])) {
                continue;
            }
            int place = found - 1;
            while (place > 0 && best[place - 1] < score) {
                best[place] = best[place - 1];
                selected[place] = selected[place - 1];
                --place;
            }
            best[place] = score;
            selected[place] = (${name}_index)j;
        }
    }
}
"""
CENTRES = """
/* The centre of a patch, with the image's edges at -1 and 1. */
static float centre_row(int patch)
{
    return (float)(patch / PATCH_COLUMNS) * $row_step + $row_start;
}

static float centre_column(int patch)
{
    return (float)(patch % PATCH_COLUMNS) * $column_step + $column_start;
}
"""
BLOCK = 16


def emit_patches(source: Source, window: Window) -> None:
    """The sizes of the grid of patches, and the scores, which the state holds."""
    source.size("PATCHES", window.grid.patches)
    source.size("PATCH_COLUMNS", window.grid.columns)
    source.work("float", "scores", window.grid.patches)


def emit_select_top(source: Source, top_k: int) -> None:
    """`select_top`."""
    source.size("TOP_K", top_k)
    source.size("BLOCK", BLOCK)
    source.code(SELECT, name=source.name)


def emit_differ(source: Source) -> None:
    """`differ`."""
    source.code(DIFFER, equal=float_literal(EQUAL))


def emit_centres(source: Source, window: Window, height: int, width: int) -> None:
    """`centre_row` and `centre_column`."""
    steps = {"row": height, "column": width}
    numbers = {}
    for axis, size in steps.items():
        numbers[f"{axis}_step"] = float_literal(2 * window.stride / size)
        numbers[f"{axis}_start"] = float_literal(window.patch / size - 1)
    source.code(CENTRES, **numbers)
