"""`iap attend`: what a policy, or an untrained encoder, attends to in images."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.console import Console

from iap.cli.console import Command

if TYPE_CHECKING:
    from iap.evaluation.attend import Attended
    from iap.policies import Policy

SHOWN = 20  # rows of the table that are printed


@dataclass(frozen=True)
class Attend(Command):
    """Draw the attended patches and the scores of an image, a folder of images or a video.

    Writes a picture for each image, or a video, and attention.csv. Without --policy the queries and keys are random.
    Example: iap attend photo.png --policy zoo:seek --out attended
    """

    source: tyro.conf.Positional[Path]
    """An image, a folder of images, or a video."""
    policy: str | None = None
    """A policy file, the folder of a run, or zoo:NAME. Images are resized to what it was trained on."""
    out: Path = Path("attended")
    """The folder for the results."""
    patch: int | None = None
    """Side of a patch of an untrained encoder, in pixels; by default a 16th of the shorter side, at most 8."""
    top_k: int | None = None
    """Number of patches that an untrained encoder selects."""
    seed: int = 0
    """Seed of an untrained encoder."""
    max_frames: int | None = None
    """Number of images after which to stop."""

    def run(self, console: Console) -> None:
        """Attend to the images one after the other, and write the results."""
        from iap._files import write_whole
        from iap._validation import require_count
        from iap.cli.tables import plain_table
        from iap.evaluation.attend import attend_to
        from iap.viz.frames import frames_of, is_video

        if self.max_frames is not None:
            require_count("max_frames", self.max_frames)
        require_count("seed", self.seed, least=0)
        policy = self._policy()
        attended = attend_to(policy, frames_of(self.source, self.max_frames))
        first = next(attended)  # errors come before the folder is made
        self.out.mkdir(parents=True, exist_ok=True)
        with console.status(f"attending to {self.source}"):
            write = self._write_video if is_video(self.source) else self._write_pictures
            rows = write(first, attended)
        table = io.StringIO()
        writer = csv.DictWriter(table, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        write_whole(self.out / "attention.csv", table.getvalue().encode())
        more = f", the first {SHOWN}" if len(rows) > SHOWN else ""
        console.print(plain_table(rows[:SHOWN], f"best and mean selected patch, in pixels of the image{more}"))
        note = f" The policy's {policy.config.sensors} sensors were 0." if policy.config.sensors else ""
        images = f"{len(rows):,} image" + ("s" if len(rows) > 1 else "")
        console.print(f"wrote {images} and attention.csv to {self.out}.{note}", soft_wrap=True)

    def _policy(self) -> "Policy":
        """The policy that is given, or an untrained one for the first image."""
        from iap.evaluation.attend import config_for_images, require_camera, untrained
        from iap.policies import Policy
        from iap.training.auto_config import default_policy
        from iap.viz.frames import frames_of
        from iap.zoo.locate import locate_policy

        if self.policy is not None:
            if self.patch is not None or self.top_k is not None:
                raise ValueError("--patch and --top-k are options of an untrained encoder: leave out --policy")
            policy = Policy.of(locate_policy(self.policy)[0])
            require_camera(policy.config)
            return policy
        frame = next(iter(frames_of(self.source, 1)))
        config = default_policy(frame.image.shape, sensors=0, actions=1)
        return untrained(config_for_images(config, patch=self.patch, stride=self.patch, top_k=self.top_k), self.seed)

    def _write_pictures(self, first: "Attended", others: Any) -> list[dict[str, Any]]:
        from PIL import Image

        from iap.viz.composition import side_by_side

        rows = []
        for one in (first, *others):
            Image.fromarray(side_by_side(one.image, one.attention)).save(self.out / f"{one.name}.png")
            rows.append(one.row)
        return rows

    def _write_video(self, first: "Attended", others: Any) -> list[dict[str, Any]]:
        from iap.viz.composition import side_by_side
        from iap.viz.frames import frame_rate
        from iap.viz.videos import VideoWriter

        rows = []
        with VideoWriter(self.out / f"{self.source.stem}.mp4", fps=frame_rate(self.source)) as video:
            for one in (first, *others):
                video.add(side_by_side(one.image, one.attention))
                rows.append(one.row)
        return rows
