"""Controllers in C. Each adds `PREFIX_control(inputs, state, outputs)`; the prefix separates two levels."""

from collections.abc import Mapping

import numpy as np

from iap.interop.c.source import Source, filled
from iap.policies import GRU, LSTM, MLP, Linear, Quadratic
from iap.policies.controllers.quadratic import DELTA_GAIN

DENSE = """
static void dense(const float *weight, const float *bias, int inputs, int outputs, const float *x, float *out)
{
    for (int i = 0; i < outputs; ++i) {
        float total = 0.0f;
        for (int j = 0; j < inputs; ++j) {
            total += weight[i * inputs + j] * x[j];
        }
        out[i] = total + bias[i];
    }
}
"""
DENSE_TANH = """
static void dense_tanh(const float *weight, const float *bias, int inputs, int outputs, const float *x, float *out)
{
    dense(weight, bias, inputs, outputs, x, out);
    for (int i = 0; i < outputs; ++i) {
        out[i] = tanhf(out[i]);
    }
}
"""
SIGMOID = """
static float sigmoid(float x)
{
    return 0.5f * (1.0f + tanhf(0.5f * x));
}
"""
LAYERS = """
static void ${p}_control(const float *inputs, float *state, float *outputs)
{
$buffers    (void)state;
$calls}
"""
LSTM_STEP = """
/* state: h, then c */
static void ${p}_control(const float *inputs, float *state, float *outputs)
{
    float gates[4 * $units], carried[4 * $units];
    dense(${p}_weight_ih, ${p}_bias_ih, $inputs, 4 * $units, inputs, gates);
    dense(${p}_weight_hh, ${p}_bias_hh, $units, 4 * $units, state, carried);
    for (int k = 0; k < $units; ++k) {
        const float in = sigmoid(gates[k] + carried[k]);
        const float forget = sigmoid(gates[$units + k] + carried[$units + k]);
        const float candidate = tanhf(gates[2 * $units + k] + carried[2 * $units + k]);
        const float out = sigmoid(gates[3 * $units + k] + carried[3 * $units + k]);
        const float c = forget * state[$units + k] + in * candidate;
        state[$units + k] = c;
        state[k] = out * tanhf(c);
    }
    dense_tanh(${p}_output_weight, ${p}_output_bias, $units, $outputs, state, outputs);
}
"""
GRU_STEP = """
static void ${p}_control(const float *inputs, float *state, float *outputs)
{
    float own[3 * $units], carried[3 * $units];
    dense(${p}_weight_ih, ${p}_bias_ih, $inputs, 3 * $units, inputs, own);
    dense(${p}_weight_hh, ${p}_bias_hh, $units, 3 * $units, state, carried);
    for (int k = 0; k < $units; ++k) {
        const float r = sigmoid(own[k] + carried[k]), z = sigmoid(own[$units + k] + carried[$units + k]);
        const float n = tanhf(own[2 * $units + k] + r * carried[2 * $units + k]);
        state[k] = (1.0f - z) * n + z * state[k];
    }
    dense_tanh(${p}_output_weight, ${p}_output_bias, $units, $outputs, state, outputs);
}
"""
QUADRATIC_STEP = """
static void ${p}_control(const float *inputs, float *state, float *outputs)
{
    float x[$count];
    memcpy(x, inputs, $inputs * sizeof *x);
$deltas    for (int i = 0; i < $outputs; ++i) {
        const float *weight = ${p}_output_weight + i * $products;
        float total = ${p}_output_bias[i];
        for (int j = 0; j < $count; ++j) {
            total += *weight++ * x[j];
        }
        for (int j = 0; j < $count; ++j) {
            for (int k = j; k < $count; ++k) {
                total += *weight++ * (x[j] * x[k]);
            }
        }
        outputs[i] = tanhf(total);
    }
}
"""
DELTAS = """
    for (int i = 0; i < $inputs; ++i) {
        x[$inputs + i] = state[0] > 0.0f ? $gain * (inputs[i] - state[1 + i]) : 0.0f;
        state[1 + i] = inputs[i];
    }
    state[0] = 1.0f;
"""


def emit_layers(source: Source, prefix: str, controller: Linear | MLP, params: Mapping[str, np.ndarray]) -> None:
    """Layers of tanh units."""
    hidden = len(controller.hidden) if isinstance(controller, MLP) else 0
    names = [*(f"hidden.{i}" for i in range(hidden)), "output"]
    source.code(DENSE)
    source.code(DENSE_TANH)
    buffers, calls, given = "", "", "inputs"
    for name in names:
        _emit_arrays(source, prefix, params, f"{name}.weight", f"{name}.bias")
        outputs, inputs = params[f"{name}.weight"].shape
        array = f"{prefix}_{name.replace('.', '_')}"
        result = "outputs" if name == "output" else name.replace(".", "_")
        buffers += "" if name == "output" else f"    float {result}[{outputs}];\n"
        calls += f"    dense_tanh({array}_weight, {array}_bias, {inputs}, {outputs}, {given}, {result});\n"
        given = result
    source.code(LAYERS, p=prefix, buffers=buffers, calls=calls)


def emit_lstm(source: Source, prefix: str, controller: LSTM, params: Mapping[str, np.ndarray]) -> None:
    """An LSTM and a layer of tanh units."""
    _emit_recurrent(source, prefix, controller.units, params, LSTM_STEP)


def emit_gru(source: Source, prefix: str, controller: GRU, params: Mapping[str, np.ndarray]) -> None:
    """A GRU and a layer of tanh units."""
    _emit_recurrent(source, prefix, controller.units, params, GRU_STEP)


def _emit_recurrent(source: Source, prefix: str, units: int, params: Mapping[str, np.ndarray], step: str) -> None:
    for helper in (DENSE, DENSE_TANH, SIGMOID):
        source.code(helper)
    _emit_arrays(source, prefix, params, *params)
    inputs, outputs = params["weight_ih"].shape[1], len(params["output.bias"])
    source.code(step, p=prefix, units=units, inputs=inputs, outputs=outputs)


def emit_quadratic(source: Source, prefix: str, controller: Quadratic, params: Mapping[str, np.ndarray]) -> None:
    """A layer on inputs and products of inputs."""
    outputs, products = params["output.weight"].shape
    count = int(((8 * products + 9) ** 0.5 - 3) / 2 + 0.5)  # products = count + count·(count + 1)/2
    inputs = count // 2 if controller.deltas else count
    _emit_arrays(source, prefix, params, *params)
    deltas = "    (void)state;\n"
    if controller.deltas:
        deltas = filled(DELTAS.lstrip("\n"), inputs=inputs, gain=f"{float(DELTA_GAIN)}f")
    source.code(QUADRATIC_STEP, p=prefix, count=count, inputs=inputs, outputs=outputs, products=products, deltas=deltas)


def _emit_arrays(source: Source, prefix: str, params: Mapping[str, np.ndarray], *names: str) -> None:
    for name in names:
        source.floats(f"{prefix}_{name.replace('.', '_')}", params[name])
