from dataclasses import replace

import numpy as np
import pytest

from iap.envs.core import EnvConfig
from iap.evaluation.probe import explained_variance, probe
from iap.policies import Blind
from iap.training.config import fit_to_env
from iap.training.presets import config_for_env, preset


def test_a_linear_function_of_the_inputs_is_explained_and_noise_is_not():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2_000, 5))
    y = np.stack([x @ [1, -2, 0, 0, 3], rng.standard_normal(2_000)], axis=1)
    linear, noise = explained_variance(x, y)
    assert linear > 0.99
    assert abs(noise) < 0.05


def test_the_inputs_of_a_policy_with_an_encoder_explain_more_of_the_state_than_those_of_a_blind_one():
    seek = preset("seek")
    with_encoder = probe(seek.env, seek.policy, steps=600, draws=2)
    blind = probe(seek.env, replace(seek.policy, encoder=Blind()), steps=600, draws=1)
    assert max(row["best"] for row in with_encoder) > 0.2
    assert all(len(row["each"]) == 4 for row in with_encoder)
    assert all(row["best"] < 0.05 for row in blind)


def test_an_environment_without_privileged_state_cannot_be_probed():
    config = fit_to_env(config_for_env(EnvConfig.of("CartPole-v1", image_from="render", image_size=(100, 100))))
    with pytest.raises(ValueError, match="CartPole-v1 does not implement PrivilegedState"):
        probe(config.env, config.policy, steps=100)
