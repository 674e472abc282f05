"""Training runs by name, as typed objects; `iap train NAME` starts from one and options change it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from iap.attention import ReLU, Softmax
from iap.attention.positions import Positions
from iap.evolution import CMAES, SNES, OpenES
from iap.policies.specs import (
    CNN,
    LSTM,
    MLP,
    AttentionAgent,
    Blind,
    Hierarchy,
    Linear,
    MultiHeadRank,
    PolicyConfig,
    Quadratic,
    Rank,
    Symmetry,
    Trans,
)
from iap.rollouts import EnvConfig
from iap.training.config import SigmaMultipliers, TrainConfig
from iap.training.presets.control_suite import SUITE_PRESETS
from iap.training.presets.footsteps import TERRAIN_PRESETS

ANY_SHAPE = {"image_shape": (100, 100, 3), "sensors": 0, "actions": 1}  # the environment's own take their place

ENCODERS = {
    "rank": Rank(),
    "multi-head-rank": MultiHeadRank(),
    "trans": Trans(),
    "attention-agent": AttentionAgent(),
    "cnn": CNN(),
    "blind": Blind(),
}
CONTROLLERS = {"linear": Linear(), "mlp": MLP(), "lstm": LSTM(), "quadratic": Quadratic()}

PRESETS = {
    "seek": TrainConfig(
        env=EnvConfig.of("iap/Seek-v0"),
        policy=PolicyConfig(
            **{**ANY_SHAPE, "image_shape": (32, 32, 3), "actions": 2},
            encoder=Rank(patch=2, stride=2, top_k=16, kernel=ReLU(), order="pooled"),
        ),
        strategy=CMAES(population=32, sigma=0.3),
        sigma_multipliers=SigmaMultipliers(encoder=1.0),
        iterations=80,
        episodes=4,
    ),
    "obstacle-course": TrainConfig(
        env=EnvConfig.of("iap/ObstacleCourse-v0", residuals=False),
        policy=PolicyConfig(
            image_shape=(32, 32, 3),
            sensors=19,
            actions=5,
            encoder=Rank(
                patch=1,
                stride=1,
                top_k=16,
                d=4,
                bias=True,
                kernel=ReLU(),
                positions=Positions("concat", scale=0.3),
                order="pooled",
            ),
            hierarchy=Hierarchy(high_level_sensors=False),
            symmetry=Symmetry(),
        ),
        strategy=SNES(population=20, sigma=0.04),
        sigma_multipliers=SigmaMultipliers(encoder=0.5, controller=1.0, low_level=1.0),
        iterations=40,
        episodes=6,
        random_search=500,
        evaluate_every=5,
        evaluate_episodes=24,
    ),
    "car-racing": TrainConfig(
        env=EnvConfig.of("CarRacing-v3"),
        policy=PolicyConfig(
            **{**ANY_SHAPE, "image_shape": (96, 96, 3), "actions": 3},
            encoder=Rank(patch=4, stride=4, top_k=10, kernel=Softmax("positive")),
            controller=LSTM(16),
        ),
        strategy=OpenES(population=64, sigma=0.1),
        iterations=200,
        episodes=1,
        evaluate_episodes=8,
    ),
    **SUITE_PRESETS,
    **TERRAIN_PRESETS,
}


def preset(name: str) -> TrainConfig:
    """The run of this name."""
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}, and any environment with --env")
    return PRESETS[name]


def for_env(env: EnvConfig) -> TrainConfig:
    """A run in any environment, to start from."""
    policy = PolicyConfig(
        **ANY_SHAPE, encoder=Rank(order="image", values=("centres",)), controller=MLP((16,)), frames=2
    )
    return TrainConfig(env=env, policy=policy)


def with_parts(
    config: TrainConfig, encoder: str | None = None, controller: str | None = None, strategy: str | None = None
) -> TrainConfig:
    """The run with another kind of encoder, controller or strategy, by name."""
    from iap.evolution import STRATEGIES

    policy = config.policy
    if encoder is not None:
        policy = replace(policy, encoder=_named("encoder", encoder, ENCODERS))
    if controller is not None:
        policy = replace(policy, controller=_named("controller", controller, CONTROLLERS))
    config = replace(config, policy=policy)
    if strategy is not None:
        config = replace(config, strategy=_named("strategy", strategy, STRATEGIES)())
    return config


def _named(what: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}, not {name!r}")
    return known[name]
