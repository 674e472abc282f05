"""The module of cases beside the tests can be imported; a fixture for each strategy."""

import sys
from pathlib import Path

import pytest

from iap.evolution import Strategy

sys.path.insert(0, str(Path(__file__).parent))

from search_cases import SETTINGS


@pytest.fixture(params=SETTINGS.values(), ids=list(SETTINGS))
def strategy(request) -> Strategy:
    """Each strategy in turn."""
    return request.param
