"""Where a distillation is, as a checkpoint in its folder."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from iap._files import open_regular, write_whole
from iap._tensor_files import BAD_CONTENT, pack, parse_object, read_header, read_tensors
from iap._validation import printable, require_count, require_type
from iap.distillation.labelling import Arrays

ENCODER = -1  # the stage before the first round
FILE = "checkpoint.safetensors"
MOST_FACTS_BYTES, MOST_BYTES = 1 << 20, 1 << 34
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
    write_whole(folder / FILE, *pack({name: np.array(x, order="C") for name, x in arrays.items()}, {"facts": facts}))


def load_place(folder: Path, size_of_theta: int) -> Place | None:
    """The checkpoint; None if there is none yet."""
    if not (folder / FILE).exists():
        return None
    try:
        with open_regular(folder / FILE, MOST_BYTES) as (file, size):
            header = read_header(file, size, MOST_FACTS_BYTES)
            if set(header.texts) != {"facts"}:
                raise ValueError("is a safetensors file, but not a checkpoint")
            arrays, facts = read_tensors(file, header), parse_object("facts", header.texts["facts"].encode())
        training = {name.removeprefix(PREFIX): x for name, x in arrays.items() if name.startswith(PREFIX)}
        stage = require_count("stage", facts["stage"], least=ENCODER)
        updates = require_count("updates", facts["updates"], least=0)
        require_type("facts", facts["facts"], list)
        if arrays["theta"].shape != (size_of_theta,):
            raise ValueError(f"theta must be of shape ({size_of_theta},) for its config, not {arrays['theta'].shape}")
        return Place(stage, updates, arrays["theta"], training, facts["facts"])
    except BAD_CONTENT as error:
        raise ValueError(f"{folder / FILE} cannot be used: {printable(error)}") from error
