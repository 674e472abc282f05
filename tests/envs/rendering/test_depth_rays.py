import numpy as np

from iap.envs.quadruped.footsteps.terrain import draw_terrain
from iap.envs.quadruped.simulation.mujoco import MujocoSimulator
from iap.envs.quadruped.simulation.protocol import Box, View
from iap.envs.rendering.depth_rays import DepthRays
from iap.locomotion.robots import load_robot, rotation


def test_depths_are_those_of_the_rendered_depth_image():
    view = View((0.2, 0.0, -0.1), (24, 32), fov_deg=75, pitch_rad=np.pi / 2 - 0.3)
    grid = draw_terrain("stone-grid", np.random.default_rng(2))
    terrain = (*grid.boxes, Box("floor", (0.5, 0.3, 0.1), (0.2, 0.1, 0.4), yaw_rad=0.7))
    simulator = MujocoSimulator(load_robot("laikago"), [view], max_boxes=len(terrain))
    simulator.reset(terrain, (0.4, 0.1, 0.5), 0.3)
    rays = DepthRays(view, farthest_m=2.0)
    rays.set_terrain(terrain)
    depth = rays.depths(view, np.array([0.4, 0.1, 0.5]), rotation((0, 0, 0.3)))
    rendered = np.minimum(simulator.depth(), 2.0)
    simulator.close()
    assert depth.shape == (24, 32)
    assert depth.dtype == np.float32
    assert np.ptp(depth) > 0.5
    assert np.mean(np.abs(depth - rendered) < 1e-3) > 0.99  # except for some pixels at edges
