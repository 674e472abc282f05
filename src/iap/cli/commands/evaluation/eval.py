"""`iap eval`: the mean return of a policy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from iap.cli.console import Command, save
from iap.cli.env_options import parse_env_options
from iap.cli.pool_options import LOCAL_POOL, PoolOptions


@dataclass(frozen=True)
class Eval(Command):
    """Evaluate a policy on seeds that training does not use.

    Prints the mean return with its 95 % confidence interval.
    Example: iap eval runs/seek-seed0 --episodes 100
    """

    policy: tyro.conf.Positional[str]
    """A policy file, the folder of a run, or zoo:NAME."""
    episodes: int = 100
    """Number of episodes; episode i has seed SEED + i."""
    seed: int = 0
    """Seed of the first episode."""
    env: str | None = None
    """Another environment than the policy's own; "module:id" imports the module that registers it."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE, an option of the environment besides the policy's own; can be repeated."""
    attention: int = 0
    """Number of episodes in which to count what the selected patches show; needs an environment with a segmentation."""
    json: Path | None = None
    """Write the result to this file as JSON; - for standard output."""
    pool: Annotated[PoolOptions, tyro.conf.arg(name="")] = LOCAL_POOL

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Run the episodes and print the mean return."""
        from iap.cli.tables import plain_table
        from iap.evaluation.attention_statistics import attention_statistics
        from iap.evaluation.evaluate import evaluate, policy_job
        from iap.zoo.locate import locate_policy

        policy, path = locate_policy(self.policy, self.env, parse_env_options(self.env_option))
        with self.pool.open(policy_job(policy)) as pool, console.status(f"{self.episodes} episodes"):
            result = evaluate(policy, pool, self.episodes, self.seed)
        if result.mean is None:
            raise RuntimeError(f"all {self.episodes} episodes failed: {'; '.join(result.errors)}")
        interval = "" if result.ci95 is None else f" ± {result.ci95:.3g} (95 %)"
        failed = f", {result.failed} failed" if result.failed else ""
        last = self.seed + self.episodes - 1
        seeds = f"seed {last}" if last == self.seed else f"seeds {self.seed} to {last}"
        count = f"{self.episodes} episode{'s' if self.episodes > 1 else ''}"
        console.print(f"{policy.env_id}: {result.mean:.4g}{interval}, {count}{failed}, {seeds}")
        report: dict[str, Any] = result.to_json() | {"policy": path, "env": policy.env_id}
        if self.attention > 0:
            report["attention"] = attention_statistics(policy, self.attention, self.seed)
            console.print(plain_table(report["attention"], f"what selected patches show, {self.attention} episodes"))
        save(console, report, self.json)
