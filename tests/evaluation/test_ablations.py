from dataclasses import replace

import numpy as np
import pytest

from iap.evaluation.ablations import run_ablations, swapped_attention
from iap.evaluation.evaluate import evaluate, locate_policy, policy_job
from iap.policies import blocks, flatten, init
from iap.rollouts import InlinePool

EPISODES = 20


@pytest.fixture(scope="module")
def seek():
    return locate_policy("zoo:seek")[0]


@pytest.fixture(scope="module")
def rows(seek):
    return {row["control"]: row for row in run_ablations(seek, InlinePool, EPISODES, seed=7)}


def test_every_control_is_there(rows):
    expected = ["trained", "zero action", "initial", "foreign frames", "shuffled frames", "swapped attention"]
    assert list(rows) == expected
    assert all(row["episodes"] == EPISODES and row["failed"] == 0 for row in rows.values())


def test_the_policy_itself_is_what_evaluation_says(rows, seek):
    with InlinePool(policy_job(seek)) as pool:
        assert rows["trained"]["mean"] == evaluate(seek, pool, EPISODES, seed=7)["mean"]
    assert rows["trained"]["share"] == 1


@pytest.mark.parametrize("control", ["zero action", "initial", "foreign frames", "shuffled frames"])
def test_a_policy_that_must_see_is_nothing_without_its_own_frames_or_training(rows, control):
    assert rows[control]["mean"] < 0.2 * rows["trained"]["mean"]


def test_swapped_attention_changes_nothing_but_queries_and_keys(seek):
    swapped = swapped_attention(seek, draws=3)
    assert swapped is not None
    for block in blocks(seek.spec):
        same = np.array_equal(swapped[0, block.start : block.stop], seek.theta[block.start : block.stop])
        assert same == (block.name.split(".")[0] not in ("query", "key"))
    assert not np.array_equal(swapped[0], swapped[1])


def test_a_blind_policy_can_stand_beside(seek):
    rows = run_ablations(seek, InlinePool, 2, seed=0, blind=seek)
    assert rows[-2]["control"] == "blind"
    assert rows[-2]["mean"] == rows[0]["mean"]


def test_seeds_of_training_are_refused(seek):
    with pytest.raises(ValueError, match="seed must be"):
        run_ablations(seek, InlinePool, 2, seed=1 << 30)


def test_a_screened_policy_is_compared_with_the_draw_that_it_started_from(seek):
    drawn = flatten(init(seek.spec, 5))
    screened = replace(seek, facts={**seek.facts, "screened": {"seed": 5, "candidates": 1000}})
    rows = {row["control"]: row for row in run_ablations(screened, InlinePool, 3, seed=0)}
    with InlinePool(policy_job(seek)) as pool:
        assert rows["initial"]["mean"] == evaluate(replace(seek, theta=drawn), pool, 3, seed=0)["mean"]
    assert "the best of 1,000 draws" in rows["initial"]["what"]
