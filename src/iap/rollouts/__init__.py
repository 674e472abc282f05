"""Episodes, and pools that run many: in this process, in local processes, or on a Ray cluster (`ray_pool`)."""

from iap._validation import NotFiniteError
from iap.envs.core import EnvConfig
from iap.rollouts.episode import Actor, Episode, Step, run_episode
from iap.rollouts.inline_pool import InlinePool
from iap.rollouts.job import Job
from iap.rollouts.local_pool import LocalPool
from iap.rollouts.pool import Pool, PoolError
from iap.rollouts.replayed_frames import Frames
from iap.rollouts.seeds import EVALUATION_SEEDS, TRAINING_SEEDS, VALIDATION_SEEDS, draw_seeds

__all__ = [
    "EVALUATION_SEEDS",
    "TRAINING_SEEDS",
    "VALIDATION_SEEDS",
    "Actor",
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
    "draw_seeds",
    "run_episode",
]
