"""The Laikago that chooses all footholds: interface of the environment, and the performance of the baselines."""

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from iap.envs.core import make_env
from iap.envs.protocols import LazyRendering, PrivilegedState, Segmentation, Symmetry, find_protocol
from iap.envs.quadruped.footsteps.baselines import blind_action, oracle_action
from iap.envs.quadruped.footsteps.commands import ACTIONS, BODY_SENSORS, LEVEL_RANGES, SENSORS, STAIRS_RANGES
from iap.envs.quadruped.footsteps.env import Footsteps
from iap.envs.quadruped.footsteps.ground_cameras import FOOTING
from iap.envs.quadruped.footsteps.terrain import KINDS
from iap.locomotion.walker import Command

IDS = {"step-stones": "iap/StepStones-v0", "stone-grid": "iap/StoneGrid-v0", "stairs": "iap/Stairs-v0"}
TERRAINS = pytest.mark.parametrize("kind", KINDS)
TEN_SECONDS = 200


def mirrored(numbers: np.ndarray, signed: list[int]) -> np.ndarray:
    """The signed permutation of the numbers."""
    return numbers[np.abs(signed) - 1] * np.sign(signed)


@pytest.mark.filterwarnings("ignore:.*infinity. This is probably too")  # velocities have no bounds
@TERRAINS
def test_the_environment_passes_the_checker_of_gymnasium(kind):
    env = gymnasium.make(IDS[kind], render_mode="rgb_array", disable_env_checker=True).unwrapped
    check_env(env)
    env.close()


@TERRAINS
def test_observations_are_two_depth_images_and_sensors(kind):
    env = make_env(IDS[kind])
    observation, info = env.reset(seed=1)
    image, sensors = observation["image"], observation["sensors"]
    assert image.shape == (48, 32, 1)
    assert image.dtype == np.float32
    assert sensors.shape == (SENSORS,)
    assert env.action_space.shape == (ACTIONS,)
    assert info["terrain"].kind == kind
    belly = image[24:, :, 0]
    np.testing.assert_allclose(belly[12:, 10:22], 0.48 - 0.105, atol=0.01)  # the platform below
    assert np.isfinite(sensors).all()
    for protocol in (LazyRendering, Segmentation, Symmetry, PrivilegedState):
        assert find_protocol(env, protocol) is env.unwrapped
    env.close()


@TERRAINS
def test_equal_seeds_and_actions_give_equal_episodes(kind, footsteps, walk):
    env, other = footsteps(kind, noise=1.0), footsteps(kind, noise=1.0)
    walk(other, blind_action, seed=5, steps=7)  # an earlier episode has no effect
    first, second = env.reset(seed=2)[0], other.reset(seed=2)[0]
    for action in np.random.default_rng(0).uniform(-1, 1, (15, ACTIONS)):
        for name in ("image", "sensors"):
            np.testing.assert_array_equal(first[name], second[name])
        (first, reward, *_), (second, same, *_) = env.step(action), other.step(action)
        assert reward == same


def test_noise_changes_sensors_and_not_the_motion(footsteps):
    quiet, noisy = footsteps("step-stones"), footsteps("step-stones", noise=1.0)
    for env in (quiet, noisy):
        env.reset(seed=3)
    for _ in range(6):
        action = oracle_action(quiet)
        exact, disturbed = quiet.step(action)[0]["sensors"], noisy.step(action)[0]["sensors"]
        np.testing.assert_array_equal(quiet.privileged_state(), noisy.privileged_state())
        assert 0 < np.abs(exact - disturbed).max() < 1.0


def test_actions_and_commands_convert_into_each_other():
    action = np.random.default_rng(0).uniform(-1, 1, ACTIONS).astype(np.float32)
    np.testing.assert_allclose(STAIRS_RANGES.to_action(STAIRS_RANGES.to_command(action)), action, atol=1e-6)
    offsets = np.array([(-0.1, 0.02, 0.01), (0.1, 0.0, 0.0), (0.0, -0.05, 0.0), (0.0, 0.0, -0.02)])
    command = Command(offsets, np.full(4, 0.06), (0.3, 0.1), 0.1, 0.44, 0.02, -0.1)
    back = STAIRS_RANGES.to_command(STAIRS_RANGES.to_action(command))
    np.testing.assert_allclose(back.offsets_m, offsets, atol=1e-6)
    np.testing.assert_allclose(back.clearances_m, 0.06, atol=1e-6)
    wanted = (*command.velocity_m_s, 0.1, 0.44, 0.02, -0.1)
    converted = (*back.velocity_m_s, back.yaw_rate_rad_s, back.height_m, back.roll_rad, back.pitch_rad)
    np.testing.assert_allclose(converted, wanted, atol=1e-6)


