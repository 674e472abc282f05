"""Linear probes: how much of the simulator's state a ridge regression finds in the controller's inputs."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from iap._validation import require_count
from iap.distillation.ridge import normalised_with_one, ridge
from iap.envs.core import EnvConfig, to_action
from iap.envs.protocols import PrivilegedState, require_protocol
from iap.policies import Normaliser, Policy, PolicyConfig, init

TRAIN_SHARE = 0.7
RIDGE = 1e-2  # regularisation, as a share of the inputs' variance
STEPS_PER_EPISODE = 50


def probe(
    env: EnvConfig,
    policy: PolicyConfig,
    *,
    steps: int = 2_000,
    draws: int = 4,
    seed: int = 0,
    progress: Callable[[str, float], None] = lambda _what, _share: None,
) -> list[dict[str, Any]]:
    """A row for each of `draws` random policies: how much of each number of the state its inputs explain (R²).

    Random actions visit the states. If random encoders explain little, training will be hard: change the patch size,
    the number of selected patches or the features before spending hours.
    """
    require_count("steps", steps, least=100)
    require_count("draws", draws)
    inputs, states = _collect(env, policy, steps, draws, seed, progress)
    rows = []
    for draw, x in enumerate(inputs):
        explained = explained_variance(x, states)
        rows.append(
            {
                "draw": draw,
                "r2": float(np.mean(explained)),
                "worst": float(np.min(explained)),
                "best": float(np.max(explained)),
                "each": [round(float(value), 3) for value in explained],
            }
        )
    return rows


def explained_variance(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n s"]) -> Float[np.ndarray, " s"]:
    """R² of each column of y on the last rows, of a ridge regression from x fitted to the first ones."""
    cut = int(TRAIN_SHARE * len(x))
    features = normalised_with_one(x, Normaliser.of(x[:cut]))
    weights = ridge(features[:cut], y[:cut], RIDGE)
    residual = y[cut:] - features[cut:] @ weights
    spread = y[cut:] - y[cut:].mean(axis=0)
    return 1 - np.sum(residual**2, axis=0) / np.maximum(np.sum(spread**2, axis=0), 1e-12)


def _collect(
    env: EnvConfig,
    config: PolicyConfig,
    steps: int,
    draws: int,
    seed: int,
    progress: Callable[[str, float], None],
) -> tuple[Float[np.ndarray, "draws n d"], Float[np.ndarray, "n s"]]:
    policies = [Policy(config, init(config, seed + i)) for i in range(draws)]
    made: Any = env.make()
    rng = np.random.default_rng(seed)
    inputs: list[list[np.ndarray]] = [[] for _ in policies]
    targets = []
    states: list[Any] = []
    observation: Any = None
    try:
        state_of = require_protocol(made, PrivilegedState).privileged_state
        for step in range(steps):
            if step % STEPS_PER_EPISODE == 0:
                observation, _ = made.reset(seed=step)
                states = [policy.reset() for policy in policies]
            targets.append(state_of())
            for i, policy in enumerate(policies):
                _, states[i], _ = policy.act(states[i], observation)
                inputs[i].append(states[i].inputs)
            raw = rng.uniform(-1, 1, config.actions).astype(np.float32)
            observation, _, terminated, truncated, _ = made.step(to_action(made.action_space, raw))
            if terminated or truncated:
                observation, _ = made.reset(seed=steps + step)
                states = [policy.reset() for policy in policies]
            progress("random states", (step + 1) / steps)
    finally:
        made.close()
    return np.array(inputs), np.array(targets, np.float64)
