"""The Laikago on its terrains: the environment's contract, and how far controllers get that do not learn."""

import json
from dataclasses import replace
from importlib import resources
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.ndimage import gaussian_filter, maximum_filter, minimum_filter

from iap.envs.core import make_env
from iap.envs.quadruped.footsteps.baselines import blind_action, oracle_action
from iap.envs.quadruped.footsteps.commands import ACTIONS, FEELINGS, ON_STAIRS, ON_THE_LEVEL, SENSORS
from iap.envs.quadruped.footsteps.env import FootstepTask
from iap.envs.quadruped.footsteps.ground_cameras import FOOTING, VIEWS
from iap.envs.quadruped.footsteps.single_foot_kernels import footing, window_around
from iap.envs.quadruped.footsteps.terrain import KINDS
from iap.envs.quadruped.robots import load_robot
from iap.envs.quadruped.simulation.mujoco import MujocoSimulator
from iap.envs.quadruped.simulation.protocol import Box
from iap.envs.rendering.camera import load_mujoco
from iap.envs.rendering.depth_rays import mount_of
from iap.locomotion.quadruped import LAIKAGO
from iap.locomotion.walker import Command

mujoco = load_mujoco()

IDS = {"step-stones": "iap/StepStones-v0", "stone-grid": "iap/StoneGrid-v0", "stairs": "iap/Stairs-v0"}
TERRAINS = pytest.mark.parametrize("kind", KINDS)
TEN_SECONDS = 200
LEGS = ("FR", "FL", "RR", "RL")


@pytest.fixture
def task():
    """Makes the environment, and closes it at the end."""
    made: list[FootstepTask] = []

    def make(terrain: Any, **options: Any) -> FootstepTask:
        made.append(FootstepTask(terrain, **options))
        return made[-1]

    yield make
    for env in made:
        env.close()


def walk(env: FootstepTask, policy: Any, seed: int, steps: int = TEN_SECONDS) -> tuple[float, str | None]:
    """The return of an episode, and why it ended before its time."""
    env.reset(seed=seed)
    env.look(False)
    total = 0.0
    for _ in range(steps):
        _, reward, _, _, info = env.step(policy(env))
        total += reward
        if "ended" in info:
            return total, info["ended"]
    return total, None


def mirrored(numbers: np.ndarray, signed: list[int]) -> np.ndarray:
    """The numbers in a mirror."""
    return numbers[np.abs(signed) - 1] * np.sign(signed)


@pytest.fixture(scope="module")
def standing() -> MujocoSimulator:
    """A Laikago at rest in some pose that is not symmetric."""
    simulator = MujocoSimulator(load_robot("laikago"), most_boxes=1)
    simulator.reset([Box("floor", (0, 0, -0.5), (9, 9, 1))], (0.3, -0.2, 0.6), 0.4)
    simulator.state().angles_rad[:] += np.random.default_rng(0).uniform(-0.4, 0.4, 12)
    mujoco.mj_forward(simulator.model, simulator._data)
    return simulator


def test_the_laikago_weighs_what_its_maker_says(standing):
    facts = json.loads(resources.files("iap.envs.quadruped").joinpath("laikago.json").read_text())
    assert sum(link["mass_kg"] for link in facts["links"]) == pytest.approx(25.567)
    assert standing.model.body_mass.sum() == pytest.approx(25.567)
    assert LAIKAGO.mpc.mass_kg == pytest.approx(25.567)


def test_kinematics_and_jacobians_are_those_of_the_simulator(standing):
    state, data = standing.state(), standing._data
    angles = state.angles_rad.reshape(4, 3)
    turn = data.xmat[standing.model.body("chassis").id].reshape(3, 3)
    toes, jacobians = LAIKAGO.legs.toes(angles), LAIKAGO.legs.jacobians(angles)
    for leg, name in enumerate(LEGS):
        geom = standing.model.geom(name).id
        np.testing.assert_allclose(state.position_m + turn @ toes[leg], data.geom_xpos[geom], atol=1e-9)
        theirs = np.zeros((3, standing.model.nv))
        mujoco.mj_jacGeom(standing.model, data, theirs, None, geom)
        np.testing.assert_allclose(turn @ jacobians[leg], theirs[:, 6 + 3 * leg : 9 + 3 * leg], atol=1e-9)


