"""Copy the best policy of a run into the zoo, with the command that trains it and its measured return.

Run it: python tools/publish.py runs/seek-seed0 seek "iap train seek"

The return is that of evaluation.json in the run's folder, as benchmarks/study.py writes it. Without that file the
policy is evaluated on 100 held-out episodes.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from iap.evaluation.evaluate import evaluate, policy_job
from iap.policies.serialization import PolicyFile, save
from iap.rollouts import LocalPool
from iap.zoo.locate import locate_policy

ZOO = Path(__file__).parents[1] / "src" / "iap" / "zoo"
EPISODES = 100
MEASURED = ("mean", "ci95", "episodes", "seed", "failed")


def evaluation_of(run: Path, policy: PolicyFile) -> dict[str, Any]:
    """The run's evaluation, made now if there is none."""
    file = run / "evaluation.json"
    if file.exists():
        return json.loads(file.read_text())
    with LocalPool(policy_job(policy)) as pool:
        return evaluate(policy, pool, EPISODES).to_json()


def main() -> None:
    """Evaluate where needed, and copy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("name", help="name in the zoo, the same as the preset's")
    parser.add_argument("command", help="command that trains the policy")
    parser.add_argument(
        "--evaluated-with",
        type=json.loads,
        default={},
        metavar="JSON",
        help='environment options of evaluation.json, such as \'{"split": "held-out", "difficulty": "medium"}\'',
    )
    args = parser.parse_args()
    policy, _ = locate_policy(str(args.run))
    result = evaluation_of(args.run, policy)
    measured = {key: result[key] for key in MEASURED if key in result}
    if args.evaluated_with:
        measured["env_options"] = args.evaluated_with
    facts = {**policy.facts, "command": args.command, "measured": measured}
    save(ZOO / f"{args.name}.policy", replace(policy, facts=facts))
    sys.stdout.write(f"{args.name}: {result['mean']:.4g} ± {result['ci95']:.2g}, {result['episodes']} episodes\n")


if __name__ == "__main__":
    main()
