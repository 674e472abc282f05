"""Images with the keypoints that the simulator knows: the dataset of `encoder_regression`.

States are random; where there is a teacher, half of the episodes are the teacher's; later rounds add episodes of the
student itself, which visits states that neither of them does.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8

from iap.distillation.config import Distillation, has_memory
from iap.distillation.pretrained import PRETRAINING, Report
from iap.envs.core import EnvConfig, to_action
from iap.envs.protocols import Keypoints, LazyRendering, RandomizableState, find_protocol, require_protocol
from iap.policies import Blind, Policy, PolicyConfig, PolicyFile, Quadratic
from iap.policies.preprocessing import preprocess_image
from iap.rollouts import TRAINING_SEEDS, draw_seeds
from iap.zoo.locate import locate_policy

VALIDATION_SHARE = 10  # one pair of episodes in so many: one of random states, one of the teacher's
LONGEST_EPISODE = 120  # steps from which samples are taken; the shortest episodes of the suite have 125

Frame = tuple[np.ndarray, np.ndarray]  # encoder inputs, keypoints
Sample = tuple[np.ndarray, np.ndarray]  # the same of successive frames, stacked


class Dataset(NamedTuple):
    """Samples of one or two successive frames.

    Attributes:
        inputs: the encoder's inputs, with those of the episode's first frame if the policy uses its features.
        keypoints: the coordinates in each frame.
        episodes: the number of each sample's episode.
    """

    inputs: UInt8[np.ndarray, "n frames 1+first H W C"]
    keypoints: Float[np.ndarray, "n frames s"]
    episodes: Int[np.ndarray, " n"]

    def joined(self, others: "Dataset") -> "Dataset":
        """These samples, then the others."""
        return Dataset(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))

    def split(self) -> tuple["Dataset", "Dataset"]:
        """Samples to train on, and samples of other episodes to validate with."""
        held_back = self.episodes // 2 % VALIDATION_SHARE == 0
        training, validation = (Dataset(*(part[chosen] for part in self)) for chosen in (~held_back, held_back))
        return training, validation


class Collector:
    """Collects samples for one policy in one environment."""

    def __init__(self, pretraining: Distillation, env: EnvConfig, policy: PolicyConfig, seed: int) -> None:
        self._options, self._env, self._policy, self._seed = pretraining, env, policy, seed
        self._frames = frames_per_sample(policy)

    def collect(self, teacher: PolicyFile | None, report: Report) -> Dataset:
        """Samples of random states, and in every other episode of the teacher's, if there is one."""
        policy = None if teacher is None else Policy.of(teacher)
        env = _with_keypoint_sensors(self._env, self._options, teacher).make()

        def one(seed: int, number: int, rng: np.random.Generator) -> Iterator[Sample]:
            if policy is not None and number % 2 == 1:
                return self._episode(env, policy, seed, rng)
            return self._random_states(env, seed, rng)

        return self._collect(env, 0, one, lambda share: report("collecting random states", share))

    def collect_from(self, student: Policy, round_number: int, report: Report) -> Dataset:
        """Samples of the student's own episodes, in the n-th round."""
        env = self._env.make()

        def one(seed: int, _number: int, rng: np.random.Generator) -> Iterator[Sample]:
            return self._episode(env, student, seed, rng)

        return self._collect(env, round_number, one, lambda share: report("collecting the student's episodes", share))

    def _collect(
        self,
        env: Any,
        round_number: int,
        one: Callable[[int, int, np.random.Generator], Iterator[Sample]],
        report: Callable[[float], None],
    ) -> Dataset:
        """An equal share of all samples, from episodes of their own."""
        options = self._options
        episodes = -(-options.samples // ((1 + options.student_rounds) * options.samples_per_episode))
        first, *seeds = draw_seeds(self._seed, PRETRAINING + 2 + round_number, 1 + episodes)
        rng = np.random.default_rng(first)
        samples: list[tuple[np.ndarray, np.ndarray, int]] = []
        try:
            require_protocol(env, Keypoints)
            for number, seed in enumerate(seeds):
                report(number / len(seeds))
                samples += [(*sample, number) for sample in one(TRAINING_SEEDS + seed, number, rng)]
        finally:
            env.close()
        if not samples:
            raise ValueError(f"pretraining.keypoints must be in view at times: none of {options.keypoints} ever was")
        inputs, keypoints, numbers = zip(*samples, strict=True)
        return Dataset(np.array(inputs), np.array(keypoints, np.float32), np.array(numbers))

    def _random_states(self, env: Any, seed: int, rng: np.random.Generator) -> Iterator[Sample]:
        """Random states, after the first frame of an episode."""
        first = env.reset(seed=seed)[0]["image"].copy()
        randomizable = require_protocol(env, RandomizableState)
        needs_previous = "frame_difference" in self._policy.preprocessing
        for _ in range(self._options.samples_per_episode):
            frames, previous = [], randomizable.randomize_state(rng)["image"].copy()
            image = previous
            for turn in range(needs_previous + self._frames):
                if turn > 0:
                    raw = rng.uniform(-1, 1, self._policy.actions).astype(np.float32)
                    previous, image = image, env.step(to_action(env.action_space, raw))[0]["image"].copy()
                frames.append(self._frame(env, image, previous, first))
            yield from _sample(frames[-self._frames :])

    def _episode(self, env: Any, policy: Policy, seed: int, rng: np.random.Generator) -> Iterator[Sample]:
        """Frames of a policy's episode: the first, which it may remember, and random others."""
        observation, _ = env.reset(seed=seed)
        state, count = policy.reset(seed), self._frames
        lazy = find_protocol(env, LazyRendering)
        first = previous = observation["image"].copy()
        others = rng.choice(np.arange(count, LONGEST_EPISODE), self._options.samples_per_episode - 1, replace=False)
        chosen, frames = {count - 1, *others.tolist()}, []  # the last step of each sample
        for step in range(LONGEST_EPISODE):
            image = observation["image"].copy()
            if chosen & set(range(step, step + count)):
                frames.append(self._frame(env, image, previous, first))
            if step in chosen:
                yield from _sample(frames[-count:])
            raw, state, _ = policy.act(state, observation)
            # The policy may need the next image, a sample, or the difference to the frame before a sample.
            if lazy is not None:
                lazy.set_rendering(policy.needs_image(state) or bool(chosen & set(range(step + 1, step + count + 2))))
            observation, *_ = env.step(to_action(env.action_space, raw))
            previous = image

    def _frame(self, env: Any, image: np.ndarray, previous: np.ndarray, first: np.ndarray) -> Frame | None:
        """The encoder's inputs and the keypoints; None if one of them is out of view."""
        located, names = require_protocol(env, Keypoints), self._options.keypoints
        if not located.keypoints_visible(names):
            return None
        return encoder_inputs(self._policy, image, previous, first), located.keypoints(names)


def teacher_policy(pretraining: Distillation, policy: PolicyConfig) -> PolicyFile | None:
    """The teacher, if its controller fits the low level that it becomes or supervises."""
    if pretraining.teacher is None:
        return None
    teacher, _ = locate_policy(pretraining.teacher)
    hierarchy = policy.hierarchy
    assert hierarchy is not None
    if has_memory(policy):
        fits, controller = True, "any controller"
    else:
        fits = isinstance(hierarchy.low_level, Quadratic) and teacher.config.controller == hierarchy.low_level
        controller = f"the controller {hierarchy.low_level}"
    sizes = teacher.config.sensors, teacher.config.actions
    if sizes != (hierarchy.latent_size, policy.actions) or not isinstance(teacher.config.encoder, Blind) or not fits:
        raise ValueError(
            f"pretraining.teacher must be a blind policy with {hierarchy.latent_size} sensors and {controller}, which "
            f"{pretraining.teacher} is not"
        )
    return teacher


def frames_per_sample(policy: PolicyConfig) -> int:
    """Two where the low level uses changes, which have to be right too; else one."""
    return 2 if policy.hierarchy is not None and policy.hierarchy.low_level == Quadratic(deltas=True) else 1


def encoder_inputs(policy: PolicyConfig, image: np.ndarray, previous: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The preprocessed frame, and the preprocessed first frame if its features are used, (1 or 2, H, W, C)."""
    shown = preprocess_image(policy.preprocessing, image, previous, first)
    if not policy.first_frame_features:
        return shown[None].copy()
    return np.stack([shown, preprocess_image(policy.preprocessing, first, first, first)])


def _with_keypoint_sensors(env: EnvConfig, pretraining: Distillation, teacher: PolicyFile | None) -> EnvConfig:
    """The environment, with the teacher's noisy keypoints as sensors."""
    if teacher is None:
        return env
    noise = teacher.env_kwargs.get("keypoint_noise", 0.0)
    return EnvConfig.of(env.id, **dict(env.kwargs), keypoints=pretraining.keypoints, keypoint_noise=noise)


def _sample(frames: list[Frame | None]) -> list[Sample]:
    """Successive frames as one sample, if all keypoints are in view in each."""
    visible = [frame for frame in frames if frame is not None]
    if len(visible) < len(frames):
        return []
    inputs, keypoints = zip(*visible, strict=True)
    return [(np.stack(inputs), np.stack(keypoints))]