def test_the_controller_s_body_is_that_of_the_simulator_in_its_standing_pose():
    simulator = MujocoSimulator(load_robot("laikago"), most_boxes=1)
    simulator.reset([], (0, 0, 0), 0.0)
    model, data = simulator.model, simulator._data
    trunk = model.body("chassis").id
    np.testing.assert_allclose(data.subtree_com[trunk], LAIKAGO.com_m, atol=0.002)
    inertia = np.zeros((3, 3))
    for body in range(trunk, model.nbody):
        turn, away = data.ximat[body].reshape(3, 3), data.xipos[body] - data.subtree_com[trunk]
        inertia += turn @ np.diag(model.body_inertia[body]) @ turn.T
        inertia += model.body_mass[body] * (away @ away * np.eye(3) - np.outer(away, away))
    np.testing.assert_allclose(np.diag(inertia), LAIKAGO.mpc.inertia, rtol=0.05)  # which is that of lower legs


@pytest.mark.filterwarnings("ignore:.*infinity. This is probably too")  # speeds have no bounds
@TERRAINS
def test_it_passes_gymnasium_s_checker(kind):
    env = gymnasium.make(IDS[kind], render_mode="rgb_array", disable_env_checker=True).unwrapped
    check_env(env)
    env.close()


@TERRAINS
def test_it_observes_two_depth_images_and_what_the_body_feels(kind):
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
    env.close()


@TERRAINS
def test_the_same_seed_and_actions_give_the_same_episode(kind, task):
    env, other = task(kind, noise=1.0), task(kind, noise=1.0)
    walk(other, blind_action, seed=5, steps=7)  # so that it does not start afresh
    first, second = env.reset(seed=2)[0], other.reset(seed=2)[0]
    actions = np.random.default_rng(0).uniform(-1, 1, (15, ACTIONS))
    for action in actions:
        for name in ("image", "sensors"):
            np.testing.assert_array_equal(first[name], second[name])
        (first, reward, *_), (second, same, *_) = env.step(action), other.step(action)
        assert reward == same


def test_noise_disturbs_what_is_observed_and_not_what_happens(task):
    quiet, noisy = task("step-stones"), task("step-stones", noise=1.0)
    for env in (quiet, noisy):
        env.reset(seed=3)
    for _ in range(6):
        action = oracle_action(quiet)
        seen, disturbed = quiet.step(action)[0]["sensors"], noisy.step(action)[0]["sensors"]
        np.testing.assert_array_equal(quiet.privileged_state(), noisy.privileged_state())
        assert 0 < np.abs(seen - disturbed).max() < 1.0


def test_an_action_is_a_command_and_back():
    action = np.random.default_rng(0).uniform(-1, 1, ACTIONS).astype(np.float32)
    np.testing.assert_allclose(ON_STAIRS.to_action(ON_STAIRS.to_command(action)), action, atol=1e-6)
    offsets = np.array([(-0.1, 0.02, 0.01), (0.1, 0.0, 0.0), (0.0, -0.05, 0.0), (0.0, 0.0, -0.02)])
    command = Command(offsets, np.full(4, 0.06), (0.3, 0.1), 0.1, 0.44, 0.02, -0.1)
    back = ON_STAIRS.to_command(ON_STAIRS.to_action(command))
    np.testing.assert_allclose(back.offsets_m, offsets, atol=1e-6)
    np.testing.assert_allclose(back.clearances_m, 0.06, atol=1e-6)
    wanted = (*command.velocity_m_s, 0.1, 0.44, 0.02, -0.1)
    said = (*back.velocity_m_s, back.turning_rad_s, back.height_m, back.roll_rad, back.pitch_rad)
    np.testing.assert_allclose(said, wanted, atol=1e-6)


