"""Two walkers to measure policies by: one that knows the terrain, and one that knows nothing of it."""

import math

import numpy as np
from jaxtyping import Float, Float32

from iap.envs.quadruped.footstep_task import EDGE_M, FootstepTask
from iap.envs.quadruped.uneven_terrain import Terrain
from iap.locomotion.walker import Command
from iap.locomotion.walker_loops import heading_of

SPEED_M_S, SPEED_ON_STAIRS_M_S = 0.38, 0.25
SLOWEST_M_S, ACCELERATION = 0.2, 0.37  # m/s, m/s²
HEIGHT_M, CLEARANCE_M = 0.45, 0.07
GRID_M = 0.01  # between the places that are looked at
LENGTHENING = 2.0  # how much worse than shortening a step
SIDEWAYS = 2.0  # how much worse than forward
SLOPE_REACH_M = 0.5  # ahead and behind, over which stairs are taken for a slope


def blind_action(env: FootstepTask) -> Float32[np.ndarray, " 22"]:
    """Walk on as if the ground were flat: feet land where Raibert's rule puts them."""
    clearances = np.full(4, CLEARANCE_M)
    return env.reach.to_action(Command(clearances_m=clearances, velocity_m_s=(_speed(env), 0.0), height_m=HEIGHT_M))


def oracle_action(env: FootstepTask) -> Float32[np.ndarray, " 22"]:
    """Put each foot on the nearest safe place to where Raibert's rule would put it, and lean with the stairs."""
    speed = _speed(env)
    return env.reach.to_action(
        Command(
            offsets_m=_safe_offsets(env, speed),
            clearances_m=np.full(4, CLEARANCE_M),
            velocity_m_s=(speed, 0.0),
            height_m=HEIGHT_M,
            pitch_rad=-math.atan(_slope(env.terrain, env.motion.position_m)),
        )
    )


def _speed(env: FootstepTask) -> float:
    most = SPEED_ON_STAIRS_M_S if env.terrain.kind == "stairs" else SPEED_M_S
    return min(most, SLOWEST_M_S + ACCELERATION * env.walker.time_s)


def _safe_offsets(env: FootstepTask, speed: float) -> Float[np.ndarray, "4 3"]:
    """From the Raibert points of the feet that need a target; nothing where no safe place is in reach."""
    reach = env.reach
    ahead, aside = (np.arange(low + GRID_M / 2, high, GRID_M) for low, high in (reach.forward_m, reach.left_m))
    offsets = np.stack(np.meshgrid(ahead, aside, indexing="ij"), axis=-1).reshape(-1, 2)
    cost = offsets[:, 0] ** 2 * np.where(offsets[:, 0] > 0, LENGTHENING, 1.0) + SIDEWAYS * offsets[:, 1] ** 2
    nominal = env.walker.next_landings(env.motion, (speed, 0.0), HEIGHT_M)
    heading = heading_of(env.motion.rotation)[:2, :2]
    chosen = np.zeros((4, 3))
    for leg in np.flatnonzero(env.needs_target()):
        heights = env.terrain.heights(nominal[leg, :2] + offsets @ heading.T, EDGE_M)
        up = heights + env.walker.robot.toe_radius_m - nominal[leg, 2]
        safe = (up >= reach.up_m[0] - EDGE_M) & (up <= reach.up_m[1] + EDGE_M)
        if safe.any():
            best = np.argmin(np.where(safe, cost, np.inf))
            chosen[leg] = (*offsets[best], up[best])
    return chosen


def _slope(terrain: Terrain, position_m: Float[np.ndarray, " 3"]) -> float:
    """Of the line through the ground below, ahead and behind."""
    if terrain.kind != "stairs":
        return 0.0
    away = np.linspace(-SLOPE_REACH_M, SLOPE_REACH_M, 21)
    heights = terrain.heights(np.stack([position_m[0] + away, np.full(21, position_m[1])], axis=-1))
    return float(away @ np.maximum(heights, 0.0) / (away @ away))
