"""The tasks of the Distracting Control Suite, distilled from teachers that know the simulator's state.

The encoder is trained on the teacher's actions, its state and keypoints of the body; then a recurrent controller, by
DAgger. Keypoints are the ends of the body's capsules, and whatever else the task is about.
"""

from dataclasses import replace
from typing import Any

from iap.distillation.dagger.config import DAgger
from iap.distillation.dagger.encoder_config import EncoderPretraining
from iap.envs.core import EnvConfig
from iap.policies import GRU, Hierarchy, Linear, PolicyConfig, ResidualRank
from iap.training.config import TrainConfig
from iap.training.presets.control_suite import ALL_BACKGROUNDS

SIZE = (84, 84)
UNITS = 48  # of the memory, and of the layer below it
LEG = ("thigh-", "leg-", "foot+")  # hip is the torso's end: knee, ankle and toe
FEWEST_HEADS = 12  # those without a keypoint find what else the teacher's action and its state depend on


def distilled(task: str, actions: int, keypoints: tuple[str, ...], steps: int = 12_000, **options: Any) -> TrainConfig:
    """A config for one task, with two heads for each keypoint at least: in this frame and in the last.

    Args:
        task: its name.
        actions: numbers of an action.
        keypoints: of the body.
        steps: labelled steps of each round.
        options: of the encoder's pretraining.
    """
    encoder = ResidualRank(heads=max(2 * len(keypoints), FEWEST_HEADS))
    return TrainConfig(
        env=EnvConfig.of(f"iap/{task}-v0", size=SIZE, difficulty=ALL_BACKGROUNDS),
        policy=PolicyConfig(
            (*SIZE, 3),
            sensors=0,
            actions=actions,
            encoder=encoder,
            controller=Linear(),
            preprocessing=("centred_image", "signed_frame_difference"),
            hierarchy=Hierarchy(UNITS, max_command_steps=1, low_level=GRU(UNITS), high_level_sensors=False),
        ),
        pretraining=DAgger(
            teacher=f"zoo:{task}-state-teacher",
            steps=(steps,) * 4,
            teacher_share=(1.0, 0.5, 0.0, 0.0),
            updates=(1_000, 700, 700, 1_500),
            batch=32,
            learning_rate=5e-3,
            encoder=EncoderPretraining(keypoints=keypoints, **options),
        ),
        iterations=0,
        evaluate_episodes=20,
    )


BALL_IN_CUP = distilled("ball_in_cup-catch", 2, ("ball", "cup_part_2", "cup_part_0+", "cup_part_4+"), random_share=0)
FINGER = distilled("finger-spin", 2, ("proximal-", "distal-", "fingertip", "spinner_decoration"))
REACHER = distilled("reacher-easy", 2, ("target", "finger", "hand", "arm", "root"))
CARTPOLE = distilled("cartpole-swingup", 1, ("cart", "pole_1+", "pole_1-"))
WALKER = distilled(
    "walker-walk",
    6,
    ("torso+", "torso-", *(f"{side}_{part}" for side in ("right", "left") for part in LEG)),
)
CHEETAH = distilled(
    "cheetah-run", 6, ("torso+", "torso-", "head", "bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")
)


def dynamic(config: TrainConfig) -> TrainConfig:
    """The config with distractions that change within an episode."""
    return replace(config, env=EnvConfig.of(config.env.id, **dict(config.env.kwargs), dynamic=True))


BALL_IN_CUP_DYNAMIC, FINGER_DYNAMIC, REACHER_DYNAMIC = dynamic(BALL_IN_CUP), dynamic(FINGER), dynamic(REACHER)
CARTPOLE_DYNAMIC, WALKER_DYNAMIC, CHEETAH_DYNAMIC = dynamic(CARTPOLE), dynamic(WALKER), dynamic(CHEETAH)