def test_the_ends_of_an_action_are_the_ends_of_its_reach():
    lowest, highest = (ON_THE_LEVEL.to_command(np.full(ACTIONS, end)) for end in (-1, 1))
    np.testing.assert_allclose(lowest.offsets_m, np.tile((-0.15, -0.08, -0.03), (4, 1)))
    np.testing.assert_allclose(highest.offsets_m, np.tile((0.13, 0.08, 0.03), (4, 1)))
    np.testing.assert_allclose(highest.clearances_m, 0.1)
    assert (lowest.velocity_m_s, highest.velocity_m_s) == ((0.2, -0.15), (0.41, 0.15))
    assert ON_STAIRS.to_command(np.full(ACTIONS, -1)).pitch_rad == pytest.approx(-0.6)
    assert (ON_THE_LEVEL.to_action(Command(height_m=9.0)) <= 1).all()


def test_the_policy_is_told_which_feet_its_next_action_places(task):
    env = task("flat")
    env.reset(seed=0)
    chosen = []
    for step in range(20):
        wants, before = env.needs_target(), env.walker.landings_m.copy()
        env.step(oracle_action(env))
        changed = (env.walker.landings_m != before).any(axis=1)
        np.testing.assert_array_equal(changed, wants)
        chosen += [step] * int(wants.any())
    assert chosen == [1, 6, 11, 16]


@TERRAINS
@pytest.mark.parametrize("footholds", [None, "x", "xyz"])
def test_the_mirrored_terrain_and_actions_give_the_mirrored_walk(kind, footholds, task):
    ours, theirs = task(kind, footholds=footholds), task(kind, footholds=footholds)
    mirror = ours.mirror
    seen, there = ours.reset(seed=4)[0], theirs.reset(seed=4, options={"mirrored": True})[0]
    rng = np.random.default_rng(0)
    for _ in range(8):  # the robot itself is not quite symmetric: its left hips are 2 mm wider
        np.testing.assert_allclose(mirrored(there["sensors"], mirror["sensors"]), seen["sensors"], atol=0.15)
        assert np.mean(np.abs(there["image"][:, ::-1] - seen["image"]) < 0.02) > 0.9
        action = np.clip(ours.to_action(ours.usual_command()) + rng.uniform(-0.15, 0.15, len(mirror["actions"])), -1, 1)
        seen, there = ours.step(action)[0], theirs.step(mirrored(action, mirror["actions"]))[0]
    assert seen["sensors"][FEELINGS:].any()
    assert (seen["image"] != seen["image"][:, ::-1]).any()


@TERRAINS
@pytest.mark.parametrize("footholds", [None, "xy"])
def test_a_mirror_of_a_mirror_is_what_was(kind, footholds, task):
    env = task(kind, footholds=footholds)
    for name, count in (("sensors", FEELINGS + len(env.mirror["actions"])), ("actions", env.action_space.shape[0])):
        numbers = np.arange(1.0, 1 + count)
        twice = mirrored(mirrored(numbers, env.mirror[name]), env.mirror[name])
        np.testing.assert_array_equal(twice, numbers)


def test_a_mirrored_terrain_is_seen_mirrored(task):
    env, other = task("stone-grid"), task("stone-grid")
    image = env.reset(seed=2)[0]["image"]
    mirror_image = other.reset(seed=2, options={"mirrored": True})[0]["image"]
    assert np.mean(np.abs(image - image[:, ::-1]) > 0.05) > 0.03
    assert np.mean(np.abs(image - mirror_image[:, ::-1]) > 0.05) < 0.005


@pytest.mark.parametrize(("kind", "axes"), [("step-stones", "x"), ("stone-grid", "xy"), ("stairs", "xz")])
def test_choosing_some_axes_of_the_footholds_is_enough_for_who_knows_the_terrain(kind, axes, task):
    env = task(kind, footholds=axes)
    assert env.action_space.shape == (4 * len(axes),)
    assert env.reset(seed=0)[0]["sensors"].shape == (FEELINGS + 4 * len(axes),)
    total, ended = walk(env, oracle_action, seed=0)
    assert ended is None
    assert total > (1.6 if kind == "stairs" else 3.0)


