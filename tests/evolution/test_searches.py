import subprocess
import sys
from dataclasses import replace

import jax
import numpy as np
import pytest
from search_cases import ONES, PARAMETERS, SETTINGS, TARGET, ZERO, evolve, noisy_quadratic

from iap.evolution import ARS, CMAES, PGPE, SNES, ask, mean, start, tell, to_arrays


def squared_distance(search) -> float:
    return float(np.sum((mean(search) - TARGET) ** 2))


def state_arrays(search) -> dict[str, np.ndarray]:
    return {name: x for name, x in to_arrays(search).items() if name != "iteration"}


def assert_same(left, right):
    assert left.keys() == right.keys()
    for name, x in left.items():
        np.testing.assert_array_equal(x, right[name], err_msg=name)


def test_a_search_reduces_the_loss_of_a_noisy_quadratic_by_nine_tenths(strategy):
    search = start(strategy, ZERO, ONES, seed=3)
    before = squared_distance(search)
    assert squared_distance(evolve(search, 120)) < 0.1 * before


@pytest.mark.parametrize("sign", [1, -1])
def test_returns_are_maximised(strategy, sign):
    search = evolve(start(strategy, ZERO, ONES, seed=0), 15, lambda thetas, _: sign * thetas.sum(axis=1))
    assert sign * mean(search).sum() > 1


def test_a_search_starts_exactly_at_theta0(strategy):
    theta0 = np.random.default_rng(0).standard_normal(PARAMETERS).astype(np.float32)
    search = start(strategy, theta0, np.full(PARAMETERS, 0.1, np.float32), seed=0)
    assert mean(search).tolist() == theta0.tolist()
    assert mean(ask(search)[1]).tolist() == theta0.tolist()


def test_candidates_are_different_float32_rows(strategy):
    search = start(strategy, ZERO, ONES, seed=0)
    for _ in range(2):
        thetas, search = ask(search)
        assert (thetas.shape, thetas.dtype) == ((strategy.population, PARAMETERS), np.float32)
        assert len(np.unique(thetas, axis=0)) == strategy.population
        search = tell(search, thetas, thetas[:, 0])
        assert (mean(search).shape, mean(search).dtype) == ((PARAMETERS,), np.float32)


def test_perturbations_are_sigma_times_scale(strategy):
    scales = np.geomspace(1e-3, 10, PARAMETERS).astype(np.float32)
    search = start(strategy, ZERO, scales, seed=0)
    thetas = np.concatenate([ask(replace(search, iteration=i))[0] for i in range(64)])
    np.testing.assert_allclose(thetas.std(axis=0) / scales, strategy.sigma, rtol=0.1)


@pytest.mark.parametrize("initial", [0.0, 1.5])
def test_a_parameter_of_tiny_scale_hardly_moves_although_returns_depend_on_it(strategy, initial):
    theta0, scales, slopes = ZERO.copy(), ONES.copy(), ONES.copy()
    theta0[0], scales[0], slopes[0] = initial, 1e-6, 1e5
    search = evolve(start(strategy, theta0, scales, seed=0), 30, lambda thetas, _: thetas @ slopes)
    moved = np.abs(mean(search) - theta0)
    assert moved[0] < 1e-4
    assert moved[1:].max() > 0.1


def test_fixed_parameters_stay_and_do_not_affect_the_search_of_the_others(strategy):
    scales = np.tile(np.array([1, 0], np.float32), PARAMETERS)
    twice = np.ones(2 * PARAMETERS, np.float32)
    with_fixed = evolve(start(strategy, twice, scales, seed=0), 3, lambda x, _: x[:, ::2].sum(axis=1))
    alone = evolve(start(strategy, ONES, ONES, seed=0), 3, lambda x, _: x.sum(axis=1))
    assert mean(with_fixed)[1::2].tolist() == ONES.tolist()
    assert mean(with_fixed)[::2].tolist() == mean(alone).tolist() != ONES.tolist()


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "open-es"])  # weight decay has units of θ
def test_scales_only_change_units(name):
    scales = np.exp2(np.arange(PARAMETERS) % 6 - 3).astype(np.float32)  # powers of two: no rounding
    plain = evolve(start(SETTINGS[name], ZERO, ONES, seed=0), 5)
    scaled = evolve(start(SETTINGS[name], ZERO, scales, seed=0), 5, lambda x, i: noisy_quadratic(x / scales, i))
    assert mean(scaled).tolist() == (scales * mean(plain)).tolist()
    assert np.abs(mean(plain)).max() > 0.01


