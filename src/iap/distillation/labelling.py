"""Episodes in which a teacher labels every step, while the teacher or the student acts; they run on a pool."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iap._observations import sensors_of
from iap._validation import require_count, require_number
from iap.distillation.teachers import Teacher, TeacherConfig, require_label
from iap.envs.core import action_map
from iap.envs.protocols import (
    Keypoints,
    Label,
    LazyRendering,
    RandomizableState,
    VisualSeeds,
    find_protocol,
    require_protocol,
)
from iap.policies import Moments, Policy
from iap.policies.preprocessing import preprocess_image
from iap.rollouts import Episode, Job
from iap.rollouts.job import Runner

LABELLING = 7919  # decouples the noise of an episode from its environment, which has the same seed
APPEARANCE = 7907  # and its visual seed from both
ACTION_BOUND = 1.0

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class LabellingJob(Job):
    """Labelled episodes.

    Attributes:
        teacher: labels every step.
        teacher_share: of the steps, in which the teacher acts instead of the student.
        noise: standard deviations of the noise on the teacher's actions; each episode draws one of them.
        keep_images: whether the encoder's input images are part of the data.
        keep_inputs: whether the controller's inputs are, before normalisation; the student encodes every image then.
        keypoints: names of keypoints whose image coordinates are part of the data, in this frame and in the last.
        random_share: of the episodes that start in a random state, see `iap.envs.protocols.RandomizableState`.
        samples_per_episode: so many random steps of each episode are part of the data; all of them if None.
        visual_seeds: the number of visual seeds that the episodes share, see `iap.envs.protocols.VisualSeeds`; None for
            one of its own for each episode.
        first_visual_seed: the smallest of them.
    """

    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    teacher_share: float = 1.0
    noise: tuple[float, ...] = (0.0,)
    keep_images: bool = True
    keep_inputs: bool = False
    keypoints: tuple[str, ...] = ()
    random_share: float = 0.0
    samples_per_episode: int | None = None
    visual_seeds: int | None = None
    first_visual_seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("teacher_share", self.teacher_share, 0, 1)
        if self.visual_seeds is not None:
            require_count("visual_seeds", self.visual_seeds)

    def make_runner(self) -> "LabellingRunner":
        """What executes the episodes in one process."""
        return LabellingRunner(self)


@dataclass(frozen=True, eq=False)
class LabelledEpisode(Episode):
    """An episode with its data.

    Attributes:
        arrays: images, sensors, inputs, keypoints, state, actions, weights, importance, costs, dependent: a row a step.
        axes: of the cost maps, see `Label`.
    """

    arrays: Arrays = field(default_factory=dict)
    axes: tuple[tuple[int, int, int | None], ...] = ()


class LabellingRunner(Runner):
    """Runs labelled episodes in one process."""

    job: LabellingJob

    def __init__(self, job: LabellingJob) -> None:
        super().__init__(job)
        try:
            self._teacher = job.teacher.make()
        except BaseException:
            self.close()
            raise

    def run_policy(self, policy: Any, seed: int) -> Episode:
        """Run one episode; the noise and who acts depend on the seed alone."""
        return label_episode(self.env, policy, self._teacher, self.job, seed)


def label_episode(env: Any, student: Policy, teacher: Teacher, job: LabellingJob, seed: int) -> LabelledEpisode:
    """One episode: at every step the teacher is asked, and one of the two acts."""
    rng = np.random.default_rng((seed, LABELLING))
    noise = job.noise[rng.integers(len(job.noise))]
    needs_student = job.teacher_share < 1 or job.keep_inputs
    lazy, to_action = find_protocol(env, LazyRendering), action_map(env.action_space)
    recorder = _Recorder(job, env)
    observation, _ = env.reset(seed=seed, options=_appearance(job, env, seed))
    recorder.start(observation)
    if rng.random() < job.random_share:
        observation = require_protocol(env, RandomizableState).randomize_state(rng)
    chosen = _chosen_steps(job, rng)
    teacher.reset(env, seed)
    state, total, steps, ended = student.reset(seed), 0.0, 0, False
    while not ended and steps != job.max_steps:
        label = require_label(teacher.label(env), job.policy.actions)
        raw = label.action
        if needs_student:
            raw, state, _ = student.act(state, observation)
        recorder.add(observation, label, state, keeps=chosen is None or steps in chosen)
        if rng.random() < job.teacher_share:
            raw = label.action + noise * rng.standard_normal(len(label.action), np.float32)
            raw = np.clip(raw, -ACTION_BOUND, ACTION_BOUND)
        if lazy is not None:
            shown = job.keep_images and (chosen is None or not chosen.isdisjoint((steps + 1, steps + 2)))
            lazy.set_rendering(shown or (needs_student and student.needs_image(state)))
        observation, reward, terminated, truncated, _ = env.step(to_action(raw))
        total += float(reward)
        steps, ended = steps + 1, terminated or truncated
    if lazy is not None:
        lazy.set_rendering(True)
    moments = Moments.none(job.policy.inputs_size)
    return LabelledEpisode(seed, total, steps, moments, arrays=recorder.arrays(), axes=recorder.axes)


def _appearance(job: LabellingJob, env: Any, seed: int) -> dict[str, int] | None:
    """The options of `reset` that choose one of the visual seeds."""
    if job.visual_seeds is None:
        return None
    require_protocol(env, VisualSeeds)
    drawn = np.random.default_rng((seed, APPEARANCE)).integers(job.visual_seeds)
    return {"visual_seed": job.first_visual_seed + int(drawn)}


def _chosen_steps(job: LabellingJob, rng: np.random.Generator) -> set[int] | None:
    """The steps that become data; None for all. The longest episode must be known to choose some."""
    if job.samples_per_episode is None:
        return None
    if job.max_steps is None:
        raise ValueError("max_steps must be given to choose some steps of each episode")
    return set(rng.choice(job.max_steps, min(job.samples_per_episode, job.max_steps), replace=False).tolist())


class _Recorder:
    """The rows of an episode."""

    def __init__(self, job: LabellingJob, env: Any) -> None:
        self._job, self._rows = job, []
        self._first: np.ndarray | None = None
        self._previous: np.ndarray | None = None
        self._located = require_protocol(env, Keypoints) if job.keypoints else None
        self._last_keypoints: np.ndarray | None = None
        self.axes: tuple[tuple[int, int, int | None], ...] = ()

    def start(self, observation: Any) -> None:
        """The first frame, which an episode that continues in a random state also has."""
        if self._job.keep_images and self._job.policy.encoder.uses_image:
            self._first = self._job.policy.formatted(observation["image"]).copy()

    def add(self, observation: Any, label: Label, state: Any, *, keeps: bool) -> None:
        """One step: what the student observes, and what it should do."""
        image = self._image(observation["image"], keeps) if self._job.keep_images else None
        keypoints = self._keypoints()
        if not keeps:
            return
        actions = len(label.action)
        row: dict[str, Any] = {
            "sensors": sensors_of(observation).copy(),
            "actions": label.action,
            "weights": np.ones(actions, np.float32) if label.weights is None else label.weights,
            "importance": np.float32(label.importance),
        }
        if label.costs is not None:
            self.axes = label.axes
            row |= {"costs": np.asarray(label.costs, np.float16), "dependent": np.asarray(label.dependent, np.float16)}
        if image is not None:
            row["images"] = image
        if keypoints is not None:
            row["keypoints"] = keypoints
        if label.state is not None:
            row["state"] = np.asarray(label.state, np.float32)
        if self._job.keep_inputs:
            row["inputs"] = state.inputs.copy()
        self._rows.append(row)

    def _keypoints(self) -> np.ndarray | None:
        """The keypoints of this frame, then those of the last."""
        if self._located is None:
            return None
        now = np.asarray(self._located.keypoints(self._job.keypoints), np.float32)
        last, self._last_keypoints = now if self._last_keypoints is None else self._last_keypoints, now
        return np.concatenate([now, last])

    def _image(self, image: np.ndarray, keeps: bool) -> np.ndarray | None:
        """The encoder's input, in two bytes a number if it is not in one."""
        if not self._job.policy.encoder.uses_image:
            return np.zeros(0, np.uint8)
        config = self._job.policy
        image = config.formatted(image).copy()
        assert self._first is not None
        previous, self._previous = image if self._previous is None else self._previous, image
        if not keeps:
            return None
        shown = preprocess_image(config.preprocessing, image, previous, self._first)
        return shown.copy() if shown.dtype == np.uint8 else shown.astype(np.float16)

    def arrays(self) -> Arrays:
        """All rows, stacked."""
        return {name: np.stack([row[name] for row in self._rows]) for name in self._rows[0]} if self._rows else {}
