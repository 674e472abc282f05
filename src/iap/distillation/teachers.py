"""Teachers: whatever can say what to do in any state of an environment."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np

from iap.envs.protocols import Label, PrivilegedSensors, PrivilegedTeacher, env_name, find_protocol, require_protocol
from iap.policies import Policy, PolicyFile
from iap.zoo.locate import locate_policy

Function = Callable[[gymnasium.Env], Any]


class Teacher(Protocol):
    """Labels the states of an environment, step by step."""

    def reset(self, env: gymnasium.Env, seed: int) -> None:
        """Start an episode, after the environment's own reset."""
        ...

    def label(self, env: gymnasium.Env) -> Label:
        """What to do now. It is asked exactly once a step."""
        ...


class EnvTeacher:
    """The environment's own expert."""

    def reset(self, env: gymnasium.Env, seed: int) -> None:
        """Find the expert."""
        self._expert = require_protocol(env, PrivilegedTeacher)

    def label(self, env: gymnasium.Env) -> Label:
        """The expert's label."""
        return self._expert.label()


class PolicyTeacher:
    """A policy with sensors of its own, which the environment can compute in any of its states."""

    def __init__(self, file: PolicyFile) -> None:
        """A blind policy: it acts on sensors."""
        if file.config.encoder.uses_image:
            kind = type(file.config.encoder).__name__
            raise ValueError(f"teacher must be a blind policy, which acts on sensors, not one with the encoder {kind}")
        self._policy, self._options = Policy.of(file), dict(file.env_kwargs)

    def reset(self, env: gymnasium.Env, seed: int) -> None:
        """The policy's state at the start of an episode."""
        self._sensors = require_protocol(env, PrivilegedSensors)
        self._state = self._policy.reset(seed)

    def label(self, env: gymnasium.Env) -> Label:
        """The policy's action."""
        sensors = self._sensors.sensors_with(self._options)
        action, self._state, _ = self._policy.act(self._state, {"image": None, "sensors": sensors})
        return Label(action, state=sensors)


@dataclass(frozen=True)
class FunctionTeacher:
    """A function env → action in [−1, 1], or → `Label`."""

    function: Function

    def reset(self, env: gymnasium.Env, seed: int) -> None:
        """Nothing to do."""

    def label(self, env: gymnasium.Env) -> Label:
        """What the function returns for the unwrapped environment."""
        answer = self.function(env.unwrapped)
        return answer if isinstance(answer, Label) else Label(np.asarray(answer, np.float32))


@dataclass(frozen=True)
class TeacherConfig:
    """A teacher as data that can be sent to workers.

    Attributes:
        policy: a blind policy (a file, a run's folder, or zoo:NAME); None for the environment's own expert.
        function: a function env → action or `Label`, instead of both.
    """

    policy: str | None = None
    function: Function | None = None

    def make(self) -> Teacher:
        """The teacher."""
        if self.function is not None:
            return FunctionTeacher(self.function)
        return EnvTeacher() if self.policy is None else PolicyTeacher(locate_policy(self.policy)[0])

    def check(self, env: gymnasium.Env, actions: int) -> None:
        """Raise an error unless this teacher can label states of this environment."""
        if self.function is None and self.policy is None and find_protocol(env, PrivilegedTeacher) is None:
            raise ValueError(
                f"{env_name(env)} has no expert of its own (a method label, see iap.envs.protocols.PrivilegedTeacher): "
                "give a teacher, a policy or a function env → action"
            )
        teacher = self.make()
        env.reset(seed=0)
        teacher.reset(env, 0)
        require_label(teacher.label(env), actions)


def require_label(label: Label, actions: int) -> Label:
    """The label, if it is finite and fits an environment with so many numbers in an action."""
    action = np.asarray(label.action, np.float32)
    if action.shape != (actions,):
        raise ValueError(f"the teacher's action must be {actions} numbers in [−1, 1], not of shape {action.shape}")
    for name in ("action", "weights", "costs", "dependent", "state"):
        given = getattr(label, name)
        if given is not None and not np.isfinite(given).all():
            raise ValueError(f"{name} of the teacher's label must be finite, not {given}"[:300])
    if label.weights is not None and np.shape(label.weights) != (actions,):
        raise ValueError(f"weights of the teacher's label must be {actions} numbers, not {np.shape(label.weights)}")
    if len(label.axes) != (0 if label.costs is None else len(label.costs)):
        raise ValueError(f"axes of the teacher's label must be one entry for each cost map, not {len(label.axes)}")
    return label._replace(action=np.clip(action, -1, 1))
