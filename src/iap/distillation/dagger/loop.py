"""Distillation by DAgger: rounds of labelled episodes on a pool, each followed by gradient descent on all of them.

A policy without memory is trained end to end. A recurrent one is trained in two stages: first its encoder on labelled
images, then its controller on what the encoder gives in whole episodes.

Everything is kept in a folder: the datasets, and a checkpoint of θ and the optimiser. A run that was killed at any
point continues there, and ends with the same policy to the last bit.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from iap.distillation.bank import Bank
from iap.distillation.collecting import BLOCK, collect
from iap.distillation.dagger.config import DAgger
from iap.distillation.dagger.encoder_training import EncoderTraining
from iap.distillation.dagger.end_to_end import EndToEndTraining, Sampler
from iap.distillation.dagger.imitation import act
from iap.distillation.dagger.place import ENCODER, Place, load_place, save_place
from iap.distillation.dagger.sequences import SequenceTraining
from iap.distillation.labelling import Arrays, LabellingJob
from iap.distillation.optimisation import load_torch, one_torch_thread
from iap.distillation.pretrained import PRETRAINING, Pretrained, Report
from iap.distillation.teachers import TeacherConfig
from iap.envs.protocols import Symmetry as HasSymmetry
from iap.envs.protocols import find_protocol
from iap.policies import Normaliser, Symmetry, count_params, flatten, init
from iap.rollouts import TRAINING_SEEDS, Job, Pool, draw_seeds

EPISODES = PRETRAINING + (1 << 17)  # the stream of the episodes' seeds
ENCODER_EPISODES = PRETRAINING + (1 << 18)
CHECKPOINT_EVERY_S = 5.0
REPORT_EVERY = 50  # updates
COMPARED = 512  # steps on which the soft and the hard selection are compared


class Training(Protocol):
    """A part of θ that is being trained."""

    @property
    def done(self) -> int:
        """Updates so far."""
        ...

    def step(self, rng: np.random.Generator) -> float:
        """One update; the loss."""
        ...

    def vector(self) -> np.ndarray:
        """The whole of θ."""
        ...

    def arrays(self) -> Arrays:
        """Everything that a continued training needs."""
        ...

    def restore(self, arrays: Arrays, done: int) -> None:
        """Continue from a checkpoint."""
        ...


def distil_by_dagger(
    dagger: DAgger,
    job: Job,
    seed: int,
    pool: Pool,
    folder: Path,
    report: Report = lambda _what, _share: None,
    teacher: TeacherConfig | None = None,
    checkpoint_s: float = CHECKPOINT_EVERY_S,
) -> Pretrained:
    """Distil a teacher into a random policy.

    Args:
        dagger: the options.
        job: the environment, the policy and the longest episode.
        seed: of everything random.
        pool: where the episodes run.
        folder: of the datasets and the checkpoint; what it holds of an interrupted run is used.
        report: called with what is being done and which share of it is done.
        teacher: another teacher than the config's, such as a function.
        checkpoint_s: least seconds between two checkpoints of a stage; the result does not depend on it.
    """
    load_torch()
    with one_torch_thread():
        return _Distillation(dagger, job, seed, pool, folder, report, teacher, checkpoint_s).run()


class _Distillation:
    """One distillation."""

    def __init__(
        self,
        dagger: DAgger,
        job: Job,
        seed: int,
        pool: Pool,
        folder: Path,
        report: Report,
        teacher: TeacherConfig | None,
        checkpoint_s: float,
    ) -> None:
        self.checkpoint_s = checkpoint_s
        self.options, self.job, self.seed, self.pool, self.report = dagger, job, seed, pool, report
        self.teacher = teacher or TeacherConfig(dagger.teacher)
        self.bank, self.folder = Bank(folder / "dataset"), folder
        self.symmetry = self._check_env()
        self.is_recurrent = dagger.trains_memory(job.policy)
        encoder = 0 if dagger.encoder is None else dagger.encoder.updates
        self.updates = {ENCODER: encoder} | dict(enumerate(dagger.updates))

    def run(self) -> Pretrained:
        """All stages that are left."""
        policy = self.job.policy
        start = Place(ENCODER, 0, flatten(init(policy, self.seed)), {}, [])
        place = load_place(self.folder, count_params(policy)) or start
        if place.stage == ENCODER and self.options.encoder is not None:
            place = self._pretrain_encoder(place)
        normaliser = Normaliser.none(self.job.policy.inputs_size)
        for number in range(len(self.options.steps)):
            if number > place.stage:
                place = Place(number, 0, place.theta, {}, place.facts)
            self._collect(number, place, normaliser)
            if number == 0:
                normaliser = self._normaliser()
            if number == place.stage and place.updates < self.updates[number]:
                returns = self.bank.returns_of(number)
                facts = {"teacher_share": self.options.teacher_share[number], "steps": self.bank.steps_of(number)}
                place = self._train(
                    self._controller_training(number, place, normaliser),
                    place,
                    f"round {number + 1} of {len(self.options.steps)}: training on {self.bank.steps():,} steps",
                    lambda facts=facts, returns=returns: facts | {"return": float(np.mean(returns))},
                )
        facts: dict[str, Any] = {"distillation": place.facts}
        if not self.is_recurrent:
            facts["soft_hard_difference"] = self._compare(place.theta, normaliser)
        self.bank.delete()
        return Pretrained(place.theta, normaliser, facts)

    def _check_env(self) -> Symmetry | None:
        """The environment's symmetry, after a check that the teacher can label its states."""
        env = self.job.env.make()
        try:
            self.teacher.check(env, self.job.policy.actions)
            offered = find_protocol(env, HasSymmetry) if self.options.mirror else None
            if offered is None:
                return None
            parts: dict[str, Any] = {name: tuple(values) for name, values in offered.symmetry.items()}
            return Symmetry(**parts)
        finally:
            env.close()

    def _pretrain_encoder(self, place: Place) -> Place:
        """Train the encoder on labelled images of the teacher's episodes."""
        options = self.options.encoder
        assert options is not None
        bank = Bank(self.folder / "images")
        job = LabellingJob(
            self.job.env,
            self.job.policy,
            options.episode_steps,
            teacher=self.teacher,
            noise=options.noise,
            keypoints=options.keypoints,
            random_share=options.random_share,
            samples_per_episode=options.samples_per_episode,
            visual_seeds=options.visual_seeds,
        )
        self._fill(bank, ENCODER, options.samples, job, place.theta, Normaliser.none(self.job.policy.inputs_size))
        training = EncoderTraining(options, self.job.policy, bank, place.theta, self.seed)
        what = f"training the encoder on {bank.steps():,} images"
        place = self._train(training, place, what, lambda: {"unexplained_actions": training.unexplained()})
        bank.delete()
        return place

    def _collect(self, number: int, place: Place, normaliser: Normaliser) -> None:
        """Add blocks of episodes until the round has its steps."""
        job = LabellingJob(
            self.job.env,
            self.job.policy,
            self.job.max_steps,
            teacher=self.teacher,
            teacher_share=self.options.teacher_share[number],
            noise=self.options.noise,
            keep_images=not self.is_recurrent,
            keep_inputs=self.is_recurrent,
        )
        self._fill(self.bank, number, self.options.steps[number], job, place.theta, normaliser)

    def _fill(
        self, bank: Bank, stage: int, steps: int, job: LabellingJob, theta: np.ndarray, normaliser: Normaliser
    ) -> None:
        if bank.steps_of(stage) >= steps:
            return
        what = "images" if stage == ENCODER else f"episodes of round {stage + 1}"
        stream = ENCODER_EPISODES if stage == ENCODER else EPISODES
        with self.pool.for_job(job) as pool:
            collect(
                bank,
                stage,
                steps,
                pool,
                theta,
                normaliser,
                lambda block: draw_seeds(self.seed, stream + block, BLOCK, TRAINING_SEEDS),
                lambda done: self.report(
                    f"collecting labelled {what}, {done:,} of {steps:,} steps", self._share(stage, 0)
                ),
            )

    def _normaliser(self) -> Normaliser:
        """The statistics of the controller's inputs in the first round, frozen from then on.

        Features that are still being trained stay as they are.
        """
        if self.is_recurrent:
            return Normaliser.of(self.bank.column("inputs", 0))
        sensors = Normaliser.of(self.bank.column("sensors", 0))
        features = self.job.policy.features_size
        mean = np.concatenate([np.zeros(features), sensors.mean])
        return Normaliser(sensors.count, mean, np.concatenate([np.full(features, sensors.count), sensors.m2]))

    def _controller_training(self, number: int, place: Place, normaliser: Normaliser) -> Training:
        options, policy = self.options, self.job.policy
        updates = options.updates[number]
        rate = options.learning_rate * (options.later_learning_rate if number > 0 else 1.0)
        if self.is_recurrent:
            window = (options.sequence, options.burn_in, options.batch)
            return SequenceTraining(policy, normaliser, place.theta, self.bank, *window, updates, rate)
        draw = Sampler(self.bank, options.batch, self.symmetry)
        softness: Callable[[int], float] = lambda done: self._softness(number, done)  # noqa: E731
        return EndToEndTraining(policy, normaliser, place.theta, draw, softness, updates, rate)

    def _train(self, training: Training, place: Place, what: str, facts: Callable[[], dict[str, Any]]) -> Place:
        """The updates of a stage that are left."""
        stage, updates = place.stage, self.updates[place.stage]
        if place.arrays:
            training.restore(place.arrays, place.updates)
        saved, losses = time.monotonic(), []
        while training.done < updates:
            losses.append(training.step(np.random.default_rng((self.seed, stage + 1, training.done))))
            if not math.isfinite(losses[-1]):
                raise RuntimeError(f"the loss of update {training.done} is {losses[-1]}: try a smaller learning_rate")
            if training.done % REPORT_EVERY == 0:
                loss = np.mean(losses[-REPORT_EVERY:])
                self.report(f"{what}, loss {loss:.3f}", self._share(stage, training.done))
            if training.done < updates and time.monotonic() - saved > self.checkpoint_s:
                save_place(self.folder, place._replace(updates=training.done, arrays=training.arrays()))
                saved = time.monotonic()
        place = Place(stage, updates, training.vector(), {}, [*place.facts, facts()])
        save_place(self.folder, place)
        return place

    def _share(self, stage: int, done: int) -> float:
        """The share of all updates that are done."""
        return (sum(count for number, count in self.updates.items() if number < stage) + done) / sum(
            self.updates.values()
        )

    def _softness(self, number: int, done: int) -> float:
        """Falls from the first to the last value by equal factors, over all rounds."""
        share = (sum(self.options.updates[:number]) + done) / sum(self.options.updates)
        first, last = self.options.softness, self.options.final_softness
        return first * (last / first) ** share

    def _compare(self, theta: np.ndarray, normaliser: Normaliser) -> float:
        """The mean absolute difference of actions between the soft selection of the last update and the hard one."""
        torch = load_torch()
        batch = Sampler(self.bank, COMPARED, None)(np.random.default_rng(self.seed))
        with torch.no_grad():
            vector = torch.from_numpy(theta)
            soft, hard = (
                act(self.job.policy, normaliser, vector, batch, softness).numpy()
                for softness in (self.options.final_softness, 0.0)
            )
        return float(np.mean(np.abs(soft - hard)))
