"""`iap bench`, `iap fidelity`: what can be measured."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import track

from iap.bench.attention import CASES, KERNELS, METHODS, Method, bench_attention
from iap.cli.terminal import progress_bar, save


@dataclass(frozen=True)
class BenchAttention:
    """Time the way from an image to the scores of its patches, on one core: each method, kernel and size in one run.

    Takes about four minutes, most of it for the exact L×L matrix at 76,800 patches.
    Example: iap bench attention --json attention.json --plot attention.png
    """

    json: Path | None = None
    """Write the rows here as JSON; - for standard output."""
    plot: Path | None = None
    """Write a log-log plot here, as PNG."""
    sizes: tuple[int, ...] = tuple(CASES)
    """Numbers of patches, of those listed as default."""
    kernels: tuple[str, ...] = tuple(KERNELS)
    """Kernels, of those listed as default."""
    methods: tuple[Method, ...] = METHODS
    """Methods; torch is left out if it is not installed."""

    def run(self, console: Console) -> None:
        """Measure and report."""
        from iap.cli.tables import attention_table
        from iap.viz.plots import plot_bench

        with progress_bar(console) as progress:
            rows = bench_attention(self.sizes, self.kernels, self.methods, progress)
        console.print(attention_table(rows))
        save(console, rows, self.json, self.plot, plot_bench)


@dataclass(frozen=True)
class BenchDatabase:
    """Time a step of cross-attention with a key database, against recomputing the keys: lookup, hashes, tree.

    Example: iap bench database --json database.json
    """

    json: Path | None = None
    """Write the rows here as JSON; - for standard output."""
    plot = None

    def run(self, console: Console) -> None:
        """Measure and report."""
        from iap.bench.one_core import on_one_core
        from iap.cli.tables import plain_table

        with console.status("measuring the key database, about a minute"):
            [rows] = on_one_core("iap.bench.database")
        console.print(plain_table(rows, "one step of cross-attention, from pooled queries to ten patches"))
        save(console, rows, self.json)


@dataclass(frozen=True)
class BenchRollouts:
    """Time training against the bare environment with random actions, and two workers against one, in one run.

    Takes about four minutes.
    Example: iap bench rollouts --size 240 320 --patch 2
    """

    preset: str = "cheetah-run"
    """Which run's policy and environment; its episodes are whole ones, two a candidate."""
    size: tuple[int, int] | None = None
    """Another height and width of the image, if the environment has a choice."""
    patch: int = 4
    """Side of its patches."""
    top_k: int = 10
    """How many are kept."""
    json: Path | None = None
    """Write the result here as JSON; - for standard output."""
    plot = None

    def run(self, console: Console) -> None:
        """Measure and report."""
        from iap.bench.rollouts import bench_rollouts, with_patches
        from iap.training.presets.registry import preset

        with console.status("the bare environment, then one worker, then two: about four minutes"):
            result = bench_rollouts(with_patches(preset(self.preset), self.size, self.patch, self.top_k))
        for name, speed in result["steps_per_second"].items():
            console.print(f"{name.replace('_', ' ')}: {speed:,.0f} steps a second", highlight=False)
        console.print(
            f"training / bare {result['training_over_bare']:.2f}, two workers / one {result['two_over_one']:.2f}"
        )
        save(console, result, self.json)


@dataclass(frozen=True)
class BenchFrames:
    """Time a step and its frame of dm_control's suite, against dm_control's own renderer, plain and distracted.

    Takes about a minute.
    Example: iap bench frames --json frames.json
    """

    json: Path | None = None
    """Write the rows here as JSON; - for standard output."""
    plot = None

    def run(self, console: Console) -> None:
        """Measure and report."""
        from iap.bench.frames import bench_frames
        from iap.cli.tables import plain_table

        with console.status("frames of both, in turns: about a minute"):
            rows = bench_frames()
        console.print(plain_table(rows, "a step and its frame, milliseconds of one core"))
        save(console, rows, self.json)


@dataclass(frozen=True)
class Bench:
    """Measure speed and memory here and now.

    Example: iap bench attention
    """

    what: (
        Annotated[BenchAttention, tyro.conf.subcommand("attention")]
        | Annotated[BenchDatabase, tyro.conf.subcommand("database")]
        | Annotated[BenchRollouts, tyro.conf.subcommand("rollouts")]
        | Annotated[BenchFrames, tyro.conf.subcommand("frames")]
    )

    def run(self, console: Console) -> None:
        """Run the benchmark chosen."""
        self.what.run(console)

    @property
    def json(self) -> Path | None:
        """Where the benchmark chosen writes its rows."""
        return self.what.json

    @property
    def plot(self) -> Path | None:
        """Where the benchmark chosen writes its plot, if it has one."""
        return self.what.plot


@dataclass(frozen=True)
class Fidelity:
    """Tell how well each feature map's ranking matches that of exact softmax, on Gaussian data and rendered frames.

    Takes about a minute.
    Example: iap fidelity --json fidelity.json --plot fidelity.png
    """

    json: Path | None = None
    """Write the rows here as JSON; - for standard output."""
    plot: Path | None = None
    """Write the overlap over the number of projections here, as PNG."""
    draws: int = 12
    """How many scenes and draws of the projections each row is a mean of."""

    def run(self, console: Console) -> None:
        """Measure and report."""
        from iap.bench.fidelity import fidelity
        from iap.cli.tables import plain_table
        from iap.viz.plots import plot_fidelity

        rows = fidelity(
            draws=self.draws, progress=lambda cases: track(cases, "comparing", console=console, transient=True)
        )
        for kind, title in (
            ("features", "rankings by features against exact softmax"),
            ("hash", "rankings by hashes against the features hashed"),
            ("tree", "draws from a tree, and direct draws, against the scores"),
        ):
            console.print(plain_table([row for row in rows if row["kind"] == kind], title))
        save(console, rows, self.json, self.plot, plot_fidelity)


@dataclass(frozen=True)
class Doctor:
    """Tell what works here, how fast, and the exact command that mends what does not.

    Takes about half a minute; status 1 if something that is needed does not work.
    Example: iap doctor
    """

    json: Path | None = None
    """Write the findings here as JSON; - for standard output."""
    plot = None

    def run(self, console: Console) -> None:
        """Check, one thing after the other."""
        from dataclasses import asdict

        from iap.doctor.report import doctor, table

        with progress_bar(console) as progress:
            checks = doctor(progress=progress)
        console.print(table(checks))
        for check in checks:
            if check.fix and not check.ok:
                console.print(f"{check.name}: {check.fix}", soft_wrap=True, markup=False, highlight=False)
        save(console, [asdict(check) for check in checks], self.json)
        if any(check.required and not check.ok for check in checks):
            raise SystemExit(1)