def test_equal_returns_only_advance_the_iteration(strategy):
    search = evolve(start(strategy, ZERO, ONES, seed=0), 4)  # so that there is momentum
    thetas, search = ask(search)
    for value in (0.0, 3.5, np.nan, -np.inf):
        after = tell(search, thetas, np.full(strategy.population, value))
        assert after.iteration == search.iteration + 1
        assert_same(state_arrays(after), state_arrays(search))
        assert not np.array_equal(ask(after)[0], thetas)


def test_a_search_tolerates_failed_candidates(strategy):
    def with_failures(thetas, iteration):
        returns = noisy_quadratic(thetas, iteration)
        failed = np.random.default_rng(iteration).random(len(thetas)) < 0.25
        return np.where(failed, np.nan, returns)

    search = start(strategy, ZERO, ONES, seed=1)
    before = squared_distance(search)
    search = evolve(search, 120, with_failures)
    assert squared_distance(search) < 0.3 * before
    assert not any(np.isnan(x).any() for x in state_arrays(search).values())


def test_a_failed_candidate_counts_no_better_than_the_worst(strategy):
    thetas, search = ask(start(strategy, ZERO, ONES, seed=0))
    returns = thetas[:, 0].copy()
    worst = np.argmin(returns)
    failed = np.where(np.arange(len(returns)) == worst, np.nan, returns)
    if strategy.shaping == "standardised":  # the failed candidate gets the value of the worst that finished
        returns[worst] = np.sort(returns)[1]
    assert_same(state_arrays(tell(search, thetas, failed)), state_arrays(tell(search, thetas, returns)))


def test_the_state_stays_finite_for_returns_of_any_magnitude(strategy):
    rng = np.random.default_rng(0)
    search = start(strategy, ONES, np.geomspace(1e-8, 10, PARAMETERS).astype(np.float32), seed=0)
    for _ in range(100):
        thetas, search = ask(search)
        returns = rng.standard_normal(strategy.population) * 10.0 ** rng.integers(-300, 300)
        failed = rng.random(len(returns)) < rng.random()
        search = tell(search, thetas, np.where(failed, rng.choice([np.nan, np.inf, -np.inf]), returns))
        assert np.isfinite(mean(search)).all()


