from dataclasses import replace

import numpy as np
import pytest

from iap.evaluation.ablations import random_attention, run_ablations, zero_action
from iap.evaluation.evaluate import evaluate, policy_job
from iap.policies import blocks, count_params, flatten, init
from iap.rollouts import VALIDATION_SEEDS, InlinePool
from iap.zoo.locate import locate_policy

EPISODES = 20


@pytest.fixture(scope="module")
def seek():
    return locate_policy("zoo:seek")[0]


@pytest.fixture(scope="module")
def rows(seek):
    return {row["ablation"]: row for row in run_ablations(seek, InlinePool, EPISODES, seed=7)}


def test_there_is_a_row_for_each_ablation(rows):
    expected = ["trained", "zero action", "initial", "replayed frames", "shuffled frames", "random attention"]
    assert list(rows) == expected
    assert all(row["episodes"] == EPISODES and row["failed"] == 0 for row in rows.values())


def test_the_row_of_the_trained_policy_equals_its_evaluation(rows, seek):
    with InlinePool(policy_job(seek)) as pool:
        assert rows["trained"]["mean"] == evaluate(seek, pool, EPISODES, seed=7).mean
    assert rows["trained"]["share"] == 1


@pytest.mark.parametrize("ablation", ["zero action", "initial", "replayed frames", "shuffled frames"])
def test_a_policy_that_needs_its_images_fails_without_its_own_frames_or_training(rows, ablation):
    assert rows[ablation]["mean"] < 0.2 * rows["trained"]["mean"]


def test_random_attention_replaces_queries_and_keys_only(seek):
    thetas = random_attention(seek, draws=3)
    assert thetas is not None
    for block in blocks(seek.config):
        same = np.array_equal(thetas[0, block.start : block.stop], seek.theta[block.start : block.stop])
        assert same == (block.name.split(".")[0] not in ("query", "key"))
    assert not np.array_equal(thetas[0], thetas[1])


def test_a_policy_without_attention_has_no_random_attention():
    assert random_attention(locate_policy("zoo:reacher-easy-teacher")[0]) is None


def blind_with(blind, sensors, actions):
    config = replace(blind.config, sensors=sensors, actions=actions)
    return replace(blind, config=config, theta=np.zeros(count_params(config), np.float32), normaliser=None)


def test_a_blind_policy_can_be_added_as_a_row(seek):
    blind = zero_action(seek)
    rows = {row["ablation"]: row for row in run_ablations(seek, InlinePool, 2, seed=0, blind=blind)}
    assert rows["blind"]["mean"] == rows["zero action"]["mean"]


def test_a_policy_that_is_no_blind_baseline_is_refused(seek):
    with pytest.raises(ValueError, match=r"blind must be a policy without images .* its encoder is Rank"):
        run_ablations(seek, InlinePool, 2, blind=seek)
    blind = zero_action(seek)
    with pytest.raises(ValueError, match="blind must be a policy of iap/Seek-v0, not of CarRacing-v3"):
        run_ablations(seek, InlinePool, 2, blind=replace(blind, env_id="CarRacing-v3"))
    with pytest.raises(ValueError, match="blind must have 0 sensors and 2 actions, not 3 and 1"):
        run_ablations(seek, InlinePool, 2, blind=replace(blind_with(blind, 3, 1), env_id=seek.env_id))


def test_seeds_of_training_are_refused(seek):
    with pytest.raises(ValueError, match=r"seed must be .* \(higher ones are used in training\)"):
        run_ablations(seek, InlinePool, 2, seed=VALIDATION_SEEDS)


def test_the_initial_policy_after_random_search_is_the_winner_of_the_search(seek):
    drawn = flatten(init(seek.config, 5))
    searched = replace(seek, facts={**seek.facts, "random_search": {"seed": 5, "candidates": 1000}})
    rows = {row["ablation"]: row for row in run_ablations(searched, InlinePool, 3, seed=0)}
    with InlinePool(policy_job(seek)) as pool:
        assert rows["initial"]["mean"] == evaluate(replace(seek, theta=drawn), pool, 3, seed=0).mean
    assert "the best of 1,000 random policies" in rows["initial"]["what"]
