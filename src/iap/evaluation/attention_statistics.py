"""What a policy attends to, counted by the simulator's own segmentation of its image."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Int

from iap.envs.protocols import Segmentation, find_protocol, require_protocol
from iap.evaluation.evaluate import policy_job
from iap.policies import Attention, build_policy, unflatten
from iap.policies.serialization import PolicyFile
from iap.rollouts import Step, run_episode


def can_tell(env: gymnasium.Env) -> bool:
    """Whether the environment knows what each pixel shows."""
    return find_protocol(env, Segmentation) is not None


def attended(policy: PolicyFile, episodes: int, seed: int = 0, max_steps: int | None = None) -> list[dict[str, Any]]:
    """For each thing to be seen, the share of attended patches that lie on it, and of all patches.

    A patch that, grown by a pixel, holds several things lies on their boundary. Where attention looks at a thing more
    than chance would, `times_chance` is above 1.
    """
    env = policy_job(policy).env.make()
    if not can_tell(env):
        env.close()
        raise ValueError(f"{policy.env_id} cannot tell what its pixels show (it has no segmentation)")
    runner = build_policy(policy.spec, unflatten(policy.spec, policy.theta), policy.normaliser)
    chosen, everything = Counter[str](), Counter[str]()
    watched = _Segmented(env)
    try:
        for i in range(episodes):

            def count(step: Step) -> None:
                if step.attention is not None:
                    names = things(step.attention, watched.seen, watched.names)
                    everything.update(names)
                    chosen.update(names[j] for j in step.attention.selected)
                watched.seen = watched.now

            run_episode(watched, runner, seed + i, max_steps, count)
    finally:
        env.close()
    return _rows(chosen, everything)


def things(attention: Attention, labels: Int[np.ndarray, "H W"], names: Sequence[str]) -> list[str]:
    """What each patch shows: one thing, or the boundary of several."""
    around = np.pad(labels, 1, mode="edge")
    side, stride, grid = attention.patch, attention.stride, attention.grid
    windows = np.lib.stride_tricks.sliding_window_view(around, (side + 2, side + 2))[::stride, ::stride]
    windows = windows[: grid.rows, : grid.columns].reshape(grid.patches, -1)
    within = [(windows == i).any(axis=1) for i in range(len(names))]
    held = np.array([here.astype(np.int64) << i for i, here in enumerate(within)]).sum(axis=0)
    told = {code: _name([name for i, name in enumerate(names) if code >> i & 1]) for code in np.unique(held).tolist()}
    return [told[code] for code in held.tolist()]


def _name(shown: Sequence[str]) -> str:
    return shown[0] if len(shown) == 1 else f"boundary of {' and '.join(shown)}"


def _rows(chosen: Counter[str], everything: Counter[str]) -> list[dict[str, Any]]:
    rows = []
    for name, count in everything.most_common():
        attention, area = chosen[name] / max(1, chosen.total()), count / everything.total()
        rows.append({"thing": name, "attention": attention, "area": area, "times_chance": attention / area})
    return sorted(rows, key=lambda row: -row["attention"])


class _Segmented(gymnasium.Wrapper):
    """An environment that keeps the segmentation of what was seen before the last step, and of what is seen now."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        segmented = require_protocol(env, Segmentation)
        self.names: Sequence[str] = segmented.segment_names
        self._segmentation = segmented.segmentation

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        result = super().reset(**kwargs)
        self.seen = self.now = self._segmentation()
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        result = super().step(action)
        self.now = self._segmentation()
        return result