def test_what_an_action_does_not_choose_goes_on_as_usual(task):
    env, whole = task("step-stones", footholds="x"), task("step-stones")
    for other in (env, whole):
        other.reset(seed=1)
    for _ in range(8):
        command = replace(whole.usual_command(), offsets_m=np.tile((0.05, 0.0, 0.0), (4, 1)))
        env.step(env.to_action(command))
        whole.step(whole.to_action(command))
    np.testing.assert_allclose(env.motion.position_m, whole.motion.position_m, atol=1e-6)


def test_footing_tells_gaps_edges_and_safe_places_apart(task):
    env = task("step-stones")
    observation, info = env.reset(seed=1)
    footing = env.segmentation()
    assert footing.shape == (48, 32)
    height = env.motion.position_m[2]
    on_stones = np.abs(observation["image"][..., 0] - (height - 0.11)) < 0.03
    np.testing.assert_array_equal(footing[on_stones] == FOOTING.index("gap"), False)
    middle = footing[:24, 16]  # from ahead to the robot: a stone or its gap, and the platform's edge
    front_m = info["terrain"].boxes[0].centre_m[0] + info["terrain"].boxes[0].size_m[0] / 2
    assert {FOOTING.index("gap"), FOOTING.index("edge"), FOOTING.index("safe")} <= set(footing.ravel().tolist())
    assert middle[-1] == FOOTING.index("safe")
    assert 0.25 < front_m < 0.6


ONE_FOOT = pytest.mark.parametrize(("kind", "axes"), [("step-stones", "x"), ("stone-grid", "xy"), ("stairs", "xz")])


@ONE_FOOT
def test_placing_one_foot_at_a_time_is_enough_for_who_knows_the_terrain(kind, axes, task):
    env = task(kind, footholds=axes, one_foot=True)
    assert env.action_space.shape == (len(axes),)
    total, ended = walk(env, oracle_action, seed=0)
    assert ended is None
    assert total > (1.6 if kind == "stairs" else 3.0)


@ONE_FOOT
def test_a_window_shows_safe_ground_around_the_place_where_a_foot_would_land(kind, axes, task):
    env = task(kind, footholds=axes, one_foot=True)
    seen = env.reset(seed=3)[0]
    assert np.unravel_index(seen["image"][..., 1].argmax(), (16, 16)) == (8, 8)  # on the platform
    assert 0.27 < seen["image"][8, 8, 1] <= 0.3
    legs, of_use, safe = set(), [], []
    for _ in range(20):
        assert env.observation_space.contains(seen)
        of_use.append(seen["image"][..., 0] > 0)
        safe.append(env.segmentation() == FOOTING.index("safe"))
        np.testing.assert_array_equal(seen["image"][env.segmentation() == FOOTING.index("gap")], 0)
        legs.add(env.turn().leg)
        seen = env.step(oracle_action(env))[0]
    assert legs == {0, 1, 2, 3}
    assert np.mean(np.array(safe)[of_use]) > 0.9
    assert np.mean(np.array(of_use)[safe]) > 0.6  # on whose other side of an edge nothing is seen, is not told


def test_ground_is_of_use_where_it_is_even_all_around():
    rng = np.random.default_rng(0)
    points = np.stack(np.meshgrid(np.arange(24) * 0.02, np.arange(32) * 0.02, indexing="ij"), axis=-1)
    heights = np.where(gaussian_filter(rng.standard_normal((24, 32)), 4) > 0, 0.1, -0.05)
    landing, toe_m = np.array([0.2, 0.3, 0.06]), 0.03
    seen = footing(np.concatenate([points, heights[..., None]], axis=-1), landing, toe_m)
    even = maximum_filter(heights, 5, mode="nearest") == minimum_filter(heights, 5, mode="nearest")
    assert 0.1 < even.mean() < 0.9
    away = np.linalg.norm(points - landing[:2], axis=-1)
    np.testing.assert_allclose(seen[..., 0], np.where(even, heights + toe_m - 0.06 + 0.25, 0), rtol=1e-6)
    np.testing.assert_allclose(seen[..., 1], np.where(even, np.maximum(0.3 - away, 0), 0), atol=1e-7)


