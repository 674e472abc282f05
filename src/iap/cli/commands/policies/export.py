"""`iap export`: a policy in another format."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console

from iap.cli.console import Command


@dataclass(frozen=True)
class Export(Command):
    """Write a policy as C99 source, as an ONNX file or as WebAssembly.

    Example: iap export zoo:obstacle-course --format c --out obstacle-course-c
    """

    policy: tyro.conf.Positional[str]
    """A policy file, the folder of a run, or zoo:NAME."""
    format: Literal["c", "onnx", "wasm"] = "c"
    """What to write: C source with a test program, an ONNX file, or a WebAssembly module with its JavaScript."""
    out: Path = Path("export")
    """Write the files to this folder."""
    name: str | None = None
    """The name of the files; by default that of the policy."""
    image_type: Literal["auto", "uint8", "float32"] = "auto"
    """The type of images; by default what the policy's environment gives, which has to be installed."""
    test_steps: int = 8
    """C: recorded steps of the environment in the test program; 0 for none."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The folder."""
        return (self.out,)

    def run(self, console: Console) -> None:
        """Convert the policy and list the files."""
        from iap.interop.c.files import c_name
        from iap.policies import Policy
        from iap.zoo.locate import policy_path

        path = policy_path(self.policy)
        policy = Policy.load(path)
        name = c_name(self.name or (path.stem if path.stem not in ("best", "last") else path.parent.name))
        image_type = None if self.image_type == "auto" else self.image_type
        with console.status("exporting"):
            if self.format == "c":
                from iap.interop.c.export import export_c

                paths = export_c(policy, self.out, name, image_type=image_type, test_steps=self.test_steps)
            elif self.format == "wasm":
                from iap.interop.wasm import export_wasm

                paths = export_wasm(policy, self.out, name, image_type=image_type)
            else:
                from iap.interop.onnx.export import export_onnx

                self.out.mkdir(exist_ok=True)
                paths = [export_onnx(policy, self.out / f"{name}.onnx", image_type=image_type)]
        for written in paths:
            console.print(f"wrote {written} ({written.stat().st_size:,} bytes)", soft_wrap=True, highlight=False)
