"""SAC on sensors: it learns, its policy files act as its actor, and an interrupted run ends as an uninterrupted one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from iap.envs.core import EnvConfig
from iap.policies import Normaliser, Policy
from iap.policies.serialization import load
from iap.training.run_directory import RunDirectory, RunError
from iap.training.sac.config import SAC, actor_config
from iap.training.sac.learner import first_learner
from iap.training.sac.loop import train_sac
from iap.training.sac.networks import actor_theta, gaussian, init_network, sample_action, value
from iap.training.sac.presets import TEACHERS, teacher
from iap.training.sac.replay import Replay

pytest.importorskip("jax")


class Reach(gymnasium.Env):
    """The position moves by a tenth of the action; the reward is higher the nearer it is to the target."""

    observation_space = spaces.Dict(
        image=spaces.Box(0, 255, (4, 4, 1), np.uint8), sensors=spaces.Box(-np.inf, np.inf, (2,), np.float32)
    )
    action_space = spaces.Box(-2, 2, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        super().reset(seed=seed)
        self.position, self.target, self.left = 0.0, self.np_random.uniform(-1, 1), 30
        return self.observe(), {}

    def step(self, action: np.ndarray) -> tuple[dict, float, bool, bool, dict]:
        self.position += 0.1 * float(action[0])
        self.left -= 1
        return self.observe(), 1 - min(abs(self.position - self.target), 1), False, self.left == 0, {}

    def observe(self) -> dict[str, np.ndarray]:
        sensors = np.array([self.position, self.target], np.float32)
        return {"image": np.zeros((4, 4, 1), np.uint8), "sensors": sensors}


class Unfinished(Reach):
    """A task whose rewards become NaN."""

    def step(self, action: np.ndarray) -> tuple[dict, float, bool, bool, dict]:
        observation, _, terminated, truncated, info = super().step(action)
        return observation, float("nan"), terminated, truncated, info


TINY = SAC(
    EnvConfig.from_factory(Reach),
    hidden=(16, 16),
    iterations=4,
    decisions=60,
    random_decisions=60,
    batch=16,
    evaluate_every=1,
    evaluate_episodes=2,
)


def trained(config: SAC, path: Path) -> RunDirectory:
    run = RunDirectory.create(path, config)
    train_sac(config, run)
    return run


def content(run: RunDirectory) -> dict[str, Any]:
    """All that a run leaves behind, without times."""
    rows = [{name: x for name, x in row.items() if name != "seconds"} for row in run.read_metrics()]
    files = {path.name: path.read_bytes() for path in run.path.iterdir() if path.suffix in (".policy", ".safetensors")}
    return {"rows": rows, **files}


def test_sac_learns_to_reach_a_target(tmp_path):
    config = replace(TINY, hidden=(32, 32), iterations=20, batch=32, decisions=150, learning_rate=2e-3)
    rows = trained(replace(config, evaluate_every=20, evaluate_episodes=20), tmp_path / "run").read_metrics()
    assert rows[0]["mean"] < 21
    assert rows[-1]["held_out"] > 25  # the largest possible return is 28


class Interrupted(Exception):  # noqa: N818
    """Stops a run after an iteration."""


@pytest.mark.parametrize(("evaluate_every", "normalise"), [(1, True), (2, False)])
def test_a_run_that_was_interrupted_ends_as_one_that_was_not(tmp_path, evaluate_every: int, normalise: bool):
    config = replace(TINY, evaluate_every=evaluate_every, normalise=normalise)
    run = RunDirectory.create(tmp_path / "interrupted", config)

    def stop(row: dict[str, Any]) -> None:
        if row["iteration"] == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        train_sac(config, run, stop)
    train_sac(config, run)
    assert content(run) == content(trained(config, tmp_path / "whole"))
    rows = run.read_metrics()
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4]
    normaliser = load(run.policy_file("last")).normaliser
    assert (0 if normaliser is None else normaliser.count) == (rows[-1]["steps"] if normalise else 0)


def test_the_seed_decides_the_result(tmp_path):
    first = content(trained(TINY, tmp_path / "first"))
    assert content(trained(replace(TINY, seed=1), tmp_path / "other"))["last.policy"] != first["last.policy"]


def test_a_run_holds_its_config_its_curve_and_policies_with_facts(tmp_path):
    config = replace(teacher("cartpole-swingup"), iterations=1, decisions=1, random_decisions=300, evaluate_episodes=1)
    run = RunDirectory.create(tmp_path / "run", config, "iap teacher cartpole-swingup")
    train_sac(config, run, command=run.command)
    assert RunDirectory.open(run.path, SAC)[1] == config
    [row] = run.read_metrics()
    assert row["steps"] == 125
    assert json.dumps(row)
    policy = load(run.policy_file("best"))
    assert policy.facts["command"] == "iap teacher cartpole-swingup"
    assert (policy.facts["algorithm"], policy.facts["decisions"]) == ("sac", 125)
    assert (policy.env_id, policy.env_kwargs["proprioception"]) == ("iap/cartpole-swingup-v0", True)
    with pytest.raises(RunError, match="must be of kind train"):
        RunDirectory.open(run.path)


def test_the_policy_acts_as_the_mean_of_the_actor():
    config = actor_config(TINY)
    actor = init_network(np.random.default_rng(0), 2, (16, 16), 2)
    policy = Policy(config, actor_theta(config, actor), compiled=False)
    rng = np.random.default_rng(1)
    image = np.zeros((4, 4, 1), np.uint8)
    for sensors in 3 * rng.standard_normal((50, 2), np.float32):
        action, _, _ = policy.act(policy.reset(), {"image": image, "sensors": sensors})
        mean, _ = gaussian(actor, sensors[None])
        np.testing.assert_allclose(action, np.tanh(mean[0]), atol=1e-5)


def test_log_probabilities_are_those_of_a_squashed_normal_distribution():
    """The probability of an interval of actions is that of the noise that gives them."""
    actor = init_network(np.random.default_rng(0), 2, (8,), 2)
    sensors, noise = np.ones((2001, 2), np.float32), np.linspace(-3, 3, 2001, dtype=np.float32)[:, None]
    actions, log = sample_action(actor, sensors, noise)
    density = np.exp(np.asarray(log, np.float64))
    inside = np.trapezoid(density, np.asarray(actions, np.float64)[:, 0])
    assert inside == pytest.approx(0.9973, abs=1e-3)  # of a normal distribution, three standard deviations


def test_critics_and_actors_are_the_same_in_numpy_and_jax():
    from jax import numpy as jnp

    rng = np.random.default_rng(0)
    actor, critic = init_network(rng, 3, (8, 8), 4), init_network(rng, 5, (8, 8), 1)
    sensors, actions = rng.standard_normal((6, 3), np.float32), rng.standard_normal((6, 2), np.float32)
    for function, arguments in ((sample_action, (actor, sensors, actions)), (value, (critic, sensors, actions))):
        network, *rest = arguments
        converted = {name: jnp.asarray(array) for name, array in network.items()}
        by_jax = function(converted, *map(jnp.asarray, rest))
        ours = function(*arguments)
        for one, other in zip(ours, by_jax, strict=True):  # actions and log-probabilities, or the values of a batch
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_memory_replaces_the_oldest_transitions():
    replay = Replay(1, 1, capacity=4)
    for i in range(6):
        replay.add(np.full(1, i), np.zeros(1), i, np.full(1, i + 1), terminated=i == 5)
    batch = replay.sample(np.random.default_rng(0), 3, 50, Normaliser.none(1))
    assert batch.sensors.shape == (3, 50, 1)
    assert set(batch.rewards.ravel()) == {2, 3, 4, 5}
    np.testing.assert_array_equal(batch.next_sensors, batch.sensors + 1)
    np.testing.assert_array_equal(batch.goes_on, batch.rewards != 5)
    again = Replay(1, 1, capacity=4)
    again.restore(replay.to_arrays())
    np.testing.assert_array_equal(
        again.sample(np.random.default_rng(0), 3, 50, Normaliser.none(1)).rewards, batch.rewards
    )


def test_every_teacher_of_the_suite_has_its_tasks_observation_as_sensors():
    for name, config in TEACHERS.items():
        policy = actor_config(config)
        learner = first_learner(config, policy.sensors, policy.actions)
        theta = actor_theta(policy, learner.learnt.actor)
        assert name == f"{config.env.id.split('/')[1].removesuffix('-v0')}-state-teacher"
        assert len(theta) < 30_000


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            EnvConfig.of("iap/cartpole-swingup-v0", size=(8, 8)),
            "SAC needs sensors, but iap/cartpole-swingup-v0 has none",
        ),
        (EnvConfig.of("iap/Seek-v0"), "SAC needs sensors, but iap/Seek-v0 has none"),
    ],
)
def test_an_environment_that_sac_cannot_learn_is_refused(env: EnvConfig, message: str):
    with pytest.raises(ValueError, match=message):
        actor_config(SAC(env))


def test_discrete_actions_are_refused():
    class Steps(Reach):
        action_space = spaces.Discrete(3)

    with pytest.raises(ValueError, match="SAC needs continuous actions"):
        actor_config(SAC(EnvConfig.from_factory(Steps)))


def test_a_reward_that_is_not_finite_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="Unfinished gave a reward that is not finite: nan"):
        trained(replace(TINY, env=EnvConfig.from_factory(Unfinished)), tmp_path / "run")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"discount": 1.0}, "discount must be at least 0 and below 1"),
        ({"target_rate": 0.0}, "target_rate must be above 0"),
        ({"hidden": ()}, "hidden must be a tuple"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **options)
