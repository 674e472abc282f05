"""The runs of a study, as its page tells of them."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
from report import RESULTS, markdown

from iap.evaluation.evaluate import evaluate, locate_policy, policy_job, watch
from iap.cli.tables import write_json
from iap.training.run_directory import RunDirectory
from iap.policies.serialization import PolicyFile
from iap.rollouts import LocalPool
from iap.viz.curves import plot_curves

EPISODES = 100
SPREAD = ("mean", "best seed", "best episode", "each seed")


@dataclass(frozen=True)
class Runs:
    """The finished runs in benchmarks/results/STUDY, by arm; seeds of an arm that has others are in `own_seeds`."""

    study: str
    seeds: Sequence[int]
    own_seeds: Mapping[str, Sequence[int]]

    @property
    def folder(self) -> Path:
        """Where they are."""
        return RESULTS / self.study

    def of(self, arm: str) -> list[Path]:
        """The folder of each seed's run."""
        paths = (self.folder / f"{arm}-seed{seed}" for seed in self.own_seeds.get(arm, self.seeds))
        return [path for path in paths if (path / "evaluation.json").exists()]

    def returns_of(self, arm: str, file: str = "evaluation.json") -> list[dict]:
        """What `iap eval` said of each seed's policy."""
        return [json.loads((path / file).read_text()) for path in self.of(arm)]

    def best_of(self, arm: str) -> Path:
        """The run with the best mean return."""
        return max(self.of(arm), key=lambda path: json.loads((path / "evaluation.json").read_text())["mean"])

    def build_policy(self, arm: str) -> PolicyFile:
        """The policy of that run."""
        return locate_policy(str(self.best_of(arm)))[0]

    def evaluate_screened(self, arm: str) -> None:
        """Note what the policy that evolution started from would have come to, as screened.json."""
        for path in self.of(arm):
            screened, _ = locate_policy(str(path / "screened.policy"))
            with LocalPool(policy_job(screened)) as pool:
                write_json(evaluate(screened, pool, EPISODES, seed=0), path / "screened.json")

    def metrics_of(self, arm: str) -> list[dict]:
        """The rows of the run with the best mean return."""
        return RunDirectory(self.best_of(arm)).read_metrics()

    def plot(self, arms: Mapping[str, str], out: Path) -> None:
        """Learning curves with bands over seeds, of arms by label."""
        curves = {label: [RunDirectory(path).read_metrics() for path in self.of(arm)] for label, arm in arms.items()}
        plot_curves({label: seeds for label, seeds in curves.items() if seeds}, out)

    def read(self, name: str) -> Any:
        """What was measured once for the study."""
        return json.loads((self.folder / name).read_text())


def spread(results: Sequence[dict]) -> list[str]:
    """Mean over the seeds, the best seed, the best single episode, and each seed with its interval: see SPREAD."""
    means = [result["mean"] for result in results]
    each = ", ".join(f"{result['mean']:.2f} ± {result['ci95']:.2f}" for result in results)
    best = max(max(result["returns"]) for result in results)
    return [f"{np.mean(means):.2f}", f"{max(means):.2f}", f"{best:.1f}", each]


def controls_table(rows: Sequence[dict]) -> str:
    """What `iap controls` said."""
    lines = [[row["control"], f"{row['mean']:.2f} ± {row['ci95']:.2f}", row["share"], row["what"]] for row in rows]
    return markdown(["control", "return", "share", "what"], lines)


def attended_table(rows: Sequence[dict]) -> str:
    """What `iap eval --attended` said, but for what is hardly ever seen or attended to."""
    told = [row for row in rows if row["attention"] >= 0.01 or row["area"] >= 0.01]
    lines = [[row["thing"], f"{row['attention']:.1%}", f"{row['area']:.1%}", row["times_chance"]] for row in told]
    return markdown(["what", "of attention", "of the image", "times chance"], lines)


def frames_of(policy: PolicyFile, seed: int, steps: int) -> list[np.ndarray]:
    """What `iap watch` shows of the first steps of an episode."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "film.mp4"
        watch(policy, out, seed=seed, max_steps=steps)
        reader = imageio_ffmpeg.read_frames(str(out))
        width, height = next(reader)["size"]
        return [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]
