"""Training runs of the Distracting Control Suite: pixels only; background, camera and colours static and medium.

Where all that matters moves, policies see what has changed since their last look, in grey: backgrounds, which stand
still, are black. Where limbs have to be told apart, they see what stands out and what is thin, in colour. Their eyes
are taught where things are, and evolution learns what to do about it. Ball_in_cup's policy is learnt from returns
alone, and so is a second one of cheetah: to run without distractions first, where few episodes tell good from bad.
"""

from typing import Any

from iap.attention import ReLU
from iap.attention.positions import Positions
from iap.evolution import CMAES, SNES
from iap.policies.specs import LSTM, MLP, Blind, Hierarchy, MultiHeadRank, PolicyConfig, Quadratic, Rank
from iap.rollouts import EnvConfig
from iap.training.config import Distillation, ESPretraining, SigmaMultipliers, TrainConfig

ALL_BACKGROUNDS = 0.21  # a difficulty a little above medium, which has but eight backgrounds to learn from

# Of eyes that are taught only the low level is left to learn, with the statistics that they were taught with.
TAUGHT: dict[str, Any] = {
    "sigma_multipliers": SigmaMultipliers(encoder=0, controller=0, low_level=1),
    "freeze_normaliser": True,
    "evaluate_every": 10,
    "evaluate_episodes": 12,
}


def eyes(patch: int, top_k: int, heads: int, soft: bool = True) -> Rank:
    """Heads with a place of their own pool the robot's parts.

    About as many patches are kept as the robot has: with fewer the heads see one spot of it, with more the background.
    Keys know no places, which are another camera's in the next episode.
    """
    return Rank(
        patch=patch,
        stride=patch,
        top_k=top_k,
        d=4,
        bias=True,
        kernel=ReLU(),
        positions=Positions("none"),
        order="pooled",
        heads=heads,
        position_weighted=True,
        score_weighted=soft,
    )


def tells_limbs(
    actions: int, top_k: int, latent: int, gain: float, *, relative_to_first_frame: bool = False
) -> PolicyConfig:
    """A policy that sees what stands out and what is thin, in colour, and whose eyes can be taught."""
    return PolicyConfig(
        (100, 100, 3),
        sensors=0,
        actions=actions,
        encoder=eyes(patch=2, top_k=top_k, heads=4),
        frames=2,
        preprocessing=("local_contrast_fine", "local_contrast_coarse"),
        relative_to_first_frame=relative_to_first_frame,
        hierarchy=Hierarchy(latent_size=latent, max_command_steps=1, high_level_sensors=False, gain=gain),
    )


def _cheetah(encoder: Rank, **options: Any) -> TrainConfig:
    """A run whose policy sees what has changed since its first look, and since the last."""
    policy = PolicyConfig((100, 100, 3), sensors=0, actions=6, encoder=encoder, frames=2, relative_to_first_frame=True)
    return TrainConfig(policy=policy, **options)


CHEETAH = {
    "cheetah-run": _cheetah(
        eyes(patch=2, top_k=60, heads=4, score_weighted=False),
        env=EnvConfig.of("iap/cheetah-run-v0"),
        strategy=CMAES(population=20, sigma=0.3),
        sigma_multipliers=SigmaMultipliers(encoder=0.3),
        iterations=22,
        episodes=1,
        max_steps=125,
        random_search=60,
        evaluate_every=5,
        evaluate_episodes=4,
    ),
    # Camera and colours cost that policy nothing, the background two thirds: so evolution moves its attention.
    "cheetah-run-distracted": _cheetah(
        eyes(patch=2, top_k=110, heads=4),
        env=EnvConfig.of("iap/cheetah-run-v0", difficulty="medium"),
        strategy=CMAES(population=20, sigma=0.1),
        sigma_multipliers=SigmaMultipliers(encoder=1.0, controller=0.1),
        iterations=24,
        episodes=4,
        max_steps=100,
        evaluate_every=4,
        evaluate_episodes=12,
    ),
}

