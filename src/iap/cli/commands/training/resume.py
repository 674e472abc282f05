"""`iap train --resume DIR`: an interrupted run is continued, a finished one is extended."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from iap._validation import require_count
from iap.cli.console import Command
from iap.cli.pool_options import LOCAL_POOL, PoolOptions
from iap.cli.training import COMPARED_EPISODES, train_in


@dataclass(frozen=True)
class Resume(Command):
    """Continue a run from its last checkpoint, with the options that it was started with.

    Example: iap train --resume runs/seek-seed0 --iterations 120
    """

    resume: Path
    """Folder of the run."""
    iterations: int | None = None
    """Number of generations in all, to extend the run; by default the number that it was started with."""
    env: str | None = None
    """The run's environment, if its id is "module:id": the module is imported only if it is named here."""
    pool: Annotated[PoolOptions, tyro.conf.arg(name="")] = LOCAL_POOL
    compare: int = COMPARED_EPISODES
    """Episodes that compare the trained policy with zero action, random actions and a blind policy; 0 for none."""

    def run(self, console: Console) -> None:
        """Train the iterations that are left."""
        from iap.envs.registration import require_named
        from iap.training.run_directory import RunDirectory

        require_count("compare", self.compare, least=0)
        run, config = RunDirectory.open(self.resume)
        require_named(config.env.id, self.env)
        if self.iterations is not None:
            require_count("iterations", self.iterations, least=config.iterations, why=" (the run has as many)")
            if self.iterations > config.iterations:
                config = replace(config, iterations=self.iterations)
                run.extend(config)
        train_in(console, run, config, self.pool, self.compare, run.command)
