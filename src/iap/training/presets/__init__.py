"""Training configs by name, as typed objects: `iap train NAME` makes what `zoo:NAME` is. One line registers one."""

from dataclasses import replace

from iap._registry import Registry
from iap.attention import KERNELS
from iap.envs.core import EnvConfig
from iap.evolution import STRATEGIES
from iap.policies import CONTROLLERS, ENCODERS, MLP, Hierarchy, PolicyConfig, Rank
from iap.training.config import TrainConfig

PRESETS: Registry[TrainConfig] = Registry("preset")
PRESETS.register("seek", "iap.training.presets.seek:SEEK")
PRESETS.register("obstacle-course", "iap.training.presets.obstacle_course:OBSTACLE_COURSE")
PRESETS.register("car-racing", "iap.training.presets.car_racing:CAR_RACING")
PRESETS.register("reacher-easy", "iap.training.presets.reacher_easy:REACHER")
PRESETS.register("reacher-easy-teacher", "iap.training.presets.reacher_easy:TEACHER")
PRESETS.register("ball_in_cup-catch", "iap.training.presets.ball_in_cup_catch:BALL_IN_CUP")
PRESETS.register("cartpole-swingup", "iap.training.presets.cartpole_swingup:CARTPOLE")
PRESETS.register("cartpole-swingup-teacher", "iap.training.presets.cartpole_swingup:TEACHER")
PRESETS.register("cartpole-swingup-noisy-teacher", "iap.training.presets.cartpole_swingup:NOISY_TEACHER")
PRESETS.register("cartpole-swingup-es-pretraining", "iap.training.presets.cartpole_swingup:ES_PRETRAINING")
PRESETS.register("cheetah-run", "iap.training.presets.cheetah_run:CHEETAH")
PRESETS.register("cheetah-run-plain", "iap.training.presets.cheetah_run:PLAIN")
PRESETS.register("cheetah-run-no-pretraining", "iap.training.presets.cheetah_run:NO_PRETRAINING")
PRESETS.register("finger-spin", "iap.training.presets.finger_spin:FINGER")
PRESETS.register("walker-walk", "iap.training.presets.walker_walk:WALKER")
PRESETS.register("step-stones-single-foot", "iap.training.presets.footsteps:STEP_STONES")
PRESETS.register("stone-grid-single-foot", "iap.training.presets.footsteps:STONE_GRID")
PRESETS.register("stairs-single-foot", "iap.training.presets.footsteps:STAIRS")

HIERARCHIES = {"one": None, "two": Hierarchy(), "two-mlp": Hierarchy(low_level=MLP())}


def preset(name: str) -> TrainConfig:
    """The config of this name."""
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}, and any environment with --env")
    return PRESETS[name]


def config_for_env(env: EnvConfig) -> TrainConfig:
    """A default config for any environment."""
    policy = PolicyConfig((100, 100, 3), sensors=0, actions=1, encoder=Rank(), controller=MLP((16,)), frames=2)
    return TrainConfig(env=env, policy=policy)


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
