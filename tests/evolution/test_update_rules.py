"""Each strategy's update against its formula in NumPy."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata
from search_cases import PARAMETERS, SETTINGS

from iap.evolution import PGPE, ask, mean, start, tell, to_arrays

THETA0 = np.random.default_rng(1).standard_normal(PARAMETERS).astype(np.float32)
SCALES = np.random.default_rng(2).uniform(0.2, 2, PARAMETERS).astype(np.float32)


def distinct_returns(thetas: np.ndarray) -> np.ndarray:
    return 50 - np.sum(np.abs(thetas - 1), axis=1)


def three_ones(thetas: np.ndarray) -> np.ndarray:
    returns = distinct_returns(thetas)
    return (returns >= np.sort(returns)[-3]).astype(float)


def one_update(strategy, returns=distinct_returns):
    """Perturbations and mean in units of the scales, float64; the returns; the arrays of the search after them."""
    thetas, search = ask(start(strategy, THETA0, SCALES, seed=4))
    r = returns(thetas)
    after = tell(search, thetas, r)
    steps = (thetas.astype(np.float64) - THETA0) / SCALES
    moved = (mean(after).astype(np.float64) - THETA0) / SCALES
    return steps, r, moved, to_arrays(after)


@pytest.mark.parametrize("name", ["open-es", "ars", "pgpe"])
def test_the_second_half_of_the_candidates_mirrors_the_first(name):
    thetas, search = ask(start(SETTINGS[name], THETA0, SCALES, seed=0))
    for _ in range(3):
        plus, minus = thetas[:16] - mean(search), thetas[16:] - mean(search)
        np.testing.assert_allclose(plus, -minus, atol=1e-6)
        assert np.linalg.norm(plus, axis=1).min() > 0.01
        thetas, search = ask(tell(search, thetas, distinct_returns(thetas)))


@pytest.mark.parametrize("name", ["open-es", "open-es-standardised"])
def test_open_es_is_adam_on_the_weighted_perturbations_with_decays(name):
    strategy: Any = SETTINGS[name]
    n, floor = strategy.population, strategy.decay_floor
    search = start(strategy, THETA0, SCALES, seed=4)
    theta, m, v = THETA0.astype(np.float64), np.zeros(PARAMETERS), np.zeros(PARAMETERS)
    for t in range(5):
        rate = strategy.learning_rate * max(strategy.learning_rate_decay**t, floor)
        sigma = strategy.sigma * max(strategy.sigma_decay**t, floor)
        thetas, search = ask(search)
        r = distinct_returns(thetas)
        search = tell(search, thetas, r)

        utilities = (rankdata(r) - 1) / (n - 1) - 0.5 if strategy.shaping == "ranks" else (r - r.mean()) / r.std()
        ascent = utilities @ ((thetas - theta) / (SCALES * sigma)) / (n * sigma)
        m = 0.9 * m + 0.1 * ascent
        v = 0.999 * v + 0.001 * ascent**2
        adam = (m / (1 - 0.9 ** (t + 1))) / (np.sqrt(v / (1 - 0.999 ** (t + 1))) + 1e-8)
        theta = theta + rate * SCALES * (adam - strategy.weight_decay * theta)
        np.testing.assert_allclose(mean(search), theta, atol=2e-5)
        next_sigma = strategy.sigma * max(strategy.sigma_decay ** (t + 1), floor)
        assert to_arrays(search)["state.std"] == pytest.approx(next_sigma)


def test_ars_steps_along_its_best_directions_over_the_deviation_of_their_returns():
    strategy: Any = SETTINGS["ars"]
    steps, r, moved, _ = one_update(strategy)
    plus, minus = r[:16], r[16:]
    top = np.argsort(-np.maximum(plus, minus))[:4]  # a quarter
    deviation = np.concatenate([plus[top], minus[top]]).std()
    ascent = (plus[top] - minus[top]) @ (steps[top] / strategy.sigma)
    np.testing.assert_allclose(moved, strategy.learning_rate / (4 * deviation) * ascent, rtol=1e-3, atol=1e-5)


def test_pgpe_steps_at_three_quarters_of_its_maximum_speed_and_learns_sigma():
    strategy: Any = SETTINGS["pgpe"]
    steps, r, moved, arrays = one_update(strategy)
    utilities = (rankdata(r) - 1) / 31 - 0.5
    plus, minus = utilities[:16], utilities[16:]
    ascent = (plus - minus) @ steps[:16]
    length = 0.75 * strategy.max_speed
    np.testing.assert_allclose(moved, length * ascent / np.linalg.norm(ascent), rtol=1e-3, atol=1e-5)
    sigma = strategy.sigma
    growth = strategy.sigma_learning_rate * (plus + minus) @ ((steps[:16] ** 2 - sigma**2) / sigma) / 32
    limit = 0.2 * sigma
    np.testing.assert_allclose(arrays["state.std"], sigma + np.clip(growth, -limit, limit), rtol=1e-3)


def test_the_default_maximum_speed_of_pgpe_follows_from_the_length_of_its_perturbations():
    _, _, moved, _ = one_update(PGPE(population=32, sigma=0.05))
    assert np.linalg.norm(moved) == pytest.approx(0.75 * 0.05 * np.sqrt(PARAMETERS) / 15, rel=1e-3)


@pytest.mark.parametrize("returns", [distinct_returns, three_ones])
def test_cma_es_moves_to_the_weighted_mean_of_the_better_half(returns):
    strategy = SETTINGS["cma-es"]
    n = strategy.population
    steps, r, moved, _ = one_update(strategy, returns)
    weights = np.maximum(np.log((n + 1) / 2) - np.log(np.arange(1, n + 1)), 0)
    weights /= weights.sum()
    if returns is three_ones:  # the three share their weights; the others share negative ones, unused by the mean
        weights = np.repeat([weights[:3].mean(), 0], [3, n - 3])
    np.testing.assert_allclose(moved, weights @ steps[np.argsort(-r, kind="stable")], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("returns", [distinct_returns, three_ones])
def test_snes_follows_the_natural_gradient_of_mean_and_sigma(returns):
    strategy: Any = SETTINGS["snes"]
    n, sigma = strategy.population, strategy.sigma
    steps, r, moved, arrays = one_update(strategy, returns)
    weights = np.maximum(np.log(n / 2 + 1) - np.log(np.arange(1, n + 1)), 0)
    weights = weights / weights.sum() - 1 / n
    utilities = np.empty(n)
    utilities[np.argsort(-r, kind="stable")] = weights
    for value in np.unique(r):
        utilities[r == value] = utilities[r == value].mean()
    np.testing.assert_allclose(moved, utilities @ steps, rtol=1e-3, atol=1e-5)
    rate = (3 + np.log(PARAMETERS)) / (5 * np.sqrt(PARAMETERS))
    expected = sigma * np.exp(rate / 2 * utilities @ ((steps / sigma) ** 2 - 1))
    np.testing.assert_allclose(arrays["state.std"], expected, rtol=1e-3)
