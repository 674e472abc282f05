"""Rewards of a few tasks, compiled: dm_control's own up to rounding, which take longer than the physics of these."""

import math
from collections.abc import Callable
from typing import Any

from iap._compile import compiled

RUN_SPEED = 10.0  # m/s, of a cheetah that has all of the reward
AT_MARGIN = 0.1  # dm_control's value of a tolerance where its margin ends
GAUSSIAN = math.sqrt(-2 * math.log(AT_MARGIN))


def reward_of(task: str, dm_task: Any, physics: Any) -> Callable[[], float]:
    """How to tell the reward of the state that the physics is in."""
    made = FAST.get(task)
    return made(physics) if made is not None else lambda: float(dm_task.get_reward(physics))


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
def balanced(cart, turns, control, upright):
    """Poles that stand, hardly turning, on a cart near the middle that is pushed little."""
    height = 0.0
    for cosine in upright:
        height += (cosine + 1) / 2
    slowness = 1.0
    for turn in turns:
        slowness = min(slowness, math.exp(-0.5 * (turn / 5 * GAUSSIAN) ** 2))
    centred = math.exp(-0.5 * (cart / 2 * GAUSSIAN) ** 2)
    ease = max(1 - control * control, 0.0)
    return height / len(upright) * ((4 + ease) / 5) * ((1 + slowness) / 2) * ((1 + centred) / 2)


@compiled
def reached(finger, target, apart):
    """Whether a finger touches its target."""
    return 1.0 if math.hypot(target[0] - finger[0], target[1] - finger[1]) <= apart else 0.0


@compiled
def caught(ball, cup, wide, high):
    """Whether a ball lies in a cup."""
    return 1.0 if abs(cup[0] - ball[0]) < wide and abs(cup[2] - ball[2]) < high else 0.0


FAST = {
    "cartpole-balance": _cartpole,
    "cartpole-swingup": _cartpole,
    "reacher-easy": _reacher,
    "reacher-hard": _reacher,
    "cheetah-run": _cheetah,
    "ball_in_cup-catch": _ball_in_cup,
}
