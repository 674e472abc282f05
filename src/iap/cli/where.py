"""Where episodes run: in processes of this computer, in this very one, or on a Ray cluster."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from iap.rollouts import InlinePool, Job, LocalPool, Pool

PoolName = Literal["local", "inline", "ray"]


@dataclass(frozen=True)
class Where:
    """Where episodes run; it does not change what comes out.

    Attributes:
        pool: processes of this computer, this very process, or a Ray cluster.
        workers: how many processes; as many as there are cores if not given.
        address: of the Ray cluster; a new one on this computer if not given.
        timeout_s: after how long an episode counts as hung.
    """

    pool: PoolName = "local"
    workers: int | None = None
    address: str | None = None
    timeout_s: float = 600.0

    @contextlib.contextmanager
    def open(self, job: Job) -> Iterator[Pool]:
        """The pool, closed at the end."""
        if self.pool == "ray":
            from iap.rollouts.ray_pool import RayPool

            pool: Pool = RayPool(job, self.address, workers=self.workers, timeout_s=self.timeout_s)
        elif self.pool == "local":
            pool = LocalPool(job, self.workers, timeout_s=self.timeout_s)
        else:
            pool = InlinePool(job)
        with pool:
            yield pool
