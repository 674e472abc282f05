"""Eyes that are taught by gradients to tell where things are, before anything is done with them.

The simulator tells where the parts of a robot are, and gradient descent moves eyes and high level towards a command
that says the same. Where patches are kept by their scores and weighed by how far these lie above the least, what the
eyes say changes smoothly with their parameters, so that there is a gradient to follow. Where things are in the image
does not depend on where the camera is; where they are in the room has to be seen from what stands still in it. The
simulator's state is needed for teaching alone: a taught policy sees images, as any other.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iap.distillation.dagger import imitate
from iap.distillation.dataset import Lessons, collect, collect_own, told_policy
from iap.distillation.descent import descent, no_moments
from iap.distillation.es_pretraining import TEACHING, Taught, Told
from iap.distillation.jax_encoders import Eyes, Parts, eyes_of
from iap.policies import LSTM, Blind, Normaliser, Policy, PolicyConfig, Quadratic, blocks, flatten, init
from iap.policies.normalization import CLIP
from iap.policies.params import unflatten
from iap.policies.serialization import PolicyFile
from iap.training.config import Distillation, TrainConfig
from iap.training.returns import draw_seeds

SPREAD = 0.25  # standard deviation of each number of the command, which tanh gives: four of them fit
FARTHEST = 0.95  # that a command is asked to tell
FAR = 2.0  # errors beyond so many standard deviations count no more: eyes that see another thing pull no further
CHANGING = 3.0  # how much errors count that change from look to look
SOME = 256  # lessons at a time, where there is no hurry
OFTEN = 100  # steps from one word about progress to the next


def teach_by_gradient(config: TrainConfig, tell_about: Told = lambda _what, _share: None) -> Taught:
    """A policy whose eyes, drawn at random, have been taught to tell places; and how well they did on new episodes."""
    assert isinstance(config.pretraining, Distillation)
    spec, wanted = config.policy, config.pretraining
    told = told_policy(config, wanted)
    if isinstance(spec.encoder, Blind):
        assert told is not None
        return _without_eyes(config, wanted, told, tell_about)
    lessons = collect(config, wanted, told, tell_about)
    theta, eyes = jnp.asarray(flatten(init(spec, config.seed))), eyes_of(spec)
    parts = parts_of(spec, theta)
    normaliser = Normaliser.of(np.asarray(eyes.read(parts, eyes.project(parts, _look_by_look(lessons.seen[:SOME])))))
    units = Normaliser.of(_look_by_look(lessons.places)) if told is None or told.normaliser is None else told.normaliser
    command = command_of(spec, eyes, normaliser)

    def explained(theta: Array, lessons: Lessons) -> float:
        parts, right = parts_of(spec, theta), _in_units(_look_by_look(lessons.places), units)
        said = [command(theta, eyes.project(parts, _look_by_look(some))) for some in _some_at_a_time(lessons.seen)]
        return float(1 - np.square(np.concatenate(said) - right).sum() / np.square(right).sum())

    known, new = lessons.parted()
    drawn = explained(theta, new)
    slope, step = _slope_of_loss(spec, eyes, command), descent(wanted.steps, wanted.learning_rate)
    rng = np.random.default_rng(draw_seeds(config.seed, TEACHING + 1, 1))
    moments = no_moments(theta)
    for time, share in enumerate(np.array_split(np.arange(wanted.steps), 1 + wanted.student_rounds)):
        if time > 0:
            own = Policy(spec, unflatten(spec, np.array(theta)), normaliser)
            lessons = lessons.joined(collect_own(config, wanted, own, time, tell_about))
            known, new = lessons.parted()
        right = _in_units(known.places, units)
        for i in share.tolist():
            chosen = rng.integers(len(right), size=max(1, wanted.batch // right.shape[1]))
            theta, moments = step(theta, moments, i, slope(theta, known.seen[chosen], right[chosen]))
            if (i + 1) % OFTEN == 0:
                tell_about(f"teaching eyes, R² {explained(theta, new):.2f}", (i + 1) / wanted.steps)
        if told is not None:
            theta = jnp.asarray(_with_low_level(config, wanted, np.array(theta), normaliser, told, time, tell_about))
    return Taught(np.array(theta), normaliser, drawn, explained(theta, new))


def _without_eyes(config: TrainConfig, wanted: Distillation, told: PolicyFile, tell_about: Told) -> Taught:
    """A blind policy that has practised as often as one with eyes: how far that leads is what these are judged by."""
    theta, normaliser = flatten(init(config.policy, config.seed)), Normaliser.none(config.policy.inputs_size)
    for time in range(1 + wanted.student_rounds):
        theta = imitate(config, wanted, theta, normaliser, told, time, tell_about)
    return Taught(theta, normaliser, drawn=0.0, taught=0.0)


def _look_by_look(of_lessons: np.ndarray) -> np.ndarray:
    """Of all looks, one after the other, those of a lesson side by side."""
    return of_lessons.reshape(-1, *of_lessons.shape[2:])


def _some_at_a_time(seen: np.ndarray) -> list[np.ndarray]:
    return np.array_split(seen, -(-len(seen) // SOME))


def _in_units(places: Float[np.ndarray, "n s"], units: Normaliser) -> Float[np.ndarray, "n s"]:
    """Places as commands."""
    mean, scale, _ = units.folded
    return np.clip(SPREAD * (places - mean) * scale, -FARTHEST, FARTHEST).astype(np.float32)


def _with_low_level(
    config: TrainConfig,
    wanted: Distillation,
    theta: np.ndarray,
    normaliser: Normaliser,
    told: PolicyFile,
    time: int,
    tell_about: Told,
) -> np.ndarray:
    """θ with a low level that does what a told policy does: taught by it, or its controller itself."""
    assert config.policy.hierarchy is not None
    if isinstance(config.policy.hierarchy.low_level, LSTM):
        return imitate(config, wanted, theta, normaliser, told, time, tell_about)
    return _with_controller(config.policy, theta, told)


def _with_controller(spec: PolicyConfig, theta: np.ndarray, told: PolicyFile) -> np.ndarray:
    """θ with the controller of another policy as its low level, whose numbers are `SPREAD` times as large here."""
    bias, weight = (told.theta[block.start : block.stop].reshape(block.shape) for block in blocks(told.spec))
    assert isinstance(told.spec.controller, Quadratic)
    singles = told.spec.sensors * (1 + told.spec.controller.changes)
    weight = weight / np.where(np.arange(weight.shape[1]) < singles, SPREAD, SPREAD**2)
    low = [block for block in blocks(spec) if block.part == "low"]
    for block, array in zip(low, (bias, weight), strict=True):
        theta[block.start : block.stop] = array.ravel()
    return theta


def command_of(spec: PolicyConfig, eyes: Eyes, normaliser: Normaliser) -> Callable[[Array, Array], Array]:
    """θ and the eyes' projections → commands, as the policy itself gives them."""
    mean, scale, _ = (jnp.asarray(part, jnp.float32) for part in normaliser.folded)

    def command(theta: Array, projections: Array) -> Array:
        parts = parts_of(spec, theta)
        x = jnp.clip((eyes.read(parts, projections) - mean) * scale, -CLIP, CLIP)
        for layer in sorted({name.rpartition(".")[0] for name in parts if name.startswith("controller")}, key=_in_turn):
            x = jnp.tanh(x @ parts[f"{layer}.weight"].T + parts[f"{layer}.bias"])
        return x[:, :-1]  # the last number says how long to hold

    return jax.jit(command)


