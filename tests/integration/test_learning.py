"""Policies that learn, by the training loop itself; small, but with margins that luck does not reach."""

from dataclasses import replace

import numpy as np
import pytest
from training_cases import run_here

from iap.evaluation.evaluate import evaluate, locate_policy, policy_job
from iap.evolution import ARS, CMAES, PGPE, SNES, STRATEGIES, OpenES
from iap.policies import blocks
from iap.policies.serialization import load, save
from iap.rollouts import InlinePool
from iap.training.config import SigmaMultipliers, fitted_to_env
from iap.training.presets.registry import preset, with_parts

SMALL = {
    "open-es": OpenES(population=16, sigma=0.1, learning_rate=0.1),
    "ars": ARS(population=16, sigma=0.1, learning_rate=0.1),
    "pgpe": PGPE(population=16, sigma=0.1, max_speed=0.15),
    "cma-es": CMAES(population=16, sigma=0.2),
    "snes": SNES(population=16, sigma=0.2),
}
GAIN = 0.7  # of about 1.9 that can be had in 40 steps; who does not move gets 0
EPISODES = 100
MARGIN = 2.5  # of about 3.75 that can be had in 80 steps; who does not see gets 0 at most


@pytest.fixture(scope="module")
def unmoving(tmp_path_factory):
    """A policy that sees and does nothing: the attention of the zoo's, and no controller."""
    policy, _ = locate_policy("zoo:seek")
    theta = policy.theta.copy()
    for block in blocks(policy.spec):
        if block.part == "controller":
            theta[block.start : block.stop] = 0
    path = tmp_path_factory.mktemp("start") / "unmoving.policy"
    save(path, replace(policy, theta=theta))
    return path


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_learns_to_follow_what_it_sees(strategy, unmoving, tmp_path):
    config = replace(
        preset("seek"),
        strategy=SMALL[strategy],
        warm_start=str(unmoving),
        sigma_multipliers=SigmaMultipliers(encoder=0.02),
        iterations=16,
        episodes=2,
        max_steps=40,
        evaluate_every=16,
        seed=1,
    )
    rows = run_here(fitted_to_env(config), tmp_path / "run").read_metrics()
    assert rows[0]["held_out"] == 0
    assert rows[-1]["held_out"] > GAIN


@pytest.mark.slow
def test_a_policy_that_sees_beats_one_that_is_blind_by_a_wide_margin(tmp_path):
    config = with_parts(preset("seek"), encoder="blind")
    config = fitted_to_env(replace(config, iterations=10, evaluate_every=10))
    blind = load(run_here(config, tmp_path / "blind").policy_file("best"))
    seeing, _ = locate_policy("zoo:seek")
    means = {}
    for name, policy in (("blind", blind), ("seeing", seeing)):
        with InlinePool(policy_job(policy)) as pool:
            result = evaluate(policy, pool, EPISODES, seed=1_000)
        assert len(result["returns"]) == EPISODES
        means[name] = np.mean(result["returns"])
    assert means["blind"] < 0.1
    assert means["seeing"] > means["blind"] + MARGIN
