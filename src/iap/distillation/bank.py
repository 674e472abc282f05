"""The dataset of distillation: blocks of labelled episodes on disk, append-only, read through memory maps."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from iap._files import read_text, write_whole
from iap._tensor_files import BAD_CONTENT, parse_object
from iap._validation import printable, require_count
from iap.distillation.labelling import Arrays, LabelledEpisode

MOST_FACTS_BYTES = 1 << 24
FACTS = "facts.json"  # written last: a block without it is incomplete


class Bank:
    """Labelled steps in a folder, in the order of their blocks.

    A block is a folder with one .npy file for each array, and `facts.json`. Blocks are never changed. Only the rows of
    a batch are read into memory.

    Attributes:
        axes: of the cost maps, see `iap.envs.protocols.Label`.
    """

    def __init__(self, folder: Path) -> None:
        """The blocks that the folder holds; it is made when the first is added."""
        self._folder = folder
        self._blocks: list[Arrays] = []
        self.axes: tuple[tuple[int, int, int | None], ...] = ()
        self._facts: list[dict[str, Any]] = []
        while (self._path(len(self._blocks)) / FACTS).exists():
            self._open(len(self._blocks))

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return len(self._blocks)

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return [name for name in self._blocks[0] if name != "lengths"]

    def steps(self) -> int:
        """The number of steps."""
        return sum(len(arrays["actions"]) for arrays in self._blocks)

    def steps_of(self, round_number: int) -> int:
        """The number of steps of a round."""
        return sum(len(arrays["actions"]) for arrays in self._of(round_number))

    def returns_of(self, round_number: int) -> list[float]:
        """The returns of the episodes of a round."""
        return [x for facts in self._facts if facts["round"] == round_number for x in facts["returns"]]

    def append(self, episodes: Sequence[LabelledEpisode], round_number: int) -> None:
        """Add a block: all steps of these episodes."""
        number = self.blocks
        path = self._path(number)
        shutil.rmtree(path, ignore_errors=True)  # left by a process that was killed
        path.mkdir(parents=True)
        for name in episodes[0].arrays:
            np.save(path / f"{name}.npy", np.concatenate([episode.arrays[name] for episode in episodes]))
        lengths = np.array([len(episode.arrays["actions"]) for episode in episodes])
        np.save(path / "lengths.npy", lengths)
        facts = {"round": round_number, "axes": episodes[0].axes, "returns": [episode.total for episode in episodes]}
        write_whole(path / FACTS, json.dumps(facts).encode())
        self._open(number)

    def rows(self, indices: Int[np.ndarray, " n"], names: Sequence[str] | None = None) -> Arrays:
        """These steps, counted over all blocks, in this order."""
        starts = np.cumsum([0, *(len(arrays["actions"]) for arrays in self._blocks)])
        owners = np.searchsorted(starts, indices, side="right") - 1
        wanted = self.names if names is None else names
        batch: Arrays = {}
        for number in np.unique(owners).tolist():
            chosen = owners == number
            for name in wanted:
                part = self._blocks[number][name][indices[chosen] - starts[number]]
                if name not in batch:
                    batch[name] = np.empty((len(indices), *part.shape[1:]), part.dtype)
                batch[name][chosen] = part
        return batch

    def column(self, name: str, round_number: int | None = None) -> np.ndarray:
        """One array of all steps, or of those of a round."""
        blocks = self._blocks if round_number is None else self._of(round_number)
        return np.concatenate([arrays[name] for arrays in blocks])

    def episodes(self) -> list[tuple[int, int]]:
        """The first step of each episode and the one after its last."""
        lengths = np.concatenate([arrays["lengths"] for arrays in self._blocks])
        stops = np.cumsum(lengths)
        return list(zip((stops - lengths).tolist(), stops.tolist(), strict=True))

    def delete(self) -> None:
        """Remove all files."""
        self._blocks, self._facts = [], []
        shutil.rmtree(self._folder, ignore_errors=True)

    def _open(self, number: int) -> None:
        path = self._path(number)
        try:
            facts = parse_object("facts", read_text(path / FACTS, MOST_FACTS_BYTES).encode())
            files = sorted(path.glob("*.npy"))
            arrays = {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in files}
            steps = int(arrays["lengths"].sum())
            if wrong := [name for name, x in arrays.items() if name != "lengths" and len(x) != steps]:
                raise ValueError(f"{', '.join(wrong)} must have {steps} rows")
            require_count("round", facts["round"], least=-1)
            self.axes = tuple((row, column, dependent) for row, column, dependent in facts["axes"])
            np.array(facts["returns"], float)
        except (*BAD_CONTENT, EOFError, OSError) as error:
            raise ValueError(f"{path} cannot be used: {printable(error)}") from error
        self._blocks.append(arrays)
        self._facts.append(facts)

    def _of(self, round_number: int) -> list[Arrays]:
        """The blocks of a round."""
        pairs = zip(self._blocks, self._facts, strict=True)
        return [arrays for arrays, facts in pairs if facts["round"] == round_number]

    def _path(self, number: int) -> Path:
        return self._folder / f"block-{number:04d}"
