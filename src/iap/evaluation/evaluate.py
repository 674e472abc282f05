"""Returns of a trained policy on seeds that training never used."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iap._compile_cache import processor_name
from iap._validation import require_count
from iap.envs.core import EnvConfig
from iap.envs.registration import require_bounded_options, require_harmless
from iap.policies import PolicyFile
from iap.rollouts import VALIDATION_SEEDS, Episode, Job, Pool


@dataclass(frozen=True)
class Evaluation:
    """The returns of a policy.

    Attributes:
        mean: of the returns; None if all episodes failed.
        ci95: half the width of its 95 % interval; None with fewer than two episodes.
        episodes: number of episodes.
        returns: of the episodes that did not fail.
        steps: of the episodes that did not fail.
        failed: number of failed episodes.
        errors: their different reasons.
        seed: of the first episode.
        processor: the kind of processor, in LLVM's words: other kinds round differently, so returns may differ.
    """

    mean: float | None
    ci95: float | None
    episodes: int
    returns: list[float]
    steps: list[int]
    failed: int
    errors: list[str]
    seed: int | None = None
    processor: str = field(default_factory=processor_name)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return dict(vars(self))


def policy_job(policy: PolicyFile, max_steps: int | None = None) -> Job:
    """The policy in its environment; no module is imported because a file names it."""
    require_bounded_options(policy.env_kwargs)
    env = EnvConfig.of(require_harmless(policy.env_id), **policy.env_kwargs)
    return Job(env, policy.config, max_steps)


def evaluate(policy: PolicyFile, pool: Pool, episodes: int, seed: int = 0) -> Evaluation:
    """Run `episodes` episodes, the i-th with seed `seed` + i."""
    require_seeds(episodes, seed)
    [ran] = pool.evaluate(policy.theta[None], [range(seed, seed + episodes)], policy.normaliser)
    return summarise(ran, seed)


def require_seeds(episodes: int, seed: int) -> None:
    """Refuse seeds that training may have used."""
    require_count("episodes", episodes)
    require_count("seed", seed, least=0, most=VALIDATION_SEEDS - episodes, why=" (higher ones are used in training)")


def summarise(episodes: list[Episode], seed: int | None = None) -> Evaluation:
    """The mean return of the episodes that did not fail, and its 95 % interval."""
    finished = [episode for episode in episodes if episode.error is None]
    errors = [episode.error for episode in episodes if episode.error is not None]
    returns = [episode.total for episode in finished]
    spread = float(np.std(returns, ddof=1)) / math.sqrt(len(returns)) if len(returns) > 1 else None
    return Evaluation(
        mean=float(np.mean(returns)) if returns else None,
        ci95=None if spread is None else 1.96 * spread,
        episodes=len(episodes),
        returns=returns,
        steps=[episode.steps for episode in finished],
        failed=len(errors),
        errors=sorted(set(errors)),
        seed=seed,
    )
