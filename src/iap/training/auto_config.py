"""A config for any environment, chosen from its image size, its sensors and its actions."""

from dataclasses import replace
from typing import Any

from iap._observations import sensor_count
from iap.envs.core import EnvConfig, action_count
from iap.evolution import CMAES, SNES
from iap.policies import Linear, MultiHeadRank, PolicyConfig, PooledMoments, Rank, count_params
from iap.rollouts.job import image_format_of
from iap.training.config import SigmaMultipliers, TrainConfig
from iap.training.parts import with_parts

PATCHES_A_SIDE = 16  # of the shorter side of the image
LARGEST_PATCH = 8
SELECTED_SHARE = 16  # one of so many patches is selected
FEWEST_SELECTED, MOST_SELECTED = 4, 32
MOST_FOR_CMA_ES = 500  # parameters; with more, CMA-ES's covariance matrix takes longer than the episodes
POPULATION = 32
SIGMA = 0.3
ENCODER_MULTIPLIER = 0.3  # of σ: the encoder that the random search has chosen is refined
RANDOM_SEARCH = 200
STEPS_WITHOUT_LIMIT = 1_000  # of an episode, if the environment sets no limit


def config_for_env(env: EnvConfig, **parts: str | None) -> TrainConfig:
    """A config for an environment, which is made to read its spaces.

    Args:
        env: the environment.
        parts: names of other parts, as in `with_parts`.
    """
    made = env.make()
    try:
        spaces: Any = made.observation_space
        shape = tuple(map(int, spaces["image"].shape))
        sensors, actions = sensor_count(spaces), action_count(made.action_space)
        policy = replace(default_policy(shape, sensors, actions), image_format=image_format_of(made))
        has_limit = made.spec is not None and (made.spec.namespace == "iap" or made.spec.max_episode_steps is not None)
    finally:
        made.close()
    return replace(config_of(env, policy, **parts), max_steps=None if has_limit else STEPS_WITHOUT_LIMIT)


def config_of(env: EnvConfig, policy: PolicyConfig, **parts: str | None) -> TrainConfig:
    """A config for a policy, with a strategy for its number of parameters.

    If no encoder and no kernel is chosen, each of several heads selects patches, since most tasks are about the places
    of several objects: with one selection for all, evolution finds no policy that reaches a goal in a grid world.
    """
    if parts.get("encoder") is None and parts.get("kernel") is None and isinstance(policy.encoder, Rank):
        rank = policy.encoder
        policy = replace(policy, encoder=MultiHeadRank(patch=rank.patch, stride=rank.stride, top_k=rank.top_k))
    config = TrainConfig(
        env=env,
        policy=policy,
        strategy=CMAES(population=POPULATION, sigma=SIGMA),
        sigma_multipliers=SigmaMultipliers(encoder=ENCODER_MULTIPLIER),
        iterations=80,
        episodes=4,
        random_search=RANDOM_SEARCH,
    )
    config = with_parts(config, **parts)
    if parts.get("strategy") is None and count_params(config.policy) > MOST_FOR_CMA_ES:
        return replace(config, strategy=SNES(population=POPULATION, sigma=SIGMA))
    return config


def default_policy(image_shape: tuple[int, ...], sensors: int, actions: int) -> PolicyConfig:
    """A policy for images of this shape: about 16 × 16 patches, of which one in 16 is selected."""
    height, width, channels = image_shape
    shorter = min(height, width)
    patch = min(max(1, round(shorter / PATCHES_A_SIDE)), LARGEST_PATCH)
    patches = (height // patch) * (width // patch)
    top_k = min(max(FEWEST_SELECTED, patches // SELECTED_SHARE), MOST_SELECTED, patches)
    return PolicyConfig(
        image_shape=(height, width, channels),
        sensors=sensors,
        actions=actions,
        encoder=Rank(patch=patch, stride=patch, top_k=top_k, features=PooledMoments()),
        controller=Linear(),
    )
