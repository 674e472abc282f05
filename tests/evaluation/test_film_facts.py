"""What a video says: the task's name and goal, labels, and the returns to compare with."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from iap.envs.core import EnvConfig
from iap.envs.protocols import SceneLabels, find_protocol, require_protocol
from iap.evaluation.film_facts import film_facts, goal_of, random_return, references, task_name
from iap.policies.serialization import load
from iap.zoo import zoo_file

SEEK = load(zoo_file("seek"))


class Documented(gymnasium.Env):
    """Push the box to the wall."""

    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)


def test_the_name_of_a_task_is_that_of_its_id_in_words():
    names = {"iap/StepStones-v0": "Step Stones", "iap/reacher-easy-v0": "reacher-easy", "iap/Seek-v0": "Seek"}
    for env_id, name in names.items():
        env = EnvConfig.of(env_id).make()
        assert task_name(env) == name
        env.close()


def test_the_goal_is_in_the_metadata_or_the_first_line_of_the_docstring():
    assert goal_of(Documented()) == "Push the box to the wall."
    env = EnvConfig.of("iap/Seek-v0").make()
    assert "target" in goal_of(env)
    undocumented = type("Bare", (Documented,), {"__doc__": "## Heading"})()
    assert goal_of(undocumented) == ""


def test_a_return_is_compared_with_random_actions_and_the_measured_return():
    found = dict(references(SEEK, EnvConfig.of("iap/Seek-v0")))
    assert set(found) == {"random", "mean of this policy"}
    assert abs(found["random"]) < 1
    assert found["mean of this policy"] == SEEK.facts["measured"]["mean"]


def test_a_policy_without_a_measured_return_is_compared_with_the_best_of_the_zoo():
    unmeasured = replace(SEEK, facts={})
    assert dict(references(unmeasured, EnvConfig.of("iap/Seek-v0")))["best known"] == SEEK.facts["measured"]["mean"]


def test_an_episode_that_is_cut_is_compared_with_random_actions_of_its_length_and_with_whole_episodes():
    config = EnvConfig.of("iap/Seek-v0")
    random, mean = random_return(config, 5), SEEK.facts["measured"]["mean"]
    assert dict(references(SEEK, config, 5)) == {"random": random, "mean of this policy, whole episodes": mean}
    unmeasured = replace(SEEK, facts={})
    assert dict(references(unmeasured, config, 5)) == {"random": random, "best known, whole episodes": mean}
    assert random_return(config, 5) != random_return(config)


def test_random_actions_that_fail_are_no_reference():
    class Broken(Documented):
        def reset(self, **_options):
            return np.zeros((8, 8, 3), np.uint8), {}

        def step(self, action):
            raise RuntimeError("broken")

    assert random_return(EnvConfig.from_factory(Broken)) is None


@pytest.mark.parametrize(
    ("env_id", "names"),
    [
        ("iap/Seek-v0", ["agent", "target"]),
        ("iap/ObstacleCourse-v0", ["robot", "next gap"]),
        ("iap/StepStones-v0", ["robot"]),
        ("iap/reacher-easy-v0", ["end of arm", "target"]),
    ],
)
def test_goals_and_actors_are_labelled_inside_the_picture(env_id, names):
    env = EnvConfig.of(env_id).make()
    env.reset(seed=0)
    labels = require_protocol(env, SceneLabels).scene_labels()
    assert [name for name, *_ in labels][: len(names)] == names
    assert all(0 <= place <= 1 for _, *place in labels[: len(names)] for place in place)
    assert goal_of(env).endswith(".")
    env.close()


def test_the_label_of_the_target_is_where_the_picture_shows_it():
    env = EnvConfig.of("iap/Seek-v0", render_mode="rgb_array").make()
    env.reset(seed=3)
    picture = np.asarray(env.render())
    labels = find_protocol(env, SceneLabels)
    assert labels is not None
    places = {name: place for name, *place in labels.scene_labels()}
    for name, colour in (("agent", (40, 130, 255)), ("target", (255, 170, 20))):
        row, column = (int(share * len(picture)) for share in places[name])
        np.testing.assert_allclose(picture[row, column], colour, atol=2)
    env.close()


def test_the_label_of_the_reachers_target_is_where_the_picture_shows_it():
    env = EnvConfig.of("iap/reacher-easy-v0", render_mode="rgb_array").make()
    env.reset(seed=3)
    picture = np.asarray(env.render()).astype(int)
    places = {name: place for name, *place in require_protocol(env, SceneLabels).scene_labels()}
    row, column = (int(share * side) for share, side in zip(places["target"], picture.shape[:2], strict=True))
    assert picture[row, column, 0] > 1.4 * picture[row, column, 1:].max()  # red
    assert picture[5, 5, 0] < 1.4 * picture[5, 5, 1:].max()
    env.close()


def test_terrain_is_shown_as_depth_in_metres_with_the_names_of_its_cameras():
    policy = load(zoo_file("stairs-trans"))
    config = EnvConfig.of(policy.env_id, **policy.env_kwargs)
    env = config.make()
    film = film_facts(policy, config, env, max_steps=2)
    assert (film.image_unit, film.image_parts) == ("m", ("front camera", "belly camera"))
    assert film.policy == "5,780 parameters"
    env.close()