def test_actions_of_plus_and_minus_one_are_the_ends_of_the_ranges():
    lowest, highest = (LEVEL_RANGES.to_command(np.full(ACTIONS, end)) for end in (-1, 1))
    np.testing.assert_allclose(lowest.offsets_m, np.tile((-0.15, -0.08, -0.03), (4, 1)))
    np.testing.assert_allclose(highest.offsets_m, np.tile((0.13, 0.08, 0.03), (4, 1)))
    np.testing.assert_allclose(highest.clearances_m, 0.1)
    assert (lowest.velocity_m_s, highest.velocity_m_s) == ((0.2, -0.15), (0.41, 0.15))
    assert STAIRS_RANGES.to_command(np.full(ACTIONS, -1)).pitch_rad == pytest.approx(-0.6)
    assert (LEVEL_RANGES.to_action(Command(height_m=9.0)) <= 1).all()


def test_needs_target_marks_the_feet_whose_landings_the_next_action_sets(footsteps):
    env = footsteps("flat")
    env.reset(seed=0)
    chosen = []
    for step in range(20):
        needs, before = env.needs_target(), env.walker.landings_m.copy()
        env.step(oracle_action(env))
        changed = (env.walker.landings_m != before).any(axis=1)
        np.testing.assert_array_equal(changed, needs)
        chosen += [step] * int(needs.any())
    assert chosen == [1, 6, 11, 16]


@TERRAINS
@pytest.mark.parametrize("footholds", [None, "x", "xyz"])
def test_mirrored_terrain_and_actions_give_the_mirrored_walk(kind, footholds, footsteps):
    ours, theirs = footsteps(kind, footholds=footholds), footsteps(kind, footholds=footholds)
    symmetry = ours.symmetry
    for name, count in (("sensors", BODY_SENSORS + len(symmetry["actions"])), ("actions", ours.action_space.shape[0])):
        numbers = np.arange(1.0, 1 + count)  # the mirror image of a mirror image is the original
        np.testing.assert_array_equal(mirrored(mirrored(numbers, symmetry[name]), symmetry[name]), numbers)
    here, there = ours.reset(seed=4)[0], theirs.reset(seed=4, options={"mirrored": True})[0]
    rng = np.random.default_rng(0)
    for _ in range(8):  # the robot is not quite symmetric: its left hips are 2 mm wider
        np.testing.assert_allclose(mirrored(there["sensors"], symmetry["sensors"]), here["sensors"], atol=0.15)
        assert np.mean(np.abs(there["image"][:, ::-1] - here["image"]) < 0.02) > 0.9
        noise = rng.uniform(-0.15, 0.15, len(symmetry["actions"]))
        action = np.clip(ours.to_action(ours.default_command()) + noise, -1, 1)
        here, there = ours.step(action)[0], theirs.step(mirrored(action, symmetry["actions"]))[0]
    assert here["sensors"][BODY_SENSORS:].any()
    assert (here["image"] != here["image"][:, ::-1]).any()


def test_the_image_of_a_mirrored_terrain_is_the_mirrored_image(footsteps):
    env, other = footsteps("stone-grid"), footsteps("stone-grid")
    image = env.reset(seed=2)[0]["image"]
    mirror_image = other.reset(seed=2, options={"mirrored": True})[0]["image"]
    assert np.mean(np.abs(image - image[:, ::-1]) > 0.05) > 0.03
    assert np.mean(np.abs(image - mirror_image[:, ::-1]) > 0.05) < 0.005


@pytest.mark.parametrize(("kind", "axes"), [("step-stones", "x"), ("stone-grid", "xy"), ("stairs", "xz")])
def test_the_oracle_needs_only_some_axes_of_the_footholds(kind, axes, footsteps, walk):
    env = footsteps(kind, footholds=axes)
    assert env.action_space.shape == (4 * len(axes),)
    assert env.reset(seed=0)[0]["sensors"].shape == (BODY_SENSORS + 4 * len(axes),)
    total, ended = walk(env, oracle_action, seed=0)
    assert ended is None
    assert total > (1.6 if kind == "stairs" else 3.0)


def test_entries_that_an_action_does_not_choose_follow_the_default_command(footsteps):
    env, full = footsteps("step-stones", footholds="x"), footsteps("step-stones")
    for other in (env, full):
        other.reset(seed=1)
    for _ in range(8):
        command = replace(full.default_command(), offsets_m=np.tile((0.05, 0.0, 0.0), (4, 1)))
        env.step(env.to_action(command))
        full.step(full.to_action(command))
    np.testing.assert_allclose(env.motion.position_m, full.motion.position_m, atol=1e-6)


