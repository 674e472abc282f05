"""The steps of a dm_control task by direct calls of MuJoCo: the same states in half the time."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from iap.envs.rendering.camera import load_mujoco


def physics_step(model: Any, data: Any, substeps: int) -> Callable[[], None]:
    """A function that simulates one step of the task; quantities derived from the state are updated afterwards."""
    mujoco = load_mujoco()

    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:

        def simulate() -> None:
            mujoco.mj_step(model, data, substeps)
            mujoco.mj_step1(model, data)
    else:

        def simulate() -> None:
            mujoco.mj_step2(model, data)  # the first half was computed at the end of the previous step
            if substeps > 1:
                mujoco.mj_step(model, data, substeps - 1)
            mujoco.mj_step1(model, data)

    return simulate


def action_space(model: Any) -> spaces.Box:
    """The control ranges of the model's actuators."""
    low, high = model.actuator_ctrlrange.astype(np.float32).T
    limited = model.actuator_ctrllimited.astype(bool)
    return spaces.Box(np.where(limited, low, -np.inf), np.where(limited, high, np.inf), dtype=np.float32)
