import json
from dataclasses import replace

import pytest

from iap.bench.rollouts import bench_rollouts, with_patches
from iap.evolution import CMAES
from iap.policies import Blind, Rank
from iap.training.presets import preset


def test_each_round_measures_all_three_modes_and_ratios_are_medians_over_rounds(capfd):
    config = replace(preset("seek"), strategy=CMAES(population=4), episodes=1, max_steps=5)
    result = bench_rollouts(config, rounds=3, turn_s=0.05)
    assert len(result["rounds"]) == 3
    for mode in ("bare", "one_worker", "two_workers"):
        assert result["steps_per_second"][mode] == _median(result, lambda speeds, mode=mode: speeds[mode]) > 0
    assert result["training_over_bare"] == _median(result, lambda speeds: speeds["one_worker"] / speeds["bare"])
    assert result["two_over_one"] == _median(result, lambda speeds: speeds["two_workers"] / speeds["one_worker"])
    assert "round 3 of 3: bare" in capfd.readouterr().err
    json.dumps(result, allow_nan=False)


def test_image_size_and_patches_are_set_and_episodes_are_whole():
    config = with_patches(preset("cheetah-run-plain"), (240, 320), patch=2, top_k=10)
    assert isinstance(config.policy.encoder, Rank)
    assert dict(config.env.kwargs)["size"] == (240, 320)
    assert (config.policy.encoder.patch, config.policy.encoder.stride, config.policy.encoder.top_k) == (2, 2, 10)
    assert config.max_steps is None


def test_a_policy_without_ranked_patches_is_refused():
    blind = replace(preset("seek"), policy=replace(preset("seek").policy, encoder=Blind()))
    with pytest.raises(ValueError, match="encoder must be Rank, not Blind"):
        with_patches(blind, None, patch=2, top_k=10)


def _median(result, of):
    return sorted(map(of, result["rounds"]))[1]
