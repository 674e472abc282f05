"""`iap teacher`: a policy on privileged state, trained by soft actor-critic."""

import shlex
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console

from iap.cli.console import Command

if TYPE_CHECKING:
    from iap.training.sac.config import SAC


@dataclass(frozen=True)
class Teacher(Command):
    """Train a policy on privileged state by SAC: iap teacher TASK, or iap teacher --env ID.

    The policy receives the sensors of the environment and no image. It can teach a policy that receives images. An
    interrupted run is continued by iap teacher --resume DIR. Options that are not given are those of the preset.
    Example: iap teacher walker-walk --out runs/walker-walk-state-teacher
    """

    task: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="TASK")] = None
    """A preset, such as walker-walk; an unknown name lists all."""
    env: str | None = None
    """Id of an environment with sensors and continuous actions, instead of a preset; with --resume, that of the run,
    whose module is imported only if it is named here."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE, an option of the environment; can be repeated."""
    hidden: tuple[int, ...] | None = None
    """Units of each hidden layer."""
    iterations: int | None = None
    """Number of iterations."""
    decisions: int | None = None
    """Decisions of an iteration, rounded up to whole episodes."""
    random_decisions: int | None = None
    """Decisions with random actions before the first update."""
    batch: int | None = None
    """Transitions of an update; there is one update per decision."""
    learning_rate: float | None = None
    """Adam's step size."""
    discount: float | None = None
    """Of the rewards per decision."""
    target_rate: float | None = None
    """The share by which the target critics follow the critics at each update."""
    reward_scale: float | None = None
    """Factor of the rewards in training."""
    normalise: bool | None = None
    """Whether sensors are normalised by running statistics."""
    evaluate_every: int | None = None
    """Iterations between two evaluations, and between two checkpoints."""
    evaluate_episodes: int | None = None
    """Episodes of each evaluation."""
    seed: int | None = None
    """Of everything random."""
    out: Path | None = None
    """Folder of the run; by default runs/NAME-seedSEED."""
    resume: Path | None = None
    """Folder of a run to continue, with the options that it was started with."""

    def run(self, console: Console) -> None:
        """Train to the end, with the return on validation seeds as progress; then plot the learning curve."""
        from iap.cli.progress import training_report
        from iap.cli.training import env_option
        from iap.envs.registration import require_named
        from iap.training.run_directory import RunDirectory
        from iap.training.sac.config import SAC
        from iap.training.sac.loop import train_sac
        from iap.viz.curves import plot_curves

        if self.resume is not None:
            run, config = RunDirectory.open(self.resume, SAC)
            require_named(config.env.id, self.env)
        else:
            config = self.config()
            run = RunDirectory.create(self._folder(config), config, self.recorded_command())
        try:
            with training_report(console, config, run) as report:
                train_sac(config, run, report.row, run.command)
        except KeyboardInterrupt:
            console.print(
                f"stopped; continue with: iap teacher --resume {run.path}{env_option(config)}", soft_wrap=True
            )
            return
        curve = run.path / "curve.png"
        with run.explained():
            plot_curves({run.path.name: [run.read_metrics()]}, curve)
        console.print(f"policy   {run.policy_file('best')}\ncurve    {curve}", soft_wrap=True)

    def config(self) -> "SAC":
        """The preset's config, or that of `env`, with the given options."""
        from iap.cli.env_options import parse_env_options
        from iap.envs.core import EnvConfig
        from iap.training.sac.presets import for_env, teacher

        if (self.task is None) == (self.env is None):
            raise ValueError("give either a task or --env ID (see iap teacher --help)")
        config = teacher(self.task) if self.task is not None else for_env(EnvConfig.of(self.env or ""))
        options = dict(config.env.kwargs) | parse_env_options(self.env_option)
        return replace(config, env=EnvConfig.of(config.env.id, **options), **self._given())

    def recorded_command(self) -> str:
        """The command line for the policy files, without the folder, which does not change the result."""
        words = ["iap", "teacher", *([] if self.task is None else [self.task])]
        words += [] if self.env is None else ["--env", self.env]
        for option in self.env_option:
            words += ["--env-option", option]
        for name, value in self._given().items():
            values = value if isinstance(value, tuple) else (value,)
            words += [f"--{name.replace('_', '-')}", *map(str, values)]
        return shlex.join(words)

    def _given(self) -> dict[str, Any]:
        from iap.training.sac.config import SAC

        names = [field.name for field in fields(SAC) if field.name != "env"]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def _folder(self, config: "SAC") -> Path:
        from iap.training.sac.presets import full_name

        name = full_name(self.task) if self.task is not None else config.env.id.split("/")[-1].split(":")[-1]
        return self.out or Path("runs") / f"{name}-seed{config.seed}"