def test_the_order_of_candidates_does_not_matter(strategy):
    thetas, search = ask(evolve(start(strategy, ZERO, ONES, seed=0), 3))
    returns = noisy_quadratic(thetas, 0)
    shuffled = np.random.default_rng(0).permutation(strategy.population)
    if isinstance(strategy, ARS | PGPE):  # candidates i and i + n/2 are a pair and must stay one
        half = np.random.default_rng(0).permutation(strategy.population // 2)
        shuffled = np.concatenate([half, half + strategy.population // 2])
    one, other = tell(search, thetas, returns), tell(search, thetas[shuffled], returns[shuffled])
    assert np.abs(mean(one) - mean(search)).max() > 1e-3
    np.testing.assert_allclose(mean(other), mean(one), atol=1e-5)


def test_equal_seeds_give_equal_searches_and_other_seeds_do_not(strategy):
    first, again, other = (evolve(start(strategy, ZERO, ONES, seed), 4) for seed in (7, 7, 8))
    assert_same(to_arrays(first), to_arrays(again))
    assert not np.array_equal(mean(first), mean(other))


def test_all_digits_of_a_large_seed_matter():
    drawn = [ask(start(SETTINGS["snes"], ZERO, ONES, seed))[0] for seed in (0, 2**32, 2**62, 2**62 + 1)]
    assert len({x.tobytes() for x in drawn}) == 4


def test_ask_and_tell_do_not_modify_their_search(strategy):
    search = start(strategy, ZERO, ONES, seed=0)
    before = to_arrays(search)
    thetas, asked = ask(search)
    between = to_arrays(asked)
    tell(asked, thetas, noisy_quadratic(thetas, 0))
    assert_same(to_arrays(search), before)
    assert_same(to_arrays(asked), between)


def test_a_search_is_float32_also_if_jax_uses_float64(strategy):
    expected = to_arrays(evolve(start(strategy, ZERO, ONES, seed=0), 3))
    with jax.enable_x64(True):
        found = to_arrays(evolve(start(strategy, ZERO, ONES, seed=0), 3))
    assert_same(found, expected)
    assert {x.dtype.name for x in found.values()} <= {"float32", "int32", "int64", "uint8"}


def test_importing_the_package_does_not_import_jax():
    code = "import sys, iap.evolution; sys.exit(bool({'jax', 'evosax', 'optax'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_cma_es_refuses_too_many_parameters_and_names_snes():
    many = np.ones(2001, np.float32)
    with pytest.raises(ValueError, match=r"theta0 has 2001 parameters.*choose snes"):
        start(CMAES(), many, many, seed=0)
    assert ask(start(SNES(population=4), many, many, seed=0))[0].shape == (4, 2001)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta0": np.zeros((2, 10), np.float32)}, "theta0 must have 1 axes"),
        ({"theta0": np.zeros(0, np.float32)}, "theta0 must hold at least one parameter"),
        ({"theta0": np.full(PARAMETERS, np.nan, np.float32)}, "theta0 must be finite"),
        ({"scales": np.ones(21, np.float32)}, r"scales must have one entry per parameter, \(20,\), not shape \(21,\)"),
        ({"scales": np.zeros(PARAMETERS, np.float32)}, "scales must be 0 or more, and not all 0, but one is 0"),
        ({"scales": np.full(PARAMETERS, 1e-60)}, "scales must be 0 or more, and not all 0, but one is 0"),
        ({"scales": np.full(PARAMETERS, -1, np.float32)}, "scales must be 0 or more, and not all 0, but one is -1"),
        ({"scales": np.full(PARAMETERS, np.inf, np.float32)}, "scales must be finite"),
        ({"seed": -1}, "seed must be between 0"),
        ({"seed": 2**63}, "seed must be between 0"),
    ],
)
def test_start_refuses_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        start(**{"strategy": SNES(), "theta0": ZERO, "scales": ONES, "seed": 0} | change)


@pytest.mark.parametrize(
    "change", [{"strategy": "snes"}, {"theta0": np.zeros(PARAMETERS, np.int64)}, {"theta0": [0.0]}, {"seed": 0.5}]
)
def test_start_refuses_arguments_of_wrong_types(change):
    with pytest.raises(TypeError, match=f"{next(iter(change))} must be"):
        start(**{"strategy": SNES(), "theta0": ZERO, "scales": ONES, "seed": 0} | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"thetas": np.zeros((5, PARAMETERS), np.float32)}, r"thetas must be float32 of shape \(32, 20\)"),
        ({"thetas": np.zeros((32, PARAMETERS))}, "thetas must be float32 .* not float64"),
        ({"thetas": np.full((32, PARAMETERS), np.inf, np.float32)}, "thetas must be finite"),
        ({"returns": np.zeros(31)}, r"returns must have one entry per candidate, \(32,\), not shape \(31,\)"),
        ({"returns": np.zeros((32, 1))}, "returns must have one entry per candidate"),
    ],
)
def test_tell_refuses_bad_thetas_or_returns(change, message):
    thetas, search = ask(start(SETTINGS["snes"], ZERO, ONES, seed=0))
    with pytest.raises(ValueError, match=message):
        tell(**{"search": search, "thetas": thetas, "returns": np.arange(32.0)} | change)
