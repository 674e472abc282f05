"""The modules beside the tests can be imported, by the tests and by workers."""

import os
import sys
from pathlib import Path

import pytest

from iap.rollouts import InlinePool

sys.path.insert(0, str(Path(__file__).parent))

from rollout_cases import SEEDS, blind_job, draw_thetas, to_bits


@pytest.fixture(scope="session")
def expected():
    """The exact results of the blind job without faults."""
    with InlinePool(blind_job()) as pool:
        return to_bits(pool.evaluate(draw_thetas(blind_job()), SEEDS))


@pytest.fixture(scope="module")
def importable_by_ray():
    """Ray workers can import what this process can, as if it were installed on every node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        yield
