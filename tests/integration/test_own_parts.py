"""An encoder and a controller of another package: trained by workers, saved, loaded, evaluated and described."""

from dataclasses import replace

import pytest
from toys import CompiledToyController, CompiledToyEncoder, ToyController, ToyEncoder
from training_cases import iap_here, outcome, run_here, tiny

from iap.evaluation.evaluate import evaluate, policy_job
from iap.policies import CONTROLLERS, ENCODERS, PolicyFileError, describe
from iap.policies.serialization import load
from iap.rollouts import InlinePool, LocalPool
from iap.training.presets import with_parts
from iap.training.run_directory import RunDirectory

PARTS = {"plain": (ToyEncoder, ToyController), "compiled": (CompiledToyEncoder, CompiledToyController)}


@pytest.fixture(params=PARTS)
def parts(request, monkeypatch):
    """Both are registered during a test only."""
    encoder, controller = PARTS[request.param]
    for registry in (ENCODERS, CONTROLLERS):
        assert len(registry) > 0  # entry points are loaded once
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    ENCODERS.register("toy-encoder", encoder)
    CONTROLLERS.register("toy-controller", controller)
    return encoder, controller


@pytest.fixture
def run(parts, tmp_path):
    """Two iterations with two workers, which import the module of the parts when they receive the job."""
    config = with_parts(tiny(iterations=2), encoder="toy-encoder", controller="toy-controller")
    return run_here(config, tmp_path / "run", LocalPool, workers=2)


def test_registered_parts_are_trained_saved_loaded_evaluated_and_described_and_then_missing(
    run, parts, tmp_path, monkeypatch
):
    _, config = RunDirectory.open(run.path)
    assert (type(config.policy.encoder), type(config.policy.controller)) == parts
    assert outcome(run) == outcome(run_here(config, tmp_path / "inline", InlinePool))
    policy = load(run.policy_file("best"))
    with LocalPool(policy_job(policy, max_steps=8), workers=2) as pool:
        result = evaluate(policy, pool, episodes=3)
    assert (result.failed, len(result.returns)) == (0, 3)
    assert describe(policy.config).total == len(policy.theta)
    shown = iap_here("describe", run.policy_file("best")).stdout
    assert "gain" in shown
    assert f"{len(policy.theta)}" in shown

    entries = {name: entry for name, entry in ENCODERS._entries.items() if name != "toy-encoder"}
    monkeypatch.setattr(ENCODERS, "_entries", entries)
    with pytest.raises(PolicyFileError, match="toy-encoder"):
        load(run.policy_file("best"))


def test_an_unregistered_part_is_refused_before_anything_is_written(tmp_path):
    config = tiny(iterations=1)
    config = replace(config, policy=replace(config.policy, encoder=ToyEncoder()))
    with pytest.raises(TypeError, match="ToyEncoder is not registered"):
        RunDirectory.create(tmp_path / "run", config)
    assert not (tmp_path / "run").exists()
