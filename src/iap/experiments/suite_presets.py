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
from iap.experiments.config import Scales, Teach, TeachByGradient, TrainConfig
from iap.policies.specs import LSTM, MLP, Blind, MultiRank, PolicySpec, Products, Rank, TwoLevel
from iap.rollouts import EnvSpec

ALL_BACKGROUNDS = 0.21  # a difficulty a little above medium, which has but eight backgrounds to learn from

# Of eyes that are taught only the low level is left to learn, with the statistics that they were taught with.
TAUGHT: dict[str, Any] = {
    "scales": Scales(vision=0, controller=0, low=1),
    "keep_statistics": True,
    "evaluate_every": 10,
    "evaluate_episodes": 12,
}


def eyes(patch: int, keep: int, heads: int, soft: bool = True) -> Rank:
    """Heads with a place of their own pool the robot's parts.

    About as many patches are kept as the robot has: with fewer the heads see one spot of it, with more the background.
    Keys know no places, which are another camera's in the next episode.
    """
    return Rank(
        patch=patch,
        stride=patch,
        keep=keep,
        d=4,
        bias=True,
        kernel=ReLU(),
        positions=Positions("none"),
        order="pooled",
        heads=heads,
        placed=True,
        soft=soft,
    )


def tells_limbs(actions: int, keep: int, latent: int, gain: float, *, anchored: bool = False) -> PolicySpec:
    """A policy that sees what stands out and what is thin, in colour, and whose eyes can be taught."""
    return PolicySpec(
        (100, 100, 3),
        sensors=0,
        actions=actions,
        vision=eyes(patch=2, keep=keep, heads=4),
        frames=2,
        sees=("detail", "contrast"),
        anchored=anchored,
        level=TwoLevel(latent=latent, longest_hold=1, senses=False, gain=gain),
    )


def _cheetah(vision: Rank, **options: Any) -> TrainConfig:
    """A run whose policy sees what has changed since its first look, and since the last."""
    policy = PolicySpec((100, 100, 3), sensors=0, actions=6, vision=vision, frames=2, anchored=True)
    return TrainConfig(policy=policy, **options)


CHEETAH = {
    "cheetah-run": _cheetah(
        eyes(patch=2, keep=60, heads=4, soft=False),
        env=EnvSpec.of("iap/cheetah-run-v0"),
        strategy=CMAES(population=20, sigma=0.3),
        scales=Scales(vision=0.3),
        iterations=22,
        episodes=1,
        max_steps=125,
        screen=60,
        evaluate_every=5,
        evaluate_episodes=4,
    ),
    # Camera and colours cost that policy nothing, the background two thirds: so evolution moves its attention.
    "cheetah-run-distracted": _cheetah(
        eyes(patch=2, keep=110, heads=4),
        env=EnvSpec.of("iap/cheetah-run-v0", difficulty="medium"),
        strategy=CMAES(population=20, sigma=0.1),
        scales=Scales(vision=1.0, controller=0.1),
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
        env=EnvSpec.of("iap/cheetah-run-v0", difficulty=ALL_BACKGROUNDS),
        policy=tells_limbs(actions=6, keep=120, latent=10, gain=0.1, anchored=True),
        strategy=CMAES(population=20, sigma=0.8),
        iterations=80,
        episodes=2,
        max_steps=125,
        teach=Teach(iterations=40),
        **TAUGHT,
    )
}


