"""Training of an encoder and high level by gradients: the command estimates keypoints that the simulator knows.

Soft top-l selection makes the features continuous in the parameters, so that gradients exist. Keypoints in image
coordinates do not depend on the camera's pose; those in world coordinates have to be inferred from what does not move.
The simulator's state is used in training only: the trained policy acts on images.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from iap.distillation.config import Distillation, has_memory
from iap.distillation.dataset import Collector, Dataset, teacher_policy
from iap.distillation.low_level import train_low_level
from iap.distillation.optimisation import Descent, load_torch, one_torch_thread
from iap.distillation.pretrained import PRETRAINING, Pretrained, Report
from iap.envs.core import EnvConfig
from iap.policies import Blind, Normaliser, Policy, PolicyConfig, PolicyFile, Quadratic, blocks, flatten, init
from iap.policies.params import split
from iap.rollouts import draw_seeds

COMMAND_STD = 0.25  # of each number of the command, which is a tanh: four standard deviations fit
LARGEST_COMMAND = 0.95
LARGEST_ERROR = 2.0  # standard deviations; larger errors, of an encoder that locates another thing, add no gradient
CHANGE_WEIGHT = 3.0  # of errors that change from frame to frame
EVALUATION_BATCH = 256
REPORT_EVERY = 100  # steps


def distil(pretraining: Distillation, env: EnvConfig, policy: PolicyConfig, seed: int, report: Report) -> Pretrained:
    """A random policy whose command was trained to estimate keypoints, and how well it does on other episodes."""
    teacher = teacher_policy(pretraining, policy)
    with one_torch_thread():
        if isinstance(policy.encoder, Blind):
            assert teacher is not None
            return _distil_blind(pretraining, env, policy, seed, teacher, report)
        return _Regression(pretraining, env, policy, seed, teacher, report).run()


def frame_features(policy: PolicyConfig, theta: Any, inputs: np.ndarray) -> Any:
    """The features of frames (n, 1 or 2, H, W, C): those of the frame, then those of the first frame if it is given."""
    images = load_torch().from_numpy(np.ascontiguousarray(inputs.reshape(-1, *inputs.shape[2:])))
    encoded = policy.encoder.forward(split(policy, theta)["encoder"], images).features
    return encoded.reshape(len(inputs), -1)


def estimate(policy: PolicyConfig, normaliser: Normaliser, theta: Any, inputs: np.ndarray) -> Any:
    """The command for frames, as the acting policy gives it; differentiable in θ, a tensor."""
    torch = load_torch()
    applied = normaliser if policy.normalise else Normaliser.none(policy.inputs_size)
    mean, scale, clip = applied.coefficients
    centred = frame_features(policy, theta, inputs) - torch.tensor(mean, dtype=torch.float32)
    x = torch.clip(centred * torch.tensor(scale, dtype=torch.float32), -clip, clip)
    outputs, _ = policy.controller.step(split(policy, theta)["controller"], x[:, :0], x)
    return outputs[:, :-1]  # the last output is the command's duration


def regression_loss(
    policy: PolicyConfig,
    normaliser: Normaliser,
    theta: Any,
    inputs: UInt8[np.ndarray, "n frames 1+first H W C"],
    targets: Float[np.ndarray, "n frames s"],
) -> Any:
    """Mean squared error of the commands; with two frames, errors that change between them count more."""
    torch = load_torch()
    commands = estimate(policy, normaliser, theta, _frame_by_frame(inputs))
    errors = (commands.reshape(targets.shape) - torch.from_numpy(targets)) / COMMAND_STD
    loss = torch.mean(torch.clip(errors**2, max=LARGEST_ERROR**2))
    if targets.shape[1] > 1:
        changes = torch.diff(errors, dim=1)
        loss = loss + CHANGE_WEIGHT * torch.mean(torch.clip(changes**2, max=LARGEST_ERROR**2))
    return loss


class _Regression:
    """The state of one regression."""

    def __init__(
        self,
        pretraining: Distillation,
        env: EnvConfig,
        policy: PolicyConfig,
        seed: int,
        teacher: PolicyFile | None,
        report: Report,
    ) -> None:
        self.torch = load_torch()
        self.options, self.env, self.policy, self.seed, self.teacher = pretraining, env, policy, seed, teacher
        self.report = report
        self.collector = Collector(pretraining, env, policy, seed)
        self.dataset = self.collector.collect(teacher, report)
        theta = flatten(init(policy, seed))
        self.descent = Descent(theta, pretraining.steps, pretraining.learning_rate)
        some = _frame_by_frame(self.dataset.inputs[:EVALUATION_BATCH])
        with self.torch.no_grad():
            features = frame_features(policy, self.descent.theta, some)
        self.normaliser = Normaliser.of(features.numpy())
        known = None if teacher is None else teacher.normaliser
        self.units = Normaliser.of(_frame_by_frame(self.dataset.keypoints)) if known is None else known

    def run(self) -> Pretrained:
        """Train in rounds, with samples of the student added before each but the first."""
        options, policy = self.options, self.policy
        training, validation = self.dataset.split()
        initial = self.explained(validation)
        rng = np.random.default_rng(draw_seeds(self.seed, PRETRAINING + 1, 1))
        for number, share in enumerate(np.array_split(np.arange(options.steps), 1 + options.student_rounds)):
            if number > 0:
                student = Policy(policy, self.descent.vector(), self.normaliser)
                more = self.collector.collect_from(student, number, self.report)
                self.dataset = self.dataset.joined(more)
                training, validation = self.dataset.split()
            targets = self.commands_of(training.keypoints)
            for i in share.tolist():
                chosen = rng.integers(len(targets), size=max(1, options.batch // targets.shape[1]))
                batch = training.inputs[chosen], targets[chosen]
                self.descent.step(regression_loss(policy, self.normaliser, self.descent.theta, *batch))
                if (i + 1) % REPORT_EVERY == 0:
                    self.report(f"training the encoder, R² {self.explained(validation):.2f}", (i + 1) / options.steps)
            if self.teacher is not None:
                self.set_theta(self.with_low_level(self.descent.vector(), number))
        facts = {"r2_initial": initial, "r2_pretrained": self.explained(validation)}
        return Pretrained(self.descent.vector(), self.normaliser, facts)

    def commands_of(self, keypoints: Float[np.ndarray, "*n s"]) -> Float[np.ndarray, "*n s"]:
        """Keypoints as commands."""
        mean, scale, _ = self.units.coefficients
        clipped = np.clip(COMMAND_STD * (keypoints - mean) * scale, -LARGEST_COMMAND, LARGEST_COMMAND)
        return clipped.astype(np.float32)

    def explained(self, dataset: Dataset) -> float:
        """R² of the commands, over all coordinates."""
        targets = self.commands_of(_frame_by_frame(dataset.keypoints))
        with self.torch.no_grad():
            parts = np.array_split(dataset.inputs, -(-len(dataset.inputs) // EVALUATION_BATCH))
            theta = self.descent.theta
            commands = [estimate(self.policy, self.normaliser, theta, _frame_by_frame(x)).numpy() for x in parts]
        return float(1 - np.square(np.concatenate(commands) - targets).sum() / np.square(targets).sum())

    def set_theta(self, theta: np.ndarray) -> None:
        """Continue from another θ, with the moments of the optimiser as they are."""
        with self.torch.no_grad():
            self.descent.theta.copy_(self.torch.from_numpy(theta))

    def with_low_level(self, theta: np.ndarray, round_number: int) -> np.ndarray:
        """θ with a low level that does what the teacher does: trained on its actions, or its own controller."""
        assert self.teacher is not None
        if has_memory(self.policy):
            return train_low_level(
                self.options,
                self.env,
                Policy(self.policy, theta, self.normaliser),
                Policy.of(self.teacher),
                self.seed,
                round_number,
                self.report,
            )
        return _with_controller(self.policy, theta, self.teacher)


def _distil_blind(
    pretraining: Distillation, env: EnvConfig, policy: PolicyConfig, seed: int, teacher: PolicyFile, report: Report
) -> Pretrained:
    """A blind policy whose low level had the same training: the baseline of a policy with an encoder."""
    theta, normaliser = flatten(init(policy, seed)), Normaliser.none(policy.inputs_size)
    for number in range(1 + pretraining.student_rounds):
        student = Policy(policy, theta, normaliser)
        theta = train_low_level(pretraining, env, student, Policy.of(teacher), seed, number, report)
    return Pretrained(theta, normaliser, {"r2_initial": 0.0, "r2_pretrained": 0.0})


def _frame_by_frame(of_samples: np.ndarray) -> np.ndarray:
    """All frames, one after the other."""
    return of_samples.reshape(-1, *of_samples.shape[2:])


def _with_controller(policy: PolicyConfig, theta: np.ndarray, teacher: PolicyFile) -> np.ndarray:
    """θ with the teacher's controller as the low level, whose inputs are `COMMAND_STD` times as large here."""
    bias, weight = (teacher.theta[block.start : block.stop].reshape(block.shape) for block in blocks(teacher.config))
    assert isinstance(teacher.config.controller, Quadratic)
    linear = teacher.config.sensors * (1 + teacher.config.controller.deltas)
    weight = weight / np.where(np.arange(weight.shape[1]) < linear, COMMAND_STD, COMMAND_STD**2)
    low_level = [block for block in blocks(policy) if block.part == "low_level"]
    theta = theta.copy()
    for block, array in zip(low_level, (bias, weight), strict=True):
        theta[block.start : block.stop] = array.ravel()
    return theta
