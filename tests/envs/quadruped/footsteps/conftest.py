"""Fixtures for the footstep environments."""

from collections.abc import Callable
from typing import Any

import pytest

from iap.envs.quadruped.footsteps.base import FootstepsBase
from iap.envs.quadruped.footsteps.env import Footsteps
from iap.envs.quadruped.footsteps.single_foot_env import SingleFootsteps

Make = Callable[..., Any]
TEN_SECONDS = 200  # in steps


@pytest.fixture
def opened() -> Any:
    """Environments that are closed at the end."""
    envs: list[FootstepsBase] = []
    yield envs
    for env in envs:
        env.close()


@pytest.fixture
def footsteps(opened) -> Make:
    """Makes `Footsteps` with options."""

    def make(terrain: Any, **options: Any) -> Footsteps:
        opened.append(Footsteps(terrain, **options))
        return opened[-1]

    return make


@pytest.fixture
def single_footsteps(opened) -> Make:
    """Makes `SingleFootsteps` with options."""

    def make(terrain: Any, **options: Any) -> SingleFootsteps:
        opened.append(SingleFootsteps(terrain, **options))
        return opened[-1]

    return make


@pytest.fixture
def walk() -> Make:
    """Runs an episode without images: its return, and why it terminated."""

    def run(env: FootstepsBase, policy: Any, seed: int, steps: int = TEN_SECONDS) -> tuple[float, str | None]:
        env.reset(seed=seed)
        env.set_rendering(False)
        total = 0.0
        for _ in range(steps):
            _, reward, _, _, info = env.step(policy(env))
            total += reward
            if "ended" in info:
                return total, info["ended"]
        return total, None

    return run
