"""The paper's first figure from the runs in benchmarks/results/intro: what each kind of attention takes and brings.

Run it: python benchmarks/intro.py

That times the trained policies, all in this process; the times go to benchmarks/results/intro/times.json, from where
benchmarks/suite.py takes them.
"""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parent))

from report import DOCS, markdown
from runs import Runs
from studies.intro import ARMS, SEEDS
from threadpoolctl import threadpool_limits

from iap.evaluation.evaluate import policy_job
from iap.cli.tables import write_json
from iap.policies import describe, build_policy, unflatten
from iap.policies.serialization import PolicyFile
from iap.viz.plots import DPI, STYLES, save_figure

RUNS = Runs("intro", SEEDS, {})
PASSES, ROUNDS = 100, 5
LABELS = {"exact": "exact", "relu": "IAP, ReLU", "softmax": "IAP, softmax", "trigonometric": "IAP, trigonometric"}


def measure() -> None:
    """The mean of 100 forward passes of each arm's best policy on one image, the best of five rounds in turns."""
    policies = {arm: RUNS.build_policy(arm) for arm in ARMS}
    env = policy_job(policies["exact"]).env.make()
    observation, _ = env.reset(seed=0)
    env.close()
    with threadpool_limits(1):
        rounds = [{arm: pass_ms(policy, observation) for arm, policy in policies.items()} for _ in range(ROUNDS)]
    write_json({arm: min(times[arm] for times in rounds) for arm in ARMS}, RUNS.folder / "times.json")


def pass_ms(policy: PolicyFile, observation: dict) -> float:
    """Milliseconds from an image to an action."""
    actor = build_policy(policy.spec, unflatten(policy.spec, policy.theta), policy.normaliser)
    _, state, _ = actor.act(actor.begin(), observation)
    begun = perf_counter()
    for _ in range(PASSES):
        _, state, _ = actor.act(state, observation)
    return 1000 * (perf_counter() - begun) / PASSES


def table() -> str:
    """A line an arm: time, its ratio to exact attention's, and the returns of all seeds."""
    times = RUNS.read("times.json")
    lines = []
    for arm, label in LABELS.items():
        means = [result["mean"] for result in RUNS.returns_of(arm)]
        each = ", ".join(f"{mean:.0f}" for mean in means)
        cells = [label, describe(ARMS[arm].policy).total, times[arm], times["exact"] / times[arm]]
        lines.append([*cells, f"{np.mean(means):.0f}", each])
    return markdown(["attention", "parameters", "ms a pass", "times as fast", "return", "each seed"], lines)


def plot() -> None:
    """Bars for times, which span decades, and crosses for returns, as the paper draws them."""
    times = RUNS.read("times.json")
    figure = Figure(figsize=(6.4, 3.8), dpi=DPI, layout="constrained")
    axes = figure.subplots()
    axes.bar(list(LABELS.values()), [times[arm] for arm in LABELS], color="0.75", width=0.6)
    axes.set(yscale="log", ylabel="bars: ms from image to action")
    returns = axes.twinx()
    for x, arm in enumerate(LABELS):
        means = [result["mean"] for result in RUNS.returns_of(arm)]
        returns.plot([x] * len(means), means, "x", color=STYLES["exact"][0], alpha=0.5, markersize=5)
        returns.plot([x], [np.mean(means)], "x", color=STYLES["exact"][0], markersize=12, markeredgewidth=3)
    returns.set_ylabel("crosses: return, each seed and their mean", color=STYLES["exact"][0])
    returns.set_ylim(bottom=0)
    save_figure(figure, DOCS / "images" / "intro.png")


if __name__ == "__main__":
    measure()
