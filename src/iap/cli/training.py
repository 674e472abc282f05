"""`iap train`, `eval`, `watch`, `plot`, `describe`, `zoo`: from a preset to a policy that can be looked at."""

import argparse
import contextlib
import json as json_module
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from iap.cli.terminal import progress_bar, save
from iap.experiments.config import TrainConfig
from iap.rollouts import EnvSpec, InlinePool, Job, LocalPool, Pool

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
            from iap.rollouts.ray import RayPool

            pool: Pool = RayPool(job, self.address, workers=self.workers, timeout_s=self.timeout_s)
        elif self.pool == "local":
            pool = LocalPool(job, self.workers, timeout_s=self.timeout_s)
        else:
            pool = InlinePool(job)
        with pool:
            yield pool


@dataclass(frozen=True)
class Train:
    """Train a policy: iap train PRESET, or iap train --env ID, or iap train --resume DIR.

    Before the options below, these choose what is trained: a PRESET's name or --env ID, --env-option KEY=VALUE
    (any number of them), --vision rank|trans|exact-rank|cnn|blind, --controller linear|mlp|lstm,
    --strategy open-es|ars|pgpe|cma-es|snes. The options' defaults are the preset's.
    Example: iap train seek --iterations 50 --out runs/seek
    """

    config: Annotated[TrainConfig, tyro.conf.arg(name="")]
    where: Annotated[Where, tyro.conf.arg(name="")] = Where()
    out: Path | None = None
    """The run's folder; runs/NAME-seedSEED if not given."""


@dataclass(frozen=True)
class TrainHelp:
    """Train a policy: iap train PRESET, iap train --env ID, or iap train --resume DIR."""

    json = plot = None

    def run(self, console: Console) -> None:
        """Never reached: `parse_train` reads this command."""


def parse_train(arguments: list[str]) -> "TrainCommand":
    """The training command in two steps: what is trained decides which options there are."""
    from iap.experiments.presets import for_env, preset, with_parts

    first = argparse.ArgumentParser(prog="iap train", add_help=False, allow_abbrev=False)
    first.add_argument("preset", nargs="?")
    first.add_argument("--env")
    first.add_argument("--env-option", action="append", default=[])
    for part in ("vision", "controller", "strategy"):
        first.add_argument(f"--{part}")
    first.add_argument("--resume", type=Path)
    chosen, rest = first.parse_known_args(arguments)
    if chosen.preset is None and chosen.env is None and not {"-h", "--help"} & set(rest) and chosen.resume is None:
        raise ValueError("say what to train: a preset's name, --env ID, or --resume DIR (see iap train --help)")
    if chosen.preset is not None and chosen.env is not None:
        raise ValueError(f"give a preset ({chosen.preset}) or --env ({chosen.env}), not both")
    if chosen.resume is not None:
        where = tyro.cli(Where, args=rest, prog="iap train --resume DIR")
        return TrainCommand("resumed", None, where, chosen.resume)
    name = chosen.preset or (chosen.env or "seek").split("/")[-1]
    config = for_env(EnvSpec.of(chosen.env)) if chosen.env else preset(chosen.preset or "seek")
    options = dict(config.env.kwargs) | dict(_key_value(option) for option in chosen.env_option)
    config = replace(config, env=EnvSpec.of(config.env.id, **options))
    config = with_parts(config, chosen.vision, chosen.controller, chosen.strategy)
    parsed = tyro.cli(
        Train,
        default=Train(config),
        args=rest,
        prog=f"iap train {chosen.preset or '[PRESET | --env ID]'}",
        config=(tyro.conf.AvoidSubcommands, tyro.conf.SuppressFixed),
    )
    out = parsed.out or Path("runs") / f"{name}-seed{parsed.config.seed}"
    return TrainCommand(name, parsed.config, parsed.where, out)


@dataclass(frozen=True)
class TrainCommand:
    """What `iap train` does once it is clear what is wanted; without a config it resumes."""

    name: str
    config: TrainConfig | None
    where: Where
    out: Path
    json = plot = None

    def run(self, console: Console) -> None:
        """Train to the end, then draw the learning curve."""
        from iap.cli.live import training_report
        from iap.experiments.config import fitted_to_env
        from iap.experiments.run_directory import RunDirectory
        from iap.experiments.train import train
        from iap.viz.curves import plot_curves

        if self.config is None:
            run, config = RunDirectory.open(self.out)
        else:
            config = fitted_to_env(self.config)
            run = RunDirectory.create(self.out, config)
        try:
            with self.where.open(config.job) as pool, training_report(console, config, run) as report:
                train(config, pool, run, report)
        except KeyboardInterrupt:
            console.print(f"stopped; go on with: iap train --resume {run.path}")
            return
        rows = run.read_metrics()
        plot_curves({self.name: [rows]}, run.path / "curve.png")
        console.print(f"policy   {run.policy_file('best')}\ncurve    {run.path / 'curve.png'}")
        console.print(f"look at it: iap watch {run.path}")


