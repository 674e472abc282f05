"""One step of a policy in C: frames, normaliser, hierarchy, symmetry and the public functions."""

import math

import numpy as np

from iap.interop.c.source import Source, filled, float_literal
from iap.policies import Normaliser
from iap.policies.config import PolicyConfig

COMBINE = """
/* The features of all frames as inputs, from the encoding of the newest. */
static void combine_frames(${name}_memory *memory, const float *encoding)
{
    float *features = memory->inputs;
$first    for (int j = 0; j < ENCODING; ++j) {
        features[j] = encoding[j]$origin;
    }
$others    if (memory->frames < FRAMES) {
        ++memory->frames;
    }
}
"""
FIRST = """
    if (memory->frames == 0) {
        memcpy(memory->first, encoding, sizeof memory->first);
    }
"""
FIRST_FEATURES = """
    memcpy(features + ENCODING, memory->first, sizeof memory->first);
"""
PREVIOUS = """
    for (int i = 0; i < FRAMES - 1; ++i) {
        for (int j = 0; j < ENCODING; ++j) {
            const float before = memory->previous[i * ENCODING + j]$origin;
            features[(i + 1) * ENCODING + j] = i < memory->frames ? features[j] - before : 0.0f;
        }
    }
    memmove(memory->previous + ENCODING, memory->previous, sizeof(float) * (FRAMES - 2) * ENCODING);
    memcpy(memory->previous, encoding, sizeof(float) * ENCODING);
"""
DECIDE = """
/* The action on the inputs of the memory, and the memory after it. */
static void decide(${name}_memory *memory, int encoded, float *action)
{
    float normal[INPUTS];
    for (int i = 0; i < INPUTS; ++i) {
        $normal
    }
$body}
"""
FLAT = """
    high_control(normal, $hidden, action);
    memory->hold_steps = (encoded ? IMAGE_EVERY : memory->hold_steps) - 1;
"""
HIERARCHY = """
    if (encoded) {
        float outputs[LATENT + 1];
        high_control(normal, $hidden, outputs);
        memcpy(memory->latent, outputs, sizeof memory->latent);
        const float share = 0.5f * (outputs[LATENT] + 1.0f);
        const float steps = rintf(share * (float)(MAX_COMMAND_STEPS - 1));
        const int32_t held = steps >= 0.0f && steps < (float)MAX_COMMAND_STEPS ? (int32_t)steps : 0;
        memory->hold_steps = 1 + (held < 0 ? 0 : held < MAX_COMMAND_STEPS ? held : MAX_COMMAND_STEPS - 1);
    }
    float low[LATENT + SENSORS];
    memcpy(low, memory->latent, sizeof memory->latent);
$sensors    low_control(low, $low_hidden, action);
    --memory->hold_steps;
"""
SENSORS = """
    memcpy(low + LATENT, normal + FEATURES, SENSORS * sizeof *low);
"""


def emit_control(source: Source, config: PolicyConfig, normaliser: Normaliser) -> None:
    """`combine_frames` and `decide`, after the controllers."""
    hierarchy = config.hierarchy
    sizes = {
        "HEIGHT": config.image_shape[0],
        "WIDTH": config.image_shape[1],
        "CHANNELS": config.image_shape[2],
        "ENCODING": config.encoding_size,
        "FEATURES": config.features_size,
        "SENSORS": config.sensors,
        "INPUTS": config.inputs_size,
        "ACTIONS": config.actions,
    }
    for name, size in sizes.items():
        source.size(name, size)
    source.memory("float", "inputs", config.inputs_size, "features, then sensors")
    state = config.controller.state_size(config.controller_inputs_size)
    hidden = _field(source, "hidden", state)
    if config.encoding_size:
        _emit_combine(source, config)
    if hierarchy is None:
        source.size("IMAGE_EVERY", config.image_every)
        body = filled(FLAT.lstrip("\n"), hidden=hidden)
    else:
        source.size("LATENT", hierarchy.latent_size)
        source.size("MAX_COMMAND_STEPS", hierarchy.max_command_steps)
        source.memory("float", "latent", hierarchy.latent_size)
        low = _field(source, "low_hidden", hierarchy.low_level.state_size(hierarchy.latent_size + config.sensors))
        sensors = SENSORS.lstrip("\n") if config.sensors else ""
        body = filled(HIERARCHY.lstrip("\n"), hidden=hidden, low_hidden=low, sensors=sensors)
    source.memory("int32_t", "hold_steps", comment="until the next image is encoded")
    source.code(DECIDE, name=source.name, normal=_normal(source, config, normaliser), body=body)


def _field(source: Source, name: str, size: int) -> str:
    if size == 0:
        return "NULL"
    source.memory("float", name, size)
    return f"memory->{name}"


def _normal(source: Source, config: PolicyConfig, normaliser: Normaliser) -> str:
    mean, scale, clip = normaliser.coefficients
    if not config.normalise or not math.isfinite(clip):
        return "normal[i] = memory->inputs[i];"
    source.floats("means", mean)
    source.floats("mean_rests", mean - mean.astype(np.float32))
    source.floats("scales", scale)
    bound = float_literal(clip)
    return f"""const float x = ((memory->inputs[i] - means[i]) - mean_rests[i]) * scales[i];
        normal[i] = x > {bound} ? {bound} : x < -{bound} ? -{bound} : x;"""


def _emit_combine(source: Source, config: PolicyConfig) -> None:
    uses_first = config.relative_to_first_frame or config.first_frame_features
    source.size("FRAMES", config.frames)
    source.memory("int32_t", "frames", comment="that were encoded, counted up to the number of frames in the inputs")
    if uses_first:
        source.memory("float", "first", config.encoding_size)
    origin = " - memory->first[j]" if config.relative_to_first_frame else ""
    others = FIRST_FEATURES.lstrip("\n") if config.first_frame_features else ""
    if config.frames > 1:
        source.memory("float", "previous", (config.frames - 1) * config.encoding_size)
        others = filled(PREVIOUS.lstrip("\n"), origin=origin)
    first = FIRST.lstrip("\n") if uses_first else ""
    source.code(COMBINE, name=source.name, first=first, origin=origin, others=others)
