"""Training and distillation in the public API. Each function imports what it needs when it is called."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iap._api import Row, load_policy
from iap._arguments import env_config, open_pool
from iap._extras import explain_missing
from iap.policies import Policy

if TYPE_CHECKING:
    from iap.distillation.teachers import TeacherConfig
    from iap.training.config import TrainConfig


@dataclass(frozen=True)
class Run:
    """A finished training run.

    Attributes:
        path: its folder.
        policy: the best policy on validation seeds.
        metrics: one row an iteration.
    """

    path: Path
    policy: Policy
    metrics: list[Row]


def train(
    config: "TrainConfig | str | None" = None,
    *,
    env: Any = None,
    workers: int | None = None,
    out: str | Path | None = None,
    progress: Callable[[Row], None] | None = None,
    **options: Any,
) -> Run:
    """Train a policy; a run that was interrupted is resumed if its folder and config are the same.

    Args:
        config: a config such as `iap.presets["seek"]`, or a preset's name; a default one for `env` if not given.
        env: the environment, if another than the config's: anything that `make_env` takes. A class or function is
            called by every worker process; nothing has to be registered.
        workers: number of local processes; 0 runs everything in this process. All cores by default.
        out: the folder of the run; runs/NAME-seedSEED by default.
        progress: called with each row of metrics.
        options: fields of the config to replace, such as iterations=50.

    Example:
        >>> import iap, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = iap.train(iap.presets["seek"], workers=0, out=folder, iterations=1, episodes=1)
        >>> len(run.metrics), run.policy.env.id
        (1, 'iap/Seek-v0')
    """
    with explain_missing("training"):
        chosen, path = _chosen(config, env, out, options)
        return _train(chosen, path, workers, progress)


def distill(
    config: "TrainConfig | str | None" = None,
    *,
    env: Any = None,
    teacher: "str | Path | Callable[[Any], Any] | None" = None,
    workers: int | None = None,
    out: str | Path | None = None,
    progress: Callable[[Row], None] | None = None,
    **options: Any,
) -> Run:
    """Distil a privileged teacher into a policy; an interrupted run is resumed as by `train`. Needs PyTorch.

    Args:
        config: a config or a preset's name; a default one for `env` if not given.
        env: the environment, if another than the config's: anything that `make_env` takes.
        teacher: a function env → action in [−1, 1], which is given the environment without wrappers; or a policy on
            other sensors of the environment. By default the config's, else the environment's own expert, `label()`.
        workers: number of local processes; 0 runs everything in this process. All cores by default.
        out: the folder of the run; runs/NAME-seedSEED by default.
        progress: called with each row of metrics.
        options: fields of the config to replace, such as pretraining=DAgger(…).

    Example:
        >>> import iap, tempfile
        >>> from iap.distillation import DAgger
        >>> short = DAgger(steps=(60,), teacher_share=(1.0,), updates=(5,), batch=8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = iap.distill("seek", teacher=lambda env: [0.5, 0.0], workers=0, out=folder, pretraining=short)
        >>> run.policy.env.id
        'iap/Seek-v0'
    """
    with explain_missing("distillation"):
        from iap.distillation.teachers import TeacherConfig
        from iap.training.parts import distillation_only

        chosen, path = _chosen(config, env, out, {})
        chosen = replace(distillation_only(chosen), **options)
        given = None
        if teacher is not None:
            given = TeacherConfig(function=teacher) if callable(teacher) else TeacherConfig(policy=str(teacher))
        return _train(chosen, path, workers, progress, given)


def _chosen(
    config: "TrainConfig | str | None", env: Any, out: str | Path | None, options: dict[str, Any]
) -> "tuple[TrainConfig, Path]":
    """The config of a run, and its folder."""
    from iap.training.presets import config_for_env, preset

    name = config if isinstance(config, str) else None
    chosen = preset(config) if isinstance(config, str) else config
    if env is not None:
        where = env_config(env)
        chosen = config_for_env(where) if chosen is None else replace(chosen, env=where)
    if chosen is None:
        raise ValueError("give a config, a preset's name, or an env to train in")
    chosen = replace(chosen, **options)
    name = name or chosen.env.id.rpartition("/")[2].rpartition(":")[2]
    return chosen, Path(out) if out is not None else Path("runs") / f"{name}-seed{chosen.seed}"


def _train(
    config: "TrainConfig",
    path: Path,
    workers: int | None,
    progress: Callable[[Row], None] | None,
    teacher: "TeacherConfig | None" = None,
) -> Run:
    """A run, trained to its end."""
    from iap.training.sweep import train_to_end

    report = progress or (lambda _row: None)
    run = train_to_end(config, path, lambda job: open_pool(job, workers), report, teacher=teacher)
    return Run(path, load_policy(path), run.read_metrics())