@dataclass(frozen=True)
class Eval:
    """Evaluate a policy on seeds that training never used.

    Example: iap eval runs/seek-seed0 --episodes 100
    """

    policy: tyro.conf.Positional[str]
    """A policy file, a run's folder, or zoo:NAME."""
    episodes: int = 100
    """How many episodes; the i-th has seed SEED + i."""
    seed: int = 0
    """Of the first episode."""
    json: Path | None = None
    """Write the result here as JSON; - for standard output."""
    where: Annotated[Where, tyro.conf.arg(name="")] = Where()
    plot = None

    def run(self, console: Console) -> None:
        """Run the episodes and tell the mean."""
        from iap.experiments.evaluate import evaluate, find_policy, job_of

        policy, path = find_policy(self.policy)
        with self.where.open(job_of(policy)) as pool, console.status(f"{self.episodes} episodes"):
            result = evaluate(policy, pool, self.episodes, self.seed) | {"policy": path, "env": policy.env_id}
        if result["mean"] is None:
            raise RuntimeError(f"all {self.episodes} episodes failed: {'; '.join(result['errors'])}")
        interval = "" if result["ci95"] is None else f" ± {result['ci95']:.3g}"
        failed = f", {result['failed']} failed" if result["failed"] else ""
        seeds = f"seeds {self.seed} to {self.seed + self.episodes - 1}"
        console.print(
            f"{policy.env_id}: {result['mean']:.4g}{interval} (95 %), {self.episodes} episodes{failed}, {seeds}"
        )
        save(console, result, self.json)


@dataclass(frozen=True)
class Watch:
    """Film an episode: the scene, what the policy sees with attended patches in red, the scores, the return.

    Example: iap watch zoo:seek --out seek.mp4
    """

    policy: tyro.conf.Positional[str]
    """A policy file, a run's folder, or zoo:NAME."""
    out: Path | None = None
    """An .mp4 or .gif file; beside the policy if not given."""
    seed: int = 0
    """Of the episode."""
    max_steps: int | None = None
    """Where to cut it."""
    json = None

    @property
    def plot(self) -> Path | None:
        """The film, to be checked like every other file."""
        return self.out

    def run(self, console: Console) -> None:
        """Film one episode."""
        from iap.experiments.evaluate import find_policy, watch

        policy, path = find_policy(self.policy)
        beside = Path(f"{self.policy.removeprefix('zoo:')}.mp4") if self.policy.startswith("zoo:") else None
        out = self.out or beside or Path(path).with_suffix(".mp4")
        with console.status("filming"):
            episode = watch(policy, out, self.seed, self.max_steps)
        console.print(f"wrote {out}: {episode.steps} steps, return {episode.total:.4g}, seed {self.seed}")


@dataclass(frozen=True)
class Plot:
    """Draw learning curves; runs that differ in their seed alone become one line with a band.

    Example: iap plot runs/seek-seed0 runs/seek-seed1 --out curves.png
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of runs."""
    out: Path = Path("curves.png")
    """The picture."""
    over: Literal["episodes", "iteration"] = "episodes"
    """What the axis counts."""
    json = None

    @property
    def plot(self) -> Path | None:
        """The picture, to be checked like every other file."""
        return self.out

    def run(self, console: Console) -> None:
        """Read the runs and draw."""
        from iap.experiments.run_directory import RunDirectory
        from iap.viz.curves import plot_curves

        if not self.runs:
            raise ValueError("name at least one run's folder")
        groups: dict[TrainConfig, list[tuple[Path, list[dict[str, Any]]]]] = {}
        for path in self.runs:
            run, config = RunDirectory.open(path)
            groups.setdefault(replace(config, seed=0), []).append((path, run.read_metrics()))
        labelled = {group[0][0].name.split("-seed")[0]: [rows for _, rows in group] for group in groups.values()}
        if len(labelled) < len(groups):  # different runs of one name
            labelled = {str(group[0][0]): [rows for _, rows in group] for group in groups.values()}
        plot_curves(labelled, self.out, over=self.over)
        console.print(f"wrote {self.out}")


@dataclass(frozen=True)
class Describe:
    """Show the parts of a preset's policy with their numbers of parameters, beside a CNN's for the same task.

    Example: iap describe seek
    """

    preset: tyro.conf.Positional[str]
    """A preset's name, a policy file, a run's folder, or zoo:NAME."""
    json: Path | None = None
    """Write the rows here as JSON; - for standard output."""
    plot = None

    def run(self, console: Console) -> None:
        """Count and show."""
        from iap.experiments.config import fitted_to_env
        from iap.experiments.evaluate import find_policy
        from iap.experiments.presets import PRESETS
        from iap.experiments.reports import policy_table

        spec = (
            fitted_to_env(PRESETS[self.preset]).policy if self.preset in PRESETS else find_policy(self.preset)[0].spec
        )
        table, rows = policy_table(spec)
        console.print(table)
        save(console, rows, self.json)


