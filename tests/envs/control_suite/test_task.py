import gc
import os
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import seeding
from gymnasium.utils.env_checker import check_env

from iap.envs.control_suite.frames import render_frames
from iap.envs.control_suite.loading import task_names
from iap.envs.control_suite.tasks import SUITE_TASKS
from iap.envs.core import make_env
from iap.envs.rendering.gl import INSTALL

TASKS = ("ball_in_cup-catch", "cartpole-swingup", "cheetah-run", "finger-spin", "reacher-easy", "walker-walk")
REPEATS = (4, 8, 4, 2, 4, 2)
SMALL = (40, 50)


def suite(task: str = "cheetah-run", size: Any = SMALL, **options) -> Any:
    return make_env(f"iap/{task}-v0", size=size, **options)


def seed_of_dm_control(seed: int) -> int:
    """The seed of dm_control's task."""
    return int(seeding.np_random(seed)[0].integers(2**32))


def actions(env: Any, count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    space = env.action_space
    return rng.uniform(space.low, space.high, (count, *space.shape)).astype(np.float32)


def is_warm(image: np.ndarray) -> np.ndarray:
    """Which pixels belong to a robot or its target: they are orange, yellow or red, everything else is blue or grey."""
    return image[..., 0].astype(int) - image[..., 2] > 40


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_every_task_of_the_suite_has_an_id():
    assert list(SUITE_TASKS) == task_names()
    assert {f"iap/{task}-v0" for task in SUITE_TASKS} <= gymnasium.registry.keys()


def test_the_environment_passes_the_checker_of_gymnasium():
    env = gymnasium.make("iap/cheetah-run-v0", size=SMALL, disable_env_checker=True).unwrapped
    check_env(env)
    env.close()


@pytest.mark.parametrize("task", [*TASKS, "acrobot-swingup", "swimmer-swimmer6", "hopper-hop"])
def test_states_equal_those_of_dm_control_and_rewards_up_to_rounding(task):
    from dm_control import suite as theirs

    env = suite(task, action_repeat=3)
    env.reset(seed=7)
    domain, name = task.split("-")
    reference = theirs.load(domain, name, task_kwargs={"random": seed_of_dm_control(7)})
    reference.reset()
    env.unwrapped.set_rendering(False)
    for action in actions(env, 50):
        np.testing.assert_array_equal(env.unwrapped._physics.get_state(), reference.physics.get_state())
        _, reward, *_ = env.step(action)
        assert reward == pytest.approx(sum(reference.step(action).reward for _ in range(3)), abs=1e-12)
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_the_robot_is_at_the_pixels_of_the_full_quality_render(task):
    env = suite(task, size=(100, 100))
    image = env.reset(seed=2)[0]["image"]
    env.close()
    full = render_frames(task, size=(100, 100), seed=seed_of_dm_control(2))[0]
    ours, theirs = is_warm(image), is_warm(full)
    assert theirs.sum() > 20
    assert (ours & theirs).sum() > 0.8 * (ours | theirs).sum()
    lit_floor = 28 if task == "reacher-easy" else 6  # from above, the full render is lighter by reflections
    assert np.abs(image.astype(int) - full).mean() < lit_floor


def test_a_default_image_is_100_by_100():
    env = make_env("iap/cheetah-run-v0")
    assert env.reset(seed=0)[0]["image"].shape == (100, 100, 3)
    env.close()


@pytest.mark.parametrize(("task", "repeat"), list(zip(TASKS, REPEATS, strict=True)))
def test_an_episode_has_1000_task_steps(task, repeat):
    env = suite(task)
    env.reset(seed=0)
    env.unwrapped.set_rendering(False)
    still = np.zeros(env.action_space.shape, np.float32)
    ends = [env.step(still)[2:4] for _ in range(1000 // repeat)]
    assert not any(any(end) for end in ends[:-1])
    assert ends[-1] == (False, True)
    env.close()


def test_the_last_action_is_repeated_less_often_at_the_end_of_an_episode():
    env, reference = suite("cartpole-balance", action_repeat=300), suite("cartpole-balance", action_repeat=1)
    totals = []
    for each in (env, reference):
        each.reset(seed=0)
        each.unwrapped.set_rendering(False)
        rewards, ended = [], False
        while not ended:
            _, reward, _, ended, _ = each.step(np.zeros(1, np.float32))
            rewards.append(reward)
        totals.append((len(rewards), sum(rewards)))
        each.close()
    assert totals[0][0] == 4
    assert totals[1][0] == 1000
    assert totals[0][1] == pytest.approx(totals[1][1], abs=1e-9)


def test_equal_seeds_give_equal_episodes():
    first, second = suite("walker-walk"), suite("walker-walk")
    second.reset(seed=1)
    second.step(actions(second, 1)[0])
    np.testing.assert_array_equal(first.reset(seed=5)[0]["image"], second.reset(seed=5)[0]["image"])
    for action in actions(first, 10):
        ours, theirs = first.step(action), second.step(action)
        np.testing.assert_array_equal(ours[0]["image"], theirs[0]["image"])
        assert ours[1:] == theirs[1:]
    assert (first.reset()[0]["image"] == second.reset()[0]["image"]).all()  # the next episode depends on the seed, too
    assert (first.reset(seed=5)[0]["image"] != first.reset(seed=6)[0]["image"]).any()
    first.close()
    second.close()


def test_without_rendering_the_last_image_is_returned():
    env = suite()
    before = env.reset(seed=0)[0]["image"]
    push = actions(env, 5)
    env.unwrapped.set_rendering(False)
    assert all((env.step(action)[0]["image"] == before).all() for action in push)
    env.unwrapped.set_rendering(True)
    assert (env.step(push[0])[0]["image"] != before).any()
    env.unwrapped.set_rendering(False)
    np.testing.assert_array_equal(env.reset(seed=0)[0]["image"], before)
    assert (env.step(push[0])[0]["image"] != before).any()
    env.close()


def test_environments_in_one_process_do_not_affect_each_other():
    alone = {}
    for task in TASKS:
        env = suite(task)
        alone[task] = [env.reset(seed=seed)[0]["image"] for seed in (3, 4)]
        env.close()

    def are_right(envs: dict[str, Any]) -> bool:
        images = {task: [env.reset(seed=seed)[0]["image"] for seed in (3, 4)] for task, env in envs.items()}
        return all((np.array(images[task]) == alone[task]).all() for task in envs)

    envs = {task: suite(task) for task in TASKS}
    assert are_right(envs)
    assert are_right(envs)
    assert are_right({"cheetah-run": envs["cheetah-run"]})  # its context is the current one when another is freed
    envs.pop("walker-walk").close()
    assert are_right(envs)
    del envs["finger-spin"]
    gc.collect()
    assert are_right(envs)
    render_frames("walker-walk", size=(30, 30))
    assert are_right(envs)
    envs["walker-walk"] = suite("walker-walk")
    assert are_right(envs)
    for env in envs.values():
        env.close()


def test_render_is_the_same_view_in_more_pixels_and_does_not_change_the_image():
    plain, drawn = suite(size=(100, 100)), suite(size=(100, 100), render_mode="rgb_array")
    for env in (plain, drawn):
        env.reset(seed=0)
    assert plain.render() is None
    for action in actions(plain, 3):
        image = plain.step(action)[0]["image"]
        np.testing.assert_array_equal(drawn.step(action)[0]["image"], image)
        picture = drawn.render()
        assert picture.shape == (400, 400, 3)
        coarse = picture.reshape(100, 4, 100, 4, 3).mean(axis=(1, 3))
        assert np.abs(coarse - image).mean() < 6
        assert (is_warm(coarse) & is_warm(image)).sum() > 0.8 * is_warm(image).sum()
    assert drawn.metadata["render_fps"] == 25
    plain.close()
    drawn.close()


@pytest.mark.slow
def test_images_show_the_terrain_of_the_current_episode():
    env = suite("quadruped-escape", size=(60, 80))
    for seed in (0, 1):
        image = env.reset(seed=seed)[0]["image"].astype(int)
        full = render_frames("quadruped-escape", size=(60, 80), seed=seed_of_dm_control(seed))[0]
        assert np.abs(image - full).mean() < 8  # with the terrain of another episode it is 15
    env.close()


def test_a_closed_environment_can_be_closed_again_but_not_used():
    env = suite()
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(RuntimeError, match="the camera is closed"):
        env.reset()


@pytest.mark.slow
def test_closing_frees_memory():
    done = run(
        "import psutil\n"
        "from iap.envs.core import make_env\n"
        "def grown_by(envs, close):\n"
        "    before = psutil.Process().memory_info().rss\n"
        "    kept = []\n"
        "    for _ in range(envs):\n"
        "        env = make_env('iap/cheetah-run-v0', size=(300, 400))\n"
        "        env.reset(seed=0)\n"
        "        env.close() if close else kept.append(env)\n"
        "    return psutil.Process().memory_info().rss - before\n"
        "grown_by(10, close=True)\n"
        "print(grown_by(15, close=True), grown_by(5, close=False))"
    )
    closed, kept = map(int, done.stdout.split())
    assert closed < kept / 2  # the driver's own memory comes and goes by tens of megabytes


def test_a_process_without_close_exits_silently():
    done = run("from iap.envs.core import make_env; env = make_env('iap/cheetah-run-v0'); env.reset(seed=0)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_mujoco_before_the_backend_is_chosen_is_an_error():
    code = "import mujoco\nfrom iap.envs.core import make_env\nmake_env('iap/cheetah-run-v0')"
    without = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run([sys.executable, "-c", code], env=without, capture_output=True, text=True, check=False)
    assert "RenderingError: mujoco was imported before" in done.stderr


def test_without_opengl_the_error_says_what_to_install(tmp_path):
    code = (
        "from iap.envs.core import make_env\n"
        "from iap.envs.rendering.gl import RenderingError\n"
        "try:\n    make_env('iap/cheetah-run-v0')\nexcept RenderingError as error:\n    print(error)"
    )
    done = run(code, __EGL_VENDOR_LIBRARY_DIRS=str(tmp_path), MUJOCO_GL="egl")
    assert INSTALL in done.stdout
    assert done.stderr == ""


def test_an_unstable_simulation_is_an_error():
    from dm_control.rl.control import PhysicsError

    env = suite()
    env.reset(seed=0)
    with pytest.raises(PhysicsError):
        env.step(np.full(6, np.nan, np.float32))
    env.close()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"size": (0, 3)}, "size must be between"),
        ({"size": 100}, r"size must be \(height, width\)"),
        ({"action_repeat": 0}, "action_repeat must be at least 1"),
        ({"camera": 9}, "camera must be between 0 and 1"),
    ],
)
def test_invalid_options_are_refused(options, why):
    with pytest.raises(ValueError, match=why):
        suite(**options)


def test_a_task_without_bounds_on_its_actions_is_refused():
    with pytest.raises(ValueError, match="finite bounds"):
        suite("lqr-lqr_2_1")
