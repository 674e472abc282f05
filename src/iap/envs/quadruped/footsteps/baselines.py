"""Two walkers to measure policies by: one that knows the terrain, and one that knows nothing of it."""

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Float32

from iap.envs.quadruped.footsteps.env import FootstepTask
from iap.envs.quadruped.footsteps.ground_cameras import EDGE_M
from iap.envs.quadruped.footsteps.terrain import Terrain
from iap.locomotion.body_kernels import heading_of

GRID_M = 0.01  # between the places that are looked at
LENGTHENING = 2.0  # how much worse than shortening a step
SIDEWAYS = 2.0  # how much worse than forward
SLOPE_REACH_M = 0.5  # ahead and behind, over which stairs are taken for a slope


def blind_action(env: FootstepTask) -> Float32[np.ndarray, " k"]:
    """Walk on as if the ground were flat: feet land where Raibert's rule puts them."""
    return env.to_action(replace(env.usual_command(), pitch_rad=0.0))


def oracle_action(env: FootstepTask) -> Float32[np.ndarray, " k"]:
    """Put each foot on the nearest safe place to where it would land as usual, and lean with the stairs."""
    usual = env.usual_command()
    if env.places_one_foot:
        return env.to_action(replace(usual, offsets_m=np.tile(safe_offset(env, env.turn().landing_m), (4, 1))))
    landings = env.walker.next_landings(env.motion, usual.velocity_m_s, usual.height_m)
    offsets = [
        safe_offset(env, landing) if needed else np.zeros(3)
        for landing, needed in zip(landings, env.needs_target(), strict=True)
    ]
    pitch = -math.atan(_slope(env.terrain, env.motion.position_m))
    return env.to_action(replace(usual, offsets_m=np.array(offsets), pitch_rad=pitch))


def safe_offset(env: FootstepTask, landing_m: Float[np.ndarray, " 3"]) -> Float[np.ndarray, " 3"]:
    """From a landing to the nearest safe place; nothing where none is in reach."""
    reach = env.reach
    ahead, aside = (np.arange(low + GRID_M / 2, high, GRID_M) for low, high in (reach.forward_m, reach.left_m))
    offsets = np.stack(np.meshgrid(ahead, aside, indexing="ij"), axis=-1).reshape(-1, 2)
    cost = offsets[:, 0] ** 2 * np.where(offsets[:, 0] > 0, LENGTHENING, 1.0) + SIDEWAYS * offsets[:, 1] ** 2
    heading = heading_of(env.motion.rotation)[:2, :2]
    heights = env.terrain.heights(landing_m[:2] + offsets @ heading.T, EDGE_M)
    up = heights + env.walker.robot.toe_radius_m - landing_m[2]
    safe = (up >= reach.up_m[0] - EDGE_M) & (up <= reach.up_m[1] + EDGE_M)
    best = np.argmin(np.where(safe, cost, np.inf))
    return np.array((*offsets[best], up[best])) if safe[best] else np.zeros(3)


def _slope(terrain: Terrain, position_m: Float[np.ndarray, " 3"]) -> float:
    """Of the line through the ground below, ahead and behind."""
    if terrain.kind != "stairs":
        return 0.0
    away = np.linspace(-SLOPE_REACH_M, SLOPE_REACH_M, 21)
    heights = terrain.heights(np.stack([position_m[0] + away, np.full(21, position_m[1])], axis=-1))
    return float(away @ np.maximum(heights, 0.0) / (away @ away))
