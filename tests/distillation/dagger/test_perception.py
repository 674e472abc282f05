"""Errors of encoders that are trained on labelled images."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dot import Dot, dot_config

from iap.distillation import DAgger
from iap.distillation.dagger.encoder_config import EncoderPretraining
from iap.distillation.dagger.perception import measure_perception
from iap.distillation.labelling import LabellingJob, label_episode
from iap.distillation.teachers import TeacherConfig
from iap.envs.core import EnvConfig
from iap.policies import Blind, Policy, ResidualRank, flatten, init
from iap.rollouts import InlinePool

OPTIONS = EncoderPretraining(
    samples=300, samples_per_episode=12, episode_steps=12, random_share=0.0, keypoints=("dot",)
)
HEADS = ResidualRank(stem=((8, 3, 1),), dilations=(1,), d=4, heads=2, top_k=4, values=1)
GREY_LEVELS = 60


class GreyDot(Dot):
    """The dot on a background whose grey is the visual seed."""

    has_visual_seeds = True

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        self.visual_seed = (options or {}).get("visual_seed", 0)
        return {**observation, "image": np.maximum(observation["image"], self.visual_seed % GREY_LEVELS)}, info


def test_a_trained_encoder_knows_more_than_an_untrained_one_and_a_blind_one_nothing():
    config = dot_config(DAgger(), HEADS)
    policies = {"heads": config.policy, "blind": replace(config.policy, encoder=Blind())}
    with InlinePool(config.job) as pool:
        rows = measure_perception(OPTIONS, config.job, policies, (1, 300), 0, pool)
    found = {(row["encoder"], row["updates"], row["images"]): row for row in rows}
    new = "other states and visual seeds"
    assert len(found) == 8
    for number in ("actions", "state"):
        assert found["heads", 300, new][number] < 0.3 < 0.9 * found["heads", 1, new][number]
        assert found["blind", 300, new][number] > 0.9
    assert found["heads", 300, new]["keypoints"] < 0.6 * found["heads", 1, new]["keypoints"]
    assert "keypoints" not in found["blind", 300, new]


def labelled(job: LabellingJob, seed: int) -> tuple[dict, int]:
    env, student = job.env.make(), Policy(job.policy, flatten(init(job.policy, 0)))
    episode = label_episode(env, student, job.teacher.make(), job, seed)
    unwrapped: Any = env.unwrapped
    return episode.arrays, unwrapped.visual_seed


def test_visual_seeds_change_the_images_and_not_the_states():
    policy = dot_config(DAgger(), HEADS).policy
    job = LabellingJob(EnvConfig.from_factory(GreyDot), policy, teacher=TeacherConfig(), visual_seeds=3)
    other = replace(job, first_visual_seed=40)
    drawn = {labelled(job, seed)[1] for seed in range(12)}
    assert drawn == {0, 1, 2}
    (one, first), (two, second) = labelled(job, 7), labelled(other, 7)
    assert second == first + 40
    assert np.array_equal(one["state"], two["state"])
    assert not np.array_equal(one["images"], two["images"])


class MovedDot(Dot):
    """A dot that can be put in a corner."""

    def randomize_state(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        self._place = np.array([1, 1])
        return self._observe()


def test_images_of_a_random_state_are_relative_to_the_first_frame_of_the_episode():
    policy = replace(dot_config(DAgger(), HEADS).policy, preprocessing=("first_frame_difference",))
    job = LabellingJob(EnvConfig.from_factory(MovedDot), policy, teacher=TeacherConfig(), random_share=1.0)
    env, student = MovedDot(), Policy(policy, flatten(init(policy, 0)))
    arrays = label_episode(env, student, job.teacher.make(), job, seed=3).arrays
    first, drawn = env.reset(seed=3)[0]["image"], env.randomize_state(np.random.default_rng())["image"]
    assert np.array_equal(arrays["images"][0] > 0, first != drawn)
    assert (first != drawn).any()


def test_visual_seeds_are_refused_where_the_environment_has_none():
    job = LabellingJob(EnvConfig.from_factory(Dot), dot_config(DAgger(), HEADS).policy, visual_seeds=3)
    with pytest.raises(ValueError, match="does not implement VisualSeeds"):
        labelled(job, 0)
