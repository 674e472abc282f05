"""The actor and the critics of SAC as JAX functions of named arrays, and the actor as θ of a policy."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from iap.attention.arrays import Array, namespace
from iap.policies import PolicyConfig, flatten
from iap.policies.controllers.feedforward import tanh_layer
from iap.policies.params import Arrays

LEAST_LOG_STD, MOST_LOG_STD = -5.0, 2.0  # of actions before the final tanh
LAYER_NORM_EPSILON = 1e-5
LOG2 = math.log(2)
Network = dict[str, Any]  # name → array


def init_network(rng: np.random.Generator, inputs: int, hidden: tuple[int, ...], outputs: int) -> Arrays:
    """Biases 0 and weights in units of 1/√inputs, named as those of the `MLP` controller; small outputs."""
    sizes, network = (inputs, *hidden), {}
    for i, units in enumerate(hidden):
        network[f"hidden.{i}.bias"] = np.zeros(units, np.float32)
        network[f"hidden.{i}.weight"] = _normal(rng, units, sizes[i], 1.0)
    network["output.bias"] = np.zeros(outputs, np.float32)
    network["output.weight"] = _normal(rng, outputs, hidden[-1], 0.1)
    return network


def _normal(rng: np.random.Generator, outputs: int, inputs: int, gain: float) -> Float[np.ndarray, "outputs inputs"]:
    return (gain / math.sqrt(inputs) * rng.standard_normal((outputs, inputs))).astype(np.float32)


def gaussian(actor: Network, sensors: Array) -> tuple[Array, Array]:
    """Mean and log standard deviation of the action before the final tanh."""
    xp, x = namespace(sensors=sensors), sensors
    for i in range(_depth(actor)):
        x = tanh_layer(actor, f"hidden.{i}", x)
    out = x @ actor["output.weight"].T + actor["output.bias"]
    actions = out.shape[-1] // 2
    span = MOST_LOG_STD - LEAST_LOG_STD
    return out[..., :actions], LEAST_LOG_STD + span / 2 * (xp.tanh(out[..., actions:]) + 1)


def sample_action(actor: Network, sensors: Array, noise: Array) -> tuple[Array, Array]:
    """Actions in [−1, 1] and their log-probabilities, for standard normal noise."""
    xp = namespace(sensors=sensors)
    mean, log_std = gaussian(actor, sensors)
    raw = mean + xp.exp(log_std) * noise
    log_normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
    log_slope = 2 * (LOG2 - raw - _softplus(-2 * raw))  # log(1 − tanh²)
    return xp.tanh(raw), xp.sum(log_normal - log_slope, axis=-1)


def value(critic: Network, sensors: Array, actions: Array) -> Array:
    """Q of a batch: linear, layer norm and ReLU for each hidden layer, then a linear output."""
    xp = namespace(sensors=sensors)
    x = xp.concat([sensors, actions], axis=-1)
    for i in range(_depth(critic)):
        x = x @ critic[f"hidden.{i}.weight"].T + critic[f"hidden.{i}.bias"]
        x = x - xp.mean(x, axis=-1, keepdims=True)
        x = x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
        x = xp.maximum(x, xp.zeros_like(x))
    return (x @ critic["output.weight"].T + critic["output.bias"])[..., 0]


def actor_theta(config: PolicyConfig, actor: Network) -> Float[np.ndarray, " p"]:
    """θ of the policy whose action is tanh of the mean."""
    mean = {
        name: np.asarray(array, np.float32)[: config.actions] if name.startswith("output.") else np.asarray(array)
        for name, array in actor.items()
    }
    return flatten({"encoder": {}, "controller": mean})


def _softplus(x: Array) -> Array:
    xp = namespace(x=x)
    return xp.maximum(x, xp.zeros_like(x)) + xp.log1p(xp.exp(-xp.abs(x)))


def _depth(network: Network) -> int:
    return len(network) // 2 - 1
