"""Compiled rewards against those of dm_control."""

import numpy as np
import pytest

from iap.envs.control_suite.rewards import COMPILED
from iap.envs.control_suite.task import SuiteTask


@pytest.mark.parametrize("task", COMPILED)
def test_compiled_rewards_are_those_of_dm_control(task):
    env, rng, rewards = SuiteTask(task, size=(4, 4), action_repeat=1), np.random.default_rng(0), []
    physics = env._physics
    for seed in range(40):
        env.reset(seed=seed)
        for name, spread in {"qpos": 0.3, "qvel": 3.0}.items():
            values = getattr(physics.data, name)
            values += rng.normal(0, spread * rng.choice([0, 0.1, 1]), len(values))
        if "reacher" in task:  # reached in some of the episodes
            near = physics.named.data.geom_xpos["finger", :2] + rng.normal(0, 0.02, 2)
            physics.named.model.geom_pos["target", :2] = near
        if "ball" in task:  # in the cup or next to it
            physics.named.data.qpos[["ball_x", "ball_z"]] = rng.normal([0, 0.3], 0.03)
        action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32) * 1.5
        for _ in range(3):
            _, reward, *_ = env.step(action)
            assert reward == pytest.approx(float(env._task.get_reward(physics)), abs=1e-12)
            rewards.append(reward)
    env.close()
    assert len(set(np.round(rewards, 6))) > 1
