"""How closely an exported policy agrees with recorded steps of the original."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from iap.interop.recording import RecordedStep


@dataclass(frozen=True)
class Agreement:
    """The result of a comparison.

    Attributes:
        steps: number of steps.
        worst: the largest absolute difference of an action.
        frames: number of steps with a recorded selection of patches.
        same: how many of these select the same patches.
        out_of_step: steps at which only one of the two needed an image.
    """

    steps: int
    worst: float
    frames: int
    same: int
    out_of_step: int


def agreement(policy: Any, recorded: Sequence[RecordedStep]) -> Agreement:
    """Feed the recorded observations to a policy with `reset`, `needs_image` and `act`, and compare what it does."""
    worst, frames, same, out_of_step, state = 0.0, 0, 0, 0, None
    shown = next((step.image for step in recorded if step.image is not None), None)
    for step in recorded:
        state = policy.reset() if step.starts else state
        out_of_step += policy.needs_image(state) != (step.image is not None)
        shown = shown if step.image is None else step.image
        action, state, attention = policy.act(state, {"image": shown, "sensors": step.sensors})
        worst = max(worst, float(np.abs(action - step.action).max()))
        if step.selected is not None and len(step.selected) > 0:
            frames += 1
            same += attention is not None and set(attention.selected.tolist()) == set(step.selected.tolist())
    return Agreement(len(recorded), worst, frames, same, out_of_step)
