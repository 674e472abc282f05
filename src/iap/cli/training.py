"""A training run on the command line: progress, then the policy beside its baselines, and what to do next."""

import math
import shlex
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from iap.cli.pool_options import PoolOptions
    from iap.training.config import TrainConfig
    from iap.training.run_directory import RunDirectory
    from iap.training.sac.config import SAC

COMPARED_EPISODES = 32
FIRST_ITERATIONS = 20  # of evolution after distillation


def train_in(
    console: Console,
    run: "RunDirectory",
    config: "TrainConfig",
    pools: "PoolOptions",
    compared: int,
    command: str | None,
) -> None:
    """Train to the end, plot the learning curve, compare with baselines.

    The folder is made after the pool was opened; if the first episodes fail, only their error stays in it.
    """
    from iap.cli.progress import training_report
    from iap.training.loop import train

    with run.discarded_after_an_error(), pools.open(config.job) as pool, run.locked():
        if not run.config_file.exists():
            type(run).create(run.path, config, command)
        try:
            with training_report(console, config, run) as report:
                progress = train(config, pool, run, report.row, report.start, run.command, on_failure=report.warn)
        except KeyboardInterrupt:
            console.print(f"stopped; continue with: iap train --resume {run.path}{env_option(config)}", soft_wrap=True)
            return
    _plot(run)
    if progress.best is None:
        console.print(f"no policy had a finite return; the last one: {run.policy_file('last')}", soft_wrap=True)
        return
    if compared > 0:
        _compare(console, run, config, pools, compared)
    _suggest(console, run, config, has_blind=compared > 0)


def _plot(run: "RunDirectory") -> None:
    from iap.viz.curves import plot_curves

    with run.explained():
        plot_curves({run.path.name: [run.read_metrics()]}, run.path / "curve.png")


def _compare(console: Console, run: "RunDirectory", config: "TrainConfig", pools: "PoolOptions", episodes: int) -> None:
    """Print the returns of the policy and of its baselines, on the same seeds."""
    from iap.cli.baselines import compare_with_baselines
    from iap.cli.tables import plain_table, write_json

    with console.status("comparing with baselines") as status:
        rows = compare_with_baselines(run, config, pools.open, episodes, status.update)
    title = f"returns over {episodes} episodes, the same for all (seeds 0 to {episodes - 1})"
    console.print(plain_table(rows, title))
    with run.explained():
        write_json(rows, run.path / "comparison.json")
    blind = next((row for row in rows if row["policy"].startswith("blind")), None)
    if blind is not None and blind["difference"] is not None:
        console.print(_verdict(blind), soft_wrap=True, highlight=False)


def _verdict(blind: dict[str, Any]) -> str:
    """Whether the policy is better than without images, and how sure that is."""
    difference, interval = blind["difference"], blind["± (95 %) "]
    if interval is None or math.isnan(interval):
        return "One episode says nothing about the difference to the blind policy: compare more (--compare 32)."
    shown = f"{difference:.3g} ± {interval:.2g} (95 %)"
    if difference > interval:
        return f"The policy uses its images: its return is higher than the blind policy's by {shown}."
    return f"It is not shown that the policy uses its images: the difference to the blind policy is {shown}."


def env_option(config: "TrainConfig | SAC") -> str:
    """The option that names the environment, for one whose module is imported only if it is named."""
    return f" --env {config.env.id}" if ":" in config.env.id else ""


def _suggest(console: Console, run: "RunDirectory", config: "TrainConfig", has_blind: bool) -> None:
    """Print where things are, and the next commands."""
    path = shlex.quote(str(run.path))
    env = env_option(config)
    blind_folder = run.path / "blind"
    blind = f" --blind {shlex.quote(str(blind_folder))}" if has_blind and blind_folder.exists() else ""
    lines = [
        f"policy   {run.policy_file('best')}",
        f"curve    {run.path / 'curve.png'}",
        "next:",
        f"  iap eval {path}{env}    the return over 100 other episodes",
        f"  iap ablate {path}{blind}{env}    what it owes to images, training and attention",
        f"  iap watch {path}{env}    a video",
        f"  iap train --resume {path}{env} --iterations {2 * config.iterations or FIRST_ITERATIONS}    train longer",
    ]
    console.print("\n".join(lines), soft_wrap=True, highlight=False, markup=False)
