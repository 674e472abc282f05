"""Results say on which kind of processor they were made."""

import llvmlite.binding
from training_cases import run_here, tiny

from iap.evaluation.evaluate import summarise
from iap.policies.serialization import load
from iap.rollouts import InlinePool
from iap.training.config import TrainConfig


def test_results_and_policy_files_name_the_processor_that_made_them(tmp_path):
    name = llvmlite.binding.get_host_cpu_name()
    config: TrainConfig = tiny(iterations=1)
    run = run_here(config, tmp_path / "run")
    assert load(run.policy_file("last")).facts["processor"] == name
    with InlinePool(config.job) as pool:
        [episodes] = pool.evaluate(load(run.policy_file("last")).theta[None], [[0]])
    assert summarise(episodes, 0).to_json()["processor"] == name
