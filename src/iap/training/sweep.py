"""Training runs over a grid of options: each run is parallel, and a sweep that was stopped continues."""

import itertools
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

from iap.distillation.teachers import TeacherConfig
from iap.rollouts import Job, Pool
from iap.training.config import TrainConfig, config_to_json, fit_to_env
from iap.training.initialization import check_start
from iap.training.loop import train
from iap.training.run_directory import RunDirectory

Grid = Mapping[str, Sequence[Any]]
Row = dict[str, Any]


def parse_grid(words: Sequence[str]) -> dict[str, list[Any]]:
    """Words like `policy.encoder.patch=1,2,4`, each an axis of the grid."""
    grid: dict[str, list[Any]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not name or not values:
            raise ValueError(f"--grid must be NAME=VALUE,VALUE,…, not {word!r}")
        grid[name] = [_parsed(value) for value in values.split(",")]
    return grid


def sweep(
    config: TrainConfig,
    grid: Grid,
    out: Path,
    open_pool: Callable[[Job], Any],
    report: Callable[[str, Row], None] = lambda _name, _row: None,
) -> list[Row]:
    """Train every point of the grid that is not trained yet; one row a point, with its best held-out return.

    A point's folder is named after its options, so that a sweep that was stopped continues.
    """
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    for point in points:
        check_start(fit_to_env(with_options(config, point)))  # before the first one is trained
    rows = []
    for point in points:
        name = "_".join(f"{key.rpartition('.')[2]}={value}" for key, value in point.items())
        rows.append(
            point | _train_point(with_options(config, point), out / name, open_pool, lambda row, n=name: report(n, row))
        )
    return rows


def with_options(config: TrainConfig, point: Mapping[str, Any]) -> TrainConfig:
    """The config with options like `policy.encoder.patch` set."""
    for name, value in point.items():
        config = _with(config, name.split("."), value, name)
    return config


def _with(part: Any, path: Sequence[str], value: Any, name: str) -> Any:
    if not is_dataclass(part) or not hasattr(part, path[0]):
        raise ValueError(f"there is no option {name!r} ({type(part).__name__} has no {path[0]!r})")
    inner = value if len(path) == 1 else _with(getattr(part, path[0]), path[1:], value, name)
    return replace(part, **{path[0]: inner})  # pyright: ignore[reportArgumentType]


def _train_point(
    config: TrainConfig, path: Path, open_pool: Callable[[Job], Any], report: Callable[[Row], None]
) -> Row:
    rows = train_to_end(config, path, open_pool, report).read_metrics()
    return {key: rows[-1][key] for key in ("episodes", "mean", "best", "held_out_best")} | {"run": str(path)}


def train_to_end(
    config: TrainConfig,
    path: Path,
    open_pool: Callable[[Job], Any],
    report: Callable[[Row], None],
    warn: Callable[[str], None] = lambda line: warnings.warn(line, RuntimeWarning, stacklevel=2),
    teacher: TeacherConfig | None = None,
    on_start: Callable[[str, float], None] = lambda _what, _share: None,
) -> RunDirectory:
    """A run of this config in this folder, trained to its end; one that was stopped is resumed.

    A run with fewer iterations is extended. `on_start` is called with what is done before the first iteration, such as
    a round of distillation, and which share of it is done.
    """
    config = fit_to_env(config)
    check_start(config, teacher)
    if (path / "config.json").exists():
        run, existing = RunDirectory.open(path)
        if existing.policy.image_format is None:  # a run of an older version
            config = replace(config, policy=replace(config.policy, image_format=None))
        extended = replace(existing, iterations=max(existing.iterations, config.iterations))
        if config_to_json(extended) != config_to_json(config):  # a user's own environment has no JSON but its name
            raise ValueError(f"{path} holds a run with other options: choose another folder, or delete it")
        if extended != existing:
            run.extend(config)
    else:
        run = RunDirectory.create(path, config)
    rows = run.read_metrics()
    if not rows or rows[-1]["iteration"] < config.iterations:
        pool: Pool
        with run.discarded_after_an_error(), open_pool(config.job) as pool, run.locked():
            train(config, pool, run, report, on_start, on_failure=warn, teacher=teacher)
    return run


def _parsed(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
