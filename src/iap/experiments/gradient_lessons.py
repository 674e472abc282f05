"""What eyes that are taught by gradients look at: images, and where the simulator knows things to be in them.

Robots in any pose, before many backgrounds; and, where there is a policy that was told where things are, what that
meets on its way, which is what will have to be seen.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from iap.envs.contract import to_action
from iap.experiments.config import TRAINING_SEEDS, TeachByGradient, TrainConfig
from iap.experiments.evaluate import find_policy
from iap.experiments.returns import draw_seeds
from iap.experiments.teaching import TEACHING, Told
from iap.policies import Blind, Policy, Products, Tracker
from iap.policies.files import PolicyFile
from iap.policies.parameters import unflatten
from iap.policies.sights import show
from iap.rollouts import EnvSpec

LONGEST_EPISODE = 200  # steps of a told policy that are looked at

Lesson = tuple[np.ndarray, np.ndarray]  # what is seen, and the places


class Lessons(NamedTuple):
    """What is seen of each image, and where things are in it."""

    seen: UInt8[np.ndarray, "n H W C"]
    places: Float[np.ndarray, "n s"]


def told_policy(config: TrainConfig, wanted: TeachByGradient) -> PolicyFile | None:
    """The policy whose controller is to be the low level, once that is known to fit."""
    if wanted.low_from is None:
        return None
    policy, _ = find_policy(wanted.low_from)
    assert config.policy.level is not None
    sizes = policy.spec.sensors, policy.spec.actions, policy.spec.controller
    fits = sizes == (config.policy.level.latent, config.policy.actions, config.policy.level.low)
    if (
        not fits
        or not isinstance(policy.spec.vision, Blind)
        or not isinstance(policy.spec.controller, Products | Tracker)
    ):
        raise ValueError(
            f"teach.low_from must be a blind policy with {config.policy.level.latent} sensors and the controller "
            f"{config.policy.level.low}, which {wanted.low_from} is not"
        )
    return policy


def collect(config: TrainConfig, wanted: TeachByGradient, told: PolicyFile | None, tell_about: Told) -> Lessons:
    """Lessons before the backgrounds of training: of any poses, and every other of a told policy's, if there is one."""
    rng = np.random.default_rng(draw_seeds(config.seed, TEACHING, 1))
    episodes = -(-wanted.lessons // wanted.an_episode)
    seeds = [TRAINING_SEEDS + seed for seed in draw_seeds(config.seed, TEACHING, 1 + episodes)[1:]]
    lessons: list[Lesson] = []
    env: Any = _telling(config.env, wanted, told).make()
    try:
        if not hasattr(env.unwrapped, "scatter"):
            raise ValueError(f"{config.env.id} cannot teach: it has no scatter() and places()")
        for number, seed in enumerate(seeds):
            tell_about("looking at poses", number / len(seeds))
            if told is not None and number % 2 == 1:
                lessons += _met(env, config, wanted, told, seed, rng)
            else:
                lessons += _scattered(env, config, wanted, seed, rng)
    finally:
        env.close()
    seen, places = zip(*lessons[: wanted.lessons], strict=True)
    return Lessons(np.array(seen), np.array(places, np.float32))


def _telling(env: EnvSpec, wanted: TeachByGradient, told: PolicyFile | None) -> EnvSpec:
    """The environment, with sensors for a told policy that err as they did when it was trained."""
    if told is None:
        return env
    error = told.env_kwargs.get("told_error", 0.0)
    return EnvSpec.of(env.id, **dict(env.kwargs), told=wanted.parts, told_error=error)


def _scattered(
    env: Any, config: TrainConfig, wanted: TeachByGradient, seed: int, rng: np.random.Generator
) -> Iterator[Lesson]:
    """Poses of any kind, after the first look of an episode."""
    first = env.reset(seed=seed)[0]["image"].copy()
    for _ in range(wanted.an_episode):
        before = image = env.unwrapped.scatter(rng)["image"].copy()
        if "changes" in config.policy.sees:
            raw = rng.uniform(-1, 1, config.policy.actions).astype(np.float32)
            image = env.step(to_action(env.action_space, raw))[0]["image"]
        yield show(config.policy.sees, image, before, first), env.unwrapped.places(wanted.parts)


def _met(
    env: Any, config: TrainConfig, wanted: TeachByGradient, told: PolicyFile, seed: int, rng: np.random.Generator
) -> Iterator[Lesson]:
    """What a policy meets that is told where things are: the first look, which it may remember, and others."""
    policy = Policy(told.spec, unflatten(told.spec, told.theta), told.normaliser)
    state, look = policy.begin(seed), env.unwrapped.look
    observation, _ = env.reset(seed=seed)
    first = before = observation["image"].copy()
    chosen = {0, *rng.choice(np.arange(1, LONGEST_EPISODE), wanted.an_episode - 1, replace=False).tolist()}
    for step in range(max(chosen) + 1):
        image = observation["image"].copy()
        if step in chosen:
            yield show(config.policy.sees, image, before, first), env.unwrapped.places(wanted.parts)
        raw, state, _ = policy.act(state, observation)
        look(bool({step + 1, step + 2} & chosen))  # also at the image before, of which changes are seen
        observation, _, terminated, truncated, _ = env.step(to_action(env.action_space, raw))
        before = image
        if terminated or truncated:
            break
