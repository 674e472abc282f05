"""Names: the preset, the zoo entry and the recorded command of a policy are the same thing."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest

from iap.cli import parse
from iap.cli.commands.training.teacher import Teacher
from iap.cli.commands.training.train import Train
from iap.envs.core import make_env
from iap.policies import EnvReference, Policy
from iap.policies.serialization import VERSION, file_version, load
from iap.training.config import TrainConfig, fit_to_env
from iap.training.sac.config import actor_config
from iap.zoo import zoo_file, zoo_names


@pytest.fixture(params=zoo_names())
def name(request) -> str:
    return request.param


def test_the_recorded_command_trains_this_policy(name):
    policy = load(zoo_file(name))
    program, *words = shlex.split(policy.facts["command"])
    assert program == "iap"
    assert words[1] == name
    command = parse(words)
    assert isinstance(command, Train | Teacher)
    config = command.config if isinstance(command, Train) else command.config()
    assert config.seed == policy.facts["seed"]
    assert config.iterations == policy.facts["iterations"]
    assert config.env.id == policy.env_id
    assert json.loads(json.dumps(dict(config.env.kwargs))) == policy.env_kwargs
    fitted = fit_to_env(config).policy if isinstance(config, TrainConfig) else actor_config(config)
    if policy.config.image_format is None:  # of a file of format 3 or before
        fitted = replace(fitted, image_format=None)
    assert fitted == policy.config


def test_every_policy_is_of_the_newest_version_and_acts_on_the_observation_of_its_environment(name):
    assert file_version(zoo_file(name)) == VERSION
    file = load(zoo_file(name))
    policy = Policy.of(file)
    env = make_env(EnvReference(file.env_id, file.env_kwargs))
    try:
        observation, _ = env.reset(seed=0)
        action, _, _ = policy.act(policy.reset(), observation)
        assert action.shape == (file.config.actions,)
        assert np.isfinite(action).all()
    finally:
        env.close()


def test_a_name_that_the_zoo_does_not_have_is_refused():
    with pytest.raises(ValueError, match="there is no 'nothing' in the zoo; it has ball_in_cup-catch, "):
        zoo_file("nothing")
