import numpy as np
import pytest

from iap.envs.quadruped.footsteps.terrain import FLOOR_M, KINDS, draw_terrain, max_boxes

SEEDS = range(30)


def draw(kind, seed=0):
    return draw_terrain(kind, np.random.default_rng(seed))


def tops(terrain):
    return np.array([box.centre_m[2] + box.size_m[2] / 2 for box in terrain.boxes[:-1]])


def edges(boxes):
    """The start and the end of boxes along x, before their rotation."""
    centre, length = np.array([(box.centre_m[0], box.size_m[0]) for box in boxes]).T
    return centre - length / 2, centre + length / 2


def assert_fills(values, low, high):
    """All values are in the range, and fill it."""
    share = (np.array(values) - low) / (high - low)
    assert -1e-9 <= share.min() < 0.1
    assert 0.9 < share.max() <= 1 + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_terrains_start_with_a_platform_and_are_longer_than_a_robot_walks(kind):
    for seed in SEEDS:
        terrain = draw(kind, seed)
        assert len(terrain.boxes) <= max_boxes(kind)
        platform = terrain.boxes[0]
        assert 0.75 <= platform.size_m[0] <= 1.0
        assert terrain.heights(np.array([0.0, 0.0])) == pytest.approx(0)
        assert max(box.centre_m[0] + box.size_m[0] / 2 for box in terrain.boxes[:-1]) > 4.5
        assert terrain.heights(np.array([2.0, 3.0])) == pytest.approx(FLOOR_M)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_seeds_give_equal_terrains(kind):
    assert draw(kind, 3).boxes == draw(kind, 3).boxes
    assert draw(kind, 3).boxes != draw(kind, 4).boxes


def test_step_stones_have_the_sizes_and_gaps_of_the_paper():
    lengths, gaps = [], []
    for seed in SEEDS:
        stones = draw("step-stones", seed).boxes[:-1]
        begins, ends = edges(stones)
        lengths += list(ends - begins)[1:]
        gaps += list(begins[1:] - ends[:-1])
        assert {stone.size_m[1] for stone in stones[1:]} == {0.5}
    assert_fills(lengths, 0.5, 0.8)
    assert_fills(gaps, 0.1, 0.2)


def test_stone_grids_have_the_gaps_and_angles_of_the_paper():
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


def test_stairs_have_the_depths_and_heights_of_the_paper():
    depths, rises = [], []
    for seed in SEEDS:
        terrain = draw("stairs", seed)
        begins, ends = edges(terrain.boxes[:-1])
        np.testing.assert_allclose(begins[1:], ends[:-1])
        depths += list(ends - begins)[1:-1]
        rises += list(np.diff(tops(terrain)))[:-1]
    assert_fills(depths, 0.25, 0.33)
    assert_fills(rises, 0.16, 0.19)


def test_heights_respect_rotated_stones_and_margins():
    terrain = draw("stone-grid", 1)
    stone = terrain.boxes[20]
    middle = np.array(stone.centre_m[:2])
    turned = np.array([np.cos(stone.yaw_rad), np.sin(stone.yaw_rad)])
    assert terrain.heights(middle + 0.074 * turned) == pytest.approx(0)
    assert terrain.heights(middle + 0.076 * turned) == pytest.approx(FLOOR_M)
    assert terrain.heights(middle + 0.04 * turned, margin_m=0.03) == pytest.approx(0)
    assert terrain.heights(middle + 0.05 * turned, margin_m=0.03) == pytest.approx(FLOOR_M)
