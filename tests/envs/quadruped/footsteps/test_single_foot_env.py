"""The Laikago that chooses one foothold at a time."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.ndimage import gaussian_filter, maximum_filter, minimum_filter

from iap.envs.core import make_env
from iap.envs.protocols import Symmetry, find_protocol
from iap.envs.quadruped.footsteps.baselines import oracle_action
from iap.envs.quadruped.footsteps.ground_cameras import FOOTING, VIEWS, footing, window_pixels
from iap.envs.quadruped.footsteps.single_foot_env import SingleFootsteps
from iap.envs.rendering.depth_rays import mount_of
from iap.locomotion.robots import LAIKAGO

IDS = ("iap/StepStonesSingleFoot-v0", "iap/StoneGridSingleFoot-v0", "iap/StairsSingleFoot-v0")
TASKS = pytest.mark.parametrize(("kind", "axes"), [("step-stones", "x"), ("stone-grid", "xy"), ("stairs", "xz")])
TEN_SECONDS = 200


@pytest.mark.filterwarnings("ignore:.*infinity. This is probably too")  # velocities have no bounds
@pytest.mark.parametrize("id", IDS)
def test_the_environment_passes_the_checker_of_gymnasium(id):
    env = gymnasium.make(id, render_mode="rgb_array", disable_env_checker=True).unwrapped
    check_env(env)
    assert env.observation_space["image"].shape == (16, 16, 2)  # pyright: ignore[reportIndexIssue]
    assert env.action_space.shape == (3,)
    env.close()


@pytest.mark.parametrize(("option", "value"), [("noise", 1.0), ("one_foot", True), ("terrain", "flat")])
def test_options_that_the_id_does_not_have_are_refused(option, value):
    with pytest.raises(TypeError, match=option):
        make_env(IDS[0], **{option: value})


@pytest.mark.parametrize(("option", "value"), [("footholds", "zx"), ("v_cap", -1), ("terrain", "moon")])
def test_invalid_options_are_refused_by_name(option, value):
    options: dict[str, Any] = {"terrain": "flat", option: value}
    with pytest.raises(ValueError, match=option):
        SingleFootsteps(**options)


@TASKS
def test_the_oracle_crosses_the_terrain_with_one_foothold_at_a_time(kind, axes, single_footsteps, walk):
    env = single_footsteps(kind, footholds=axes)
    assert env.action_space.shape == (len(axes),)
    total, ended = walk(env, oracle_action, seed=0)
    assert ended is None
    assert total > (1.6 if kind == "stairs" else 3.0)


@TASKS
def test_a_window_shows_the_safe_ground_around_the_landing(kind, axes, single_footsteps):
    env = single_footsteps(kind, footholds=axes)
    observation = env.reset(seed=3)[0]
    assert np.unravel_index(observation["image"][..., 1].argmax(), (16, 16)) == (8, 8)  # on the platform
    assert 0.27 < observation["image"][8, 8, 1] <= 0.3
    rays = env._cameras._rays
    legs, shown, safe = set(), [], []
    for _ in range(20):
        assert env.observation_space.contains(observation)
        labels, foot = env.segmentation(), env.next_foot()
        shown.append(observation["image"][..., 0] > 0)
        safe.append(labels == FOOTING.index("safe"))
        np.testing.assert_array_equal(observation["image"][labels == FOOTING.index("gap")], 0)
        # The window is a part of the footing of the whole image.
        body, view = (env.motion.position_m, env.motion.rotation), VIEWS[foot.camera]
        whole = footing(rays.points(view, *body), foot.landing_m, LAIKAGO.toe_radius_m)
        camera = (foot.landing_m, foot.side, LAIKAGO.toe_radius_m, mount_of(view), *body, rays.scene)
        rows, columns = window_pixels(*camera)
        np.testing.assert_array_equal(observation["image"], whole[rows[:, None], columns])
        legs.add(foot.leg)
        observation = env.step(oracle_action(env))[0]
    assert legs == {0, 1, 2, 3}
    assert np.mean(np.array(safe)[shown]) > 0.9
    assert np.mean(np.array(shown)[safe]) > 0.6  # safe ground next to an edge is not shown


def test_footing_is_zero_except_on_flat_ground():
    rng = np.random.default_rng(0)
    points = np.stack(np.meshgrid(np.arange(24) * 0.02, np.arange(32) * 0.02, indexing="ij"), axis=-1)
    heights = np.where(gaussian_filter(rng.standard_normal((24, 32)), 4) > 0, 0.1, -0.05)
    landing, toe_m = np.array([0.2, 0.3, 0.06]), 0.03
    channels = footing(np.concatenate([points, heights[..., None]], axis=-1), landing, toe_m)
    flat = maximum_filter(heights, 5, mode="nearest") == minimum_filter(heights, 5, mode="nearest")
    assert 0.1 < flat.mean() < 0.9
    distance = np.linalg.norm(points - landing[:2], axis=-1)
    np.testing.assert_allclose(channels[..., 0], np.where(flat, heights + toe_m - 0.06 + 0.25, 0), rtol=1e-6)
    np.testing.assert_allclose(channels[..., 1], np.where(flat, np.maximum(0.3 - distance, 0), 0), atol=1e-7)


@pytest.mark.parametrize("kind", ["stone-grid", "stairs"])
def test_disabling_boxes_out_of_reach_does_not_change_the_motion(kind, single_footsteps):
    env, other = (single_footsteps(kind, footholds="xy") for _ in range(2))
    for each in (env, other):
        each.reset(seed=2)
    other._simulator._near._reach_m = np.inf
    disabled = 0
    for step in range(60):
        other._simulator._near._x_m = np.inf  # forces a new selection of the boxes
        action = oracle_action(env) if step < 40 else np.ones(2)  # the last actions make it fall
        ends = [each.step(action)[2] for each in (env, other)]
        np.testing.assert_array_equal(env.privileged_state(), other.privileged_state())
        disabled += int((env._simulator.model.geom_contype != other._simulator.model.geom_contype).sum())
        assert ends[0] == ends[1]
        if ends[0]:
            break
    assert disabled > 0


def test_a_window_contains_the_heights_of_stairs(single_footsteps):
    env = single_footsteps("stairs", footholds="xz")
    tops_m = np.array([box.centre_m[2] + box.size_m[2] / 2 for box in env.reset(seed=3)[1]["terrain"].boxes[:-1]])
    several, exact = 0, []
    for _ in range(60):
        heights = env.step(oracle_action(env))[0]["image"][..., 0]
        ground_m = heights[heights > 0] - 0.25 + env.next_foot().landing_m[2] - LAIKAGO.toe_radius_m
        error_m = np.abs(ground_m[:, None] - tops_m)
        exact += (error_m.min(axis=1) < 1e-4).tolist()
        several += len(set(error_m.argmin(axis=1))) > 1
    assert np.mean(exact) > 0.97  # the rest are vertical faces at the image's edge
    assert several > 10  # two stairs in one window


def test_on_stairs_rear_feet_choose_while_their_camera_shows_the_landing(single_footsteps):
    env = single_footsteps("stairs", footholds="xz")
    env.reset(seed=0)
    closeness = []
    for step in range(TEN_SECONDS // 2):
        image = env.step(oracle_action(env))[0]["image"]
        if step > TEN_SECONDS // 4 and env.next_foot().leg in (2, 3):
            closeness.append(image[..., 1].max())
    assert np.median(closeness) > 0.25


def test_a_foot_lands_at_the_chosen_position(single_footsteps):
    env = single_footsteps("flat", footholds="xy")
    env.reset(seed=0)
    chosen = {}
    for step in range(22):
        foot, before = env.next_foot(), env.walker.landings_m.copy()
        action = np.array([0.3, -0.5]) if step % 2 else np.array([-0.4, 0.2])
        side = -1 if foot.leg in (1, 3) else 1
        chosen[foot.leg] = foot.landing_m[:2] + np.array([0.14 * action[0] - 0.01, side * 0.08 * action[1]])
        env.step(action)
        for leg in np.flatnonzero((env.walker.landings_m != before).any(axis=1)):
            np.testing.assert_allclose(env.walker.landings_m[leg, :2], chosen[leg], atol=0.003)


def test_observations_on_a_mirrored_terrain_are_equal(single_footsteps):
    ours, theirs = (single_footsteps("stone-grid", footholds="xy") for _ in range(2))
    here, there = ours.reset(seed=4)[0], theirs.reset(seed=4, options={"mirrored": True})[0]
    assert find_protocol(ours, Symmetry) is None
    for action in np.random.default_rng(0).uniform(-0.2, 0.2, (12, 2)):
        np.testing.assert_allclose(here["sensors"], there["sensors"], atol=0.15)
        assert np.mean(np.abs(here["image"] - there["image"]) < 0.03) > 0.85
        here, there = ours.step(action)[0], theirs.step(action)[0]


def test_the_next_foot_is_unknown_before_a_reset(single_footsteps):
    with pytest.raises(RuntimeError, match="call reset"):
        single_footsteps("flat").next_foot()
