"""One episode: a policy acts in an environment until it ends, and what came of it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from jaxtyping import Float
from threadpoolctl import ThreadpoolController

from iap.envs.core import action_map
from iap.policies import Actor, Attention, Moments

ROWS = 256  # of controller inputs whose moments are taken at a time
MOST_NUMBERS = 1 << 20  # that are kept for it: a masked policy receives thousands a step

# The last bits of a matrix product depend on how many threads share it; workers have one, and so has everyone else.
one_thread = ThreadpoolController().select(user_api="blas").wrap(limits=1)


class NotFiniteError(ArithmeticError):
    """An action, a reward or an observation is NaN or infinite; running the episode again would only repeat it."""


@dataclass(frozen=True, eq=False)
class Episode:
    """What came of an episode.

    Attributes:
        seed: of the environment.
        total: the sum of rewards; NaN if the episode failed.
        steps: how many actions were taken.
        moments: of what the controller received; of nothing if the episode failed.
        error: why the episode failed, or None.
    """

    seed: int
    total: float
    steps: int
    moments: Moments
    error: str | None = None


class Step(NamedTuple):
    """One step, for those who watch: what was seen, attended to and done, and the return after it."""

    observation: dict[str, np.ndarray]
    attention: Attention | None
    action: Any
    reward: float
    total: float


@one_thread
def run_episode(
    env: gymnasium.Env,
    policy: Actor,
    seed: int,
    max_steps: int | None = None,
    on_step: Callable[[Step], object] | None = None,
) -> Episode:
    """Act from the reset with `seed` until the environment ends, or for `max_steps`.

    An environment that can `look` is told when the policy will not; for `on_step` it looks at every step.
    """
    look: Callable[[bool], object] = getattr(env.unwrapped, "look", _ignore)
    to_action, act, step = action_map(env.action_space), policy.act, env.step
    state = policy.begin(seed)
    look(True)
    observation, _ = env.reset(seed=seed)
    inputs = _Inputs(policy.inputs_size)
    total, steps, last, ended = 0.0, 0, max_steps or math.inf, False
    while not ended and steps < last:
        raw, state, attention = act(state, observation)
        if not all(map(math.isfinite, raw.tolist())):
            raise NotFiniteError(f"the policy's action at step {steps} is not finite: {raw}")
        inputs.add(state.inputs)
        action = to_action(raw)
        look(on_step is not None or policy.needs_image(state))
        seen = observation
        observation, reward, terminated, truncated, _ = step(action)
        total += float(reward)
        if not math.isfinite(total):
            raise NotFiniteError(f"the reward at step {steps} is not finite: {reward}")
        steps += 1
        ended = terminated or truncated
        if on_step is not None:
            on_step(Step(seen, attention, action, float(reward), total))
    look(True)
    return Episode(seed, total, steps, inputs.moments())


class _Inputs:
    """The rows that a controller received, taken into account a block at a time: always the same sums in one order."""

    def __init__(self, size: int) -> None:
        self._rows = np.empty((max(1, min(ROWS, MOST_NUMBERS // max(size, 1))), size), np.float32)
        self._count = 0
        self._moments = Moments.none(size)

    def add(self, row: Float[np.ndarray, " d"]) -> None:
        if self._count == len(self._rows):
            self._moments = self.moments()
            self._count = 0
        self._rows[self._count] = row
        self._count += 1

    def moments(self) -> Moments:
        rows = self._rows[: self._count]
        if not np.isfinite(rows).all():
            raise NotFiniteError("what the controller received is not finite: the observation holds NaN or infinity")
        return self._moments.merge(Moments.of(rows))


def _ignore(_: bool) -> None:
    """Look for environments that always look."""
