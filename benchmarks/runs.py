"""The finished runs of a study, and the tables that several pages share."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pages import RESULTS, markdown

from iap.cli.tables import write_json
from iap.evaluation.evaluate import evaluate, policy_job
from iap.policies import PolicyFile
from iap.rollouts import LocalPool
from iap.training.run_directory import RunDirectory
from iap.viz.curves import plot_curves
from iap.zoo.locate import locate_policy

EPISODES = 100
SPREAD = ("mean", "best seed", "best episode", "each seed")


@dataclass(frozen=True)
class Runs:
    """The finished runs in benchmarks/results/STUDY.

    Attributes:
        study: name of the study.
        seeds: training seeds of the arms.
        seeds_by_arm: training seeds of the arms that have others.
    """

    study: str
    seeds: Sequence[int]
    seeds_by_arm: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The study's folder."""
        return RESULTS / self.study

    def paths(self, arm: str) -> list[Path]:
        """The run folders of an arm, one per seed."""
        paths = (self.folder / f"{arm}-seed{seed}" for seed in self.seeds_by_arm.get(arm, self.seeds))
        return [path for path in paths if (path / "evaluation.json").exists()]

    def evaluations(self, arm: str, file: str = "evaluation.json") -> list[dict]:
        """The evaluation of each seed's policy."""
        return [json.loads((path / file).read_text()) for path in self.paths(arm)]

    def best(self, arm: str) -> Path:
        """The run with the highest mean return."""
        return max(self.paths(arm), key=lambda path: json.loads((path / "evaluation.json").read_text())["mean"])

    def best_policy(self, arm: str, env_options: Mapping[str, Any] | None = None) -> PolicyFile:
        """The policy of the run with the highest mean return."""
        return locate_policy(str(self.best(arm)), env_options=env_options)[0]

    def evaluate_random_search(self, arm: str) -> None:
        """Evaluate the policies that evolution started from; the results go to random_search.json."""
        for path in self.paths(arm):
            policy, _ = locate_policy(str(path / "random_search.policy"))
            with LocalPool(policy_job(policy)) as pool:
                write_json(evaluate(policy, pool, EPISODES).to_json(), path / "random_search.json")

    def metrics(self, arm: str) -> list[dict]:
        """The metrics of the run with the highest mean return."""
        return RunDirectory(self.best(arm)).read_metrics()

    def plot(self, arms: Mapping[str, str], out: Path) -> None:
        """Learning curves with bands over seeds; `arms` maps labels to arms."""
        curves = {label: [RunDirectory(path).read_metrics() for path in self.paths(arm)] for label, arm in arms.items()}
        plot_curves({label: seeds for label, seeds in curves.items() if seeds}, out)

    def read(self, name: str) -> Any:
        """A JSON file of the study."""
        return json.loads((self.folder / name).read_text())


def spread(results: Sequence[dict]) -> list[str]:
    """The cells of the columns SPREAD: mean over seeds, best seed, best episode, each seed with its interval."""
    means = [result["mean"] for result in results]
    each = ", ".join(f"{result['mean']:.2f} ± {result['ci95']:.2f}" for result in results)
    best = max(max(result["returns"]) for result in results)
    return [f"{np.mean(means):.2f}", f"{max(means):.2f}", f"{best:.1f}", each]


def ablations_table(rows: Sequence[dict]) -> str:
    """The rows of `iap ablate`."""
    lines = [[row["ablation"], f"{row['mean']:.2f} ± {row['ci95']:.2f}", row["share"], row["what"]] for row in rows]
    return markdown(["ablation", "return", "share", "what changes"], lines)


def attention_table(rows: Sequence[dict]) -> str:
    """The attention statistics of `iap eval`, without classes below 1 % of both attention and image."""
    shown = [row for row in rows if row["attention"] >= 0.01 or row["area"] >= 0.01]
    lines = [[row["class"], f"{row['attention']:.1%}", f"{row['area']:.1%}", row["times_chance"]] for row in shown]
    return markdown(["class", "share of attention", "share of image", "times chance"], lines)