def test_segmentation_distinguishes_gaps_edges_and_safe_ground(footsteps):
    env = footsteps("step-stones")
    observation, info = env.reset(seed=1)
    labels = env.segmentation()
    assert labels.shape == (48, 32)
    height = env.motion.position_m[2]
    on_stones = np.abs(observation["image"][..., 0] - (height - 0.11)) < 0.03
    np.testing.assert_array_equal(labels[on_stones] == FOOTING.index("gap"), False)
    middle = labels[:24, 16]  # from ahead to the robot: a stone or a gap, and the platform's edge
    front_m = info["terrain"].boxes[0].centre_m[0] + info["terrain"].boxes[0].size_m[0] / 2
    assert set(range(len(FOOTING))) <= set(labels.ravel().tolist())
    assert middle[-1] == FOOTING.index("safe")
    assert 0.25 < front_m < 0.6


def test_images_are_computed_only_if_rendering_is_enabled(footsteps):
    env = footsteps("step-stones")
    first = env.reset(seed=0)[0]["image"]
    env.set_rendering(False)
    assert env.step(oracle_action(env))[0]["image"] is first
    env.set_rendering(True)
    assert (env.step(oracle_action(env))[0]["image"] != first).any()


def test_render_returns_an_image_of_the_scene(footsteps):
    env = footsteps("stairs", render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture is not None
    assert picture.shape == (480, 640, 3)
    assert picture.std() > 20
    assert footsteps("stairs").render() is None


def test_an_unsolvable_quadratic_program_terminates_the_episode(footsteps):
    env = footsteps("flat")
    env.reset(seed=0)
    env.motion = env.motion._replace(velocity_m_s=np.full(3, np.nan))
    _, _, terminated, _, info = env.step(oracle_action(env))
    assert terminated
    assert info["ended"] == "no contact forces"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_roll_rad": 0.0}, "tipped over"),
        ({"min_height_m": 0.9}, "too low"),
        ({"max_pitch_rad": 0.0}, "tipped over"),
    ],
)
def test_termination_limits_are_options(limits, reason, footsteps, walk):
    assert walk(footsteps("flat", **limits), blind_action, 0, steps=20)[1] == reason


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("terrain", "moon"),
        ("noise", -1),
        ("terminate_on_contact", "some"),
        ("v_cap", 0),
        ("footholds", "zx"),
        ("footholds", ""),
        ("max_roll_rad", "big"),
    ],
)
def test_invalid_options_are_refused_by_name(option, value):
    options: dict[str, Any] = {"terrain": "flat", option: value}
    with pytest.raises((ValueError, TypeError), match=option):
        Footsteps(**options)


def test_an_action_with_nan_is_refused(footsteps):
    env = footsteps("flat")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action"):
        env.step(np.full(ACTIONS, np.nan))


def test_the_default_command_trots_on_flat_ground_for_twenty_seconds(footsteps, walk):
    env = footsteps("flat")
    total, ended = walk(env, blind_action, seed=0, steps=2 * TEN_SECONDS)
    assert ended is None
    assert total == pytest.approx(0.36 * 20, rel=0.05)
    assert env.motion.position_m[0] == pytest.approx(0.37 * 20, rel=0.05)
    assert abs(env.motion.position_m[1]) < 0.5
    assert abs(env.motion.roll_pitch[0]) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_robot_recovers_from_random_commands_and_trots_on_flat_ground(seed, footsteps):
    env, rng = footsteps("flat"), np.random.default_rng(seed)
    env.reset(seed=seed)
    env.set_rendering(False)
    command = rng.uniform(-1, 1, 6)  # velocity, yaw rate, height and tilt
    for _ in range(rng.integers(5, 25)):
        env.step(np.concatenate([np.zeros(16), command]))
    before_m = env.motion.position_m.copy()
    ended = [env.step(blind_action(env))[4].get("ended") for _ in range(TEN_SECONDS)]
    assert set(ended) == {None}
    assert np.hypot(*(env.motion.position_m - before_m)[:2]) == pytest.approx(0.37 * 10, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "least"), [("step-stones", 3.2), ("stone-grid", 3.1), ("stairs", 1.8)])
def test_the_oracle_crosses_the_terrain_and_the_blind_policy_falls(kind, least, footsteps, walk):
    env = footsteps(kind)
    for seed in range(3):
        total, ended = walk(env, oracle_action, seed)
        assert ended is None
        assert total > least
    assert walk(env, blind_action, seed=0)[1] is not None
