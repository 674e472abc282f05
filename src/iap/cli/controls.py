"""`iap controls`: whether a return comes of seeing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from iap.cli.choices import key_values
from iap.cli.terminal import save
from iap.cli.where import Where


@dataclass(frozen=True)
class Controls:
    """Compare a policy with itself under zero action, before training, with wrong frames, with random attention.

    Example: iap controls zoo:seek --episodes 100
    """

    policy: tyro.conf.Positional[str]
    """A policy file, a run's folder, or zoo:NAME."""
    blind: str | None = None
    """A policy trained the same way without an image (iap train … --encoder blind), to stand beside the others."""
    episodes: int = 100
    """Of each control, the same for all; the i-th has seed SEED + i."""
    seed: int = 0
    """Of the first episode."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE for the environment, beside its own options; any number of them."""
    json: Path | None = None
    """Write the rows here as JSON; - for standard output."""
    where: Annotated[Where, tyro.conf.arg(name="")] = Where()  # noqa: RUF009
    plot = None

    def run(self, console: Console) -> None:
        """Run all controls and show them in a table."""
        from iap.cli.tables import plain_table
        from iap.evaluation.ablations import run_ablations
        from iap.evaluation.evaluate import locate_policy

        policy, _ = locate_policy(self.policy, env_options=key_values(self.env_option))
        blind = None if self.blind is None else locate_policy(self.blind, env_options=key_values(self.env_option))[0]
        with console.status(f"{self.episodes} episodes of each control") as status:

            def report(row: dict[str, Any]) -> None:
                status.update(f"{row['control']}: {row['mean']:.4g}; {self.episodes} episodes of the next")

            rows = run_ablations(policy, self.where.open, self.episodes, self.seed, blind, report)
        shown = [{key: value for key, value in row.items() if key not in ("seed", "failed")} for row in rows]
        seeds = f"seeds {self.seed} to {self.seed + self.episodes - 1}"
        console.print(plain_table(shown, f"{policy.env_id}, {seeds}"))
        save(console, rows, self.json)
