"""Results do not depend on whether a process compiled its functions or loaded them from the cache."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
from iap.evaluation.evaluate import policy_job
from iap.rollouts import LocalPool
from iap.zoo.locate import locate_policy

for name, steps in (("seek", 20), ("obstacle-course", 12), ("ball_in_cup-catch", 6)):
    policy, _ = locate_policy(f"zoo:{name}")
    with LocalPool(policy_job(policy, max_steps=steps), workers=int(sys.argv[1])) as pool:
        [episodes] = pool.evaluate(policy.theta[None], [[0, 1]], policy.normaliser)
    for episode in episodes:
        moments = episode.moments.mean.tobytes().hex()
        print(name, episode.seed, episode.error, episode.steps, float(episode.total).hex(), moments)
"""


def episodes(cache, workers):
    environment = {**os.environ, "IAP_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(workers)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_episodes_are_the_same_byte_for_byte_with_an_empty_and_a_full_cache_and_one_or_two_workers(tmp_path):
    cold = episodes(tmp_path, workers=2)  # both workers compile
    assert len(cold.splitlines()) == 6
    assert [line.split()[2] for line in cold.splitlines()] == ["None"] * 6
    assert any(tmp_path.rglob("*.nbc"))
    assert episodes(tmp_path, workers=2) == cold
    assert episodes(tmp_path, workers=1) == cold
