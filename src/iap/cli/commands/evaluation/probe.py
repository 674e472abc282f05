"""`iap probe`: how much of the simulator's state random or briefly trained encoders of a preset know."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.console import Console

from iap.cli.console import Command, progress_bar, save
from iap.cli.env_options import chosen_config

if TYPE_CHECKING:
    from iap.training.config import TrainConfig


@dataclass(frozen=True)
class Probe(Command):
    """Measure, before any training, how much of the simulator's state random encoders of a preset explain.

    A ridge regression maps the controller's inputs to the state; R² is 1 at best. Takes seconds.
    With --updates, encoders are trained on a teacher's labels instead. Errors are the unexplained shares of action
    and state, and the distance to keypoints in pixels. Takes minutes.
    Example: iap probe seek
    Example: iap probe walker-walk-distilled --updates 500 2000 --encoder residual-rank cnn
    """

    preset: tyro.conf.Positional[str | None] = None
    """A preset's name."""
    env: str | None = None
    """The environment of the preset instead of its own; or, without a preset, one to probe the default policy in."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE, an option of the environment; can be repeated."""
    steps: int = 2_000
    """Number of states."""
    draws: int = 4
    """Number of random policies."""
    updates: tuple[int, ...] = ()
    """Train the encoder on labelled images for so many updates; each number is a training of its own."""
    encoder: tuple[str, ...] = ()
    """Encoders with default options to train; the preset's own by default."""
    samples: int | None = None
    """Number of labelled images; the preset's own number by default."""
    workers: int | None = None
    """Number of worker processes that collect labelled images; all cores by default."""
    json: Path | None = None
    """Write the rows to this file as JSON; - for standard output."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Collect states, fit the regressions and print a table."""
        from iap.cli.tables import plain_table
        from iap.evaluation.probe import probe
        from iap.training.config import fit_to_env

        config = fit_to_env(chosen_config(self.preset, self.env, self.env_option))
        if self.updates:
            self._train(console, config)
            return
        with progress_bar(console) as progress:
            rows = probe(
                config.env, config.policy, steps=self.steps, draws=self.draws, seed=config.seed, progress=progress
            )
        shown = [{key: value for key, value in row.items() if key != "each"} for row in rows]
        title = f"{self.preset or self.env}: share of the state's variance that the controller's inputs explain (R²)"
        console.print(plain_table(shown, title))
        save(console, rows, self.json)

    def _train(self, console: Console, config: "TrainConfig") -> None:
        """Train encoders and print a table of their errors."""
        from iap.cli.pool_options import PoolOptions
        from iap.cli.tables import plain_table
        from iap.distillation import DAgger
        from iap.distillation.dagger.encoder_config import EncoderPretraining
        from iap.distillation.dagger.perception import measure_perception
        from iap.distillation.teachers import TeacherConfig
        from iap.training.parts import with_parts

        dagger = config.pretraining if isinstance(config.pretraining, DAgger) else DAgger()
        options = dagger.encoder or EncoderPretraining(random_share=0)
        if self.samples is not None:
            options = replace(options, samples=self.samples)
        policies = {name: with_parts(config, encoder=name).policy for name in self.encoder}
        own = {type(config.policy.encoder).__name__: config.policy}
        with PoolOptions(workers=self.workers).open(config.job) as pool, progress_bar(console) as progress:
            rows = measure_perception(
                options,
                config.job,
                policies or own,
                self.updates,
                config.seed,
                pool,
                progress,
                TeacherConfig(dagger.teacher),
            )
        console.print(plain_table(rows, f"{self.preset or self.env}: errors of encoders trained on labelled images"))
        save(console, rows, self.json)
