"""Each strategy in turn, set for a task of twenty parameters, and that task."""

from collections.abc import Callable

import numpy as np
import pytest

from iap.evolution import ARS, CMAES, PGPE, SNES, OpenES, Search, Strategy, ask, tell

SETTINGS = {
    "open-es": OpenES(population=32, sigma=0.1, learning_rate=0.05),
    "open-es-standardised": OpenES(population=32, sigma=0.1, learning_rate=0.05, shaping="standardised"),
    "ars": ARS(population=32, sigma=0.1, learning_rate=0.05),
    "pgpe": PGPE(population=32, sigma=0.1, max_speed=0.15),
    "cma-es": CMAES(population=24, sigma=0.1),
    "snes": SNES(population=32, sigma=0.1),
}
PARAMETERS = 20
TARGET = np.linspace(-2, 2, PARAMETERS, dtype=np.float32)

Objective = Callable[[np.ndarray, int], np.ndarray]


@pytest.fixture(params=SETTINGS.values(), ids=list(SETTINGS))
def strategy(request) -> Strategy:
    """Each strategy in turn."""
    return request.param


@pytest.fixture(scope="session")
def quadratic() -> Objective:
    """−‖θ − target‖² with noise that the iteration decides."""

    def returns(thetas: np.ndarray, iteration: int) -> np.ndarray:
        noise = np.random.default_rng(iteration).normal(0, 0.3, len(thetas))
        return -np.sum((thetas - TARGET) ** 2, axis=1) + noise

    return returns


@pytest.fixture(scope="session")
def evolve() -> Callable[[Search, Objective, int], Search]:
    """A number of iterations of a search."""

    def iterate(search: Search, objective: Objective, iterations: int) -> Search:
        for _ in range(iterations):
            thetas, search = ask(search)
            search = tell(search, thetas, objective(thetas, search.iteration))
        return search

    return iterate
