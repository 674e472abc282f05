"""Each strategy's update against its formula, written out in NumPy."""

import numpy as np
import pytest
from scipy.stats import rankdata

from iap.evolution import ARS, CMAES, PGPE, SNES, OpenES, ask, mean, start, tell, to_arrays

P = 12
THETA0 = np.random.default_rng(1).standard_normal(P).astype(np.float32)
SCALES = np.random.default_rng(2).uniform(0.2, 2, P).astype(np.float32)


def returns_of(thetas: np.ndarray) -> np.ndarray:
    return 50 - np.sum(np.abs(thetas - 1), axis=1)


def one_update(strategy, returns=returns_of):
    """Perturbations and mean in units of the scales, float64; the returns; the search after them."""
    thetas, search = ask(start(strategy, THETA0, SCALES, seed=4))
    r = returns(thetas)
    after = tell(search, thetas, r)
    steps = (thetas.astype(np.float64) - THETA0) / SCALES
    moved = (mean(after).astype(np.float64) - THETA0) / SCALES
    return steps, r, moved, to_arrays(after)


@pytest.mark.parametrize("chosen", [OpenES, ARS, PGPE])
def test_the_second_half_of_the_candidates_mirrors_the_first(chosen):
    thetas, search = ask(start(chosen(population=16), THETA0, SCALES, seed=0))
    for _ in range(3):
        plus, minus = thetas[:8] - mean(search), thetas[8:] - mean(search)
        np.testing.assert_allclose(plus, -minus, atol=1e-6)
        assert np.linalg.norm(plus, axis=1).min() > 0.01
        thetas, search = ask(tell(search, thetas, returns_of(thetas)))


@pytest.mark.parametrize("shaping", ["ranks", "standardised"])
def test_open_es_is_adam_on_the_weighted_perturbations_with_decays(shaping):
    strategy = OpenES(
        population=16,
        sigma=0.04,
        learning_rate=0.02,
        learning_rate_decay=0.7,
        sigma_decay=0.8,
        decay_floor=0.6,
        weight_decay=0.5,
        shaping=shaping,
    )
    search = start(strategy, THETA0, SCALES, seed=4)
    theta, m, v = THETA0.astype(np.float64), np.zeros(P), np.zeros(P)
    for t in range(5):
        rate, sigma = 0.02 * max(0.7**t, 0.6), 0.04 * max(0.8**t, 0.6)
        thetas, search = ask(search)
        r = returns_of(thetas)
        search = tell(search, thetas, r)

        utilities = (rankdata(r) - 1) / 15 - 0.5 if shaping == "ranks" else (r - r.mean()) / r.std()
        ascent = utilities @ ((thetas - theta) / (SCALES * sigma)) / (16 * sigma)
        m = 0.9 * m + 0.1 * ascent
        v = 0.999 * v + 0.001 * ascent**2
        adam = (m / (1 - 0.9 ** (t + 1))) / (np.sqrt(v / (1 - 0.999 ** (t + 1))) + 1e-8)
        theta = theta + rate * SCALES * (adam - 0.5 * theta)
        np.testing.assert_allclose(mean(search), theta, atol=2e-5)
        assert to_arrays(search)["state.std"] == pytest.approx(0.04 * max(0.8 ** (t + 1), 0.6))


def test_ars_steps_along_its_top_directions_over_the_deviation_of_their_returns():
    steps, r, moved, _ = one_update(ARS(population=20, sigma=0.05, learning_rate=0.3, top=0.4))
    plus, minus = r[:10], r[10:]
    top = np.argsort(-np.maximum(plus, minus))[:4]
    deviation = np.concatenate([plus[top], minus[top]]).std()
    expected = 0.3 / (4 * deviation) * (plus[top] - minus[top]) @ (steps[top] / 0.05)
    np.testing.assert_allclose(moved, expected, rtol=1e-3, atol=1e-5)


def test_pgpe_steps_at_three_quarters_of_its_speed_and_learns_sigma():
    steps, r, moved, arrays = one_update(PGPE(population=20, sigma=0.05, max_speed=0.2, sigma_learning_rate=0.3))
    utilities = (rankdata(r) - 1) / 19 - 0.5
    plus, minus = utilities[:10], utilities[10:]
    ascent = (plus - minus) @ steps[:10]
    np.testing.assert_allclose(moved, 0.75 * 0.2 * ascent / np.linalg.norm(ascent), rtol=1e-3, atol=1e-5)
    growth = 0.3 * (plus + minus) @ ((steps[:10] ** 2 - 0.05**2) / 0.05) / 20
    np.testing.assert_allclose(arrays["state.std"], 0.05 + np.clip(growth, -0.01, 0.01), rtol=1e-3)


def test_pgpe_without_a_speed_takes_it_from_the_length_of_its_perturbations():
    _, _, moved, _ = one_update(PGPE(population=20, sigma=0.05))
    assert np.linalg.norm(moved) == pytest.approx(0.75 * 0.05 * np.sqrt(P) / 15, rel=1e-3)


def three_good(thetas: np.ndarray) -> np.ndarray:
    returns = returns_of(thetas)
    return (returns >= np.sort(returns)[-3]).astype(float)


@pytest.mark.parametrize("returns", [returns_of, three_good])
def test_cma_es_moves_to_the_weighted_mean_of_the_better_half(returns):
    n = 14
    steps, r, moved, _ = one_update(CMAES(population=n, sigma=0.1), returns)
    weights = np.maximum(np.log((n + 1) / 2) - np.log(np.arange(1, n + 1)), 0)
    weights /= weights.sum()
    if returns is three_good:  # they share their weights; the rest share negative ones, which the mean leaves out
        weights = np.repeat([weights[:3].mean(), 0], [3, n - 3])
    np.testing.assert_allclose(moved, weights @ steps[np.argsort(-r, kind="stable")], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("returns", [returns_of, three_good])
def test_snes_follows_the_natural_gradient_of_mean_and_sigma(returns):
    n = 14
    steps, r, moved, arrays = one_update(SNES(population=n, sigma=0.1), returns)
    weights = np.maximum(np.log(n / 2 + 1) - np.log(np.arange(1, n + 1)), 0)
    weights = weights / weights.sum() - 1 / n
    utilities = np.empty(n)
    utilities[np.argsort(-r, kind="stable")] = weights
    for level in np.unique(r):
        utilities[r == level] = utilities[r == level].mean()
    np.testing.assert_allclose(moved, utilities @ steps, rtol=1e-3, atol=1e-5)
    rate = (3 + np.log(P)) / (5 * np.sqrt(P))
    expected = 0.1 * np.exp(rate / 2 * utilities @ ((steps / 0.1) ** 2 - 1))
    np.testing.assert_allclose(arrays["state.std"], expected, rtol=1e-3)
