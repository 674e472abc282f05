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

import iap
from iap.distillation import DAgger, Distillation, ESPretraining
from iap.evolution import STRATEGIES
from iap.policies import CONTROLLERS, ENCODERS, count_params
from iap.policies.serialization import load
from iap.training.config import TrainConfig
from iap.zoo import zoo_file, zoo_names

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/concepts.md")
PRIVILEGED_SENSORS = {"keypoints", "proprioception"}  # options of environments
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
        names = {DAgger: "DAgger", Distillation: "keypoint regression", ESPretraining: "ES pretraining"}
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


def zoo_table() -> str:
    """Environment, size, return and command of each policy in the zoo."""
    rows = []
    for name in zoo_names():
        policy = load(zoo_file(name))
        measured = policy.facts["measured"]
        digits = 2 if measured["mean"] < 100 else 0  # noqa: PLR2004
        value = f"{measured['mean']:.{digits}f} ± {measured['ci95']:.{digits}f}"
        knows_state = PRIVILEGED_SENSORS & policy.env_kwargs.keys()
        privileged = "privileged" if "pretrained" in policy.facts or knows_state else ""
        size = f"{count_params(policy.config):,}"
        rows.append([f"`{name}`", f"`{policy.env_id}`", size, value, privileged, f"`{policy.facts['command']}`"])
    return markdown(["name", "environment", "parameters", "return, 100 episodes", "training", "command"], rows)


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