@ONE_FOOT
def test_a_window_is_a_part_of_the_whole_image(kind, axes, task):
    env = task(kind, footholds=axes, one_foot=True)
    seen = env.reset(seed=5)[0]
    rays = env._cameras._rays
    for _ in range(20):
        turn = env.turn()
        body = (env.motion.position_m, env.motion.rotation)
        view = VIEWS[turn.camera]
        whole = footing(rays.surface(view, *body), turn.landing_m, LAIKAGO.toe_radius_m)
        window = (turn.landing_m, turn.side, LAIKAGO.toe_radius_m, mount_of(view), *body, rays.scene)
        rows, columns = window_around(*window)
        np.testing.assert_array_equal(seen["image"], whole[rows[:, None], columns])
        seen = env.step(oracle_action(env))[0]


@pytest.mark.parametrize("kind", ["stone-grid", "stairs"])
def test_boxes_out_of_reach_change_nothing_but_the_time(kind, task):
    env, other = task(kind, footholds="xy", one_foot=True), task(kind, footholds="xy", one_foot=True)
    for each in (env, other):
        each.reset(seed=2)
    other._simulator._near._reach_m = np.inf
    left_out = 0
    for step in range(60):
        other._simulator._near._x_m = np.inf  # where the trunk never is: boxes are chosen anew
        action = oracle_action(env) if step < 40 else np.ones(2)  # and at last it falls
        ends = [each.step(action)[2] for each in (env, other)]
        np.testing.assert_array_equal(env.privileged_state(), other.privileged_state())
        left_out += int((env._simulator.model.geom_contype != other._simulator.model.geom_contype).sum())
        assert ends[0] == ends[1]
        if ends[0]:
            break
    assert left_out > 0


def test_a_window_tells_how_high_stairs_are(task):
    env = task("stairs", footholds="xz", one_foot=True)
    tops_m = np.array([box.centre_m[2] + box.size_m[2] / 2 for box in env.reset(seed=3)[1]["terrain"].boxes[:-1]])
    found, exact = 0, []
    for _ in range(60):
        heights = env.step(oracle_action(env))[0]["image"][..., 0]
        ground_m = heights[heights > 0] - 0.25 + env.turn().landing_m[2] - LAIKAGO.toe_radius_m
        off_m = np.abs(ground_m[:, None] - tops_m)
        exact += (off_m.min(axis=1) < 1e-4).tolist()
        found += len(set(off_m.argmin(axis=1))) > 1
    assert np.mean(exact) > 0.97  # the rest is of a front at the image's edge
    assert found > 10  # two stairs in one window


