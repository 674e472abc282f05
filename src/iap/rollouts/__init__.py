"""Episodes, and pools to run many of them: in this process, in local ones, or on a Ray cluster (`iap.rollouts.ray_pool`)."""

from iap.rollouts.episode import Episode, NotFiniteError, Step, run_episode
from iap.rollouts.inline_pool import InlinePool
from iap.rollouts.job import EnvConfig, Job
from iap.rollouts.local_pool import LocalPool
from iap.rollouts.pool import Pool, PoolError
from iap.rollouts.replayed_frames import Frames

__all__ = [
    "EnvConfig",
    "Episode",
    "Frames",
    "InlinePool",
    "Job",
    "LocalPool",
    "NotFiniteError",
    "Pool",
    "PoolError",
    "Step",
    "run_episode",
]
