"""The checkers of Gymnasium and Stable-Baselines3, on the six tasks with all distractions."""

from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from iap.envs.control_suite.tasks import DISTRACTING_TASKS

OPTIONS: dict[str, Any] = {"size": (40, 50), "difficulty": "medium"}

each_task = pytest.mark.parametrize("task", DISTRACTING_TASKS)


def checked_by_gymnasium(task: str, **options: Any) -> None:
    env = gymnasium.make(f"iap/{task}-v0", disable_env_checker=True, **OPTIONS | options).unwrapped
    check_env(env)
    env.close()


@each_task
def test_the_six_tasks_pass_the_checker_of_gymnasium(task):
    checked_by_gymnasium(task)


@pytest.mark.filterwarnings("ignore:.*A Box observation space (minimum|maximum) value is -?infinity")
def test_all_options_together_pass_the_checker_of_gymnasium():
    checked_by_gymnasium("cheetah-run", dynamic=True, proprioception=True, frame="grey")


@pytest.mark.parametrize(
    "task", [pytest.param(task, marks=[] if task == "cheetah-run" else pytest.mark.slow) for task in DISTRACTING_TASKS]
)
def test_the_six_tasks_pass_the_checker_of_stable_baselines3(task):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    env: Any = gymnasium.make(f"iap/{task}-v0", disable_env_checker=True, **OPTIONS)
    checker.check_env(env)
    env.close()
