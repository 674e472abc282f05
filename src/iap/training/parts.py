"""Configs with other parts, by their registered names."""

from dataclasses import replace

from iap.attention import KERNELS
from iap.distillation import DAgger
from iap.evolution import SNES, STRATEGIES
from iap.policies import CONTROLLERS, ENCODERS, MLP, Hierarchy
from iap.training.config import TrainConfig

HIERARCHIES = {"one": None, "two": Hierarchy(), "two-mlp": Hierarchy(low_level=MLP())}


def with_parts(
    config: TrainConfig,
    encoder: str | None = None,
    controller: str | None = None,
    strategy: str | None = None,
    kernel: str | None = None,
    hierarchy: str | None = None,
) -> TrainConfig:
    """The config with other parts, by their registered names, with default options."""
    policy = config.policy
    if encoder is not None:
        policy = replace(policy, encoder=ENCODERS[encoder]())
    if controller is not None:
        policy = replace(policy, controller=CONTROLLERS[controller]())
    if hierarchy is not None:
        if hierarchy not in HIERARCHIES:
            raise ValueError(f"hierarchy must be one of {', '.join(HIERARCHIES)}, not {hierarchy!r}")
        policy = replace(policy, hierarchy=HIERARCHIES[hierarchy])
    if kernel is not None:
        attention = policy.encoder
        if "kernel" not in vars(attention):
            raise ValueError(f"kernel is an option of attention encoders; {type(attention).__name__} has none")
        policy = replace(policy, encoder=replace(attention, kernel=KERNELS[kernel]))
    config = replace(config, policy=policy)
    return config if strategy is None else replace(config, strategy=STRATEGIES[strategy]())


def distillation_only(config: TrainConfig) -> TrainConfig:
    """The config with its distillation, or the default one, and without evolution.

    The strategy, of a run that is extended, is one for any number of parameters.
    """
    dagger = config.pretraining if isinstance(config.pretraining, DAgger) else DAgger()
    return replace(
        config,
        pretraining=dagger,
        strategy=SNES(),
        iterations=0,
        random_search=0,
        warm_start=None,
        freeze_normaliser=False,
    )
