"""Stable-Baselines3 with our encoders, and our policies in Stable-Baselines3."""

from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from export_cases import zoo_policy
from gymnasium import spaces
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecTransposeImage

import iap
from iap.attention.positions import Positions
from iap.interop.sb3 import AttentionCallback, AttentionExtractor, Predictor, film_agent
from iap.interop.sb3.overlays import attended, picture
from iap.policies import CNN, Encoder, Rank, Trans
from iap.viz.lettering import OUTLINE

EXAMPLE: Any = SimpleNamespace(**run_path(str(Path(__file__).parents[2] / "examples" / "07_stable_baselines3.py")))
FindTheDot, ENCODER, SIDE = EXAMPLE.FindTheDot, EXAMPLE.ENCODER, EXAMPLE.SIDE


def policy_kwargs(encoder: Encoder = ENCODER) -> dict:
    return {
        "features_extractor_class": AttentionExtractor,
        "features_extractor_kwargs": {"encoder": encoder},
        "net_arch": [16],
    }


def test_the_toy_environments_are_valid() -> None:
    for options in ({}, {"as_dict": True}, {"continuous": True}):
        check_env(FindTheDot(**options), warn=False)


@pytest.mark.slow
def test_ppo_learns_with_attention_in_place_of_a_cnn() -> None:
    model = PPO(
        "CnnPolicy", FindTheDot(), n_steps=256, batch_size=64, learning_rate=0.01, seed=0, gamma=0, device="cpu",
        policy_kwargs=policy_kwargs(),
    )  # fmt: skip
    model.learn(4096)
    mean: Any = evaluate_policy(model, FindTheDot(), n_eval_episodes=20, warn=False)[0]
    assert mean > 6, "of 8; guessing gives 4"


@pytest.mark.parametrize("encoder", [ENCODER, Trans(3, 3), CNN(((4, 4, 4),))])
def test_a_dict_with_an_image_trains_and_its_parameters_change(encoder: Encoder) -> None:
    env = FindTheDot(as_dict=True)
    model = PPO(
        "MultiInputPolicy",
        env,
        n_steps=32,
        batch_size=32,
        n_epochs=1,
        policy_kwargs=policy_kwargs(encoder),
        device="cpu",
    )
    before = {name: x.clone() for name, x in model.policy.features_extractor.named_parameters()}
    model.learn(64)
    changed = [not x.equal(before[name]) for name, x in model.policy.features_extractor.named_parameters()]
    assert all(changed)
    assert model.policy.features_dim == encoder.feature_size((SIDE, SIDE, 1)) + 2


@pytest.mark.parametrize("env_id", ["iap/Seek-v0", "iap/cartpole-swingup-v0"])
def test_environments_without_sensors_train_with_the_policy_for_dicts(env_id: str) -> None:
    env = gymnasium.make(env_id, size=(32, 32) if "cartpole" in env_id else 32)
    model = PPO(
        "MultiInputPolicy", env, n_steps=8, batch_size=8, n_epochs=1, policy_kwargs=policy_kwargs(), device="cpu"
    )
    model.learn(16)
    assert {*model.rollout_buffer.observation_space.keys()} == {"image"}  # pyright: ignore[reportAttributeAccessIssue]


def test_sac_trains_and_a_saved_agent_acts_as_before(tmp_path: Path) -> None:
    env = FindTheDot(continuous=True)
    model = SAC(
        "CnnPolicy",
        env,
        buffer_size=200,
        learning_starts=20,
        batch_size=16,
        policy_kwargs=policy_kwargs(),
        device="cpu",
    )
    model.learn(60)
    model.save(tmp_path / "agent")
    loaded = SAC.load(tmp_path / "agent", device="cpu")
    observation, _ = env.reset(seed=3)
    actions = [agent.predict(observation, deterministic=True)[0] for agent in (model, loaded)]
    np.testing.assert_array_equal(actions[0], actions[1])
    assert attended(loaded, observation)


def test_attention_of_an_agent_is_drawn_on_its_image_and_written_to_tensorboard(tmp_path: Path) -> None:
    env = FindTheDot(as_dict=True)
    model = PPO(
        "MultiInputPolicy", env, n_steps=16, batch_size=16, n_epochs=1, policy_kwargs=policy_kwargs(), device="cpu"
    )
    model.learn(32, callback=AttentionCallback(every=8, folder=tmp_path))
    [events] = tmp_path.glob("events*")
    assert events.read_bytes().count(b"attention/camera") == 4
    observation: Any = env.reset(seed=0)[0]
    [(image, attention)] = attended(model, observation).values()
    np.testing.assert_array_equal(image, observation["camera"])
    assert len(attention.selected) == ENCODER.top_k
    assert picture(image, attention).shape == (120, 240, 3)


