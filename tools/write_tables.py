"""Write the tables of README.md and docs/concepts.md that list registry entries, presets and zoo policies.

Run it: python tools/write_tables.py [--check]

A table stands between the comments `<!-- table: NAME -->` and `<!-- end -->`. With --check nothing is written, and the
exit status is 1 if a table is out of date.
"""

import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import iap
from iap.distillation import DAgger, Distillation, ESPretraining
from iap.evolution import STRATEGIES
from iap.policies import CONTROLLERS, ENCODERS, count_params
from iap.policies.serialization import load
from iap.training.config import TrainConfig
from iap.zoo import zoo_file, zoo_names

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/concepts.md")
STARTS = ("random_search", "pretrained", "warm_start")  # facts with the return before evolution
ZOO_COLUMNS = (
    *("name", "environment", "parameters", "training", "return before evolution", "return, 100 episodes", "command"),
)
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, ["---"] * len(header), *rows])


def registry_table(registry: Mapping[str, type]) -> str:
    """Name, class, description and options of each entry.

    The description is the first line of the module's docstring, or of the class's if a module has several entries.
    """
    modules = Counter(entry.__module__ for entry in registry.values())
    rows = []
    for name, entry in registry.items():
        documented = entry if modules[entry.__module__] > 1 else inspect.getmodule(entry)
        line = (inspect.getdoc(documented) or "").split("\n\n")[0].replace("\n", " ").rstrip(".")
        options = ", ".join(f"`{field.name}`" for field in fields(entry))
        rows.append([f"`{name}`", f"`{entry.__name__}`", line, options])
    return markdown(["name", "class", "description", "options"], rows)


def initialisation(config: TrainConfig) -> str:
    """How evolution starts."""
    if config.pretraining is not None:
        names = {
            DAgger: "DAgger",
            Distillation: "keypoint regression and distillation",
            ESPretraining: "ES pretraining",
        }
        return names[type(config.pretraining)]
    if config.warm_start is not None:
        return f"warm start from `{config.warm_start}`"
    return f"random search, {config.random_search}" if config.random_search else "random"


def presets_table() -> str:
    """Environment, encoder, strategy and initialisation of each preset."""
    rows = []
    for name, config in iap.presets.items():
        encoder = ENCODERS.name_of(type(config.policy.encoder))
        strategy = STRATEGIES.name_of(type(config.strategy)) if config.iterations else ""
        rows.append([f"`{name}`", f"`{config.env.id}`", encoder, strategy, initialisation(config)])
    return markdown(["preset", "environment", "encoder", "strategy", "initialisation"], rows)


def how_trained(facts: Mapping[str, Any]) -> tuple[str, str]:
    """What came before evolution and what evolution was, with their episodes; and the return before evolution."""
    if facts.get("algorithm") == "sac":
        return f"SAC on the state, {facts['episodes']:,} episodes", ""
    config = iap.presets[facts["command"].split()[2]]
    evolved = config.iterations * config.strategy.population * config.episodes
    searched = facts["episodes"] - evolved
    before = initialisation(config) + (f" policies, {searched:,} episodes" if searched else "")
    pretrained = facts.get("pretrained", {})
    rounds = pretrained.get("rounds", pretrained.get("distillation"))
    if rounds:
        before += f", {sum(row.get('steps', 0) for row in rounds):,} steps"
    if not evolved:
        return f"{before}; no evolution", ""
    start = next((facts[kind]["held_out"] for kind in STARTS if kind in facts), None)
    shown = "" if start is None else f"{start:.{digits_of(start)}f}{'*' if config.max_steps is not None else ''}"
    return f"{before}; {STRATEGIES.name_of(type(config.strategy))}, {evolved:,} episodes", shown


def digits_of(value: float) -> int:
    """Decimals of a return: that of tasks with returns up to 1,000 has none."""
    return 2 if abs(value) < 100 else 0  # noqa: PLR2004


def zoo_table() -> str:
    """Environment, size, training, return and command of each policy in the zoo."""
    rows = []
    for name in zoo_names():
        policy = load(zoo_file(name))
        measured = policy.facts["measured"]
        digits = digits_of(measured["mean"])
        value = f"{measured['mean']:.{digits}f} ± {measured['ci95']:.{digits}f}"
        sensors = "keypoints as sensors, " if "keypoints" in policy.env_kwargs else ""
        how, start = how_trained(policy.facts)
        size = f"{count_params(policy.config):,}"
        command = f"`{policy.facts['command']}`"
        rows.append([f"`{name}`", f"`{policy.env_id}`", size, sensors + how, start, value, command])
    return markdown(ZOO_COLUMNS, rows)


TABLES: dict[str, Callable[[], str]] = {
    "encoders": lambda: registry_table(ENCODERS),
    "controllers": lambda: registry_table(CONTROLLERS),
    "strategies": lambda: registry_table(STRATEGIES),
    "presets": presets_table,
    "zoo": zoo_table,
}


def with_tables(text: str) -> str:
    """The text of a page with current tables."""
    return MARKED.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], text)


def main() -> None:
    """Write or check the pages."""
    outdated = []
    for page in PAGES:
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        if (new := with_tables(text)) != text:
            outdated.append(page)
            if "--check" not in sys.argv[1:]:
                path.write_text(new, encoding="utf-8")
    sys.stdout.write(f"out of date: {', '.join(outdated)}\n" if outdated else "all tables are up to date\n")
    sys.exit("--check" in sys.argv[1:] and bool(outdated))


if __name__ == "__main__":
    main()
