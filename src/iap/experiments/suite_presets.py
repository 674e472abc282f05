"""Training runs of the Distracting Control Suite: pixels only; background, camera and colours static and medium.

Policies see what has changed since their last look, so that backgrounds, which stand still, are black. A movement comes
first, without distractions, where few episodes tell good from bad; a distracted run starts from there and gets used to
other cameras and colours.
"""

from typing import Any

from iap.attention import ReLU
from iap.attention.positions import Positions
from iap.evolution import CMAES
from iap.experiments.config import Scales, TrainConfig
from iap.policies.specs import PolicySpec, Rank
from iap.rollouts import EnvSpec


def eyes(patch: int, keep: int, heads: int) -> Rank:
    """Heads with a place of their own pool what moves.

    About as many patches are kept as the robot has: with fewer the heads see one spot of it, with more what stands
    still. Keys know no places, which are another camera's in the next episode.
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
        soft=True,
    )


def _two_runs(
    task: str, actions: int, vision: Rank, first: dict[str, Any], then: dict[str, Any]
) -> dict[str, TrainConfig]:
    """The run without distractions and the one to be started from it; grey, as colours of changes tell little."""
    policy = PolicySpec((100, 100, 1), sensors=0, actions=actions, vision=vision, frames=2, changes=True)
    shared: dict[str, Any] = {"policy": policy, "scales": Scales(vision=0.5)}
    plain, distracted = (EnvSpec.of(f"iap/{task}-v0", frame="grey", difficulty=d) for d in (None, "medium"))
    return {
        task: TrainConfig(env=plain, **shared, **first),
        f"{task}-distracted": TrainConfig(env=distracted, **shared, **then),
    }


SUITE_PRESETS = {
    **_two_runs(
        "cheetah-run",
        6,
        eyes(patch=2, keep=60, heads=4),
        {"strategy": CMAES(population=20, sigma=0.12), "iterations": 60, "episodes": 1}
        | {"max_steps": 125, "evaluate_every": 5, "evaluate_episodes": 4},
        {"strategy": CMAES(population=20, sigma=0.05), "iterations": 15, "episodes": 3}
        | {"max_steps": 125, "evaluate_every": 3, "evaluate_episodes": 12},
    ),
    **_two_runs(
        "cartpole-swingup",
        1,
        eyes(patch=4, keep=24, heads=3),
        {"strategy": CMAES(population=20, sigma=0.2), "iterations": 30, "episodes": 1}
        | {"max_steps": 125, "evaluate_every": 5, "evaluate_episodes": 4},
        {"strategy": CMAES(population=20, sigma=0.05), "iterations": 15, "episodes": 3}
        | {"max_steps": 125, "evaluate_every": 3, "evaluate_episodes": 12},
    ),
    # A ball is caught or not: only many episodes tell how well.
    **_two_runs(
        "ball_in_cup-catch",
        2,
        eyes(patch=4, keep=30, heads=3),
        {"strategy": CMAES(population=24, sigma=0.2), "iterations": 15, "episodes": 8}
        | {"max_steps": 100, "evaluate_every": 3, "evaluate_episodes": 16},
        {"strategy": CMAES(population=20, sigma=0.05), "iterations": 10, "episodes": 8}
        | {"max_steps": 100, "evaluate_every": 2, "evaluate_episodes": 24},
    ),
}