def test_overlays_mark_the_patch_that_an_agent_attends_to_in_the_pixels_of_its_image() -> None:
    encoder = Rank(patch=3, stride=3, d=1, top_k=1, bias=True, positions=Positions("none"))
    model = PPO("CnnPolicy", FindTheDot(), policy_kwargs=policy_kwargs(encoder), device="cpu")
    extractor = model.policy.features_extractor
    assert isinstance(extractor, AttentionExtractor)
    arrays = extractor.encoder_of("").params.tensors()
    with torch.no_grad():  # the score of a patch is its brightness
        for side in ("query", "key"):
            arrays[f"{side}.weight"].fill_(1)
            arrays[f"{side}.bias"].fill_(encoder.patch**2 / 2)
    for row, column in ((1, 2), (3, 0), (0, 3)):
        image = np.full((SIDE, SIDE, 1), 40, np.uint8)
        image[3 * row : 3 * row + 2, 3 * column : 3 * column + 2] = 255
        [(shown, attention)] = attended(model, image).values()
        drawn = picture(shown, attention)
        lines = np.argwhere((drawn[:, :120] == OUTLINE).all(axis=2))
        bright = drawn[:, 120:].sum(axis=2, dtype=int).reshape(4, 30, 4, 30).mean(axis=(1, 3))
        assert list(attention.selected) == [4 * row + column]
        assert [lines.min(axis=0).tolist(), (lines.max(axis=0) + 1).tolist()] == [
            [30 * row, 30 * column],
            [30 * row + 30, 30 * column + 30],
        ]
        assert np.unravel_index(bright.argmax(), bright.shape) == (row, column)


def test_an_agent_is_filmed(tmp_path: Path) -> None:
    env = FindTheDot()
    model = PPO("CnnPolicy", env, policy_kwargs=policy_kwargs(), device="cpu")
    total = film_agent(model, env, tmp_path / "agent.gif", max_steps=4)
    assert 0 <= total <= 4
    assert (tmp_path / "agent.gif").read_bytes()[:3] == b"GIF"


def test_an_agent_without_attention_is_refused(tmp_path: Path) -> None:
    model = PPO("MlpPolicy", "CartPole-v1", device="cpu")
    with pytest.raises(TypeError, match="must have an AttentionExtractor"):
        model.learn(1, callback=AttentionCallback(folder=tmp_path))
    with pytest.raises(ValueError, match="must be an image or a Dict with one"):
        AttentionExtractor(spaces.Box(-1, 1, (4,)))


def test_evaluate_policy_gives_our_policies_the_return_of_our_own_evaluation() -> None:
    policy = zoo_policy("seek")
    envs = VecTransposeImage(DummyVecEnv([lambda: iap.make_env(policy.env)] * 2))
    predictor: Any = Predictor(policy, envs.action_space)
    envs.seed(5)
    found: Any = evaluate_policy(predictor, envs, n_eval_episodes=2, return_episode_rewards=True, warn=False)
    ours = iap.evaluate(policy, episodes=2, seed=5, workers=0)
    np.testing.assert_allclose(sorted(found[0]), sorted(ours.returns), atol=1e-3)


def test_states_are_those_of_each_environment_and_start_anew_with_an_episode() -> None:
    policy = zoo_policy("obstacle-course")
    predictor = Predictor(policy, spaces.Box(-1, 1, (5,)))
    rng = np.random.default_rng(0)
    batch = {
        "image": rng.integers(0, 255, (2, 32, 32, 3)).astype(np.uint8),
        "sensors": rng.normal(0, 1, (2, 19)).astype(np.float32),
    }
    first, states = predictor.predict(batch)
    _, states = predictor.predict(batch, states, np.array([False, False]))
    again, _ = predictor.predict(batch, states, np.array([True, True]))
    np.testing.assert_array_equal(first, again)
    single, _ = predictor.predict({key: value[1] for key, value in batch.items()})
    np.testing.assert_array_equal(single, first[1])
    with pytest.raises(ValueError, match="state must be of 2 environments, not of 1"):
        predictor.predict(batch, states[:1])
