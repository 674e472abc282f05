"""`iap eval`, `watch`, `describe`, `zoo`, `import`: what can be done with a policy once there is one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from iap.cli.choices import key_values
from iap.cli.terminal import save
from iap.cli.where import Where


@dataclass(frozen=True)
class Eval:
    """Evaluate a policy on seeds that training never used.

    Example: iap eval runs/seek-seed0 --episodes 100
    """

    policy: tyro.conf.Positional[str]
    """A policy file, a run's folder, or zoo:NAME."""
    episodes: int = 100
    """How many episodes; the i-th has seed SEED + i."""
    seed: int = 0
    """Of the first episode."""
    env: str | None = None
    """Another environment than its own; "module:id" imports the module that registers it."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE for the environment, beside its own options; any number of them."""
    attended: int = 0
    """In how many of them to count what attention falls on, where the environment knows what its pixels show."""
    json: Path | None = None
    """Write the result here as JSON; - for standard output."""
    where: Annotated[Where, tyro.conf.arg(name="")] = Where()  # noqa: RUF009
    plot = None

    def run(self, console: Console) -> None:
        """Run the episodes and tell the mean."""
        from iap.cli.tables import plain_table
        from iap.evaluation.attention_statistics import attended
        from iap.evaluation.evaluate import evaluate, locate_policy, policy_job

        policy, path = locate_policy(self.policy, self.env, key_values(self.env_option))
        with self.where.open(policy_job(policy)) as pool, console.status(f"{self.episodes} episodes"):
            result = evaluate(policy, pool, self.episodes, self.seed) | {"policy": path, "env": policy.env_id}
        if result["mean"] is None:
            raise RuntimeError(f"all {self.episodes} episodes failed: {'; '.join(result['errors'])}")
        interval = "" if result["ci95"] is None else f" ± {result['ci95']:.3g}"
        failed = f", {result['failed']} failed" if result["failed"] else ""
        seeds = f"seeds {self.seed} to {self.seed + self.episodes - 1}"
        console.print(
            f"{policy.env_id}: {result['mean']:.4g}{interval} (95 %), {self.episodes} episodes{failed}, {seeds}"
        )
        if self.attended > 0:
            result["attended"] = attended(policy, self.attended, self.seed)
            console.print(plain_table(result["attended"], f"where attention falls, {self.attended} episodes"))
        save(console, result, self.json)


@dataclass(frozen=True)
class Watch:
    """Film an episode: the scene, what the policy sees with attended patches in red, the scores, the return.

    Example: iap watch zoo:seek --out seek.mp4
    """

    policy: tyro.conf.Positional[str]
    """A policy file, a run's folder, or zoo:NAME."""
    out: Path | None = None
    """An .mp4 or .gif file; beside the policy if not given."""
    seed: int = 0
    """Of the episode."""
    env: str | None = None
    """Another environment than its own; "module:id" imports the module that registers it."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE for the environment, beside its own options; any number of them."""
    max_steps: int | None = None
    """Where to cut it."""
    json = None

    @property
    def plot(self) -> Path | None:
        """The film, to be checked like every other file."""
        return self.out

    def run(self, console: Console) -> None:
        """Film one episode."""
        from iap.evaluation.evaluate import locate_policy, watch

        policy, path = locate_policy(self.policy, self.env, key_values(self.env_option))
        beside = Path(f"{self.policy.removeprefix('zoo:')}.mp4") if self.policy.startswith("zoo:") else None
        out = self.out or beside or Path(path).with_suffix(".mp4")
        with console.status("filming"):
            episode = watch(policy, out, self.seed, self.max_steps)
        console.print(f"wrote {out}: {episode.steps} steps, return {episode.total:.4g}, seed {self.seed}")


@dataclass(frozen=True)
class Describe:
    """Show the parts of a preset's policy with their numbers of parameters, beside a CNN's for the same task.

    Example: iap describe seek
    """

    preset: tyro.conf.Positional[str]
    """A preset's name, a policy file, a run's folder, or zoo:NAME."""
    json: Path | None = None
    """Write the rows here as JSON; - for standard output."""
    plot = None

    def run(self, console: Console) -> None:
        """Count and show."""
        from iap.cli.tables import policy_table
        from iap.evaluation.evaluate import locate_policy
        from iap.training.config import fitted_to_env
        from iap.training.presets.registry import PRESETS

        spec = (
            fitted_to_env(PRESETS[self.preset]).policy if self.preset in PRESETS else locate_policy(self.preset)[0].spec
        )
        table, rows = policy_table(spec)
        console.print(table)
        save(console, rows, self.json)


@dataclass(frozen=True)
class Zoo:
    """List the trained policies that ship with the package, with their returns where they were measured.

    Example: iap zoo
    """

    json: Path | None = None
    """Write the list here as JSON; - for standard output."""
    plot = None

    def run(self, console: Console) -> None:
        """List them."""
        from iap.cli.tables import plain_table
        from iap.evaluation.evaluate import zoo_rows

        rows = zoo_rows()
        console.print(
            plain_table(rows, "the zoo: use zoo:NAME wherever a policy is taken") if rows else "the zoo is empty"
        )
        save(console, rows, self.json)


@dataclass(frozen=True)
class Import:
    """Turn AttentionAgent's published parameters (an .npz file) into a policy file.

    Example: iap import attention-agent agent.npz --env CarRacing-v3 --out agent.policy
    """

    what: tyro.conf.Positional[Literal["attention-agent"]]
    """Whose parameters."""
    file: tyro.conf.Positional[Path]
    """The .npz file, with the array "params"."""
    env: str = "CarRacing-v3"
    """The environment it is for."""
    linear: bool = False
    """Replace its exact attention by linear, row-normalised attention."""
    out: Path | None = None
    """The policy file; beside the .npz if not given."""
    json = None

    @property
    def plot(self) -> Path | None:
        """The file, to be checked like every other."""
        return self.out

    def run(self, console: Console) -> None:
        """Read, check and write."""
        from iap.interop.attention_agent import import_attention_agent
        from iap.policies.serialization import save as save_policy

        out = self.out or self.file.with_suffix(".policy")
        save_policy(out, import_attention_agent(self.file, self.env, linear=self.linear))
        console.print(f"wrote {out}; evaluate it: iap eval {out}")