@dataclass(frozen=True)
class Probe:
    """Tell in seconds whether a preset's readout can work: how much of the simulator's state it explains.

    Random attention looks at random states; a ridge regression from what the controller receives gives R², 1 at best.
    Example: iap probe seek
    """

    preset: tyro.conf.Positional[str]
    """A preset's name."""
    steps: int = 2_000
    """How many states."""
    draws: int = 4
    """How many random policies."""
    json: Path | None = None
    """Write the rows here as JSON; - for standard output."""
    plot = None

    def run(self, console: Console) -> None:
        """Collect, fit and tell."""
        from iap.experiments.presets import preset
        from iap.experiments.probe import probe
        from iap.experiments.reports import plain_table

        with progress_bar(console) as progress:
            rows = probe(preset(self.preset), self.steps, self.draws, progress)
        table = [{key: value for key, value in row.items() if key != "each"} for row in rows]
        console.print(
            plain_table(table, f"{self.preset}: share of the state's variance that the controller's inputs explain")
        )
        save(console, rows, self.json)


@dataclass(frozen=True)
class Sweep:
    """Train a preset at every point of a grid of its options; what is trained already is not trained again.

    Example: iap sweep seek --grid policy.vision.patch=1,2,4 seed=0,1 --out runs/sweep
    """

    preset: tyro.conf.Positional[str]
    """A preset's name."""
    grid: tuple[str, ...]
    """Axes, each NAME=VALUE,VALUE,… with a name as in `iap train`."""
    out: Path = Path("runs/sweep")
    """The folder of all runs, of the table and of the heat map."""
    where: Annotated[Where, tyro.conf.arg(name="")] = Where()
    json = plot = None

    def run(self, console: Console) -> None:
        """Train what is missing, then show all."""
        from iap.experiments.presets import preset
        from iap.experiments.reports import plain_table, write_json
        from iap.experiments.sweep import parse_grid, sweep
        from iap.viz.plots import plot_heat_map

        grid = parse_grid(self.grid)

        def report(name: str, row: dict[str, Any]) -> None:
            if row["held_out"] is not None:
                console.print(f"{name}: iteration {row['iteration']}, held-out {row['held_out']:.4g}", highlight=False)

        rows = sweep(preset(self.preset), grid, self.out, self.where.open, report)
        console.print(plain_table(rows, f"{self.preset}: best held-out return at each point"))
        write_json(rows, self.out / "sweep.json")
        axes = list(grid)[:2]
        if len(axes) == 2:  # noqa: PLR2004
            plot_heat_map(rows, axes[0], axes[1], "held_out_best", self.out / "sweep.png")
            console.print(f"wrote {self.out / 'sweep.png'}")


@dataclass(frozen=True)
class Zoo:
    """List the trained policies that ship with the package, with their returns where they were measured.

    Example: iap zoo
    """

    json: Path | None = None
    """Write the list here as JSON; - for standard output."""
    plot = None

    def run(self, console: Console) -> None:
        """List them."""
        from iap.experiments.evaluate import zoo_rows
        from iap.experiments.reports import plain_table

        rows = zoo_rows()
        console.print(
            plain_table(rows, "the zoo: use zoo:NAME wherever a policy is taken") if rows else "the zoo is empty"
        )
        save(console, rows, self.json)


@dataclass(frozen=True)
class Import:
    """Turn AttentionAgent's published parameters (an .npz file) into a policy file.

    Example: iap import attention-agent agent.npz --env CarRacing-v3 --out agent.policy
    """

    what: tyro.conf.Positional[Literal["attention-agent"]]
    """Whose parameters."""
    file: tyro.conf.Positional[Path]
    """The .npz file, with the array "params"."""
    env: str = "CarRacing-v3"
    """The environment it is for."""
    linear: bool = False
    """Replace its exact attention by linear, row-normalised attention."""
    out: Path | None = None
    """The policy file; beside the .npz if not given."""
    json = None

    @property
    def plot(self) -> Path | None:
        """The file, to be checked like every other."""
        return self.out

    def run(self, console: Console) -> None:
        """Read, check and write."""
        from iap.policies.attention_agent import import_attention_agent
        from iap.policies.files import save as save_policy

        out = self.out or self.file.with_suffix(".policy")
        save_policy(out, import_attention_agent(self.file, self.env, linear=self.linear))
        console.print(f"wrote {out}; evaluate it: iap eval {out}")


def _key_value(option: str) -> tuple[str, Any]:
    """KEY=VALUE, the value as JSON if it is some, else as text."""
    key, equals, value = option.partition("=")
    if not equals or not key:
        raise ValueError(f"--env-option must be KEY=VALUE, not {option!r}")
    try:
        parsed = json_module.loads(value)
    except ValueError:
        parsed = value
    return key, tuple(parsed) if isinstance(parsed, list) else parsed
