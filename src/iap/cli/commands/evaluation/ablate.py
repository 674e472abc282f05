"""`iap ablate`: whether a policy uses its images, its training and its attention."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from iap.cli.console import Command, save
from iap.cli.env_options import parse_env_options
from iap.cli.pool_options import LOCAL_POOL, PoolOptions

HIDDEN = ("seed", "failed")  # columns of the JSON that the table leaves out


@dataclass(frozen=True)
class Ablate(Command):
    """Compare a policy with ablations of it: zero action, before training, wrong frames, random attention.

    All run on the same episodes.
    Example: iap ablate zoo:seek --episodes 100
    """

    policy: tyro.conf.Positional[str]
    """A policy file, the folder of a run, or zoo:NAME."""
    blind: str | None = None
    """A policy trained in the same way without images (iap train … --encoder blind), to compare with."""
    episodes: int = 100
    """Number of episodes of each ablation; episode i has seed SEED + i."""
    seed: int = 0
    """Seed of the first episode."""
    env: str | None = None
    """Another environment than the policy's own; "module:id" imports the module that registers it."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE, an option of the environment besides the policy's own; can be repeated."""
    json: Path | None = None
    """Write the rows to this file as JSON; - for standard output."""
    pool: Annotated[PoolOptions, tyro.conf.arg(name="")] = LOCAL_POOL

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Run all ablations and print a table."""
        from iap.cli.tables import plain_table
        from iap.evaluation.ablations import run_ablations
        from iap.zoo.locate import locate_policy

        options = parse_env_options(self.env_option)
        policy, _ = locate_policy(self.policy, self.env, options)
        blind = None if self.blind is None else locate_policy(self.blind, self.env, options)[0]
        with console.status(f"{self.episodes} episodes of each ablation") as status:

            def report(row: dict[str, Any]) -> None:
                status.update(f"{row['ablation']}: {row['mean']:.4g}; next {self.episodes} episodes")

            rows = run_ablations(policy, self.pool.open, self.episodes, self.seed, blind, report)
        shown = [{key: value for key, value in row.items() if key not in HIDDEN} for row in rows]
        seeds = f"seeds {self.seed} to {self.seed + self.episodes - 1}"
        console.print(plain_table(shown, f"{policy.env_id}, {seeds}"))
        save(console, rows, self.json)
