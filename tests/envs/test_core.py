import importlib.util
import os
import pickle
import subprocess
import sys
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from iap._observations import sensors_of
from iap.envs.core import EnvConfig, action_count, make_env, to_action
from iap.envs.seek import Seek

UNIT = spaces.Box(-1, 1, (2,), np.float32)

# Importing Box2D would crash here, since warnings are errors.
box2d = pytest.mark.skipif(importlib.util.find_spec("Box2D") is None, reason="the extra box2d is not installed")
pygame = pytest.mark.skipif(importlib.util.find_spec("pygame") is None, reason="the extra box2d is not installed")


class Constant(gymnasium.Env):
    """An environment with any spaces and a constant observation."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, observes: spaces.Space, shows: Any = None, acts: spaces.Space = UNIT) -> None:
        self.observation_space, self.action_space = observes, acts
        self._shows = observes.sample() if shows is None else shows

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed, options=options)
        return self._shows, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        return self._shows, 0.0, False, False, {"action": action}


gymnasium.register("iap-tests/Constant-v0", cast(Any, Constant))


def observe(env: gymnasium.Env, steps: int = 5, seed: int = 3) -> list[dict[str, np.ndarray]]:
    """The observations of some steps with fixed actions, each checked against the interface."""
    rng = np.random.default_rng(0)
    raw = rng.uniform(-1, 1, (steps, action_count(env.action_space))).astype(np.float32)
    observations = [env.reset(seed=seed)[0]]
    observations += [env.step(to_action(env.action_space, row))[0] for row in raw]
    for observation in observations:
        assert env.observation_space.contains(observation)
        assert observation["image"].dtype in (np.uint8, np.float32)
        assert observation["image"].ndim == 3
        sensors = observation.get("sensors")
        assert sensors is None or (sensors.dtype == np.float32 and sensors.ndim == 1 and sensors.size > 0)
    return observations


def assert_repeats(id: str, **kwargs: Any) -> list[dict[str, np.ndarray]]:
    first, second = make_env(id, **kwargs), make_env(id, **kwargs)
    ours, theirs = observe(first), observe(second)
    first.close()
    second.close()
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a["image"], b["image"])
        np.testing.assert_array_equal(sensors_of(a), sensors_of(b))
    return ours


@box2d
def test_car_racing_has_colour_images_and_is_deterministic():
    observations = assert_repeats("CarRacing-v3")
    assert observations[0]["image"].shape == (96, 96, 3)
    assert observations[0].keys() == {"image"}
    assert (observations[0]["image"] != observations[-1]["image"]).any()


@box2d
def test_car_racing_takes_its_own_options():
    env = make_env("CarRacing-v3", continuous=False, max_episode_steps=3)
    assert action_count(env.action_space) == 5
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]
    env.close()


@pygame
def test_cart_pole_is_observed_by_its_rendered_image_and_not_by_its_state():
    observations = assert_repeats("CartPole-v1", image_from="render", image_size=(40, 60))
    assert observations[0]["image"].shape == (40, 60, 3)
    assert observations[0].keys() == {"image"}
    assert (observations[0]["image"] != observations[-1]["image"]).any()


@pygame
def test_a_rendered_image_keeps_its_size_by_default():
    env = make_env("CartPole-v1", image_from="render")
    image = env.reset(seed=0)[0]["image"]
    assert image.shape == (400, 600, 3)
    np.testing.assert_array_equal(image, env.render())
    env.close()


def test_an_environment_that_conforms_is_not_wrapped():
    env = make_env("iap/Seek-v0", size=16)
    assert env.observation_space is env.unwrapped.observation_space
    assert observe(env)[0]["image"].shape == (16, 16, 3)


def test_a_depth_image_stays_float_and_gets_a_channel():
    depth = np.linspace(0.1, 9, 24 * 32).reshape(24, 32)
    env = make_env("iap-tests/Constant-v0", observes=spaces.Box(0, np.inf, (24, 32), np.float64), shows=depth)
    image = observe(env)[0]["image"]
    assert image.dtype == np.float32
    np.testing.assert_array_equal(image[..., 0], depth.astype(np.float32))


def test_a_grey_image_gets_a_channel():
    env = make_env("iap-tests/Constant-v0", observes=spaces.Box(0, 255, (10, 12), np.uint8))
    assert observe(env)[0]["image"].shape == (10, 12, 1)


def test_other_entries_of_the_observation_become_sensors():
    space = spaces.Dict(
        camera=spaces.Box(0, 255, (8, 8, 3), np.uint8),
        legs=spaces.Box(-1, 1, (2,), np.float64),
        gait=spaces.Discrete(3),
    )
    shows = {"camera": np.full((8, 8, 3), 7, np.uint8), "gait": 1, "legs": np.array([0.25, -0.5])}
    observation = observe(make_env("iap-tests/Constant-v0", observes=space, shows=shows))[0]
    np.testing.assert_array_equal(observation["sensors"], [0, 1, 0, 0.25, -0.5])
    assert (observation["image"] == 7).all()


def test_a_smaller_image_contains_means_and_a_larger_one_repeats_pixels():
    colours = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3) * 3
    space = spaces.Box(0, 255, (4, 6, 3), np.uint8)
    small = observe(make_env("iap-tests/Constant-v0", observes=space, shows=colours, image_size=[2, 3]))[0]["image"]
    means = colours.reshape(2, 2, 3, 2, 3).mean(axis=(1, 3))
    assert small.dtype == np.uint8
    np.testing.assert_allclose(small, means, atol=0.5)
    large = observe(make_env("iap-tests/Constant-v0", observes=space, shows=colours, image_size=(8, 12)))[0]["image"]
    np.testing.assert_array_equal(large, colours.repeat(2, axis=0).repeat(2, axis=1))


def test_a_float_image_can_be_resized():
    depth = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)
    space = spaces.Box(0, 10, (2, 2), np.float32)
    image = observe(make_env("iap-tests/Constant-v0", observes=space, shows=depth, image_size=(1, 1)))[0]["image"]
    assert image.dtype == np.float32
    assert image == 3


@pytest.mark.parametrize(
    ("id", "near"), [("CarRacing-v9", "CarRacing-v3"), ("iap/seek-v0", "iap/Seek-v0"), ("cheetah-run", "iap/cheetah")]
)
def test_an_unknown_id_is_refused_with_similar_ids(id, near):
    with pytest.raises(ValueError, match=rf"'{id}'; the closest ids are .*{near}"):
        make_env(id)


def test_an_id_may_include_the_module_that_registers_it(tmp_path, monkeypatch):
    (tmp_path / "my_robot.py").write_text(
        "import gymnasium\ngymnasium.register('my/Robot-v0', 'iap.envs.seek:Seek', max_episode_steps=3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert observe(make_env("my_robot:my/Robot-v0"), steps=2)
    with pytest.raises(ValueError, match="No module named 'no_such_robot'"):
        make_env("no_such_robot:my/Robot-v0")


def test_unknown_options_are_refused_with_the_list_of_options():
    with pytest.raises(TypeError, match=r"iap/Seek-v0 has no option colour, sise; it has size, distractors"):
        make_env("iap/Seek-v0", sise=3, colour="red")


def test_an_observation_without_an_image_is_refused():
    with pytest.raises(ValueError, match=r'no image: Box.*image_from="render"'):
        make_env("CartPole-v1")


def test_an_environment_that_cannot_render_is_refused():
    with pytest.raises(ValueError, match=r'needs the render mode "rgb_array"; iap-tests/Constant-v0 has none'):
        make_env("iap-tests/Constant-v0", observes=UNIT, image_from="render")


IMAGE = spaces.Box(0, 255, (8, 8, 3), np.uint8)


@pytest.mark.parametrize(
    ("observes", "why"),
    [
        (
            spaces.Dict(rgb=IMAGE, depth=spaces.Box(0, 9, (8, 8), np.float32)),
            r"one dtype, range, width and number of channels: depth float32 \(8, 8, 1\), rgb uint8 \(8, 8, 3\)",
        ),
        (spaces.Box(0, 255, (64, 64, 64), np.uint8), r"shape \(64, 64, 64\), and its channels may be the first or"),
        (spaces.Dict(image=IMAGE, mission=spaces.Text(9)), "observation 'mission' cannot become sensors"),
        (spaces.Discrete(5), "no image"),
        (spaces.Box(0, 9, (8, 8), np.int64), r"no image.*observation is int64 of shape \(8, 8\). An image is uint8"),
    ],
)
def test_unsupported_observations_are_refused(observes, why):
    with pytest.raises(ValueError, match=why):
        make_env("iap-tests/Constant-v0", observes=observes)


@pytest.mark.parametrize(
    ("acts", "why"),
    [
        (spaces.Box(-np.inf, 1, (2,), np.float32), "finite bounds"),
        (spaces.Box(np.finfo(np.float32).min, np.finfo(np.float32).max, (2,), np.float32), "finite bounds"),
        (spaces.Box(0, 9, (2,), np.int64), r"Box\(0, 9, \(2,\), int64\) is not supported"),
        (spaces.Dict(a=UNIT), "is not supported"),
    ],
)
def test_unsupported_actions_are_refused(acts, why):
    with pytest.raises(ValueError, match=why):
        make_env("iap-tests/Constant-v0", observes=IMAGE, acts=acts)
    with pytest.raises(ValueError, match=why):
        action_count(acts)


@pytest.mark.parametrize("image_size", [3, (3,), (0, 4), (4, 4, 3), "ab"])
def test_an_invalid_size_is_refused(image_size):
    with pytest.raises(ValueError, match="image_size must be"):
        make_env("iap/Seek-v0", image_size=image_size)


def test_an_unknown_source_of_images_is_refused():
    with pytest.raises(ValueError, match="image_from must be"):
        make_env("iap/Seek-v0", image_from="picture")  # pyright: ignore[reportArgumentType]


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3, width=32), st.floats(0, 1e3, width=32)), min_size=1, max_size=6),
    st.floats(-2, 2, width=32) | st.just(float("inf")),
)
def test_raw_numbers_are_scaled_to_the_box(bounds, raw):
    low = np.array([least for least, _ in bounds], np.float32)
    high = low + np.array([span for _, span in bounds], np.float32)
    space = spaces.Box(low, high)
    assert action_count(space) == len(bounds)
    action = to_action(space, np.full(len(bounds), raw, np.float32))
    assert space.contains(action)
    share = (np.clip(raw, -1, 1) + 1) / 2
    np.testing.assert_allclose(action, low + share * (high - low.astype(np.float64)), rtol=1e-5, atol=1e-3)


def test_bounds_are_reached_exactly_and_unit_boxes_are_not_scaled():
    car = spaces.Box(np.array([-1, 0, 0], np.float32), np.array([1, 1, 1], np.float32))
    np.testing.assert_array_equal(to_action(car, np.full(3, -1, np.float32)), car.low)
    np.testing.assert_array_equal(to_action(car, np.full(3, 1, np.float32)), car.high)
    raw = np.array([1e-9, -0.3], np.float32)
    np.testing.assert_array_equal(to_action(UNIT, raw), raw)


def test_an_action_has_the_shape_and_dtype_of_its_space():
    space = spaces.Box(-2, 2, (2, 3), np.float64)
    action = to_action(space, np.linspace(-1, 1, 6, dtype=np.float32))
    assert space.contains(action)
    assert action[1, 2] == 2


def test_the_first_largest_number_selects_a_discrete_action():
    space = spaces.Discrete(4, start=10)
    assert action_count(space) == 4
    assert to_action(space, np.array([0, 3, 3, 1], np.float32)) == 11
    assert space.contains(to_action(space, np.zeros(4, np.float32)))


@pytest.mark.parametrize("space", [UNIT, spaces.Discrete(2)])
def test_nan_is_refused(space):
    with pytest.raises(ValueError, match="NaN"):
        to_action(space, np.array([0, np.nan], np.float32))


def test_importing_the_package_registers_ids_and_loads_no_simulator():
    code = (
        "import sys, gymnasium, iap.envs, iap.envs.core\n"
        "print(sorted({'mujoco', 'dm_control', 'jax', 'torch', 'numba'} & sys.modules.keys()))\n"
        "print('iap/Seek-v0' in gymnasium.registry, 'iap/cheetah-run-v0' in gymnasium.registry)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=os.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\nTrue True\n"


@pytest.mark.parametrize(
    "env",
    [
        "iap/Seek-v0",
        EnvConfig.of("iap/Seek-v0"),
        gymnasium.spec("iap/Seek-v0"),
        Seek(),
        Seek,
        lambda: Seek(size=32),
        EnvConfig.from_factory(Seek),
        EnvConfig.from_factory(Seek()),
    ],
    ids=["id", "config", "spec", "object", "class", "function", "custom-class", "custom-object"],
)
def test_an_environment_may_be_an_id_a_config_an_object_or_a_function(env):
    made = make_env(env)
    assert isinstance(made.unwrapped, Seek)
    np.testing.assert_array_equal(observe(made)[-1]["image"], observe(make_env("iap/Seek-v0"))[-1]["image"])


def test_options_are_added_to_those_of_a_config():
    config = EnvConfig.of("iap/Seek-v0", size=16)
    assert make_env(config, distractors=2).reset(seed=0)[0]["image"].shape == (16, 16, 3)
    assert make_env(config, size=24).reset(seed=0)[0]["image"].shape == (24, 24, 3)
    assert make_env(config, image_size=(8, 9)).reset(seed=0)[0]["image"].shape == (8, 9, 3)
    custom = EnvConfig.from_factory(Seek, image_size=(8, 9))
    assert custom.make().reset(seed=0)[0]["image"].shape == (8, 9, 3)


@pytest.mark.parametrize(
    ("env", "message"), [(Seek, "options need a registered id"), (7, "env must be an id"), (dict, "it returned {}")]
)
def test_unsupported_environments_are_refused(env, message):
    options: dict[str, Any] = {"size": 3} if env is Seek else {}
    with pytest.raises(TypeError, match=message):
        make_env(env, **options)


def test_an_environment_that_is_not_owned_stays_open_after_an_error():
    class Vector(Constant):
        closed = False

        def close(self) -> None:
            self.closed = True

    env = Vector(UNIT)
    with pytest.raises(ValueError, match="no image"):
        make_env(env)
    assert not env.closed


def test_configs_are_equal_if_ids_options_and_factories_are():
    assert EnvConfig.of("x", b=1, a=2) == EnvConfig.of("x", a=2, b=1)
    assert len({EnvConfig.of("x", b=1, a=2), EnvConfig.of("x", a=2, b=1)}) == 1
    assert EnvConfig.of("x") != EnvConfig.of("y")
    assert EnvConfig.from_factory(Seek) == EnvConfig.from_factory(Seek)
    assert EnvConfig.from_factory(Seek) != EnvConfig.of("custom:Seek")
    assert pickle.loads(pickle.dumps(EnvConfig.of("x", a=2))) == EnvConfig.of("x", a=2)


def test_a_custom_environment_is_pickled_with_its_definition():
    size = 24
    config = EnvConfig.from_factory(lambda: Seek(size=size))
    assert config.id == "custom:<lambda>"
    assert pickle.loads(pickle.dumps(config)).make().reset(seed=0)[0]["image"].shape == (24, 24, 3)
    copy = EnvConfig.from_factory(Seek(size=16))
    assert copy.id == "custom:Seek"
    assert copy.make() is not copy.make()


def test_a_custom_id_from_a_file_says_how_to_pass_the_environment():
    with pytest.raises(ValueError, match=r"'custom:Seek' was passed as an object or a function.*from_factory\(Seek\)"):
        EnvConfig("custom:Seek").make()


def test_an_object_that_cannot_be_pickled_is_refused():
    env = Seek()
    env.reset(seed=0)
    env.stream = (x for x in ())  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match=r"cannot be pickled .*EnvConfig.from_factory"):
        EnvConfig.from_factory(env)
    with pytest.raises(TypeError, match="factory must be"):
        EnvConfig.from_factory(3)  # pyright: ignore[reportArgumentType]


class Slow(Seek):
    """An environment of this test module, which workers cannot import."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        return super().step(0.5 * np.asarray(action))


