"""Put a run's best policy into the zoo, with the command that trains it and the return that was measured.

Run it: python benchmarks/ship.py benchmarks/results/terrain/step-stones-seed0 step-stones "iap train step-stones"
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from iap.policies.serialization import load, save

ZOO = Path(__file__).parents[1] / "src" / "iap" / "zoo"
TOLD = ("mean", "ci95", "episodes", "failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("command")
    asked = parser.parse_args()
    policy = load(asked.run / "best.policy")
    evaluation = json.loads((asked.run / "evaluation.json").read_text())
    facts = {**policy.facts, "command": asked.command, "measured": {key: evaluation[key] for key in TOLD}}
    save(ZOO / f"{asked.name}.policy", replace(policy, facts=facts))


if __name__ == "__main__":
    main()
