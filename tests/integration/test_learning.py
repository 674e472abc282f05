"""Policies that learn, by the training loop itself; small, but with margins that are not reached by chance."""

from dataclasses import replace

import numpy as np
import pytest
from training_cases import run_here

from iap.evaluation.evaluate import evaluate, policy_job
from iap.evolution import ARS, CMAES, PGPE, SNES, STRATEGIES, OpenES
from iap.policies import blocks
from iap.policies.serialization import load, save
from iap.rollouts import InlinePool
from iap.training.config import SigmaMultipliers, fit_to_env
from iap.training.presets import preset, with_parts
from iap.zoo.locate import locate_policy

SMALL = {
    "open-es": OpenES(population=16, sigma=0.1, learning_rate=0.1),
    "ars": ARS(population=16, sigma=0.1, learning_rate=0.1),
    "pgpe": PGPE(population=16, sigma=0.1, max_speed=0.15),
    "cma-es": CMAES(population=16, sigma=0.2),
    "snes": SNES(population=16, sigma=0.2),
}
GAIN = 0.7  # the best possible return in 40 steps is about 1.9; that of a policy that does not move is 0
EPISODES = 100
MARGIN = 2.5  # the best possible return in 80 steps is about 3.75; that of a blind policy is at most 0


@pytest.fixture(scope="module")
def motionless(tmp_path_factory):
    """A policy that does nothing: the attention of the zoo's policy, and a controller of zeros."""
    policy, _ = locate_policy("zoo:seek")
    theta = policy.theta.copy()
    for block in blocks(policy.config):
        if block.part == "controller":
            theta[block.start : block.stop] = 0
    path = tmp_path_factory.mktemp("start") / "motionless.policy"
    save(path, replace(policy, theta=theta))
    return path


@pytest.mark.parametrize(
    "strategy", [pytest.param(name, marks=[] if name == "pgpe" else pytest.mark.slow) for name in sorted(STRATEGIES)]
)
def test_every_strategy_learns_to_follow_the_target(strategy, motionless, tmp_path):
    config = replace(
        preset("seek"),
        strategy=SMALL[strategy],
        warm_start=str(motionless),
        sigma_multipliers=SigmaMultipliers(encoder=0.02),
        iterations=16,
        episodes=2,
        max_steps=40,
        evaluate_every=16,
        seed=1,
    )
    rows = run_here(fit_to_env(config), tmp_path / "run").read_metrics()
    assert rows[0]["held_out"] == 0
    assert rows[-1]["held_out"] > GAIN


@pytest.mark.slow
def test_a_policy_with_an_encoder_beats_a_blind_one_by_a_wide_margin(tmp_path):
    config = with_parts(preset("seek"), encoder="blind")
    config = fit_to_env(replace(config, iterations=10, evaluate_every=10))
    blind = load(run_here(config, tmp_path / "blind").policy_file("best"))
    with_encoder, _ = locate_policy("zoo:seek")
    means = {}
    for name, policy in (("blind", blind), ("encoder", with_encoder)):
        with InlinePool(policy_job(policy)) as pool:
            result = evaluate(policy, pool, EPISODES, seed=1_000)
        assert len(result.returns) == EPISODES
        means[name] = np.mean(result.returns)
    assert means["blind"] < 0.1
    assert means["encoder"] > means["blind"] + MARGIN
