"""The recurrent part of a policy through time, beside the acting policy."""

from typing import Any

import numpy as np
import pytest

from iap.distillation.bank import Bank
from iap.distillation.dagger.sequences import SequenceTraining, unroll
from iap.distillation.labelling import LabelledEpisode
from iap.policies import GRU, LSTM, Blind, Hierarchy, Moments, Normaliser, Policy, PolicyConfig, flatten, init
from iap.policies.params import split

jax = pytest.importorskip("jax")
FLAT = PolicyConfig((8, 8, 1), 3, 2, encoder=Blind(), controller=GRU(4))
LEVELS = PolicyConfig((8, 8, 1), 3, 2, encoder=Blind(), hierarchy=Hierarchy(5, max_command_steps=1, low_level=LSTM(4)))


@pytest.mark.parametrize("config", [FLAT, LEVELS], ids=["flat", "hierarchy"])
def test_unrolling_equals_acting_step_by_step(config):
    rng = np.random.default_rng(0)
    sensors = rng.standard_normal((7, 3), np.float32)
    normaliser = Normaliser.of(rng.standard_normal((20, config.inputs_size)))
    policy = Policy(config, init(config, 0), normaliser, compiled=False)
    state, acted = policy.reset(), []
    for row in sensors:
        action, state, _ = policy.act(state, {"image": None, "sensors": row})
        acted.append(action)
    params: Any = split(config, jax.numpy.asarray(flatten(policy.params)))
    unrolled = unroll(config, params, normaliser, jax.numpy.asarray(sensors[None]))
    np.testing.assert_allclose(np.asarray(unrolled)[0], acted, atol=1e-5)


def test_a_continued_training_equals_one_that_was_not_interrupted(tmp_path):
    rng, bank = np.random.default_rng(0), Bank(tmp_path)
    for number in range(3):
        steps = 9 + number
        arrays = {
            name: rng.uniform(-1, 1, (steps, n)).astype(np.float32) for name, n in (("inputs", 3), ("actions", 2))
        }
        arrays |= {"weights": np.ones((steps, 2), np.float32)}
        bank.append([LabelledEpisode(0, 0.0, steps, Moments.none(1), arrays=arrays)], 0)
    theta, normaliser = flatten(init(FLAT, 0)), Normaliser.none(3)

    def training() -> SequenceTraining:
        return SequenceTraining(FLAT, normaliser, theta, bank, 6, 1, 4, 8, 1e-2)

    whole, first, second = training(), training(), training()
    losses = [whole.step(np.random.default_rng(i)) for i in range(8)]
    for i in range(3):
        first.step(np.random.default_rng(i))
    second.restore(first.arrays(), 3)
    assert [second.step(np.random.default_rng(i)) for i in range(3, 8)] == losses[3:]
    assert second.vector().tobytes() == whole.vector().tobytes()
