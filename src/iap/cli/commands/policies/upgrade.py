"""`iap upgrade`: files of older versions in the newest format."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from iap.cli.console import Command

Versions = tuple[int, int]  # of the file, and the newest one


@dataclass(frozen=True)
class Upgrade(Command):
    """Rewrite policy files, configs and checkpoints of older versions in the newest format.

    Commands read older versions too; this makes the files themselves new. Each file is replaced atomically. Files of
    the newest version are not touched. Exits with status 1 if a file cannot be read.
    Example: iap upgrade runs
    """

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """Files (NAME.policy, config.json, checkpoint.safetensors), folders of runs, or folders of such folders."""

    def run(self, console: Console) -> None:
        """Upgrade the files one after the other; a file that cannot be read does not stop the others."""
        if not self.paths:
            raise ValueError("paths must be at least one file or folder, not none")
        changed, errors = 0, 0
        files = list(dict.fromkeys(file for path in self.paths for file in _files(path)))
        for file in files:
            try:
                old, new = _upgrader(file)(file)
            except (ValueError, TypeError, OSError) as error:
                errors += 1
                message = " ".join(str(error).split())
                prefix = "" if str(file) in message else f"{file}: "
                sys.stderr.write(f"iap: {prefix}{message}\n")
                continue
            if old < new:
                changed += 1
                console.print(f"{file}: version {old} → {new}", soft_wrap=True, markup=False, highlight=False)
        console.print(f"{changed} of {len(files)} files upgraded" + (f", {errors} not readable" if errors else ""))
        if errors:
            raise SystemExit(1)


def _files(path: Path) -> Iterator[Path]:
    """The file itself, or all files of a folder that have a version."""
    if not path.is_dir():
        yield path
        return
    yield from sorted(file for file in path.rglob("*") if _is_versioned(file) and file.is_file())


def _is_versioned(file: Path) -> bool:
    return file.suffix == ".policy" or file.name in ("config.json", "checkpoint.safetensors")


def _upgrader(file: Path) -> Callable[[Path], Versions]:
    if not _is_versioned(file):
        raise ValueError("must be a .policy file, a config.json or a checkpoint.safetensors")
    return {"config.json": upgrade_config_file, "checkpoint.safetensors": upgrade_checkpoint_file}.get(
        file.name, upgrade_policy_file
    )


def upgrade_policy_file(file: Path) -> Versions:
    """Rewrite a policy file, if it is of an older version."""
    from iap.policies.serialization import VERSION, file_version, load, save

    policy, version = load(file), file_version(file)
    if version < VERSION:
        save(file, policy)
    return version, VERSION


def upgrade_config_file(file: Path) -> Versions:
    """Rewrite the config of a run, if it is of an older version."""
    from iap._files import write_whole
    from iap.training.config import TrainConfig, config_from_json, config_to_json
    from iap.training.sac.config import SAC
    from iap.training.upgrades import VERSION

    kinds: Any = TrainConfig | SAC

    data: Any = json.loads(file.read_text(encoding="utf-8"))
    config = config_from_json(data, kinds)
    version = data.get("version", 1)
    if version < VERSION:
        write_whole(file, json.dumps(config_to_json(config), indent=1).encode())
    return version, VERSION


def upgrade_checkpoint_file(file: Path) -> Versions:
    """Rewrite a checkpoint, if it is of an older version."""
    from iap.training.run_directory import RunDirectory
    from iap.training.sac.checkpoints import VERSION, is_sac, upgrade
    from iap.training.upgrades import CHECKPOINT_VERSION, upgrade_checkpoint

    run = RunDirectory(file.parent)
    loaded = run.load_checkpoint()
    if loaded is None:
        raise FileNotFoundError(f"{file} does not exist")
    arrays, facts = loaded
    newest, upgraded = (VERSION, upgrade(facts)) if is_sac(arrays) else (CHECKPOINT_VERSION, upgrade_checkpoint(facts))
    version = facts.get("version", 1)
    if version < newest:
        run.save_checkpoint(arrays, upgraded)
    return version, newest
