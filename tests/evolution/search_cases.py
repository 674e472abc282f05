"""The strategies under test, all with one number of parameters: evosax compiles once per strategy and number."""

import numpy as np

from iap.evolution import ARS, CMAES, PGPE, SNES, OpenES, Search, Strategy, ask, tell

PARAMETERS = 20
SETTINGS: dict[str, Strategy] = {
    "open-es": OpenES(
        population=32,
        sigma=0.1,
        learning_rate=0.08,
        learning_rate_decay=0.7,
        sigma_decay=0.8,
        decay_floor=0.6,
        weight_decay=0.02,
    ),
    "open-es-standardised": OpenES(
        population=32, sigma=0.1, learning_rate=0.05, weight_decay=0.0, shaping="standardised"
    ),
    "ars": ARS(population=32, sigma=0.1, learning_rate=0.05, top=0.25),
    "pgpe": PGPE(population=32, sigma=0.1, max_speed=0.15, sigma_learning_rate=0.3),
    "cma-es": CMAES(population=24, sigma=0.1),
    "snes": SNES(population=32, sigma=0.1),
}
ZERO, ONES = np.zeros(PARAMETERS, np.float32), np.ones(PARAMETERS, np.float32)
TARGET = np.linspace(-2, 2, PARAMETERS, dtype=np.float32)


def noisy_quadratic(thetas: np.ndarray, iteration: int) -> np.ndarray:
    """Return −‖θ − target‖² plus noise that depends on the iteration."""
    noise = np.random.default_rng(iteration).normal(0, 0.3, len(thetas))
    return -np.sum((thetas - TARGET) ** 2, axis=1) + noise


def evolve(search: Search, iterations: int, objective=noisy_quadratic) -> Search:
    """Run a number of iterations of a search."""
    for _ in range(iterations):
        thetas, search = ask(search)
        search = tell(search, thetas, objective(thetas, search.iteration))
    return search
