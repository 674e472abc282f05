"""`iap watch`: a video of one episode."""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from iap.cli.console import Command
from iap.cli.env_options import parse_env_options


@dataclass(frozen=True)
class Watch(Command):
    """Write a video of one episode with the attended patches, the scores and the return.

    Example: iap watch zoo:seek --out seek.mp4
    """

    policy: tyro.conf.Positional[str]
    """A policy file, the folder of a run, or zoo:NAME."""
    out: Path | None = None
    """An .mp4 or .gif file; by default beside the policy, or in the current folder for zoo:NAME."""
    seed: int = 0
    """Seed of the episode."""
    env: str | None = None
    """Another environment than the policy's own; "module:id" imports the module that registers it."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE, an option of the environment besides the policy's own; can be repeated."""
    max_steps: int | None = None
    """Number of steps after which the episode is cut."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The video."""
        return (self.out,)

    def run(self, console: Console) -> None:
        """Run the episode and write the video."""
        from iap.evaluation.video import film
        from iap.zoo.locate import ZOO, locate_policy

        policy, path = locate_policy(self.policy, self.env, parse_env_options(self.env_option))
        in_zoo = self.policy.startswith(ZOO)
        default = Path(f"{self.policy.removeprefix(ZOO)}.mp4") if in_zoo else Path(path).with_suffix(".mp4")
        out = self.out or default
        with console.status("recording"):
            episode = film(policy, out, self.seed, self.max_steps)
        console.print(
            f"wrote {out}: {episode.steps} steps, return {episode.total:.4g}, seed {self.seed}", soft_wrap=True
        )
