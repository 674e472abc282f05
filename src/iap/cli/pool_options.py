"""Options of the pool that runs episodes; they do not change results."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from iap.rollouts import Job, Pool


@dataclass(frozen=True)
class PoolOptions:
    """Where episodes run. Results do not depend on these options.

    Attributes:
        pool: "local" runs episodes in worker processes of this computer, "inline" in the calling process, "ray" on a
            Ray cluster.
        workers: number of worker processes; all cores by default.
        address: address of the Ray cluster; by default a new one is started on this computer.
        timeout_s: seconds after which an episode counts as hanging and is run again.
    """

    pool: Literal["local", "inline", "ray"] = "local"
    workers: int | None = None
    address: str | None = None
    timeout_s: float = 600.0

    @contextlib.contextmanager
    def open(self, job: "Job") -> "Iterator[Pool]":
        """A pool for a job, closed at the end of the `with` block."""
        from iap.rollouts import InlinePool, LocalPool

        if self.pool == "ray":
            from iap.rollouts.ray_pool import RayPool

            pool: Pool = RayPool(job, self.address, workers=self.workers, timeout_s=self.timeout_s)
        elif self.pool == "local":
            pool = LocalPool(job, self.workers, timeout_s=self.timeout_s)
        else:
            pool = InlinePool(job)
        with pool:
            yield pool


LOCAL_POOL = PoolOptions()
