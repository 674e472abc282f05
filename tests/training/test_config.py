"""Configs in JSON: the current version, and the files of version 1, which real runs have left."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iap.distillation import Distillation, ESPretraining
from iap.envs.core import EnvConfig
from iap.policies import CNN, Hierarchy, MultiHeadRank, Policy, PooledMoments, Rank, SelectedPatches, Symmetry
from iap.policies.serialization import load, save
from iap.rollouts import InlinePool
from iap.training.checkpoints import resume
from iap.training.config import config_from_json, config_to_json, fit_to_env
from iap.training.loop import train
from iap.training.presets import PRESETS, config_for_env, preset
from iap.training.run_directory import RunDirectory
from iap.training.upgrades import CHECKPOINT_VERSION, VERSION

V1 = Path(__file__).parents[1] / "fixtures" / "v1"
CONFIGS = sorted(path.name for path in (V1 / "configs").iterdir())
POLICIES = sorted(path.name for path in (V1 / "policies").iterdir())


def read_v1(name: str) -> dict:
    return json.loads((V1 / "configs" / name).read_text())


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_the_same_after_a_round_trip_through_json(name):
    config = PRESETS[name]
    assert config_from_json(json.loads(json.dumps(config_to_json(config)))) == config


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_of_version_1_is_upgraded_to_one_that_is_written_and_read_unchanged(name):
    config = config_from_json(read_v1(name))
    written = config_to_json(config)
    assert written["version"] == VERSION
    assert config_from_json(written) == config


def test_upgraded_configs_have_the_values_of_version_1_under_the_current_names():
    course, cartpole, finger = (
        config_from_json(read_v1(f"{name}.json"))
        for name in ("obstacle-course", "cartpole-swingup-taught", "finger-spin")
    )
    assert isinstance(course.policy.encoder, Rank)
    assert isinstance(course.policy.encoder.features, PooledMoments)
    assert isinstance(course.policy.symmetry, Symmetry)
    assert course.random_search == read_v1("obstacle-course.json")["screen"] > 0
    assert isinstance(cartpole.policy.encoder, MultiHeadRank)
    assert cartpole.policy.preprocessing == ("first_frame_difference",)
    assert isinstance(cartpole.pretraining, Distillation)
    assert cartpole.pretraining.teacher == "zoo:cartpole-swingup-noisy-teacher"
    assert (cartpole.freeze_normaliser, cartpole.sigma_multipliers.low_level) == (True, 1)
    assert isinstance(finger.pretraining, ESPretraining)
    assert finger.pretraining.random_encoders == read_v1("finger-spin.json")["teach"]["draws"]
    assert isinstance(finger.policy.hierarchy, Hierarchy)
    assert finger.policy.hierarchy.command_gain == read_v1("finger-spin.json")["policy"]["level"]["gain"]


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_of_an_older_version_acts_as_it_did(name, tmp_path):
    policy = load(V1 / "policies" / name)
    save(tmp_path / name, policy)
    assert load(tmp_path / name).config == policy.config
    is_depth = isinstance(policy.config.encoder, Rank) and isinstance(policy.config.encoder.features, SelectedPatches)
    acting, rng, actions = Policy.of(policy), np.random.default_rng(0), []
    state = acting.reset()
    for _ in range(6):
        shape = policy.config.image_shape
        depth = rng.uniform(0, 2, shape).astype(np.float32) if is_depth else None
        image = rng.integers(0, 256, shape, dtype=np.uint8) if depth is None else depth
        sensors = rng.standard_normal(policy.config.sensors).astype(np.float32)
        action, state, _ = acting.act(state, {"image": image, "sensors": sensors})
        actions.append(action)
    with np.load(V1 / "actions.npz") as recorded:
        np.testing.assert_allclose(actions, recorded[name.removesuffix(".policy")], atol=1e-5)


def test_a_run_of_version_1_is_resumed_to_the_result_that_version_1_had(tmp_path):
    shutil.copytree(V1 / "run", tmp_path / "run")
    run, config = RunDirectory.open(tmp_path / "run")
    progress = resume(config, run)
    assert progress is not None
    assert progress.start is not None
    assert progress.iteration == 2
    assert progress.start["random_search"]["candidates"] == config.random_search == 8
    with InlinePool(config.job) as pool:
        train(config, pool, run)
    expected = [json.loads(line) for line in (V1 / "run" / "whole.jsonl").read_text().splitlines()]
    for row, before in zip(run.read_metrics(), expected, strict=True):
        assert [key for key in row if row[key] is None] == [key for key in before if before[key] is None]
        numbers = [key for key in before if before[key] is not None and key != "seconds"]
        assert [row[key] for key in numbers] == pytest.approx([before[key] for key in numbers], rel=1e-4)
    last, whole = load(run.policy_file("last")), load(V1 / "run" / "whole-last.policy")
    np.testing.assert_allclose(last.theta, whole.theta, rtol=1e-4, atol=1e-6)
    assert last.facts["random_search"] == whole.facts["random_search"]
    assert run.load_checkpoint()[1]["version"] == CHECKPOINT_VERSION  # pyright: ignore[reportOptionalSubscript]


@pytest.mark.parametrize("version", [0, -1, True, "2", None])
def test_a_version_that_is_not_a_positive_whole_number_is_refused(version):
    with pytest.raises(ValueError, match="version must be a whole number from 1 on"):
        config_from_json(config_to_json(preset("seek")) | {"version": version})


def test_a_config_of_a_newer_version_is_refused():
    with pytest.raises(ValueError, match=f"made by a newer version of iap: .* reads up to {VERSION}"):
        config_from_json(config_to_json(preset("seek")) | {"version": VERSION + 1})


def test_a_checkpoint_of_a_newer_version_is_refused(tmp_path):
    shutil.copytree(V1 / "run", tmp_path / "run")
    run, config = RunDirectory.open(tmp_path / "run")
    arrays, facts = run.load_checkpoint() or ({}, {})
    run.save_checkpoint(arrays, facts | {"version": CHECKPOINT_VERSION + 1})
    with pytest.raises(ValueError, match="made by a newer version of iap"):
        resume(config, run)


@pytest.mark.parametrize("data", [None, [], "seek", 3])
def test_a_config_that_is_not_an_object_is_refused(data):
    with pytest.raises(ValueError, match="config must be a JSON object"):
        config_from_json(data)


def test_an_unknown_field_is_named():
    with pytest.raises(ValueError, match="colour"):
        config_from_json(config_to_json(preset("seek")) | {"colour": 1})


def test_fitting_to_the_environment_takes_shapes_and_symmetry_from_it():
    config = fit_to_env(config_for_env(EnvConfig.of("iap/Seek-v0")))
    assert (config.policy.image_shape, config.policy.sensors, config.policy.actions) == ((32, 32, 3), 0, 2)
    course = fit_to_env(preset("obstacle-course")).policy
    assert course.symmetry is not None
    assert len(course.symmetry.sensors) == course.sensors
    with pytest.raises(ValueError, match=r"iap/Seek-v0 does not define a symmetry: give policy\.symmetry"):
        fit_to_env(replace(config, policy=replace(config.policy, symmetry=Symmetry())))


@pytest.mark.parametrize(
    ("parts", "encoder"),
    [
        ({}, MultiHeadRank),
        ({"controller": "mlp"}, MultiHeadRank),
        ({"kernel": "favor++"}, Rank),
        ({"encoder": "cnn"}, CNN),
    ],
)
def test_the_default_encoder_of_an_environment_has_several_heads_unless_a_kernel_needs_one(parts, encoder):
    config = config_for_env(EnvConfig.of("iap/Seek-v0"), **parts)
    assert type(config.policy.encoder) is encoder
    if encoder is not CNN:
        chosen = vars(config.policy.encoder)
        assert (chosen["patch"], chosen["top_k"]) == (2, 16)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"iterations": 0}, "iterations must be"),
        ({"episodes": 0}, "episodes must be"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"random_search": -1}, "random_search must be"),
        ({"random_search": 3, "warm_start": "zoo:seek"}, "exclude each other"),
        ({"freeze_normaliser": True}, "freeze_normaliser must be False without"),
    ],
)
def test_an_invalid_config_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(preset("seek"), **changes)
