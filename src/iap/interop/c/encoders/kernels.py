"""The kernels in C: one feature of the queries or of the keys of all patches at a time, as value·2^log."""

import math

import numpy as np

from iap.attention.features import Kernel, ReLU, draw_projections
from iap.attention.kernels.families import LOG2E, ROOT
from iap.interop.c.source import Source, float_literal

POWER = """
/* 2^y, 0 below 2^-126: plain arithmetic, which compilers turn into vector code. */
static inline float power_of_two(float y)
{
    const float bounded = y > -126.0f ? (y < 127.0f ? y : 127.0f) : -126.0f;
    const int32_t biased = (int32_t)(bounded + 127.5f); /* rounded, since it is positive */
    const float t = bounded - (float)(biased - 127);
    const uint32_t bits = (uint32_t)biased << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    power *= $polynomial;
    return y > -126.0f ? power : 0.0f;
}
"""
HALF_NORMS = """
/* Half the squared norm of each patch's x. */
static void put_half_norms(const float *restrict x, float *restrict norms)
{
    memset(norms, 0, PATCHES * sizeof *norms);
    for (int e = 0; e < D; ++e) {
        for (int j = 0; j < PATCHES; ++j) {
            norms[j] += 0.5f * x[e * PATCHES + j] * x[e * PATCHES + j];
        }
    }
}
"""
ON_SPHERE = """
/* Each patch's x scaled to one norm; 0 stays 0. */
static void put_on_sphere(float *restrict x, float *restrict norms)
{
    put_half_norms(x, norms);
    for (int j = 0; j < PATCHES; ++j) {
        norms[j] = norms[j] > 0.0f ? $radius / sqrtf(2.0f * norms[j]) : 0.0f;
    }
    for (int e = 0; e < D; ++e) {
        for (int j = 0; j < PATCHES; ++j) {
            x[e * PATCHES + j] *= norms[j];
        }
    }
}
"""
PRODUCTS = """
/* Projection f of each patch's x, times a factor. */
static void put_products(const float *restrict x, int f, float factor, float *restrict out)
{
    memset(out, 0, PATCHES * sizeof *out);
    for (int e = 0; e < D; ++e) {
        const float weight = factor * omega[f * D + e];
        for (int j = 0; j < PATCHES; ++j) {
            out[j] += weight * x[e * PATCHES + j];
        }
    }
}
"""
LOGS = """
/* The log of feature f of each patch. */
static void put_logs(const ${name}_state *state, const float *restrict x, int f, float *restrict logs)
{
    const float *restrict norms = state->norms;
$body}
"""
BODIES = {
    "relu": """\
    (void)norms;
    (void)x;
    (void)f;
    memset(logs, 0, PATCHES * sizeof *logs);
""",
    "positive": """\
    put_products(x, f, 1.0f, logs);
    for (int j = 0; j < PATCHES; ++j) {
        logs[j] -= norms[j];
    }
""",
    "trigonometric": """\
    (void)x;
    (void)f;
    memcpy(logs, norms, PATCHES * sizeof *logs);
""",
    "favor++": """\
    put_products(x, f, state->adapted[0], logs);
    for (int j = 0; j < PATCHES; ++j) {
        logs[j] += state->adapted[1] * omega_squares[f] + state->adapted[2] - norms[j];
    }
""",
}
VALUES = """
/* Weights of feature f, times its values. */
static void times_values(const float *restrict x, int f, float *restrict values, float *restrict weights)
{
$body    for (int j = 0; j < PATCHES; ++j) {
        weights[j] *= $value;
    }
}
"""
ADAPT = """
/* The slope and the shifts of FAVOR++'s logs, from the mean squared length of query + key. */
static void adapt(${name}_state *state)
{
    float *x = state->projected, total = 0.0f;
    for (int side = 0; side < 2; ++side) {
        put_half_norms(x + side * D * PATCHES, state->norms);
        for (int j = 0; j < PATCHES; ++j) {
            total += 2.0f * state->norms[j];
        }
    }
    total /= (float)PATCHES;
    for (int e = 0; e < D; ++e) {
        float query = 0.0f, key = 0.0f;
        for (int j = 0; j < PATCHES; ++j) {
            query += x[e * PATCHES + j] / (float)PATCHES;
            key += x[(D + e) * PATCHES + j] / (float)PATCHES;
        }
        total += 2.0f * query * key;
    }
    const float d = (float)D, s = (total > 0.0f ? total : 0.0f) / $log2e;
    const float t = 2.0f * s + d, rho = 2.0f * d / (t * (1.0f + sqrtf(1.0f + 8.0f * (d / t) * (s / t))));
    const float a = (1.0f - 1.0f / rho) / 8.0f, spread = 1.0f - 4.0f * a;
    state->adapted[0] = sqrtf(spread);
    state->adapted[1] = $log2e * a;
    state->adapted[2] = $log2e * d / 4.0f * logf(spread);
}
"""


def emit_kernel(source: Source, kernel: Kernel, d: int) -> dict[str, str]:
    """`put_logs`, `times_values` and what they need; the calls of these functions in `attend`."""
    source.code(POWER, polynomial=_polynomial())
    parts = {"prepare": "", "prepare_keys": "", "key_values": "", "prepare_queries": "", "query_values": ""}
    values = None
    if isinstance(kernel, ReLU):
        family, values = "relu", ("    (void)values;\n", "x[f * PATCHES + j] > 0.0f ? x[f * PATCHES + j] : 0.0f")
    else:
        family = "positive" if kernel.features == "hyperbolic" else kernel.features
        omega = draw_projections(kernel.projections, d, kernel.seed).astype(np.float64)
        if kernel.features == "hyperbolic":
            omega = np.concatenate([omega, -omega])
        if family == "trigonometric":
            source.size("WAVES", kernel.projections)
            products = "    put_products(x, f % WAVES, 1.0f, values);\n"
            values = products, "f < WAVES ? sinf(values[j]) : cosf(values[j])"
        source.floats("omega", omega * (1 / ROOT if family == "trigonometric" else ROOT))
        source.code(PRODUCTS)
        source.code(HALF_NORMS)
        for side in ("queries", "keys"):
            parts[f"prepare_{side}"] = f"    put_half_norms({side}, state->norms);\n"
            if kernel.normalised:
                parts["prepare"] += f"    put_on_sphere({side}, state->norms);\n"
        if kernel.normalised:
            source.code(ON_SPHERE, radius=float_literal(ROOT * d**0.25))
        if family == "favor++":
            source.floats("omega_squares", (omega**2).sum(axis=1))
            source.work("float", "adapted", 3)
            source.code(ADAPT, name=source.name, log2e=float_literal(LOG2E))
            parts["prepare"] += "    adapt(state);\n"
    source.code(LOGS, name=source.name, body=BODIES[family])
    if values is not None:
        source.code(VALUES, body=values[0], value=f"({values[1]})")
        for side, x in (("key", "keys"), ("query", "queries")):
            parts[f"{side}_values"] = f"        times_values({x}, f, logs, weights);\n"
    return parts


def _polynomial() -> str:
    """A near-minimax polynomial of 2^t on [−½, ½], of degree 6, in Horner's form."""
    nodes = 0.5 * np.cos(np.linspace(0, math.pi, 512))
    fit = np.polynomial.Chebyshev.fit(nodes, np.exp2(nodes), 6).convert(kind=np.polynomial.Polynomial)
    *rest, last = (float_literal(x) for x in fit.coef)
    text = last
    for coefficient in reversed(rest):
        text = f"({coefficient} + t * {text})"
    return text
