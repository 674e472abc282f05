"""Trainings that are killed again and again, at random and at chosen moments, end as if they had not been.

`pytest tests/hostile/test_chaos.py --chaos 20` makes 20 runs of each kind; a failed one names the seed that repeats it.
"""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from measured import report

from iap._files import LEFTOVER

SERVER = Path(__file__).parent / "chaos_server.py"
KILLED = -9
KILLS = 10  # of one run
SECONDS_BETWEEN_KILLS = 0.7  # of workers, on average: less than their start takes


class Server:
    """The process that forks the trainings."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "ignore", str(SERVER)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def train(self, path: Path, kind: str, **request: Any) -> dict[str, Any]:
        """Start or resume a run; how it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"path": str(path), "kind": kind, "workers": 0} | request)
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.close()


def result(path: Path) -> dict[str, Any]:
    """All files of a run byte by byte; metrics without their times, and TensorBoard's only by their folder."""
    files = {str(file.relative_to(path)): file for file in path.rglob("*") if file.is_file()}
    content: dict[str, Any] = {name: file.read_bytes() for name, file in files.items() if "tensorboard" not in name}
    rows = [json.loads(line) for line in content.pop("metrics.jsonl").splitlines()]
    return content | {"metrics": [{key: row[key] for key in row if key != "seconds"} for row in rows]}


@pytest.fixture(scope="module")
def whole(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict, dict]]:
    """By kind of run: how the uninterrupted one ended, and its files; made when they are needed."""

    class Made(dict):
        def __missing__(self, kind: str) -> tuple[dict, dict]:
            path = tmp_path_factory.mktemp("whole") / kind
            self[kind] = server.train(path, kind), result(path)
            return self[kind]

    return Made()


def chaos(server: Server, path: Path, kind: str, whole: tuple[dict, dict], seed: int) -> int:
    """One run with kills at moments that the seed draws; returns how many there were."""
    rng, kills = random.Random(f"{kind} {seed}"), 0
    ended, files = whole
    for _ in range(KILLS):
        if rng.random() < 0.3:
            death: dict[str, Any] = {"after_s": rng.uniform(0, ended["seconds"])}
        else:  # during a write: calls that are left after a kill are fewer, so early ones are more likely
            at = rng.choice(sorted(ended["calls"]))
            death = {"at": at, "count": 1 + int(ended["calls"][at] * rng.random() ** 2)}
        died = server.train(path, kind, **death)
        assert died["status"] in (0, KILLED), (seed, death)
        assert died["orphans"] == 0, (seed, death)
        kills += died["status"] == KILLED
        if died["status"] == 0:
            break
    assert server.train(path, kind)["status"] == 0, seed
    assert result(path) == files, f"repeat with seed {seed}"
    assert not [file for file in path.rglob("*") if LEFTOVER.fullmatch(file.name)], seed
    report({"what": f"run with kills of the main process, {kind}", "seed": seed, "kills": kills})
    return kills


@pytest.mark.parametrize("kind", ["seek", pytest.param("dagger", marks=pytest.mark.slow)])
def test_runs_whose_process_is_killed_again_and_again_end_as_if_it_had_not_been(kind, server, whole, tmp_path, request):
    runs = request.config.getoption("--chaos") or 1
    kills = [chaos(server, tmp_path / str(seed), kind, whole[kind], seed) for seed in range(runs)]
    assert sum(kills) > 0


@pytest.mark.slow
def test_runs_whose_workers_are_killed_at_random_end_as_if_they_had_not_been(server, whole, tmp_path, request):
    runs = (request.config.getoption("--chaos") or 4) // 4
    ended, killed = whole["seek"], 0
    for seed in range(runs):
        path = tmp_path / str(seed)
        died = server.train(path, "seek", workers=2, kill_workers_s=SECONDS_BETWEEN_KILLS, seed=seed)
        killed += died["killed_workers"]
        assert (died["status"], died["orphans"]) == (0, 0), seed
        assert result(path) == ended[1], f"repeat with seed {seed}"
        report({"what": "run with kills of workers", "seed": seed, "kills": died["killed_workers"]})
    assert killed > 0
