"""Two reference policies: an oracle that knows the terrain, and one that assumes flat ground."""

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Float32

from iap.envs.quadruped.footsteps.base import FootstepsBase
from iap.envs.quadruped.footsteps.env import Footsteps
from iap.envs.quadruped.footsteps.ground_cameras import EDGE_M
from iap.envs.quadruped.footsteps.single_foot_env import SingleFootsteps
from iap.envs.quadruped.footsteps.teacher import GRID_M, LENGTHENING_COST, SIDEWAYS_COST
from iap.locomotion.walker_kernels import heading_of


def blind_action(env: FootstepsBase) -> Float32[np.ndarray, " k"]:
    """Walk as if the ground were flat, with footholds by Raibert's rule."""
    return env.to_action(replace(env.default_command(), pitch_rad=0.0))


def oracle_action(env: FootstepsBase) -> Float32[np.ndarray, " k"]:
    """Put each foot on the safe place nearest to its default landing, and pitch with the stairs."""
    default = env.default_command()
    if isinstance(env, SingleFootsteps):
        return env.to_action(replace(default, offsets_m=np.tile(safe_offset(env, env.next_foot().landing_m), (4, 1))))
    assert isinstance(env, Footsteps)
    landings = env.walker.next_landings(env.motion, default.velocity_m_s, default.height_m)
    offsets = [
        safe_offset(env, landing) if needed else np.zeros(3)
        for landing, needed in zip(landings, env.needs_target(), strict=True)
    ]
    pitch = -math.atan(env.terrain.slope(env.motion.position_m))
    return env.to_action(replace(default, offsets_m=np.array(offsets), pitch_rad=pitch))


def safe_offset(env: FootstepsBase, landing_m: Float[np.ndarray, " 3"]) -> Float[np.ndarray, " 3"]:
    """The offset from a landing to the nearest safe place; zero if none is in range."""
    ranges = env.ranges
    ahead, left = (np.arange(low + GRID_M / 2, high, GRID_M) for low, high in (ranges.forward_m, ranges.left_m))
    offsets = np.stack(np.meshgrid(ahead, left, indexing="ij"), axis=-1).reshape(-1, 2)
    cost = offsets[:, 0] ** 2 * np.where(offsets[:, 0] > 0, LENGTHENING_COST, 1.0) + SIDEWAYS_COST * offsets[:, 1] ** 2
    heading = heading_of(env.motion.rotation)[:2, :2]
    heights = env.terrain.heights(landing_m[:2] + offsets @ heading.T, EDGE_M)
    up = heights + env.walker.robot.toe_radius_m - landing_m[2]
    safe = (up >= ranges.up_m[0] - EDGE_M) & (up <= ranges.up_m[1] + EDGE_M)
    best = np.argmin(np.where(safe, cost, np.inf))
    return np.array((*offsets[best], up[best])) if safe[best] else np.zeros(3)
