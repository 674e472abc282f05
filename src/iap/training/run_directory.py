"""The folder of a run: config, metrics, checkpoint, policies; every file is written atomically.

Files may come from somebody else, or be damaged: any defect is one `RunError`.
"""

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iap._files import append_text, open_regular, read_text, remove_leftovers, write_whole
from iap._tensor_files import BAD_CONTENT, pack, parse_object, read_header, read_tensors
from iap._validation import printable
from iap.policies.serialization import PolicyFile
from iap.policies.serialization import save as save_policy
from iap.training.config import C, TrainConfig, config_from_json, config_to_json
from iap.training.limits import require_bounded
from iap.training.run_lock import LockedError, lock_folder
from iap.training.sac.config import SAC

if TYPE_CHECKING:
    from iap.training.tensorboard import EventFile

Row = dict[str, Any]

EVENTS, DISTILLATION = "tensorboard", "distillation"  # folders
STARTED = ("config.json", "command.txt", "metrics.jsonl", EVENTS)  # the content of a folder before the first checkpoint
MOST_TEXT_BYTES = 1 << 20  # of config.json, command.txt and the facts of a checkpoint
MOST_METRICS_BYTES = 1 << 30
MOST_CHECKPOINT_BYTES = 1 << 34
LONGEST_MESSAGE = 1000


class RunError(ValueError):
    """The folder of a run cannot be used; the message says why and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message, LONGEST_MESSAGE))


@dataclass(frozen=True)
class RunDirectory:
    """A folder with `config.json`, `metrics.jsonl`, `checkpoint.safetensors` and policies, such as `best.policy`."""

    path: Path

    @classmethod
    def create(cls, path: Path, config: TrainConfig | SAC, command: str | None = None) -> "RunDirectory":
        """A new run's folder; one that already holds a run is refused. The command is stored for a resumed run."""
        run, content = cls(path), json.dumps(config_to_json(config), indent=1).encode()
        with run.locked(), run.explained():
            run.require_unused()
            if command is not None:
                write_whole(run.command_file, f"{command}\n".encode())
            write_whole(run.config_file, content)
        return run

    @classmethod
    def open(cls, path: Path, kind: type[C] = TrainConfig) -> tuple["RunDirectory", C]:
        """An existing run and its config, which must be of this kind."""
        run = cls(path)
        if not run.config_file.exists():
            raise RunError(f"{path} holds no run: it has no {run.config_file.name}")
        with run.explained_content(run.config_file):
            data = json.loads(read_text(run.config_file, MOST_TEXT_BYTES))
            config = config_from_json(data, kind)
            require_bounded(config, config_to_json(config))  # pyright: ignore[reportArgumentType]
        return run, config

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The only process that writes to the folder; without the temporary files that a killed one left."""
        try:
            with self.explained(), ExitStack() as stack:
                stack.enter_context(lock_folder(self.path))
                for folder in (self.path, self.path / DISTILLATION):
                    remove_leftovers(folder)
                held = stack.pop_all()
        except LockedError as error:
            raise RunError(str(error)) from None
        with held:
            yield

    def extend(self, config: TrainConfig) -> None:
        """Let the run have more iterations: replace its config, and its command if it has one."""
        with self.locked(), self.explained():
            if self.command is not None:
                with self.explained_content(self.command_file):
                    command = with_iterations(self.command, config.iterations)
                write_whole(self.command_file, f"{command}\n".encode())
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

    @contextmanager
    def explained_content(self, file: Path) -> Iterator[None]:
        """Turn any defect of a file's content into one error that names the file."""
        try:
            yield
        except RunError:
            raise
        except (*BAD_CONTENT, OSError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else error
            raise RunError(f"{file} cannot be used: {printable(reason)}") from error

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
        if not self.command_file.exists():
            return None
        with self.explained_content(self.command_file):
            return read_text(self.command_file, MOST_TEXT_BYTES).strip()

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
            write_whole(self.checkpoint_file, *pack(whole, {"facts": json.dumps(facts)}))

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
        with (
            self.explained_content(self.checkpoint_file),
            open_regular(self.checkpoint_file, MOST_CHECKPOINT_BYTES) as (file, size),
        ):
            header = read_header(file, size, MOST_TEXT_BYTES)
            if set(header.texts) != {"facts"}:
                raise ValueError("is a safetensors file, but not a checkpoint")
            return read_tensors(file, header), parse_object("facts", header.texts["facts"].encode())

    def open_events(self) -> "EventFile":
        """A file for TensorBoard."""
        from iap.training.tensorboard import EventFile

        with self.explained():
            return EventFile(self.path / EVENTS)

    def append_metrics(self, row: Row) -> None:
        """Append a row, on the disk before this returns."""
        with self.explained():
            append_text(self.metrics_file, json.dumps(row) + "\n")

    def read_metrics(self) -> list[Row]:
        """All complete rows; a last one that was cut off by a crash is left out."""
        if not self.metrics_file.exists():
            return []
        with self.explained_content(self.metrics_file):
            lines = read_text(self.metrics_file, MOST_METRICS_BYTES).split("\n")
            rows = []
            for number, line in enumerate(lines[:-1], 1):
                row = parse_object(f"row {number}", line.encode())
                if type(row.get("iteration")) is not int:
                    raise ValueError(f"its row {number} must have a whole number as iteration")
                rows.append(row)
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
