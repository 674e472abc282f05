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
from iap.policies.preprocessing import Channel
from iap.training.config import TrainConfig
from iap.training.presets.control_suite import ALL_BACKGROUNDS

SIZE = (84, 84)
STEM = ((16, 5, 2), (24, 3, 2))  # filters, side and stride of the encoder's first convolutions
STEM_OF_9 = ((14, 5, 2), (24, 3, 2))  # for nine input channels
CHANNELS: tuple[Channel, ...] = ("centred_image", "signed_frame_difference")
UNITS = 48  # of the memory, and of the layer below it
LEG = ("thigh-", "leg-", "foot+")  # hip is the torso's end: knee, ankle and toe
FEWEST_HEADS = 12  # those without a keypoint find what else the teacher's action and its state depend on


def distilled(
    task: str,
    actions: int,
    keypoints: tuple[str, ...],
    steps: int = 12_000,
    size: tuple[int, int] = SIZE,
    still_camera: bool = False,
    **options: Any,
) -> TrainConfig:
    """A config for one task, with two heads for each keypoint at least: in this frame and in the last.

    Args:
        task: its name.
        actions: numbers of an action.
        keypoints: of the body.
        steps: labelled steps of each round.
        size: of the images.
        still_camera: whether the camera stands still within an episode: the difference to the first frame then shows
            the body without its background.
        options: of the encoder's pretraining.
    """
    channels: tuple[Channel, ...] = (*CHANNELS, "first_frame_difference") if still_camera else CHANNELS
    encoder = ResidualRank(stem=STEM_OF_9 if still_camera else STEM, heads=max(2 * len(keypoints), FEWEST_HEADS))
    return TrainConfig(
        env=EnvConfig.of(f"iap/{task}-v0", size=size, difficulty=ALL_BACKGROUNDS),
        policy=PolicyConfig(
            (*size, 3),
            sensors=0,
            actions=actions,
            encoder=encoder,
            controller=Linear(),
            preprocessing=channels,
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
FINGER = distilled("finger-spin", 2, ("proximal-", "distal-", "fingertip", "spinner_decoration"), still_camera=True)
# The arm is at the target after twenty steps: hence short episodes, which show it on the way.
REACHER = distilled(
    "reacher-easy",
    2,
    ("target", "finger", "hand", "arm", "root"),
    still_camera=True,
    keypoint_weight=1.0,
    episode_steps=40,
    samples_per_episode=20,
)
# A wide image shows the whole rail.
CARTPOLE = distilled("cartpole-swingup", 1, ("cart", "pole_1+", "pole_1-"), size=(76, 100), still_camera=True)
WALKER = distilled(
    "walker-walk",
    6,
    ("torso+", "torso-", *(f"{side}_{part}" for side in ("right", "left") for part in LEG)),
)
CHEETAH = distilled(
    "cheetah-run",
    6,
    ("torso+", "torso-", "head", "bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot"),
    steps=20_000,
    samples=36_000,
    updates=24_000,
)


def dynamic(config: TrainConfig) -> TrainConfig:
    """The config with distractions that change within an episode; the first frame then says little about the others."""
    policy = replace(config.policy, encoder=replace(config.policy.encoder, stem=STEM), preprocessing=CHANNELS)
    return replace(config, env=EnvConfig.of(config.env.id, **dict(config.env.kwargs), dynamic=True), policy=policy)


BALL_IN_CUP_DYNAMIC, FINGER_DYNAMIC, REACHER_DYNAMIC = dynamic(BALL_IN_CUP), dynamic(FINGER), dynamic(REACHER)
CARTPOLE_DYNAMIC, WALKER_DYNAMIC, CHEETAH_DYNAMIC = dynamic(CARTPOLE), dynamic(WALKER), dynamic(CHEETAH)
