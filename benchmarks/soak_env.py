"""`soak_env:PausingSeek-v0`: `iap/Seek-v0` with a pause in each step, for a long training that needs little."""

import time
from typing import Any

import gymnasium

from iap.envs.seek import Seek

PAUSE_S = 0.02


class PausingSeek(Seek):
    """Seek with a pause in each step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """One step."""
        time.sleep(PAUSE_S)
        return super().step(action)


gymnasium.register("PausingSeek-v0", "soak_env:PausingSeek", max_episode_steps=40)