# Swinging up and balancing are two things: hence the hidden layer, which only the taught command makes small enough.
CARTPOLE = {
    "cartpole-swingup-distracted": TrainConfig(
        env=EnvSpec.of("iap/cartpole-swingup-v0", frame="grey", difficulty="medium"),
        policy=PolicySpec(
            (100, 100, 1),
            sensors=0,
            actions=1,
            vision=eyes(patch=4, keep=24, heads=4),
            frames=2,
            sees=("changes",),
            level=TwoLevel(latent=6, longest_hold=1, low=MLP((6,)), senses=False, gain=0.5),
        ),
        strategy=CMAES(population=24, sigma=0.5),
        iterations=150,
        episodes=1,
        teach=Teach(),
        **TAUGHT,
    )
}
# Told where cart and pole are, evolution learns to swing up and to balance in few minutes, without images.
CARTPOLE_PARTS = ("x of cart", "x of pole_1 from cart", "z of pole_1 from cart")
CARTPOLE |= {
    "cartpole-swingup-told": TrainConfig(
        env=EnvSpec.of("iap/cartpole-swingup-v0", size=(8, 8), told=CARTPOLE_PARTS, told_error=0.005),
        policy=PolicySpec((8, 8, 3), sensors=3, actions=1, vision=Blind(), controller=Products(changes=True)),
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
        env=EnvSpec.of("iap/cartpole-swingup-v0", size=(8, 8), told=CARTPOLE_PARTS, told_error=0.015),
        policy=CARTPOLE["cartpole-swingup-told"].policy,
        strategy=CMAES(population=16, sigma=0.1),
        iterations=120,
        episodes=4,
        start_from="zoo:cartpole-swingup-told",
        keep_statistics=True,
        evaluate_every=10,
        evaluate_episodes=24,
    ),
}
# Eyes tell the same from what has departed since the first look; as they err at every look, what is done about it is
# done by a memory, which learns from what the told policy would have done. Wide images show the whole rail.
CARTPOLE |= {
    "cartpole-swingup-taught": TrainConfig(
        env=EnvSpec.of("iap/cartpole-swingup-v0", size=(90, 120), difficulty=ALL_BACKGROUNDS),
        policy=PolicySpec(
            (90, 120, 3),
            sensors=0,
            actions=1,
            vision=MultiRank(patch=5, stride=2, d=8, heads=8, keep=30, stem=((8, 5, 2),)),
            controller=MLP((48, 24)),
            sees=("departures",),
            level=TwoLevel(latent=3, longest_hold=1, low=LSTM(16), senses=False),
        ),
        strategy=SNES(population=24, sigma=0.03),
        iterations=20,
        episodes=4,
        teach=TeachByGradient(
            CARTPOLE_PARTS,
            lessons=16_000,
            an_episode=8,
            own=1,
            steps=4_000,
            low_from="zoo:cartpole-swingup-told-roughly",
        ),
        **dict[str, Any](TAUGHT, evaluate_episodes=40),
    ),
}
# A ball that is caught stays caught: what moves tells enough from the start. Many episodes tell how often it is.
BALL = {
    "ball_in_cup-catch-distracted": TrainConfig(
        env=EnvSpec.of("iap/ball_in_cup-catch-v0", frame="grey", difficulty="medium"),
        policy=PolicySpec(
            (100, 100, 1),
            sensors=0,
            actions=2,
            vision=eyes(patch=4, keep=30, heads=3),
            frames=2,
            sees=("changes",),
        ),
        strategy=CMAES(population=20, sigma=0.3),
        scales=Scales(vision=0.5),
        iterations=10,
        episodes=6,
        max_steps=120,
        screen=60,
        evaluate_every=5,
        evaluate_episodes=8,
    )
}
# Where the finger is, and how it moves, is enough to strike and to come back.
FINGER = {
    "finger-spin-distracted": TrainConfig(
        env=EnvSpec.of("iap/finger-spin-v0", difficulty=ALL_BACKGROUNDS, action_repeat=4),
        policy=tells_limbs(actions=2, keep=80, latent=8, gain=0.5),
        strategy=CMAES(population=16, sigma=1.5),
        iterations=150,
        episodes=4,
        max_steps=100,
        teach=Teach(an_episode=1, iterations=30),
        **TAUGHT,
    )
}
# Walking takes both legs and the trunk: hence more numbers told than to a finger.
WALKER = {
    "walker-walk-distracted": TrainConfig(
        env=EnvSpec.of("iap/walker-walk-v0", difficulty=ALL_BACKGROUNDS, action_repeat=4),
        policy=tells_limbs(actions=6, keep=120, latent=12, gain=0.1),
        strategy=CMAES(population=20, sigma=0.8),
        iterations=100,
        episodes=2,
        max_steps=125,
        teach=Teach(iterations=40),
        **TAUGHT,
    )
}
# What to do is a product of where the arm is and where the target is. It is learnt from being told, in few minutes
# without images, and with errors such as eyes make; then eyes are taught to tell the same, and both learn to get on.
REACHER_PARTS = ("target from finger", "finger from hand", "finger")
REACHER = {
    "reacher-easy-told": TrainConfig(
        env=EnvSpec.of(
            "iap/reacher-easy-v0",
            difficulty="medium",
            distractions=("camera",),
            size=(50, 50),
            told=REACHER_PARTS,
            told_error=0.05,
        ),
        policy=PolicySpec((50, 50, 3), sensors=6, actions=2, vision=Blind(), controller=Products()),
        strategy=CMAES(population=24, sigma=0.3),
        iterations=200,
        episodes=6,
        max_steps=100,
        evaluate_every=10,
        evaluate_episodes=24,
    ),
    "reacher-easy-distracted": TrainConfig(
        env=EnvSpec.of("iap/reacher-easy-v0", difficulty=ALL_BACKGROUNDS),
        policy=PolicySpec(
            (100, 100, 3),
            sensors=0,
            actions=2,
            vision=MultiRank(patch=3, stride=1, d=8, heads=8, keep=20, stem=((8, 5, 2), (12, 5, 2))),
            controller=MLP((24,)),
            sees=("contrast",),
            level=TwoLevel(latent=6, longest_hold=1, low=Products(), senses=False),
        ),
        strategy=CMAES(population=24, sigma=0.2),
        iterations=12,
        episodes=6,
        max_steps=125,
        teach=TeachByGradient(
            REACHER_PARTS, lessons=24_000, an_episode=8, own=1, steps=6_000, low_from="zoo:reacher-easy-told"
        ),
        **TAUGHT,
    ),
}
SUITE_PRESETS = REACHER | BALL | CARTPOLE | CHEETAH | TAUGHT_CHEETAH | FINGER | WALKER
