"""The public functions of a policy in C, and its symmetry."""

from iap.interop.c.source import Source, filled
from iap.interop.kept_frames import kept_frames
from iap.policies.config import PolicyConfig
from iap.policies.symmetry import SignedPermutation

FINITE = """
/* Whether no number is NaN or infinite; by bits, so that no compiler option can remove the check. */
static int is_finite(const float *x, int count)
{
    uint32_t found = 0;
    for (int i = 0; i < count; ++i) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        found |= (uint32_t)((bits & 0x7f800000u) == 0x7f800000u);
    }
    return !found;
}
"""
REFLECT = """
static void reflect_sensors(const float *x, float *out)
{
    for (int i = 0; i < SENSORS; ++i) {
        out[i] = x[sensor_places[i]] * sensor_signs[i] + sensor_offsets[i];
    }
}
"""
SCORES = """
/* Add the scores, divided by the largest magnitude, in the image's own order of patches. */
static void add_scores(const float *scores, int flipped, float *out)
{
    float largest = 0.0f;
    for (int j = 0; j < PATCHES; ++j) {
        largest = fabsf(scores[j]) > largest ? fabsf(scores[j]) : largest;
    }
    const float factor = largest > 0.0f ? 1.0f / largest : 0.0f;
    for (int j = 0; j < PATCHES; ++j) {
        const int column = j % PATCH_COLUMNS;
        out[flipped ? j + PATCH_COLUMNS - 1 - 2 * column : j] += factor * scores[j];
    }
}
"""
ACT = """
void ${name}_reset(${name}_state *state)
{
    memset(state, 0, sizeof *state);
}

int ${name}_needs_image(const ${name}_state *state)
{
    return $needs_image;
}

size_t ${name}_state_size(void)
{
    return sizeof(${name}_state);
}

int ${name}_act(${name}_state *state, const ${name}_pixel *image, const float *sensors, float *action, float *scores)
{
    const int encoded = state->side[0].hold_steps == 0;
$unused$checks$prepare    for (int side = 0; side < SIDES; ++side) {
        ${name}_memory *memory = &state->side[side];
$encode$sensors$decide    }
$merge    return ${upper}_OK;
}
"""
ENCODE = """
        if (encoded) {
            float encoding[ENCODING];
            encode(state, $shown$selected, encoding$flipped);
            combine_frames(memory, encoding);
$scores        }
"""
MERGE = """
    const int32_t hold_steps = (state->side[0].hold_steps + state->side[1].hold_steps) / 2;
    state->side[0].hold_steps = state->side[1].hold_steps = hold_steps;
    for (int i = 0; i < ACTIONS; ++i) {
        action[i] = 0.5f * (actions[0][i] + actions[1][action_places[i]] * action_signs[i]);
    }
"""


def emit_act(source: Source, config: PolicyConfig, *, has_scores: bool, has_selection: bool) -> None:
    """The public functions."""
    uses_image, symmetric = config.encoder.uses_image, config.symmetry is not None
    source.size("SIDES", 2 if symmetric else 1)
    has_scores = has_scores and uses_image
    names = {"name": source.name, "upper": source.name.upper()}
    unused = ""
    if not uses_image:
        unused += "    (void)image;\n"
    if not has_scores:
        unused += "    (void)scores;\n"
    if not config.sensors:
        unused += "    (void)sensors;\n"
    if has_scores:
        source.code(SCORES)
    source.code(
        ACT,
        **names,
        needs_image="state->side[0].hold_steps == 0" if uses_image else "(void)state, 0",
        unused=unused,
        checks=_checks(source, config),
        prepare=_prepare(config, has_scores),
        encode=_encode(config, has_scores, has_selection) if uses_image else "",
        sensors=_sensors(source, config),
        decide="        decide(memory, encoded, actions[side]);\n"
        if symmetric
        else "        decide(memory, encoded, action);\n",
        merge=_merge(source, config),
    )


def _checks(source: Source, config: PolicyConfig) -> str:
    conditions = []
    if config.sensors:
        conditions.append("!is_finite(sensors, SENSORS)")
    if source.pixel == "float" and config.encoder.uses_image:
        conditions.append("(encoded && !is_finite(image, HEIGHT * WIDTH * CHANNELS))")
    if not conditions:
        return ""
    source.code(FINITE)
    return f"    if ({' || '.join(conditions)}) {{\n        return {source.name.upper()}_NOT_FINITE;\n    }}\n"


def _prepare(config: PolicyConfig, has_scores: bool) -> str:
    text = "    float actions[SIDES][ACTIONS];\n" if config.symmetry is not None else ""
    if not config.encoder.uses_image:
        return text
    steps = ""
    if has_scores:
        steps += "        if (scores != NULL) {\n            memset(scores, 0, PATCHES * sizeof *scores);\n        }\n"
    if config.preprocessing != ("image",):
        for kept in kept_frames(config):
            steps += (
                "        if (state->side[0].frames == 0) {\n"
                f"            memcpy(state->{kept}_image, image, sizeof state->{kept}_image);\n        }}\n"
            )
        steps += "        preprocess(state, image);\n"
        if "previous" in kept_frames(config):
            steps += "        memcpy(state->previous_image, image, sizeof state->previous_image);\n"
    return text + (f"    if (encoded) {{\n{steps}    }}\n" if steps else "")


def _encode(config: PolicyConfig, has_scores: bool, has_selection: bool) -> str:
    shown = "image" if config.preprocessing == ("image",) else "state->shown"
    scores = ""
    if has_scores:
        scores = """\
            if (scores != NULL) {
                add_scores(state->scores, side, scores);
            }
"""
    selected = ", memory->selected" if has_selection else ""
    flipped = ", side" if config.symmetry is not None else ""
    return filled(ENCODE.lstrip("\n"), shown=shown, selected=selected, flipped=flipped, scores=scores)


def _sensors(source: Source, config: PolicyConfig) -> str:
    if not config.sensors:
        return ""
    copy = "memcpy(memory->inputs + FEATURES, sensors, SENSORS * sizeof *sensors);"
    if config.symmetry is None:
        return f"        {copy}\n"
    reflection = SignedPermutation(config.symmetry.sensors, config.symmetry.offsets)
    source.integers("sensor_places", reflection.places)
    source.floats("sensor_signs", reflection.signs)
    source.floats("sensor_offsets", reflection.offsets)
    source.code(REFLECT)
    return (
        "        if (side == 1) {\n            reflect_sensors(sensors, memory->inputs + FEATURES);\n"
        f"        }} else {{\n            {copy}\n        }}\n"
    )


def _merge(source: Source, config: PolicyConfig) -> str:
    if config.symmetry is None:
        return ""
    reflection = SignedPermutation(config.symmetry.actions)
    source.integers("action_places", reflection.places)
    source.floats("action_signs", reflection.signs)
    return MERGE.lstrip("\n")
