"""`iap import`: published parameters of other projects as policy files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console

from iap.cli.console import Command


@dataclass(frozen=True)
class Import(Command):
    """Convert the published parameters of AttentionAgent (an .npz file) to a policy file.

    Example: iap import attention-agent agent.npz --env CarRacing-v3 --out agent.policy
    """

    source: tyro.conf.Positional[Literal["attention-agent"]]
    """The project that published the parameters."""
    file: tyro.conf.Positional[Path]
    """The .npz file, with the array "params"."""
    env: str = "CarRacing-v3"
    """Id of the environment of the policy."""
    linear: bool = False
    """Use linear, row-normalised attention instead of exact attention."""
    out: Path | None = None
    """The policy file; by default beside the .npz file."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The policy file."""
        return (self.out,)

    def run(self, console: Console) -> None:
        """Read and check the parameters, and write the policy file."""
        from iap.interop.attention_agent import import_attention_agent
        from iap.policies.serialization import save

        out = self.out or self.file.with_suffix(".policy")
        save(out, import_attention_agent(self.file, self.env, linear=self.linear))
        console.print(f"wrote {out}\nevaluate it: iap eval {out}", soft_wrap=True)
