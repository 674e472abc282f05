from dataclasses import replace

import numpy as np
import pytest

from iap.evaluation.probe import explained_variance, probe
from iap.policies.specs import Blind
from iap.rollouts import EnvConfig
from iap.training.presets.registry import PRESETS, for_env, preset


def test_a_linear_function_of_the_inputs_is_explained_and_noise_is_not():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2_000, 5))
    y = np.stack([x @ [1, -2, 0, 0, 3], rng.standard_normal(2_000)], axis=1)
    linear, noise = explained_variance(x, y)
    assert linear > 0.99
    assert abs(noise) < 0.05


def test_a_seeing_policy_knows_more_of_the_state_than_a_blind_one():
    seeing = probe(preset("seek"), steps=600, draws=2)
    blind = replace(preset("seek"), policy=replace(PRESETS["seek"].policy, encoder=Blind(), sensors=0))
    assert max(row["best"] for row in seeing) > 0.2
    assert all(len(row["each"]) == 4 for row in seeing)
    assert all(row["best"] < 0.05 for row in probe(blind, steps=600, draws=1))


def test_an_environment_that_does_not_tell_its_state_cannot_be_probed():
    drawn = for_env(EnvConfig.of("CartPole-v1", image_from="render", image_size=(100, 100)))
    with pytest.raises(ValueError, match="CartPole-v1 does not tell its state"):
        probe(drawn, steps=100)