def returns(pool: Any, size: int) -> list[float]:
    theta = np.linspace(-1, 1, size, dtype=np.float32)[None]
    with pool:
        return [episode.total for episode in pool.evaluate(theta, [[3, 4]])[0]]


@pytest.mark.parametrize("factory", [Slow, Slow(), lambda: Slow(size=32)], ids=["class", "object", "function"])
def test_workers_run_an_environment_of_a_test_module(factory):
    from iap.policies import Blind, PolicyConfig, blocks
    from iap.rollouts import InlinePool, Job, LocalPool

    config = PolicyConfig(image_shape=(32, 32, 3), sensors=0, actions=2, encoder=Blind())
    job, size = Job(EnvConfig.from_factory(factory), config, max_steps=10), blocks(config)[-1].stop
    expected = returns(InlinePool(job), size)
    assert returns(LocalPool(job, workers=1), size) == expected
    assert any(expected)


SCRIPT = """
import numpy as np
from iap.envs.core import EnvConfig
from iap.envs.seek import Seek
from iap.policies import Blind, PolicyConfig, blocks
from iap.rollouts import InlinePool, Job, LocalPool

SCALE = 0.5

class Mine(Seek):
    def step(self, action):
        return super().step(SCALE * np.asarray(action))

if __name__ == "__main__":
    policy = PolicyConfig(image_shape=(32, 32, 3), sensors=0, actions=2, encoder=Blind())
    theta = np.linspace(-1, 1, blocks(policy)[-1].stop, dtype=np.float32)[None]
    for factory in (Mine, Mine()):
        job = Job(EnvConfig.from_factory(factory), policy, max_steps=10)
        totals = []
        for pool in (InlinePool(job), LocalPool(job, workers=1)):
            with pool:
                totals.append([episode.total for episode in pool.evaluate(theta, [[3, 4]])[0]])
        print(job.env.id, totals[0] == totals[1])
"""


def test_workers_run_an_environment_of_the_main_script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(tmp_path / "script.py")], capture_output=True, text=True, check=False
    )
    assert done.stdout == "custom:Mine True\ncustom:Mine True\n", done.stderr
