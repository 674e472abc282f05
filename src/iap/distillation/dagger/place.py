"""Where a distillation is, as a checkpoint in its folder."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save

from iap._files import write_whole
from iap.distillation.labelling import Arrays

ENCODER = -1  # the stage before the first round
FILE = "checkpoint.safetensors"
PREFIX = "training."  # of the arrays of the training


class Place(NamedTuple):
    """Where a run is.

    Attributes:
        stage: the number of the round, or `ENCODER`.
        updates: of this stage so far.
        theta: at the start of the stage, or at its end if the stage is complete.
        arrays: of the training, if the stage is not complete.
        facts: of the stages so far.
    """

    stage: int
    updates: int
    theta: np.ndarray
    arrays: Arrays
    facts: list[dict[str, Any]]


def save_place(folder: Path, place: Place) -> None:
    """Write the checkpoint, replaced whole or not at all."""
    arrays = {"theta": place.theta} | {f"{PREFIX}{name}": x for name, x in place.arrays.items()}
    facts = json.dumps({"stage": place.stage, "updates": place.updates, "facts": place.facts})
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / FILE, save(arrays, metadata={"facts": facts}))


def load_place(folder: Path) -> Place | None:
    """The checkpoint; None if there is none yet."""
    if not (folder / FILE).exists():
        return None
    with safe_open(folder / FILE, framework="numpy") as opened:
        facts = json.loads((opened.metadata() or {})["facts"])
    arrays = load_file(folder / FILE)
    training = {name.removeprefix(PREFIX): x for name, x in arrays.items() if name.startswith(PREFIX)}
    return Place(facts["stage"], facts["updates"], arrays["theta"], training, facts["facts"])