def test_on_stairs_rear_feet_choose_while_their_camera_sees_where_they_would_land(task):
    env = task("stairs", footholds="xz", one_foot=True)
    env.reset(seed=0)
    chosen = []
    for step in range(TEN_SECONDS // 2):
        image = env.step(oracle_action(env))[0]["image"]
        if step > TEN_SECONDS // 4 and env.turn().leg in (2, 3):
            chosen.append(image[..., 1].max())
    assert np.median(chosen) > 0.25


def test_a_foot_lands_where_it_was_placed(task):
    env = task("flat", footholds="xy", one_foot=True)
    env.reset(seed=0)
    said = {}
    for step in range(22):
        turn, before = env.turn(), env.walker.landings_m.copy()
        action = np.array([0.3, -0.5]) if step % 2 else np.array([-0.4, 0.2])
        side = -1 if turn.leg in (1, 3) else 1
        said[turn.leg] = turn.landing_m[:2] + np.array([0.14 * action[0] - 0.01, side * 0.08 * action[1]])
        env.step(action)
        for leg in np.flatnonzero((env.walker.landings_m != before).any(axis=1)):
            np.testing.assert_allclose(env.walker.landings_m[leg, :2], said[leg], atol=0.003)


def test_to_one_foot_a_mirrored_terrain_looks_and_feels_the_same(task):
    ours, theirs = (task("stone-grid", footholds="xy", one_foot=True) for _ in range(2))
    seen, there = ours.reset(seed=4)[0], theirs.reset(seed=4, options={"mirrored": True})[0]
    assert ours.mirror is None
    for action in np.random.default_rng(0).uniform(-0.2, 0.2, (12, 2)):
        np.testing.assert_allclose(seen["sensors"], there["sensors"], atol=0.15)
        assert np.mean(np.abs(seen["image"] - there["image"]) < 0.03) > 0.85
        seen, there = ours.step(action)[0], theirs.step(action)[0]


def test_it_draws_only_when_it_is_looked_at(task):
    env = task("step-stones")
    first = env.reset(seed=0)[0]["image"]
    env.look(False)
    assert env.step(oracle_action(env))[0]["image"] is first
    env.look(True)
    assert (env.step(oracle_action(env))[0]["image"] != first).any()


def test_it_draws_the_robot_for_people(task):
    env = task("stairs", render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture is not None
    assert picture.shape == (480, 640, 3)
    assert picture.std() > 20
    assert task("stairs").render() is None


def test_a_program_without_solution_ends_the_episode_by_name(task):
    env = task("flat")
    env.reset(seed=0)
    env.motion = env.motion._replace(velocity_m_s=np.full(3, np.nan))
    _, _, terminated, _, info = env.step(oracle_action(env))
    assert terminated
    assert info["ended"] == "no forces carry the body"


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"most_roll_rad": 0.0}, "tipped over"),
        ({"least_height_m": 0.9}, "sunk down"),
        ({"most_pitch_rad": 0.0}, "tipped over"),
    ],
)
def test_the_limits_of_an_episode_are_options(limits, why, task):
    assert walk(task("flat", **limits), blind_action, 0, steps=20)[1] == why


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("terrain", "moon"),
        ("noise", -1),
        ("ends_at_bumps", "some"),
        ("v_cap", 0),
        ("footholds", "zx"),
        ("footholds", ""),
        ("most_roll_rad", "big"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(option, value):
    options: dict[str, Any] = {"terrain": "flat", option: value}
    with pytest.raises((ValueError, TypeError), match=option):
        FootstepTask(**options)


def test_an_action_that_is_not_finite_is_refused(task):
    env = task("flat")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action"):
        env.step(np.full(ACTIONS, np.nan))


def test_it_trots_on_flat_ground_for_twenty_seconds(task):
    env = task("flat")
    total, ended = walk(env, blind_action, seed=0, steps=2 * TEN_SECONDS)
    assert ended is None
    assert total == pytest.approx(0.36 * 20, rel=0.05)
    assert env.motion.position_m[0] == pytest.approx(0.37 * 20, rel=0.05)
    assert abs(env.motion.position_m[1]) < 0.5
    assert abs(env.motion.roll_pitch[0]) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_it_trots_on_flat_ground_after_any_start(seed, task):
    env, rng = task("flat"), np.random.default_rng(seed)
    env.reset(seed=seed)
    pushed = rng.uniform(-1, 1, 6)
    for _ in range(rng.integers(5, 25)):
        env.step(np.concatenate([np.zeros(16), pushed]))  # any velocity, turning and lean that can be said
    before_m, steps = env.motion.position_m.copy(), 2 * TEN_SECONDS
    ended = [env.step(blind_action(env))[4].get("ended") for _ in range(steps)]
    assert set(ended) == {None}
    assert np.hypot(*(env.motion.position_m - before_m)[:2]) == pytest.approx(0.37 * 20, rel=0.05)


@pytest.mark.parametrize(("kind", "least"), [("step-stones", 3.2), ("stone-grid", 3.1), ("stairs", 1.8)])
def test_who_knows_the_terrain_walks_it_and_who_does_not_falls(kind, least, task):
    env = task(kind)
    total, ended = walk(env, oracle_action, seed=0)
    assert ended is None
    assert total > least
    assert walk(env, blind_action, seed=0)[1] is not None


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "least"), [("step-stones", 3.2), ("stone-grid", 3.1), ("stairs", 1.8)])
def test_who_knows_the_terrain_walks_nine_of_ten(kind, least, task):
    env = task(kind)
    episodes = [walk(env, oracle_action, seed) for seed in range(10)]
    assert sum(ended is None and total > least for total, ended in episodes) >= 9
