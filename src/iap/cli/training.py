"""`iap train`: what is trained decides which options there are, so the command line is read in two steps."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from iap.cli.choices import OPTIONS, Train
from iap.cli.where import Where
from iap.training.config import TrainConfig
from iap.training.run_directory import RunDirectory

HELP = ("-h", "--help")


@dataclass(frozen=True)
class NewRun:
    """Train a policy: iap train PRESET, or iap train --env ID, or iap train --resume DIR.

    Before the options below, these choose what is trained: a PRESET's name or --env ID, --env-option KEY=VALUE
    (any number of them), --encoder rank|trans|exact-rank|cnn|blind,
    --kernel relu|positive|trigonometric|hyperbolic|favor++, --controller linear|mlp|lstm,
    --level one|two|two-mlp, --strategy open-es|ars|pgpe|cma-es|snes; --from POLICY starts from a trained policy
    of the same shapes. The options' defaults are those of what was chosen.
    Example: iap train seek --iterations 50 --out runs/seek
    """

    config: Annotated[TrainConfig, tyro.conf.arg(name="")]
    where: Annotated[Where, tyro.conf.arg(name="")] = Where()  # noqa: RUF009
    out: Path | None = None
    """The run's folder; runs/NAME-seedSEED if not given."""
    json = plot = None

    def run(self, console: Console) -> None:
        """Train from the beginning."""
        from iap.training.config import fitted_to_env
        from iap.training.initialization import start_policy

        assert self.out is not None
        config = fitted_to_env(self.config)
        if config.warm_start is not None:
            start_policy(config)  # refused before there is a folder
        _train(console, RunDirectory.create(self.out, config), config, self.where)


@dataclass(frozen=True)
class Resumed:
    """A run that goes on from its last checkpoint."""

    path: Path
    where: Where
    json = plot = None

    def run(self, console: Console) -> None:
        """Train what is left."""
        run, config = RunDirectory.open(self.path)
        _train(console, run, config, self.where)


def parse_train(words: list[str]) -> NewRun | Resumed:
    """The run that the words ask for."""
    asked = [word for word in words if word not in HELP]
    preset = asked.pop(0) if asked and not asked[0].startswith("-") else ""
    chosen, options = tyro.cli(Train, args=asked, prog="iap train", return_unknown_args=True)
    chosen = replace(chosen, preset=preset)
    if chosen.resume is not None:
        where = tyro.cli(Where, args=[*options, *_help(words)], prog="iap train --resume DIR")
        return Resumed(chosen.resume, where)
    if _help(words) and not chosen.preset and chosen.env is None:
        chosen = replace(chosen, preset="seek")
    run = tyro.cli(
        NewRun,
        default=NewRun(chosen.config()),
        args=[*options, *_help(words)],
        prog=f"iap train {preset or 'PRESET'}",
        config=(tyro.conf.AvoidSubcommands, tyro.conf.SuppressFixed),
        registry=OPTIONS,
    )
    return replace(run, out=run.out or Path("runs") / f"{chosen.name}-seed{run.config.seed}")


def _help(words: list[str]) -> list[str]:
    return [word for word in words if word in HELP][:1]


def _train(console: Console, run: RunDirectory, config: TrainConfig, where: Where) -> None:
    """Train to the end, then draw the learning curve."""
    from iap.cli.live import training_report
    from iap.training.loop import train
    from iap.viz.curves import plot_curves

    try:
        with where.open(config.job) as pool, training_report(console, config, run) as report:
            train(config, pool, run, report.row, report.doing)
    except KeyboardInterrupt:
        console.print(f"stopped; go on with: iap train --resume {run.path}")
        return
    with run.explained():
        plot_curves({run.path.name: [run.read_metrics()]}, run.path / "curve.png")
    in_env = f" --env {config.env.id}" if ":" in config.env.id else ""
    console.print(f"policy   {run.policy_file('best')}\ncurve    {run.path / 'curve.png'}", soft_wrap=True)
    console.print(f"look at it: iap watch {run.path}{in_env}", soft_wrap=True)
