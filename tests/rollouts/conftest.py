"""The modules beside the tests can be imported: by the tests, and by workers, which build environments by name."""

import os
import sys
from pathlib import Path

import pytest

from iap.rollouts import InlinePool

sys.path.insert(0, str(Path(__file__).parent))

from rollout_cases import SEEDS, bits, policy_job, thetas_of


@pytest.fixture(scope="session")
def truth():
    """What comes out of the environment where nothing goes wrong, to the last bit."""
    with InlinePool(policy_job()) as pool:
        return bits(pool.evaluate(thetas_of(policy_job()), SEEDS))


@pytest.fixture(scope="module")
def importable_by_ray():
    """Ray's workers find all that can be imported here, as if it were installed on every node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        yield
