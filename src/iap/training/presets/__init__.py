"""Training configs by name, as typed objects: `iap train NAME` makes what `zoo:NAME` is. One line registers one."""

from iap._registry import Registry, UnknownNameError
from iap.training.auto_config import config_for_env
from iap.training.config import TrainConfig
from iap.training.parts import HIERARCHIES, with_parts

__all__ = ["HIERARCHIES", "PRESETS", "config_for_env", "preset", "with_parts"]

PRESETS: Registry[TrainConfig] = Registry("preset")
PRESETS.register("seek", "iap.training.presets.seek:SEEK")
PRESETS.register("obstacle-course", "iap.training.presets.obstacle_course:OBSTACLE_COURSE")
PRESETS.register("obstacle-course-distilled", "iap.training.presets.obstacle_course:DISTILLED")
PRESETS.register("obstacle-course-distilled-trans", "iap.training.presets.obstacle_course:DISTILLED_TRANS")
PRESETS.register("car-racing", "iap.training.presets.car_racing:CAR_RACING")
PRESETS.register("reacher-easy", "iap.training.presets.reacher_easy:REACHER")
PRESETS.register("reacher-easy-distilled", "iap.training.presets.distilled_suite:REACHER")
PRESETS.register("reacher-easy-dynamic", "iap.training.presets.distilled_suite:REACHER_DYNAMIC")
PRESETS.register("reacher-easy-teacher", "iap.training.presets.reacher_easy:TEACHER")
PRESETS.register("ball_in_cup-catch", "iap.training.presets.ball_in_cup_catch:BALL_IN_CUP")
PRESETS.register("ball_in_cup-catch-distilled", "iap.training.presets.distilled_suite:BALL_IN_CUP")
PRESETS.register("ball_in_cup-catch-dynamic", "iap.training.presets.distilled_suite:BALL_IN_CUP_DYNAMIC")
PRESETS.register("cartpole-swingup", "iap.training.presets.cartpole_swingup:CARTPOLE")
PRESETS.register("cartpole-swingup-distilled", "iap.training.presets.distilled_suite:CARTPOLE")
PRESETS.register("cartpole-swingup-dynamic", "iap.training.presets.distilled_suite:CARTPOLE_DYNAMIC")
PRESETS.register("cartpole-swingup-teacher", "iap.training.presets.cartpole_swingup:TEACHER")
PRESETS.register("cartpole-swingup-noisy-teacher", "iap.training.presets.cartpole_swingup:NOISY_TEACHER")
PRESETS.register("cartpole-swingup-es-pretraining", "iap.training.presets.cartpole_swingup:ES_PRETRAINING")
PRESETS.register("cheetah-run", "iap.training.presets.cheetah_run:CHEETAH")
PRESETS.register("cheetah-run-distilled", "iap.training.presets.distilled_suite:CHEETAH")
PRESETS.register("cheetah-run-dynamic", "iap.training.presets.distilled_suite:CHEETAH_DYNAMIC")
PRESETS.register("cheetah-run-plain", "iap.training.presets.cheetah_run:PLAIN")
PRESETS.register("cheetah-run-no-pretraining", "iap.training.presets.cheetah_run:NO_PRETRAINING")
PRESETS.register("finger-spin", "iap.training.presets.finger_spin:FINGER")
PRESETS.register("finger-spin-distilled", "iap.training.presets.distilled_suite:FINGER")
PRESETS.register("finger-spin-dynamic", "iap.training.presets.distilled_suite:FINGER_DYNAMIC")
PRESETS.register("walker-walk", "iap.training.presets.walker_walk:WALKER")
PRESETS.register("walker-walk-distilled", "iap.training.presets.distilled_suite:WALKER")
PRESETS.register("walker-walk-dynamic", "iap.training.presets.distilled_suite:WALKER_DYNAMIC")
PRESETS.register("step-stones", "iap.training.presets.uneven_terrain:STEP_STONES")
PRESETS.register("step-stones-trans", "iap.training.presets.uneven_terrain:STEP_STONES_TRANS")
PRESETS.register("stone-grid", "iap.training.presets.uneven_terrain:STONE_GRID")
PRESETS.register("stone-grid-trans", "iap.training.presets.uneven_terrain:STONE_GRID_TRANS")
PRESETS.register("stairs", "iap.training.presets.uneven_terrain:STAIRS")
PRESETS.register("stairs-trans", "iap.training.presets.uneven_terrain:STAIRS_TRANS")
PRESETS.register("step-stones-single-foot", "iap.training.presets.footsteps:STEP_STONES")
PRESETS.register("stone-grid-single-foot", "iap.training.presets.footsteps:STONE_GRID")
PRESETS.register("stairs-single-foot", "iap.training.presets.footsteps:STAIRS")
PRESETS.register("point-nav", "iap.training.presets.indoor:POINT_NAV")
PRESETS.register("indoor-course", "iap.training.presets.indoor:INDOOR_COURSE")


def preset(name: str) -> TrainConfig:
    """The config of this name."""
    try:
        return PRESETS[name]
    except UnknownNameError as error:
        raise ValueError(f"{error}; or give any environment with --env ID") from None
