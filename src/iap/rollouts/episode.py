"""One episode: a policy acts in an environment until the environment ends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from jaxtyping import Float
from threadpoolctl import ThreadpoolController

from iap._validation import NotFiniteError
from iap.envs.core import action_map
from iap.envs.protocols import LazyRendering, find_protocol
from iap.policies import Attention, Moments

BLOCK_ROWS = 256  # controller inputs per update of their moments
MAX_BLOCK_ENTRIES = 1 << 20  # limits the memory of a block: a masked policy has thousands of inputs

# The last bits of a matrix product depend on the number of BLAS threads. Workers use one, so every process uses one.
one_thread = ThreadpoolController().select(user_api="blas").wrap(limits=1)


class Actor(Protocol):
    """What an episode needs of a policy. The state is opaque, except for its field `inputs`."""

    inputs_size: int

    def reset(self, seed: int = 0) -> Any:
        """Return the state at the start of an episode."""
        ...

    def needs_image(self, state: Any) -> bool:
        """Return whether the next step encodes an image."""
        ...

    def act(self, state: Any, observation: Mapping[str, Any]) -> tuple[Float[np.ndarray, " k"], Any, Attention | None]:
        """Return the action in [−1, 1], the next state, and the attention (None if no image was encoded)."""
        ...


@dataclass(frozen=True, eq=False)
class Episode:
    """The result of an episode.

    Attributes:
        seed: seed of the environment.
        total: return, the sum of rewards; NaN if the episode failed.
        steps: number of actions.
        moments: statistics of the controller's inputs; of no rows if the episode failed.
        error: why the episode failed, or None.
        trace: the traceback of the error that the environment raised, if there is one.
    """

    seed: int
    total: float
    steps: int
    moments: Moments
    error: str | None = None
    trace: str = ""


class Step(NamedTuple):
    """One step, for callbacks: the observation that the policy received, its attention and action, and the result.

    Attributes:
        observation: input of the policy.
        attention: its attention, None if it encoded no image.
        action: the action given to the environment.
        reward: reward of this step.
        total: sum of rewards up to and including this step.
    """

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
    """Reset with `seed`, then act until the environment ends or `max_steps` is reached.

    An environment with `LazyRendering` skips the images that the policy does not encode, unless there is `on_step`.
    """
    rendering = find_protocol(env, LazyRendering)
    is_lazy = rendering is not None and on_step is None
    set_rendering = _ignore if rendering is None else rendering.set_rendering
    to_action, act, step, needs_image = action_map(env.action_space), policy.act, env.step, policy.needs_image
    state = policy.reset(seed)
    set_rendering(True)
    observation, _ = env.reset(seed=seed)
    statistics = _InputStatistics(policy.inputs_size)
    record = statistics.add
    total, steps, limit, ended = 0.0, 0, max_steps or inf, False
    while not ended and steps < limit:
        raw, state, attention = act(state, observation)
        if not isfinite(sum(raw.tolist())):  # one NaN or infinity makes the sum NaN or infinite
            raise NotFiniteError(f"the policy's action at step {steps} is not finite: {raw}")
        record(state.inputs)
        action = to_action(raw)
        if is_lazy:
            set_rendering(needs_image(state))
        previous = observation
        observation, reward, terminated, truncated, _ = step(action)
        total += float(reward)
        if not isfinite(total):
            raise NotFiniteError(f"the reward at step {steps} is not finite: {reward}")
        steps += 1
        ended = terminated or truncated
        if on_step is not None:
            on_step(Step(previous, attention, action, float(reward), total))
    set_rendering(True)
    return Episode(seed, total, steps, statistics.moments())


class _InputStatistics:
    """Moments of the controller's inputs, updated block by block, so that sums have the same order in every run."""

    def __init__(self, size: int) -> None:
        self._rows = np.empty((max(1, min(BLOCK_ROWS, MAX_BLOCK_ENTRIES // max(size, 1))), size), np.float32)
        self._capacity = len(self._rows)
        self._count = 0
        self._moments = Moments.none(size)

    def add(self, row: Float[np.ndarray, " d"]) -> None:
        count = self._count
        if count == self._capacity:
            self._moments, count = self.moments(), 0
        self._rows[count] = row
        self._count = count + 1

    def moments(self) -> Moments:
        rows = self._rows[: self._count]
        if not np.isfinite(rows).all():
            raise NotFiniteError("an input of the controller is not finite: the observation holds NaN or infinity")
        return self._moments.merge(Moments.of(rows))


def _ignore(_: bool) -> None:
    """Fallback for environments that render at every step."""
