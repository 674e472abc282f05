import hashlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from iap.envs.control_suite.distractions.combined import KINDS, DistractionOptions, Distractions, scale_of, video_count
from iap.envs.control_suite.tasks import DISTRACTING_TASKS
from iap.envs.core import make_env

SMALL = (30, 40)


def suite(task: str = "cheetah-run", **options: Any) -> Any:
    chosen: dict[str, Any] = {"size": SMALL, "difficulty": "medium"} | options
    return make_env(f"iap/{task}-v0", **chosen)


def actions(env: Any, count: int) -> np.ndarray:
    space = env.action_space
    return np.random.default_rng(0).uniform(space.low, space.high, (count, *space.shape)).astype(np.float32)


def episode(env: Any, steps: int = 4, **how: Any) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Images, states and rewards."""
    images, states, rewards = [env.reset(**how)[0]["image"]], [env.unwrapped.simulator_state()], []
    for action in actions(env, steps):
        observation, reward, *_ = env.step(action)
        images.append(observation["image"])
        states.append(env.unwrapped.simulator_state())
        rewards.append(reward)
    return np.array(images), np.array(states), rewards


def played(steps: int = 4, seed: int = 5, **options: Any) -> tuple[np.ndarray, np.ndarray, list[float]]:
    env = suite(**options)
    try:
        return episode(env, steps, seed=seed)
    finally:
        env.close()


def fingerprint() -> str:
    """A hash of images of all tasks, static and dynamic."""
    digest = hashlib.sha256()
    for task in DISTRACTING_TASKS:
        images, *_ = played(steps=2, task=task, dynamic=task in DISTRACTING_TASKS[:3])
        digest.update(images.tobytes())
    return digest.hexdigest()


def test_equal_seeds_give_equal_images_in_two_processes():
    code = f"import runpy; print(runpy.run_path({__file__!r})['fingerprint']())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert other.stdout.strip() == fingerprint()


@pytest.mark.parametrize("dynamic", [False, True])
def test_another_visual_seed_changes_the_images_and_not_the_motion(dynamic):
    ours, theirs = (played(visual_seed=seed, dynamic=dynamic) for seed in (1, 2))
    np.testing.assert_array_equal(ours[1], theirs[1])
    assert ours[2] == theirs[2]
    assert (np.abs(ours[0].astype(int) - theirs[0]).mean(axis=(1, 2, 3)) > 10).all()
    again = played(visual_seed=1, dynamic=dynamic)
    np.testing.assert_array_equal(again[0], ours[0])


def test_a_dynamics_seed_fixes_the_motion_and_not_the_appearance():
    env = suite(dynamics_seed=3)
    first, second = episode(env, seed=0), episode(env, seed=1)
    np.testing.assert_array_equal(first[1], second[1])
    assert (first[0] != second[0]).any()
    env.close()


def test_the_appearance_does_not_depend_on_the_motion():
    env = suite(visual_seed=7)
    appearances = []
    for seed in (0, 1):
        env.reset(seed=seed)
        model, data = env.unwrapped._model, env.unwrapped._data
        appearances.append((model.mat_rgba.copy(), data.cam_xmat[0].copy(), model.tex_data[:1000].copy()))
    for ours, theirs in zip(*appearances, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (env.reset(seed=0)[0]["image"] != env.reset(seed=1)[0]["image"]).any()
    env.close()


def test_options_of_reset_set_the_seeds_of_one_episode():
    env = suite()
    wanted = {"visual_seed": 4, "dynamics_seed": 9}
    chosen = episode(env, seed=0, options=wanted)
    np.testing.assert_array_equal(episode(env, seed=1, options=wanted)[0], chosen[0])
    assert (episode(env, seed=1)[0] != chosen[0]).any()
    np.testing.assert_array_equal(episode(env, seed=1, options={"dynamics_seed": 9})[1], chosen[1])
    env.close()


def test_consecutive_episodes_have_different_appearances():
    env = suite()
    first = env.reset(seed=0)[0]["image"].astype(int)
    assert np.abs(first - env.reset()[0]["image"]).mean() > 10
    env.close()


@pytest.mark.parametrize("kind", KINDS)
def test_each_distraction_changes_only_its_own_part(kind):
    def appearance(**options: Any) -> dict[str, np.ndarray]:
        env = suite(visual_seed=1, **options)
        image = env.reset(seed=0)[0]["image"]
        model, data = env.unwrapped._model, env.unwrapped._data
        env.close()
        camera = np.concatenate([data.cam_xpos[0], data.cam_xmat[0]])
        parts = {"background": model.tex_data[:3000], "camera": camera, "colour": model.mat_rgba[:, :3]}
        return {name: part.copy() for name, part in parts.items()} | {"image": image}

    plain, distracted, together = appearance(difficulty=None), appearance(distractions=[kind]), appearance()
    for part in KINDS:
        assert (distracted[part] != plain[part]).any() == (part == kind)
    assert (distracted["image"] != plain["image"]).any()
    np.testing.assert_array_equal(distracted[kind], together[kind])  # each has its own random stream


def test_a_difficulty_is_a_name_or_its_scale():
    def image(difficulty: Any) -> np.ndarray:
        return played(steps=1, difficulty=difficulty)[0]

    np.testing.assert_array_equal(image(0), image(None))
    np.testing.assert_array_equal(image(0.2), image("medium"))
    assert (image(0.2) != image(0.3)).any()


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_appearance_changes_within_an_episode_only_if_dynamic(dynamic):
    env = suite("reacher-easy", dynamic=dynamic)
    env.reset(seed=0)
    model, data = env.unwrapped._model, env.unwrapped._data
    before = [model.mat_rgba.copy(), data.cam_xmat[0].copy(), model.tex_data[:3000].copy()]
    for action in actions(env, 5):
        env.step(action)
    after = [model.mat_rgba, data.cam_xmat[0], model.tex_data[:3000]]
    assert [(ours != theirs).any() for ours, theirs in zip(before, after, strict=True)] == [dynamic] * 3
    env.close()


def test_dynamic_distractions_advance_while_rendering_is_disabled():
    always, once = suite(dynamic=True), suite(dynamic=True)
    for env in (always, once):
        env.reset(seed=0)
    once.unwrapped.set_rendering(False)
    for action in actions(always, 3):
        always.step(action)
        once.step(action)
    once.unwrapped.set_rendering(True)
    action = actions(always, 1)[0]
    np.testing.assert_array_equal(once.step(action)[0]["image"], always.step(action)[0]["image"])
    always.close()
    once.close()


def test_held_out_backgrounds_do_not_occur_in_training():
    def textures(split: str) -> set[bytes]:
        env = suite(split=split, distractions="background", size=(8, 8))
        found = set()
        for seed in range(8):
            env.reset(seed=seed)
            found.add(env.unwrapped._model.tex_data[: 256 * 256 * 3].tobytes())
        env.close()
        return found

    train, held_out = textures("train"), textures("held-out")
    assert min(len(train), len(held_out)) > 4
    assert not train & held_out


def test_grey_images_have_the_brightness_of_the_colours():
    colour, grey = played(steps=1)[0], played(steps=1, frame="grey")[0]
    assert grey.shape == (2, *SMALL, 1)
    assert np.abs(colour @ [0.299, 0.587, 0.114] - grey[..., 0]).max() < 2


def test_proprioception_is_the_observation_of_dm_control():
    env = suite("walker-walk", proprioception=True)
    observation, _ = env.reset(seed=0)
    for action in actions(env, 2):
        observation, *_ = env.step(action)
    task, physics = env.unwrapped._task, env.unwrapped._physics
    expected = np.concatenate([np.ravel(entry) for entry in task.get_observation(physics).values()])
    np.testing.assert_allclose(observation["sensors"], expected, rtol=1e-6)
    assert env.observation_space["sensors"].shape == (24,)
    env.close()


@pytest.mark.parametrize(("scale", "videos"), [(0.05, 4), (0.1, 4), (0.15, 8), (0.2, 8), (0.21, None), (1, None)])
def test_the_number_of_videos_grows_with_the_scale(scale, videos):
    assert video_count(scale) == videos


@pytest.mark.parametrize(("videos", "count"), [(None, 8), (3, 3), ("all", None)])
def test_the_number_of_training_videos_is_an_option(videos, count):
    assert DistractionOptions(difficulty="medium", videos=videos).video_count == count


def test_all_videos_at_medium_difficulty_are_those_of_a_harder_one():
    def texture(**options: Any) -> np.ndarray:
        env = suite(distractions="background", size=(8, 8), **options)
        env.reset(seed=1)
        pixels = env.unwrapped._model.tex_data[: 256 * 256 * 3].copy()
        env.close()
        return pixels

    np.testing.assert_array_equal(texture(difficulty="medium", videos="all"), texture(difficulty=0.21))
    assert (texture(difficulty="medium") != texture(difficulty=0.21)).any()


@pytest.mark.parametrize("difficulty", [-0.1, 1.1, float("nan"), "impossible", True, [0.1]])
def test_an_invalid_difficulty_is_refused(difficulty):
    with pytest.raises((ValueError, TypeError), match="difficulty must be"):
        scale_of(difficulty)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"difficulty": 2}, "difficulty must be between 0 and 1, not 2"),
        ({"distractions": ["sound"]}, r"distractions must be some of background, camera, colour, not \['sound'\]"),
        ({"split": "test"}, "split must be one of 'train', 'held-out', not 'test'"),
        ({"visual_seed": -1}, "visual_seed must be between 0 and"),
        ({"frame": "hsv"}, "frame must be one of 'rgb', 'grey', not 'hsv'"),
        ({"backgrounds": "/nowhere/at/all"}, "cannot read the folder /nowhere/at/all: No such file"),
        ({"task": "reacher-easy", "camera": 1}, "camera 1 turns with the robot"),
        ({"size": (0, 320)}, "size must be between"),
        ({"videos": 0}, "videos must be at least 1, not 0"),
        ({"videos": "some"}, "videos must be a number, \"all\" or None, not 'some'"),
    ],
)
def test_invalid_options_are_refused(options, why):
    with pytest.raises(ValueError, match=why):
        suite(**options)


def test_an_unknown_option_of_reset_is_refused():
    env = suite(size=(8, 8))
    with pytest.raises(ValueError, match="options of reset are dynamics_seed and visual_seed, not 'visual_sed'"):
        env.reset(options={"visual_sed": 3})
    env.close()


def test_distractions_may_be_empty():
    nothing = Distractions({})
    nothing.reset(0)
    nothing.advance()
    nothing.apply(None)
    assert nothing.background is None
