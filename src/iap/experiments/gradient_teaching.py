"""Eyes that are taught by gradients to tell where things are in the image, before anything is done with them.

Robots in any pose, before many backgrounds: the simulator tells where in the image their parts are, and gradient
descent moves eyes and high level towards a command that says the same. Where patches are kept by their scores and
weighed by how far these lie above the least, what the eyes say changes smoothly with their parameters, so that there
is a gradient to follow. In the image, rather than in the room: what a camera shows does not tell where the camera is.
The simulator's state is needed for teaching alone: a taught policy sees images, as any other.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from iap.attention.patches import extract
from iap.envs.contract import to_action
from iap.experiments.config import TRAINING_SEEDS, TeachByGradient, TrainConfig
from iap.experiments.evaluate import find_policy
from iap.experiments.returns import draw_seeds
from iap.experiments.teaching import TEACHING, Taught, Told
from iap.policies import CNN, Blind, MultiRank, Normaliser, PolicySpec, Products, blocks, flatten, init
from iap.policies.files import PolicyFile
from iap.policies.normaliser import CLIP
from iap.policies.readout import scaled_centres
from iap.policies.sights import show
from iap.policies.sizes import layers_of

SPREAD = 0.4  # standard deviation of each number of the command
HELD_BACK = 0.1  # of the lessons, by which the eyes are judged
FAR = 2.0  # errors beyond so many standard deviations count no more: eyes that see another thing pull no further
SOME = 256  # lessons at a time, where there is no hurry
OFTEN = 100  # steps from one word about progress to the next
MOMENTUM, SQUARES, TINY = 0.9, 0.999, 1e-8  # Adam's
NOTHING = 1e-12  # instead of 0 where that would divide

Parts = dict[str, Array]


class Eyes(NamedTuple):
    """Images as they are seen → readouts, with gradients: the same mathematics as the policy's own.

    Attributes:
        cut: images → what `read` takes, without gradients.
        read: θ's arrays, and what was cut → readouts.
    """

    cut: Callable[[np.ndarray], Array]
    read: Callable[[Parts, Array], Array]


class Lessons(NamedTuple):
    """What is seen of each image, and where things are in it, in units of the command."""

    seen: UInt8[np.ndarray, "n H W C"]
    places: Float[np.ndarray, "n s"]


def teach_by_gradient(config: TrainConfig, tell_about: Told = lambda _what, _share: None) -> Taught:
    """A policy whose eyes, drawn at random, have been taught to tell places; and how well they did on new episodes."""
    assert isinstance(config.teach, TeachByGradient)
    told = _told_policy(config, config.teach)
    lessons = collect(config, config.teach, tell_about, None if told is None else told.normaliser)
    cut = round((1 - HELD_BACK) * len(lessons.seen))
    spec, wanted = config.policy, config.teach
    theta, eyes = jnp.asarray(flatten(init(spec, config.seed))), eyes_of(spec)
    first = eyes.read(parts_of(spec, theta), eyes.cut(lessons.seen[:SOME]))
    normaliser = Normaliser.of(np.asarray(first))
    command = command_of(spec, eyes, normaliser)

    def explained(theta: Array) -> float:
        seen, places = lessons.seen[cut:], lessons.places[cut:]
        told = [command(theta, eyes.cut(some)) for some in np.array_split(seen, -(-len(seen) // SOME))]
        return float(1 - np.square(np.concatenate(told) - places).sum() / np.square(places).sum())

    drawn = explained(theta)
    step = _descent(command, wanted)
    rng = np.random.default_rng(draw_seeds(config.seed, TEACHING + 1, 1))
    moments = jnp.zeros_like(theta), jnp.zeros_like(theta)
    for i in range(wanted.steps):
        chosen = rng.integers(cut, size=wanted.batch)
        theta, moments = step(theta, moments, i, eyes.cut(lessons.seen[chosen]), lessons.places[chosen])
        if (i + 1) % OFTEN == 0:
            tell_about(f"teaching eyes, R² {explained(theta):.2f}", (i + 1) / wanted.steps)
    return Taught(_with_low_level(spec, np.array(theta), told), normaliser, drawn, explained(theta))


def collect(config: TrainConfig, wanted: TeachByGradient, tell_about: Told, units: Normaliser | None = None) -> Lessons:
    """Robots in random poses before the backgrounds of training, and where their parts are."""
    env: Any = config.env.make()
    rng = np.random.default_rng(draw_seeds(config.seed, TEACHING, 1))
    seeds = draw_seeds(config.seed, TEACHING, 1 + -(-wanted.lessons // wanted.an_episode))[1:]
    seen, places = [], []
    try:
        if not hasattr(env.unwrapped, "scatter"):
            raise ValueError(f"{config.env.id} cannot teach: it has no scatter() and places()")
        for number, seed in enumerate(seeds):
            tell_about("looking at random poses", number / len(seeds))
            env.reset(seed=TRAINING_SEEDS + seed)
            for _ in range(wanted.an_episode):
                before = image = env.unwrapped.scatter(rng)["image"].copy()
                if "changes" in config.policy.sees:
                    raw = rng.uniform(-1, 1, config.policy.actions).astype(np.float32)
                    image = env.step(to_action(env.action_space, raw))[0]["image"]
                seen.append(show(config.policy.sees, image, before))
                places.append(env.unwrapped.places(wanted.parts).ravel())
    finally:
        env.close()
    told = np.array(places[: wanted.lessons], np.float32)
    mean, scale, _ = (units or Normaliser.of(told)).folded
    return Lessons(np.array(seen[: wanted.lessons]), (SPREAD * (told - mean) * scale).astype(np.float32))


def _told_policy(config: TrainConfig, wanted: TeachByGradient) -> PolicyFile | None:
    """The policy whose controller is to be the low level, once that is known to fit."""
    if wanted.low_from is None:
        return None
    policy, _ = find_policy(wanted.low_from)
    assert config.policy.level is not None
    sizes = policy.spec.sensors, policy.spec.actions, policy.spec.controller
    fits = sizes == (config.policy.level.latent, config.policy.actions, config.policy.level.low)
    if not fits or not isinstance(policy.spec.vision, Blind) or not isinstance(policy.spec.controller, Products):
        raise ValueError(
            f"teach.low_from must be a blind policy with {config.policy.level.latent} sensors and the controller "
            f"{config.policy.level.low}, which {wanted.low_from} is not"
        )
    return policy


def _with_low_level(spec: PolicySpec, theta: np.ndarray, told: PolicyFile | None) -> np.ndarray:
    """θ with the controller of another policy as its low level, whose numbers are `SPREAD` times as large here."""
    if told is None:
        return theta
    rest = [block for block in blocks(spec) if block.part == "low"]
    bias, weight = (told.theta[block.start : block.stop].reshape(block.shape) for block in blocks(told.spec))
    assert isinstance(told.spec.controller, Products)
    singles = told.spec.sensors * (1 + told.spec.controller.changes)
    weight = weight / np.where(np.arange(weight.shape[1]) < singles, SPREAD, SPREAD**2)
    for block, array in zip(rest, (bias, weight), strict=True):
        theta[block.start : block.stop] = array.ravel()
    return theta


def command_of(spec: PolicySpec, eyes: Eyes, normaliser: Normaliser) -> Callable[[Array, Array], Array]:
    """θ and what the eyes have cut → commands, as the policy itself gives them."""
    mean, scale, _ = (jnp.asarray(part, jnp.float32) for part in normaliser.folded)

    def command(theta: Array, seen: Array) -> Array:
        parts = parts_of(spec, theta)
        x = jnp.clip((eyes.read(parts, seen) - mean) * scale, -CLIP, CLIP)
        for layer in sorted({name.rpartition(".")[0] for name in parts if name.startswith("controller")}, key=_in_turn):
            x = jnp.tanh(x @ parts[f"{layer}.weight"].T + parts[f"{layer}.bias"])
        return x[:, :-1]  # the last number says how long to hold

    return jax.jit(command)


def eyes_of(spec: PolicySpec) -> Eyes:
    """The eyes of a policy."""
    if isinstance(spec.vision, CNN):
        return _convolving_eyes(spec.vision, spec.seen_shape)
    assert isinstance(spec.vision, MultiRank)
    return _ranking_eyes(spec.vision, spec.seen_shape)


def _ranking_eyes(vision: MultiRank, seen_shape: tuple[int, int, int]) -> Eyes:
    row, column = scaled_centres(vision, seen_shape).T
    moments = np.stack([np.ones_like(row), row, column, row * row, row * column, column * column], axis=1)

    def read(parts: Parts, tokens: Array) -> Array:
        sides = [parts[f"vision.{side}.{what}"] for what in ("weight", "bias") for side in ("query", "key")]
        weights, biases = jnp.concatenate(sides[:2]), jnp.concatenate(sides[2:])
        features = jax.nn.relu(_pixels(tokens) @ weights.T + biases)
        queries, keys = features[..., : vision.d], features[..., vision.d :]
        heads = queries.mean(axis=1)[:, None] * parts["vision.gains"]
        scores = jnp.einsum("nld,nhd->nhl", keys, heads)
        kept = jax.lax.top_k(scores, vision.keep)[0]
        least, most = kept[..., -1:], kept[..., :1]
        shares = jax.nn.relu(scores - least) / jnp.maximum(most - least, NOTHING)
        sums = shares**2 @ moments
        total = jnp.maximum(sums[..., 0], NOTHING)
        y, x, yy, yx, xx = jnp.moveaxis(sums[..., 1:], -1, 0) / total
        told = [y, x, yy - y * y, yx - y * x, xx - x * x, total / vision.keep]
        return jnp.stack(told, axis=-1).reshape(len(tokens), -1)

    return Eyes(lambda seen: jnp.asarray(extract(seen, vision.patch, vision.stride)), jax.jit(read))


def _convolving_eyes(vision: CNN, seen_shape: tuple[int, int, int]) -> Eyes:
    layers = layers_of(vision, seen_shape)

    def read(parts: Parts, seen: Array) -> Array:
        x = _pixels(seen)
        for i, (filters, size, stride) in enumerate(layers):
            kernel = parts[f"vision.layers.{i}.weight"].T.reshape(size, size, -1, filters)
            x = jax.lax.conv_general_dilated(
                x, kernel, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = jax.nn.relu(x + parts[f"vision.layers.{i}.bias"])
        return x.reshape(len(seen), -1)

    return Eyes(jnp.asarray, jax.jit(read))


def _pixels(seen: Array) -> Array:
    return seen.astype(jnp.float32) / 255 - 0.5


def parts_of(spec: PolicySpec, theta: Array) -> Parts:
    """θ's arrays by part and name."""
    return {f"{b.part}.{b.name}": theta[b.start : b.stop].reshape(b.shape) for b in blocks(spec)}


def _in_turn(layer: str) -> tuple[bool, str]:
    return layer.endswith("output"), layer


def _descent(command: Callable[[Array, Array], Array], wanted: TeachByGradient) -> Callable[..., Any]:
    """A step of Adam, whose length falls from `rate` to 0 along a cosine."""

    def loss(theta: Array, seen: Array, places: Array) -> Array:
        errors = (command(theta, seen) - places) / SPREAD
        return jnp.mean(jnp.minimum(errors**2, FAR**2))

    @jax.jit
    def step(theta: Array, moments: tuple[Array, Array], i: int, seen: Array, places: Array) -> tuple[Array, Any]:
        gradient = jax.grad(loss)(theta, seen, places)
        gradient /= jnp.maximum(1.0, jnp.linalg.norm(gradient))
        first = MOMENTUM * moments[0] + (1 - MOMENTUM) * gradient
        second = SQUARES * moments[1] + (1 - SQUARES) * gradient**2
        rate = wanted.rate * 0.5 * (1 + jnp.cos(jnp.pi * i / wanted.steps))
        size = jnp.sqrt(second / (1 - SQUARES ** (i + 1))) + TINY
        return theta - rate * first / (1 - MOMENTUM ** (i + 1)) / size, (first, second)

    return step
