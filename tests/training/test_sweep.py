from dataclasses import replace

import pytest

from iap.evolution import OpenES
from iap.rollouts import InlinePool
from iap.training.presets import preset
from iap.training.sweep import parse_grid, sweep, with_options
from iap.viz.plots import plot_heat_map


def tiny():
    return replace(
        preset("seek"), strategy=OpenES(population=2), iterations=1, episodes=1, max_steps=4, evaluate_episodes=1
    )


def test_every_point_is_trained_once_and_a_second_sweep_only_reads_the_results(tmp_path):
    grid = parse_grid(["policy.encoder.patch=2,4", "seed=0,1"])
    trained = []
    rows = sweep(tiny(), grid, tmp_path, InlinePool, lambda name, _row: trained.append(name))
    assert [(row["policy.encoder.patch"], row["seed"]) for row in rows] == [(2, 0), (2, 1), (4, 0), (4, 1)]
    assert len(trained) == 4
    assert sweep(tiny(), grid, tmp_path, InlinePool, lambda name, _row: trained.append(name)) == rows
    assert len(trained) == 4
    plot_heat_map(rows, "policy.encoder.patch", "seed", "held_out_best", tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 1_000


def test_a_folder_of_a_sweep_with_other_options_is_refused(tmp_path):
    sweep(tiny(), {"seed": [0]}, tmp_path, InlinePool)
    with pytest.raises(ValueError, match="holds a run with other options"):
        sweep(replace(tiny(), episodes=2), {"seed": [0]}, tmp_path, InlinePool)


@pytest.mark.parametrize("word", ["patch", "=1,2", "patch="])
def test_a_word_of_the_grid_that_is_not_a_name_with_values_is_refused(word):
    with pytest.raises(ValueError, match=r"--grid must be NAME=VALUE,VALUE"):
        parse_grid([word])


def test_an_unknown_option_is_named():
    with pytest.raises(ValueError, match=r"there is no option 'policy.encoder.colour' \(Rank has no 'colour'\)"):
        with_options(preset("seek"), {"policy.encoder.colour": 1})
