import numpy as np
import pytest

from iap.envs.quadruped.footsteps.terrain import FLOOR_M, KINDS, draw_terrain, most_boxes
from iap.envs.quadruped.robots import load_robot, rotation
from iap.envs.quadruped.simulation.mujoco import MujocoSimulator
from iap.envs.quadruped.simulation.protocol import Box, View
from iap.envs.rendering.depth_rays import DepthRays

SEEDS = range(30)


def draw(kind, seed=0):
    return draw_terrain(kind, np.random.default_rng(seed))


def tops(terrain):
    return np.array([box.centre_m[2] + box.size_m[2] / 2 for box in terrain.boxes[:-1]])


def edges(boxes):
    """Where boxes begin and end along x, before they are turned."""
    centre, length = np.array([(box.centre_m[0], box.size_m[0]) for box in boxes]).T
    return centre - length / 2, centre + length / 2


def assert_fills(values, low, high):
    """All of the range is drawn, and nothing else."""
    share = (np.array(values) - low) / (high - low)
    assert -1e-9 <= share.min() < 0.1
    assert 0.9 < share.max() <= 1 + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_terrains_begin_with_a_platform_and_go_on_farther_than_anyone_walks(kind):
    for seed in SEEDS:
        terrain = draw(kind, seed)
        assert len(terrain.boxes) <= most_boxes(kind)
        platform = terrain.boxes[0]
        assert 0.75 <= platform.size_m[0] <= 1.0
        assert terrain.heights(np.array([0.0, 0.0])) == pytest.approx(0)
        assert max(box.centre_m[0] + box.size_m[0] / 2 for box in terrain.boxes[:-1]) > 4.5
        assert terrain.heights(np.array([2.0, 3.0])) == pytest.approx(FLOOR_M)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_draws_the_same_terrain(kind):
    assert draw(kind, 3).boxes == draw(kind, 3).boxes
    assert draw(kind, 3).boxes != draw(kind, 4).boxes


def test_step_stones_are_as_long_wide_and_far_apart_as_in_the_paper():
    lengths, gaps = [], []
    for seed in SEEDS:
        stones = draw("step-stones", seed).boxes[:-1]
        begins, ends = edges(stones)
        lengths += list(ends - begins)[1:]
        gaps += list(begins[1:] - ends[:-1])
        assert {stone.size_m[1] for stone in stones[1:]} == {0.5}
    assert_fills(lengths, 0.5, 0.8)
    assert_fills(gaps, 0.1, 0.2)


def test_grid_stones_are_as_far_apart_and_turned_as_in_the_paper():
    yaws, gaps = [], []
    for seed in SEEDS:
        stones = draw("stone-grid", seed).boxes[1:-1]
        yaw = stones[0].yaw_rad
        yaws.append(yaw)
        assert {stone.size_m[:2] for stone in stones} == {(0.15, 0.15)}
        assert {stone.yaw_rad for stone in stones} == {yaw}
        turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
        grid = (np.array([stone.centre_m[:2] for stone in stones]) @ turn).reshape(-1, 6, 2)
        np.testing.assert_allclose(grid[..., 0], grid[:, :1, 0] * np.ones(6), atol=1e-9)
        np.testing.assert_allclose(grid[..., 1], grid[:1, :, 1] * np.ones((len(grid), 1)), atol=1e-9)
        gaps += list(np.diff(grid[:, 0, 0]) - 0.15) + list(np.diff(grid[0, :, 1]) - 0.15)
    assert_fills(gaps, 0.13, 0.17)
    assert_fills(yaws, -0.1, 0.1)


def test_stairs_are_as_deep_and_high_as_in_the_paper():
    depths, rises = [], []
    for seed in SEEDS:
        terrain = draw("stairs", seed)
        begins, ends = edges(terrain.boxes[:-1])
        np.testing.assert_allclose(begins[1:], ends[:-1])
        depths += list(ends - begins)[1:-1]
        rises += list(np.diff(tops(terrain)))[:-1]
    assert_fills(depths, 0.25, 0.33)
    assert_fills(rises, 0.16, 0.19)


def test_heights_know_edges_and_turned_stones():
    terrain = draw("stone-grid", 1)
    stone = terrain.boxes[20]
    middle = np.array(stone.centre_m[:2])
    turned = np.array([np.cos(stone.yaw_rad), np.sin(stone.yaw_rad)])
    assert terrain.heights(middle + 0.074 * turned) == pytest.approx(0)
    assert terrain.heights(middle + 0.076 * turned) == pytest.approx(FLOOR_M)
    assert terrain.heights(middle + 0.04 * turned, margin_m=0.03) == pytest.approx(0)
    assert terrain.heights(middle + 0.05 * turned, margin_m=0.03) == pytest.approx(FLOOR_M)


def test_rays_see_what_the_simulator_draws():
    view = View((0.2, 0.0, -0.1), (24, 32), fov_deg=75, pitch_rad=np.pi / 2 - 0.3)
    terrain = (*draw("stone-grid", 2).boxes, Box("floor", (0.5, 0.3, 0.1), (0.2, 0.1, 0.4), yaw_rad=0.7))
    simulator = MujocoSimulator(load_robot("laikago"), [view], most_boxes=len(terrain))
    simulator.reset(terrain, (0.4, 0.1, 0.5), 0.3)
    rays = DepthRays(view, farthest_m=2.0)
    rays.place(terrain)
    depth = rays.look(view, np.array([0.4, 0.1, 0.5]), rotation((0, 0, 0.3)))
    drawn = np.minimum(simulator.depth(), 2.0)
    simulator.close()
    assert depth.shape == (24, 32)
    assert depth.dtype == np.float32
    assert np.ptp(depth) > 0.5
    assert np.mean(np.abs(depth - drawn) < 1e-3) > 0.99  # all but some pixels on edges
