"""Episodes, and pools to run many of them: in this process, in local ones, or on a Ray cluster (`iap.rollouts.ray`)."""

from iap.rollouts.episodes import Episode, NotFiniteError, Step, run_episode
from iap.rollouts.inline import InlinePool
from iap.rollouts.jobs import EnvSpec, Job
from iap.rollouts.local import LocalPool
from iap.rollouts.other_frames import Frames
from iap.rollouts.pools import Pool, PoolError

__all__ = [
    "EnvSpec",
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
