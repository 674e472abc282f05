"""What a policy attends to, counted by the simulator's segmentation of its image."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Int

from iap.envs.protocols import Segmentation, require_protocol
from iap.evaluation.evaluate import policy_job
from iap.policies import Attention, Policy, PolicyFile
from iap.rollouts import Step, run_episode


def attention_statistics(
    policy: PolicyFile, episodes: int, seed: int = 0, max_steps: int | None = None
) -> list[dict[str, Any]]:
    """For each class of the segmentation, the share of selected patches on it, and of all patches.

    A patch that, grown by a pixel, covers several classes lies on their boundary. `times_chance` is above 1 where
    attention selects a class more often than chance would.
    """
    env = policy_job(policy).env.make()
    selected, everything = Counter[str](), Counter[str]()
    try:
        segmented = _Segmented(env)
        for i in range(episodes):

            def count(step: Step) -> None:
                if step.attention is not None:
                    names = patch_classes(step.attention, segmented.before, segmented.names)
                    everything.update(names)
                    selected.update(names[j] for j in step.attention.selected)
                segmented.before = segmented.now

            run_episode(segmented, Policy.of(policy), seed + i, max_steps, count)
    finally:
        env.close()
    return _rows(selected, everything)


def patch_classes(attention: Attention, labels: Int[np.ndarray, "H W"], names: Sequence[str]) -> list[str]:
    """The class of each patch, or the boundary of several."""
    padded = np.pad(labels, 1, mode="edge")
    side, stride, grid = attention.patch, attention.stride, attention.grid
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side + 2, side + 2))[::stride, ::stride]
    windows = windows[: grid.rows, : grid.columns].reshape(grid.patches, -1)
    covers = [(windows == i).any(axis=1) for i in range(len(names))]
    codes = np.array([here.astype(np.int64) << i for i, here in enumerate(covers)]).sum(axis=0)
    known = {code: _name([name for i, name in enumerate(names) if code >> i & 1]) for code in np.unique(codes).tolist()}
    return [known[code] for code in codes.tolist()]


def _name(classes: Sequence[str]) -> str:
    return classes[0] if len(classes) == 1 else f"boundary of {' and '.join(classes)}"


def _rows(selected: Counter[str], everything: Counter[str]) -> list[dict[str, Any]]:
    rows = []
    for name, count in everything.most_common():
        attention, area = selected[name] / max(1, selected.total()), count / everything.total()
        rows.append({"class": name, "attention": attention, "area": area, "times_chance": attention / area})
    return sorted(rows, key=lambda row: -row["attention"])


class _Segmented(gymnasium.Wrapper):
    """An environment that keeps the segmentation before the last step, and the current one."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        segmentation = require_protocol(env, Segmentation)
        self.names: Sequence[str] = segmentation.segment_names
        self._segmentation = segmentation.segmentation

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        result = super().reset(**kwargs)
        self.before = self.now = self._segmentation()
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        result = super().step(action)
        self.now = self._segmentation()
        return result
