"""Can the controller know the state at all? Ridge regression from what it receives to what the simulator knows."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float

from iap.attention.arrays import require_count
from iap.envs.core import to_action
from iap.envs.protocols import PrivilegedState, require_protocol
from iap.policies import Normaliser, build_policy, init
from iap.training.config import TrainConfig, fitted_to_env

TRAIN_SHARE = 0.7
RIDGE = 1e-2  # of the inputs' variance
STEPS_AN_EPISODE = 50


def probe(
    config: TrainConfig,
    steps: int = 2_000,
    draws: int = 4,
    progress: Callable[[str, float], None] = lambda _what, _share: None,
) -> list[dict[str, Any]]:
    """A row for each of `draws` random policies: how much of each number of the state its inputs explain (R²).

    Random actions visit the states; the policies, whose attention is random, only look on. Inputs that explain little
    cannot be learnt from, whatever the search: change patch, keep or readout before spending hours.
    """
    require_count("steps", steps, least=100)
    require_count("draws", draws)
    config = fitted_to_env(config)
    inputs, states = _collect(config, steps, draws, progress)
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
    """R² of each column of y, on the last rows, of a ridge regression from x fitted to the first ones."""
    cut = int(TRAIN_SHARE * len(x))
    features = as_received(x, Normaliser.of(x[:cut]))
    weights = ridge(features[:cut], y[:cut], RIDGE)
    residual = y[cut:] - features[cut:] @ weights
    spread = y[cut:] - y[cut:].mean(axis=0)
    return 1 - np.sum(residual**2, axis=0) / np.maximum(np.sum(spread**2, axis=0), 1e-12)


def as_received(x: Float[np.ndarray, "n d"], normaliser: Normaliser) -> Float[np.ndarray, "n d+1"]:
    """Inputs as a controller receives them, and a one."""
    rows = np.stack([normaliser.apply(row) for row in x]).astype(np.float64)
    return np.hstack([rows, np.ones((len(x), 1))])


def ridge(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n s"], share: float) -> Float[np.ndarray, "d s"]:
    """The weights of a ridge regression from x to y, held back by a share of x's variance."""
    return np.linalg.solve(x.T @ x + share * len(x) * np.eye(x.shape[1]), x.T @ y)


def state_teller(env: gymnasium.Env) -> Callable[[], Float[np.ndarray, " s"]]:
    """How the environment tells what eyes could know: where things are, or else its true state."""
    return require_protocol(env, PrivilegedState).privileged_state


def _collect(
    config: TrainConfig, steps: int, draws: int, progress: Callable[[str, float], None]
) -> tuple[Float[np.ndarray, "draws n d"], Float[np.ndarray, "n s"]]:
    policies = [build_policy(config.policy, init(config.policy, config.seed + i)) for i in range(draws)]
    env = config.env.make()
    rng = np.random.default_rng(config.seed)
    inputs: list[list[np.ndarray]] = [[] for _ in policies]
    targets = []
    carried: list[Any] = []
    observation: Any = None
    try:
        state_of = state_teller(env)
        for step in range(steps):
            if step % STEPS_AN_EPISODE == 0:
                observation, _ = env.reset(seed=step)
                carried = [policy.begin() for policy in policies]
            targets.append(state_of())
            for i, policy in enumerate(policies):
                _, carried[i], _ = policy.act(carried[i], observation)
                inputs[i].append(carried[i].inputs)
            raw = rng.uniform(-1, 1, config.policy.actions).astype(np.float32)
            observation, _, terminated, truncated, _ = env.step(to_action(env.action_space, raw))
            if terminated or truncated:
                observation, _ = env.reset(seed=steps + step)
                carried = [policy.begin() for policy in policies]
            progress("random states", (step + 1) / steps)
    finally:
        env.close()
    return np.array(inputs), np.array(targets, np.float64)