# Limbs move less in the image than another camera moves all of it: hence all is counted from the first look.
TAUGHT_CHEETAH = {
    "cheetah-run-taught": TrainConfig(
        env=EnvConfig.of("iap/cheetah-run-v0", difficulty=ALL_BACKGROUNDS),
        policy=tells_limbs(actions=6, top_k=120, latent_size=10, gain=0.1, relative_to_first_frame=True),
        strategy=CMAES(population=20, sigma=0.8),
        iterations=80,
        episodes=2,
        max_steps=125,
        pretraining=ESPretraining(iterations=40),
        **TAUGHT,
    )
}


# Swinging up and balancing are two things: hence the hidden layer, which only the taught command makes small enough.
CARTPOLE = {
    "cartpole-swingup-distracted": TrainConfig(
        env=EnvConfig.of("iap/cartpole-swingup-v0", frame="grey", difficulty="medium"),
        policy=PolicyConfig(
            (100, 100, 1),
            sensors=0,
            actions=1,
            encoder=eyes(patch=4, top_k=24, heads=4),
            frames=2,
            preprocessing=("frame_difference",),
            hierarchy=Hierarchy(latent_size=6, max_command_steps=1, low=MLP((6,)), high_level_sensors=False, gain=0.5),
        ),
        strategy=CMAES(population=24, sigma=0.5),
        iterations=150,
        episodes=1,
        pretraining=ESPretraining(),
        **TAUGHT,
    )
}
# Told where cart and pole are, evolution learns to swing up and to balance in few minutes, without images.
CARTPOLE_PARTS = ("x of cart", "x of pole_1 from cart", "z of pole_1 from cart")
CARTPOLE |= {
    "cartpole-swingup-told": TrainConfig(
        env=EnvConfig.of("iap/cartpole-swingup-v0", size=(8, 8), keypoints=CARTPOLE_PARTS, keypoint_noise=0.005),
        policy=PolicyConfig((8, 8, 3), sensors=3, actions=1, encoder=Blind(), controller=Quadratic(changes=True)),
        strategy=CMAES(population=16, sigma=0.3),
        iterations=200,
        episodes=2,
        evaluate_every=10,
        evaluate_episodes=12,
    ),
}
# Then it learns to do with what eyes tell, which err more: from such errors alone it learns to turn the pole round.
CARTPOLE |= {
    "cartpole-swingup-told-roughly": TrainConfig(
        env=EnvConfig.of("iap/cartpole-swingup-v0", size=(8, 8), keypoints=CARTPOLE_PARTS, keypoint_noise=0.015),
        policy=CARTPOLE["cartpole-swingup-told"].policy,
        strategy=CMAES(population=16, sigma=0.1),
        iterations=120,
        episodes=4,
        warm_start="zoo:cartpole-swingup-told",
        freeze_normaliser=True,
        evaluate_every=10,
        evaluate_episodes=24,
    ),
}
# Eyes tell the same from what has departed since the first look; as they err at every look, what is done about it is
# done by a memory, which learns from what the told policy would have done. Wide images show the whole rail.
CARTPOLE |= {
    "cartpole-swingup-taught": TrainConfig(
        env=EnvConfig.of("iap/cartpole-swingup-v0", size=(90, 120), difficulty=ALL_BACKGROUNDS),
        policy=PolicyConfig(
            (90, 120, 3),
            sensors=0,
            actions=1,
            encoder=MultiHeadRank(patch=5, stride=2, d=8, heads=8, top_k=30, stem=((8, 5, 2),)),
            controller=MLP((48, 24)),
            preprocessing=("first_frame_difference",),
            hierarchy=Hierarchy(latent_size=3, max_command_steps=1, low=LSTM(16), high_level_sensors=False),
        ),
        strategy=SNES(population=24, sigma=0.03),
        iterations=20,
        episodes=4,
        pretraining=Distillation(
            CARTPOLE_PARTS,
            samples=16_000,
            samples_per_episode=8,
            student_rounds=1,
            steps=4_000,
            teacher="zoo:cartpole-swingup-told-roughly",
        ),
        **dict[str, Any](TAUGHT, evaluate_episodes=40),
    ),
}
# A ball that is caught stays caught: what moves tells enough from the start. Many episodes tell how often it is.
BALL = {
    "ball_in_cup-catch-distracted": TrainConfig(
        env=EnvConfig.of("iap/ball_in_cup-catch-v0", frame="grey", difficulty="medium"),
        policy=PolicyConfig(
            (100, 100, 1),
            sensors=0,
            actions=2,
            encoder=eyes(patch=4, top_k=30, heads=3),
            frames=2,
            preprocessing=("frame_difference",),
        ),
        strategy=CMAES(population=20, sigma=0.3),
        sigma_multipliers=SigmaMultipliers(encoder=0.5),
        iterations=10,
        episodes=6,
        max_steps=120,
        random_search=60,
        evaluate_every=5,
        evaluate_episodes=8,
    )
}
# Where the finger is, and how it moves, is enough to strike and to come back.
FINGER = {
    "finger-spin-distracted": TrainConfig(
        env=EnvConfig.of("iap/finger-spin-v0", difficulty=ALL_BACKGROUNDS, action_repeat=4),
        policy=tells_limbs(actions=2, top_k=80, latent_size=8, gain=0.5),
        strategy=CMAES(population=16, sigma=1.5),
        iterations=150,
        episodes=4,
        max_steps=100,
        pretraining=ESPretraining(samples_per_episode=1, iterations=30),
        **TAUGHT,
    )
}
# Walking takes both legs and the trunk: hence more numbers told than to a finger.
WALKER = {
    "walker-walk-distracted": TrainConfig(
        env=EnvConfig.of("iap/walker-walk-v0", difficulty=ALL_BACKGROUNDS, action_repeat=4),
        policy=tells_limbs(actions=6, top_k=120, latent_size=12, gain=0.1),
        strategy=CMAES(population=20, sigma=0.8),
        iterations=100,
        episodes=2,
        max_steps=125,
        pretraining=ESPretraining(iterations=40),
        **TAUGHT,
    )
}
# What to do is a product of where the arm is and where the target is. It is learnt from being told, in few minutes
# without images, and with errors such as eyes make; then eyes are taught to tell the same, and both learn to get on.
REACHER_PARTS = ("target from finger", "finger from hand", "finger")
REACHER = {
    "reacher-easy-told": TrainConfig(
        env=EnvConfig.of(
            "iap/reacher-easy-v0",
            difficulty="medium",
            distractions=("camera",),
            size=(50, 50),
            keypoints=REACHER_PARTS,
            keypoint_noise=0.05,
        ),
        policy=PolicyConfig((50, 50, 3), sensors=6, actions=2, encoder=Blind(), controller=Quadratic()),
        strategy=CMAES(population=24, sigma=0.3),
        iterations=200,
        episodes=6,
        max_steps=100,
        evaluate_every=10,
        evaluate_episodes=24,
    ),
    "reacher-easy-distracted": TrainConfig(
        env=EnvConfig.of("iap/reacher-easy-v0", difficulty=ALL_BACKGROUNDS),
        policy=PolicyConfig(
            (100, 100, 3),
            sensors=0,
            actions=2,
            encoder=MultiHeadRank(patch=3, stride=1, d=8, heads=8, top_k=20, stem=((8, 5, 2), (12, 5, 2))),
            controller=MLP((24,)),
            preprocessing=("local_contrast_coarse",),
            hierarchy=Hierarchy(latent_size=6, max_command_steps=1, low=Quadratic(), high_level_sensors=False),
        ),
        strategy=CMAES(population=24, sigma=0.2),
        iterations=12,
        episodes=6,
        max_steps=125,
        pretraining=Distillation(
            REACHER_PARTS,
            samples=24_000,
            samples_per_episode=8,
            student_rounds=1,
            steps=6_000,
            teacher="zoo:reacher-easy-told",
        ),
        **TAUGHT,
    ),
}
SUITE_PRESETS = REACHER | BALL | CARTPOLE | CHEETAH | TAUGHT_CHEETAH | FINGER | WALKER
