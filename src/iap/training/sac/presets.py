"""SAC configs by name: the teachers of the Distracting Control Suite, on dm_control's own observations."""

from typing import Any

from iap._registry import Registry
from iap.envs.control_suite.tasks import DISTRACTING_TASKS
from iap.envs.core import EnvConfig
from iap.training.sac.config import SAC

SUFFIX = "-state-teacher"
IMAGE = (8, 8)  # of the environment, whose rendering is off


def state_env(task: str, **options: Any) -> EnvConfig:
    """A task of the suite with dm_control's observation as sensors."""
    return EnvConfig.of(f"iap/{task}-v0", size=IMAGE, proprioception=True, **options)


def for_env(env: EnvConfig) -> SAC:
    """The default config for any environment."""
    return SAC(env)


TEACHERS: Registry[SAC] = Registry("teacher")
# Cheetah's teacher stops early: students fall with the faster gait that it has later (666 after 150 iterations).
OPTIONS: dict[str, dict[str, Any]] = {
    "cheetah-run": {"iterations": 80, "normalise": True},
    "finger-spin": {"iterations": 80, "normalise": True},
    "walker-walk": {"evaluate_every": 5},
}
for _task in DISTRACTING_TASKS:
    TEACHERS.register(f"{_task}{SUFFIX}", SAC(state_env(_task), **OPTIONS.get(_task, {})))


def teacher(name: str) -> SAC:
    """The config of a name; the suffix "-state-teacher" may be left out."""
    return TEACHERS[full_name(name)]


def full_name(name: str) -> str:
    """The name with its suffix."""
    return name if name in TEACHERS else f"{name}{SUFFIX}"
