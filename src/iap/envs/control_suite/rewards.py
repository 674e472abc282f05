"""Compiled rewards of tasks whose rewards take longer than their physics; equal to dm_control's up to rounding."""

import math
from collections.abc import Callable
from typing import Any

from iap._compile import compiled

RUN_SPEED = 10.0  # m/s, at which a cheetah earns the full reward
VALUE_AT_MARGIN = 0.1  # of dm_control's tolerance function
GAUSSIAN = math.sqrt(-2 * math.log(VALUE_AT_MARGIN))


def reward_function(task: str, dm_task: Any, physics: Any) -> Callable[[], float]:
    """A function that returns the reward of the current state of the physics."""
    make = COMPILED.get(task)
    return make(physics) if make is not None else lambda: float(dm_task.get_reward(physics))


def _cartpole(physics: Any) -> Callable[[], float]:
    data, slider = physics.data.ptr, physics.model.name2id("slider", "joint")
    qpos, qvel, ctrl, xmat = data.qpos, data.qvel, data.ctrl, data.xmat
    return lambda: balanced(qpos[slider], qvel[1:], ctrl[0], xmat[2:, 8])


def _reacher(physics: Any) -> Callable[[], float]:
    finger, target = (physics.model.name2id(name, "geom") for name in ("finger", "target"))
    sizes, places = physics.model.ptr.geom_size, physics.data.ptr.geom_xpos
    return lambda: reached(places[finger], places[target], sizes[finger, 0] + sizes[target, 0])


def _cheetah(physics: Any) -> Callable[[], float]:
    model = physics.model.ptr
    speed, sensed = (
        model.sensor_adr[physics.model.name2id("torso_subtreelinvel", "sensor")],
        physics.data.ptr.sensordata,
    )
    return lambda: min(max(1 - (RUN_SPEED - float(sensed[speed])) / RUN_SPEED, 0.0), 1.0)


def _ball_in_cup(physics: Any) -> Callable[[], float]:
    ball, site = physics.model.name2id("ball", "body"), physics.model.name2id("target", "site")
    data, model = physics.data.ptr, physics.model.ptr
    places, targets, size = data.xpos, data.site_xpos, model.site_size[site]
    radius = model.geom_size[physics.model.name2id("ball", "geom"), 0]
    return lambda: caught(places[ball], targets[site], size[0] - radius, size[2] - radius)


@compiled
def balanced(cart, angular_velocities, control, upright):
    """Cartpole: upright poles at low speed, on a centred cart with small controls."""
    height = 0.0
    for cosine in upright:
        height += (cosine + 1) / 2
    slowness = 1.0
    for velocity in angular_velocities:
        slowness = min(slowness, math.exp(-0.5 * (velocity / 5 * GAUSSIAN) ** 2))
    centred = math.exp(-0.5 * (cart / 2 * GAUSSIAN) ** 2)
    small_control = max(1 - control * control, 0.0)
    return height / len(upright) * ((4 + small_control) / 5) * ((1 + slowness) / 2) * ((1 + centred) / 2)


@compiled
def reached(finger, target, radius):
    """Reacher: whether the finger touches the target."""
    return 1.0 if math.hypot(target[0] - finger[0], target[1] - finger[1]) <= radius else 0.0


@compiled
def caught(ball, cup, wide, high):
    """Ball in cup: whether the ball is inside the cup."""
    return 1.0 if abs(cup[0] - ball[0]) < wide and abs(cup[2] - ball[2]) < high else 0.0


COMPILED = {
    "cartpole-balance": _cartpole,
    "cartpole-swingup": _cartpole,
    "reacher-easy": _reacher,
    "reacher-hard": _reacher,
    "cheetah-run": _cheetah,
    "ball_in_cup-catch": _ball_in_cup,
}
