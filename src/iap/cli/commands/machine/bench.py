"""`iap bench`: speed and memory on this computer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from iap.cli.console import Command, progress_bar, save


@dataclass(frozen=True)
class BenchAttention(Command):
    """Time the scoring of all patches of an image on one core, for each method, kernel and size, in one run.

    Takes about four minutes, most of it for the exact L×L matrix at 76,800 patches.
    Example: iap bench attention --json attention.json --plot attention.png
    """

    json: Path | None = None
    """Write the rows to this file as JSON; - for standard output."""
    plot: Path | None = None
    """Write a log-log plot to this PNG file."""
    sizes: tuple[int, ...] = ()
    """Numbers of patches; by default all that are defined."""
    kernels: tuple[str, ...] = ()
    """Names of attention kernels, such as relu; by default all."""
    methods: tuple[str, ...] = ()
    """Methods, such as exact, jax or compiled; by default all. torch is left out if it is not installed."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file and the plot."""
        return self.json, self.plot

    def run(self, console: Console) -> None:
        """Measure and print a table."""
        from iap.attention import KERNELS
        from iap.bench.attention import CASES, METHODS, bench_attention
        from iap.cli.tables import attention_table
        from iap.viz.plots import plot_bench

        sizes, kernels = self.sizes or tuple(CASES), self.kernels or tuple(KERNELS)
        with progress_bar(console) as progress:
            rows = bench_attention(sizes, kernels, self.methods or METHODS, progress)
        console.print(attention_table(rows))
        save(console, rows, self.json, self.plot, plot_bench)


@dataclass(frozen=True)
class BenchDatabase(Command):
    """Time a step of cross-attention with a key database, compared with recomputing the keys.

    Takes about a minute.
    Example: iap bench database --json database.json
    """

    json: Path | None = None
    """Write the rows to this file as JSON; - for standard output."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Measure and print a table."""
        from iap.bench.one_core import run_on_one_core
        from iap.cli.tables import plain_table

        with console.status("measuring the key database, about a minute"):
            [rows] = run_on_one_core("iap.bench.database")
        console.print(plain_table(rows, "one step of cross-attention, from pooled queries to ten patches"))
        save(console, rows, self.json)


@dataclass(frozen=True)
class BenchRollouts(Command):
    """Time training compared with the environment alone, and two workers compared with one, in one run.

    Takes about four minutes.
    Example: iap bench rollouts --size 240 320 --patch 2
    """

    preset: str = "cheetah-run-plain"
    """Preset whose policy and environment are measured, with whole episodes, two per candidate."""
    size: tuple[int, int] | None = None
    """Another height and width of the image, if the environment has the option `size`."""
    patch: int = 4
    """Side and stride of the patches, in pixels."""
    top_k: int = 10
    """Number of selected patches."""
    json: Path | None = None
    """Write the result to this file as JSON; - for standard output."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Measure and print the speeds and their ratios."""
        from iap.bench.rollouts import bench_rollouts, with_patches
        from iap.training.presets import preset

        config = with_patches(preset(self.preset), self.size, self.patch, self.top_k)
        with console.status("the environment alone, one worker, two workers: about four minutes"):
            result = bench_rollouts(config)
        for name, speed in result["steps_per_second"].items():
            console.print(f"{name.replace('_', ' ')}: {speed:,.0f} steps per second", highlight=False)
        console.print(
            f"training / bare {result['training_over_bare']:.2f}, two workers / one {result['two_over_one']:.2f}"
        )
        save(console, result, self.json)


@dataclass(frozen=True)
class BenchFrames(Command):
    """Time a step and its frame of the control suite, compared with dm_control's renderer.

    With and without distractions. Takes about a minute. With --env indoor, a step and its frame in an apartment of
    100,000 triangles.
    Example: iap bench frames --json frames.json
    """

    env: Literal["control-suite", "indoor"] = "control-suite"
    """What is measured."""
    json: Path | None = None
    """Write the rows to this file as JSON; - for standard output."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Measure and print a table."""
        from iap.bench.frames import bench_frames
        from iap.bench.indoor_frames import bench_indoor_frames
        from iap.cli.tables import plain_table

        with console.status("frames, about a minute"):
            rows = bench_indoor_frames() if self.env == "indoor" else bench_frames()
        console.print(plain_table(rows, "one step and its frame on one core"))
        save(console, rows, self.json)


@dataclass(frozen=True)
class BenchDeploy(Command):
    """Time a step of a policy in Python, ONNX, C and WebAssembly, with their sizes, on one core.

    With QEMU and a compiler for it, the instructions on a Cortex-M4 too. Formats whose tools are missing say what to
    install. Takes about half a minute.
    Example: iap bench deploy zoo:obstacle-course --json deploy.json
    """

    policy: tyro.conf.Positional[str]
    """A policy file, the folder of a run, or zoo:NAME."""
    json: Path | None = None
    """Write the rows to this file as JSON; - for standard output."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Measure and print a table."""
        from iap.bench.deploy import bench_deploy
        from iap.cli.tables import plain_table

        with console.status("each format in turn, about half a minute"):
            rows = bench_deploy(self.policy)
        console.print(plain_table(rows, f"a step of {self.policy}, microseconds on one core"))
        save(console, rows, self.json)


@dataclass(frozen=True)
class Bench(Command):
    """Measure speed and memory on this computer: attention, key database, rollouts, rendering or exported policies.

    Example: iap bench attention
    """

    benchmark: (
        Annotated[BenchAttention, tyro.conf.subcommand("attention")]
        | Annotated[BenchDatabase, tyro.conf.subcommand("database")]
        | Annotated[BenchRollouts, tyro.conf.subcommand("rollouts")]
        | Annotated[BenchFrames, tyro.conf.subcommand("frames")]
        | Annotated[BenchDeploy, tyro.conf.subcommand("deploy")]
    )

    def outputs(self) -> Sequence[Path | None]:
        """The files of the chosen benchmark."""
        return self.benchmark.outputs()

    def run(self, console: Console) -> None:
        """Run the chosen benchmark."""
        self.benchmark.run(console)