def parts_of(spec: PolicyConfig, theta: Array) -> Parts:
    """θ's arrays by part and name."""
    return {f"{b.part}.{b.name}": theta[b.start : b.stop].reshape(b.shape) for b in blocks(spec)}


def _in_turn(layer: str) -> tuple[bool, str]:
    return layer.endswith("output"), layer


def _slope_of_loss(
    spec: PolicyConfig, eyes: Eyes, command: Callable[[Array, Array], Array]
) -> Callable[..., np.ndarray]:
    """The gradient of how far commands are from the right ones, at θ, for what is seen.

    Where the low level knows changes, errors that come and go from look to look count more than those that stay.
    """
    places = {f"{block.part}.{block.name}": slice(block.start, block.stop) for block in blocks(spec)}

    @jax.jit
    @partial(jax.grad, argnums=(0, 1))
    def slopes_of(theta: Array, projections: Array, right: Array) -> Array:
        errors = (command(theta, projections).reshape(right.shape) - right) / SPREAD
        loss = jnp.mean(jnp.minimum(errors**2, FAR**2))
        if right.shape[1] > 1:
            loss += CHANGING * jnp.mean(jnp.minimum(jnp.diff(errors, axis=1) ** 2, FAR**2))
        return loss

    def slope(theta: Array, seen: np.ndarray, right: np.ndarray) -> np.ndarray:
        seen = _look_by_look(seen)
        of_theta, of_projections = slopes_of(theta, eyes.project(parts_of(spec, theta), seen), right)
        whole = np.array(of_theta)
        for name, part in eyes.slopes(seen, of_projections).items():
            whole[places[name]] += part.ravel()
        return whole

    return slope
