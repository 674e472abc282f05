"""The folder of a run: config, metrics, checkpoint, policies; every file is written atomically."""

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from iap._files import write_whole
from iap.policies.serialization import PolicyFile
from iap.policies.serialization import save as save_policy
from iap.training.config import C, TrainConfig, config_from_json, config_to_json
from iap.training.sac.config import SAC

if TYPE_CHECKING:
    from iap.training.tensorboard import EventFile

Row = dict[str, Any]

EVENTS = "tensorboard"
STARTED = ("config.json", "command.txt", "metrics.jsonl", EVENTS)  # the content of a folder before the first checkpoint


class RunError(ValueError):
    """The folder of a run cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class RunDirectory:
    """A folder with `config.json`, `metrics.jsonl`, `checkpoint.safetensors` and policies, such as `best.policy`."""

    path: Path

    @classmethod
    def create(cls, path: Path, config: TrainConfig | SAC, command: str | None = None) -> "RunDirectory":
        """A new run's folder; one that already holds a run is refused. The command is stored for a resumed run."""
        run, content = cls(path), json.dumps(config_to_json(config), indent=1).encode()
        run.require_unused()
        with run.explained():
            path.mkdir(parents=True, exist_ok=True)
            if command is not None:
                write_whole(run.command_file, f"{command}\n".encode())
            write_whole(run.config_file, content)
        return run

    @classmethod
    def open(cls, path: Path, kind: type[C] = TrainConfig) -> tuple["RunDirectory", C]:
        """An existing run and its config, which must be of this kind."""
        run = cls(path)
        try:
            data = json.loads(run.config_file.read_text(encoding="utf-8"))
            return run, config_from_json(data, kind)
        except FileNotFoundError:
            raise RunError(f"{path} holds no run: it has no {run.config_file.name}") from None
        except (ValueError, OSError) as error:
            raise RunError(f"{run.config_file} cannot be read: {error}") from error

    def extend(self, config: TrainConfig) -> None:
        """Let the run have more iterations: replace its config, and its command if it has one."""
        with self.explained():
            if self.command is not None:
                write_whole(self.command_file, f"{with_iterations(self.command, config.iterations)}\n".encode())
            write_whole(self.config_file, json.dumps(config_to_json(config), indent=1).encode())

    def require_unused(self) -> None:
        """Refuse a folder that already holds a run."""
        with self.explained():
            if self.config_file.exists():
                raise RunError(f"{self.path} already holds a run: resume it with --resume {self.path}")

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn any failure to write into one error that says so."""
        try:
            yield
        except OSError as error:
            reason = f"{self.path} cannot be written ({error.strerror}); everything saved before is intact"
            raise RunError(reason) from error

    @property
    def config_file(self) -> Path:
        """The config."""
        return self.path / "config.json"

    @property
    def command_file(self) -> Path:
        """The command line that started the run, if there was one."""
        return self.path / "command.txt"

    @property
    def command(self) -> str | None:
        """The command line that started the run, if there was one."""
        return self.command_file.read_text(encoding="utf-8").strip() if self.command_file.exists() else None

    @property
    def metrics_file(self) -> Path:
        """Metrics, one JSON row an iteration."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoint_file(self) -> Path:
        """The state that the next iteration needs."""
        return self.path / "checkpoint.safetensors"

    @property
    def error_file(self) -> Path:
        """The first error of an episode, with its traceback."""
        return self.path / "first_error.txt"

    def policy_file(self, which: str) -> Path:
        """The policy "best" or "last", or the one the search started from: "random_search", "pretrained", "start"."""
        return self.path / f"{which}.policy"

    def save_policy(self, which: str, policy: PolicyFile) -> None:
        """Write a policy, replacing an older one."""
        with self.explained():
            save_policy(self.policy_file(which), policy)

    def save_checkpoint(self, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        """Replace the checkpoint atomically."""
        with self.explained():
            whole = {name: np.array(x, order="C") for name, x in arrays.items()}
            write_whole(self.checkpoint_file, save(whole, metadata={"facts": json.dumps(facts)}))

    def save_error(self, text: str) -> None:
        """Keep an error; the first one stays."""
        with self.explained():
            if not self.error_file.exists():
                write_whole(self.error_file, text.encode())

    @contextmanager
    def discarded_after_an_error(self) -> Iterator[None]:
        """If the block raises before anything was learnt, this is no run, and its folder can be used again.

        Only an error that was kept stays. A run with a checkpoint or a policy is never touched.
        """
        try:
            yield
        except Exception:
            if self.path.is_dir() and {path.name for path in self.path.iterdir()} <= {*STARTED, self.error_file.name}:
                self._discard()
            raise

    def _discard(self) -> None:
        with suppress(OSError):
            shutil.rmtree(self.path / EVENTS, ignore_errors=True)
            for name in STARTED:
                if name != EVENTS:
                    (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()  # fails if the error was kept

    def load_checkpoint(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The checkpoint's arrays and facts; None if there is none yet."""
        if not self.checkpoint_file.exists():
            return None
        try:
            from safetensors import safe_open

            with safe_open(self.checkpoint_file, framework="numpy") as opened:
                facts = json.loads((opened.metadata() or {})["facts"])
            return load_file(self.checkpoint_file), facts
        except (SafetensorError, OSError, ValueError, KeyError) as error:
            raise RunError(f"{self.checkpoint_file} cannot be read: {error}") from error

    def open_events(self) -> "EventFile":
        """A file for TensorBoard."""
        from iap.training.tensorboard import EventFile

        with self.explained():
            return EventFile(self.path / EVENTS)

    def append_metrics(self, row: Row) -> None:
        """Append a row, on the disk before this returns."""
        with self.explained(), self.metrics_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def read_metrics(self) -> list[Row]:
        """All complete rows; one that was cut off by a crash is left out."""
        if not self.metrics_file.exists():
            return []
        rows = []
        for line in self.metrics_file.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
        return rows

    def truncate_metrics(self, iteration: int) -> None:
        """Keep the rows up to this iteration, which is the checkpoint's."""
        rows = [row for row in self.read_metrics() if row["iteration"] <= iteration]
        with self.explained():
            write_whole(self.metrics_file, "".join(json.dumps(row) + "\n" for row in rows).encode())


def with_iterations(command: str, iterations: int) -> str:
    """A command line with another number of iterations."""
    words = shlex.split(command)
    for i, word in enumerate(words):
        if word == "--iterations" and i + 1 < len(words):
            words[i + 1] = str(iterations)
            return shlex.join(words)
        if word.startswith("--iterations="):
            words[i] = f"--iterations={iterations}"
            return shlex.join(words)
    return shlex.join([*words, "--iterations", str(iterations)])
