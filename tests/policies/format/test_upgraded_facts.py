"""Version 2 → 3 of policy files: the names inside the facts of a training."""

import pytest

from iap.policies.format.upgrades import PRESETS, UPGRADES, rename_facts, use_new_names


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seek", "seek"),
        ("obstacle-course --seed 3", "obstacle-course --seed 3"),
        ("cheetah-run", "cheetah-run-plain"),
        ("cheetah-run-plain", "cheetah-run-plain"),
        ("cheetah-run-taught --seed 1", "cheetah-run --seed 1"),
        ("cheetah-run-distracted", "cheetah-run-no-pretraining"),
        ("cartpole-swingup-distracted", "cartpole-swingup-es-pretraining"),
        ("cartpole-swingup-taught", "cartpole-swingup"),
        ("cartpole-swingup-told", "cartpole-swingup-teacher"),
        ("cartpole-swingup-told-roughly", "cartpole-swingup-noisy-teacher"),
        ("reacher-easy-told", "reacher-easy-teacher"),
        ("reacher-easy-distracted", "reacher-easy"),
        ("ball_in_cup-catch-distracted", "ball_in_cup-catch"),
        ("finger-spin-distracted", "finger-spin"),
        ("walker-walk-distracted", "walker-walk"),
        ("step-stones --seed 2", "step-stones-single-foot --seed 2"),
        ("stone-grid", "stone-grid-single-foot"),
        ("stairs", "stairs-single-foot"),
    ],
)
def test_commands_name_the_new_presets(old, new):
    assert rename_facts({"command": f"iap train {old}"}) == {"command": f"iap train {new}"}


@pytest.mark.parametrize("command", ["iap train --env stairs", "python train.py stairs", "iap train", ""])
def test_commands_without_a_preset_are_not_changed(command):
    assert rename_facts({"command": command}) == {"command": command}


def test_new_presets_exist():
    from iap.training.presets import PRESETS as REGISTERED

    assert set(PRESETS.values()) <= set(REGISTERED)


@pytest.mark.parametrize(
    ("old", "new"), [("OpenES", "open-es"), ("ARS", "ars"), ("PGPE", "pgpe"), ("CMAES", "cma-es"), ("SNES", "snes")]
)
def test_strategies_have_their_registered_names(old, new):
    assert rename_facts({"strategy": old}) == {"strategy": new}


def test_facts_of_the_start_are_renamed_also_in_the_policy_of_a_warm_start():
    taught = {"r2_drawn": 0.1, "r2_taught": 0.8, "held_out": 3.0}
    first = {"strategy": "SNES", "taught": taught, "command": "iap train reacher-easy-told", "seed": 1}
    second = {"strategy": "CMAES", "started_from": {"policy": "zoo:reacher-easy-told", "facts": first, "steps": 0}}
    third = {"screened": {"seed": 4}, "started_from": {"policy": "runs/stairs-seed0", "facts": second}}
    assert rename_facts(third) == {
        "random_search": {"seed": 4},
        "warm_start": {
            "policy": "runs/stairs-seed0",
            "facts": {
                "strategy": "cma-es",
                "warm_start": {
                    "policy": "zoo:reacher-easy-teacher",
                    "facts": {
                        "strategy": "snes",
                        "pretrained": {"r2_initial": 0.1, "r2_pretrained": 0.8, "held_out": 3.0},
                        "command": "iap train reacher-easy-teacher",
                        "seed": 1,
                    },
                    "steps": 0,
                },
            },
        },
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("zoo:cheetah-run", "zoo:cheetah-run"),
        ("zoo:cartpole-swingup-told-roughly", "zoo:cartpole-swingup-noisy-teacher"),
        ("zoo:step-stones", "zoo:step-stones-single-foot"),
    ],
)
def test_a_warm_start_from_the_zoo_has_the_new_name(old, new):
    assert rename_facts({"started_from": {"policy": old}}) == {"warm_start": {"policy": new}}


@pytest.mark.parametrize("facts", [{"taught": 3}, {"started_from": "x"}, {"command": 5, "strategy": None}, {}])
def test_unexpected_facts_do_not_raise(facts):
    assert set(rename_facts(facts).values()) == set(facts.values())


def test_facts_are_renamed_by_the_upgrade_to_version_3():
    assert UPGRADES.index(use_new_names) == 1
    assert use_new_names({"facts": {"strategy": "ARS"}})["facts"] == {"strategy": "ars"}
