"""Put a run's best policy into the zoo, with its return on 100 episodes that training never saw.

Run it: python tools/publish.py runs/seek-seed0 seek "iap train seek"
"""

import sys
from dataclasses import replace
from pathlib import Path

from iap.evaluation.evaluate import evaluate, locate_policy, policy_job
from iap.policies.serialization import save
from iap.rollouts import LocalPool

ZOO = Path(__file__).parents[1] / "src" / "iap" / "zoo"
EPISODES = 100


def main() -> None:
    """Evaluate and copy."""
    run, name, command = sys.argv[1:]
    policy, _ = locate_policy(run)
    with LocalPool(policy_job(policy)) as pool:
        result = evaluate(policy, pool, EPISODES, seed=0)
    measured = {key: result[key] for key in ("mean", "ci95", "episodes", "seed", "failed")}
    save(ZOO / f"{name}.policy", replace(policy, facts={**policy.facts, "command": command, "measured": measured}))
    sys.stdout.write(f"{name}: {result['mean']:.4g} ± {result['ci95']:.2g} over {EPISODES} episodes\n")


if __name__ == "__main__":
    main()
