"""The paper's first figure from the runs in benchmarks/results/intro: time and return of four kinds of attention.

Run it: python benchmarks/intro.py

The script times the trained policies, all in one process. benchmarks/suite.py reads the times from
benchmarks/results/intro/times.json.
"""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parent))

from pages import IMAGES, markdown
from runs import Runs
from studies.intro import ARMS, SEEDS
from threadpoolctl import threadpool_limits

import iap
from iap.cli.tables import write_json
from iap.policies import describe
from iap.viz.plots import DPI, STYLES, save_figure

RUNS = Runs("intro", SEEDS)
PASSES, ROUNDS = 100, 5
LABELS = {"exact": "exact", "relu": "IAP, ReLU", "softmax": "IAP, softmax", "trigonometric": "IAP, trigonometric"}


def measure() -> None:
    """The mean of 100 forward passes of each arm's best policy on one image, the best of five alternating rounds."""
    policies = {arm: iap.load_policy(RUNS.best(arm)) for arm in ARMS}
    env = iap.make_env(policies["exact"].env)
    observation, _ = env.reset(seed=0)
    env.close()
    with threadpool_limits(1):
        rounds = [{arm: pass_ms(policy, observation) for arm, policy in policies.items()} for _ in range(ROUNDS)]
    write_json({arm: min(times[arm] for times in rounds) for arm in ARMS}, RUNS.folder / "times.json")


def pass_ms(policy: iap.Policy, observation: dict) -> float:
    """Milliseconds from an image to an action."""
    _, state, _ = policy.act(policy.reset(), observation)
    start = perf_counter()
    for _ in range(PASSES):
        _, state, _ = policy.act(state, observation)
    return 1000 * (perf_counter() - start) / PASSES


def table() -> str:
    """One line per arm: time, speed-up over exact attention and the returns of all seeds."""
    times = RUNS.read("times.json")
    lines = []
    for arm, label in LABELS.items():
        means = [result["mean"] for result in RUNS.evaluations(arm)]
        each = ", ".join(f"{mean:.0f}" for mean in means)
        cells = [label, describe(ARMS[arm].policy).total, times[arm], times["exact"] / times[arm]]
        lines.append([*cells, f"{np.mean(means):.0f}", each])
    return markdown(["attention", "parameters", "ms per pass", "speed-up", "return", "each seed"], lines)


def plot() -> None:
    """Bars for times on a logarithmic axis and crosses for returns, as in the paper."""
    times = RUNS.read("times.json")
    figure = Figure(figsize=(6.4, 3.8), dpi=DPI, layout="constrained")
    axes = figure.subplots()
    axes.bar(list(LABELS.values()), [times[arm] for arm in LABELS], color="0.75", width=0.6)
    axes.set(yscale="log", ylabel="bars: ms from image to action")
    returns = axes.twinx()
    for x, arm in enumerate(LABELS):
        means = [result["mean"] for result in RUNS.evaluations(arm)]
        returns.plot([x] * len(means), means, "x", color=STYLES["exact"][0], alpha=0.5, markersize=5)
        returns.plot([x], [np.mean(means)], "x", color=STYLES["exact"][0], markersize=12, markeredgewidth=3)
    returns.set_ylabel("crosses: return of each seed and their mean", color=STYLES["exact"][0])
    returns.set_ylim(bottom=0)
    save_figure(figure, IMAGES / "intro.png")


if __name__ == "__main__":
    measure()
