import json
from dataclasses import replace

from iap.evolution import CMAES
from iap.experiments.bench_rollouts import bench_rollouts
from iap.experiments.presets import preset


def test_each_round_measures_all_three_ways_and_the_ratios_are_medians_of_theirs(capfd):
    config = replace(preset("seek"), strategy=CMAES(population=4), episodes=1, max_steps=5)
    result = bench_rollouts(config, rounds=3, turn_s=0.05)
    assert len(result["rounds"]) == 3
    for way in ("bare", "one_worker", "two_workers"):
        assert result["steps_per_second"][way] == _median(result, lambda speeds, way=way: speeds[way]) > 0
    assert result["training_over_bare"] == _median(result, lambda speeds: speeds["one_worker"] / speeds["bare"])
    assert result["two_over_one"] == _median(result, lambda speeds: speeds["two_workers"] / speeds["one_worker"])
    assert "round 3 of 3: bare" in capfd.readouterr().err
    json.dumps(result, allow_nan=False)


def _median(result, of):
    return sorted(map(of, result["rounds"]))[1]
