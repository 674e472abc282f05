import subprocess
import sys
from dataclasses import replace

import jax
import numpy as np
import pytest

from iap.evolution import ARS, CMAES, PGPE, SNES, OpenES, ask, mean, start, tell, to_arrays

P = 20
ZERO, ONES = np.zeros(P, np.float32), np.ones(P, np.float32)
TARGET = np.linspace(-2, 2, P, dtype=np.float32)


def distance(search) -> float:
    return float(np.sum((mean(search) - TARGET) ** 2))


def state_of(search) -> dict[str, np.ndarray]:
    return {name: x for name, x in to_arrays(search).items() if name != "iteration"}


def assert_same(left, right):
    assert left.keys() == right.keys()
    for name, x in left.items():
        np.testing.assert_array_equal(x, right[name], err_msg=name)


def test_a_noisy_quadratic_loses_more_than_nine_tenths_of_its_loss(strategy, quadratic, evolve):
    search = start(strategy, ZERO, ONES, seed=3)
    before = distance(search)
    assert distance(evolve(search, quadratic, 120)) < 0.1 * before


@pytest.mark.parametrize("sign", [1, -1])
def test_returns_are_maximised(strategy, evolve, sign):
    search = evolve(start(strategy, ZERO, ONES, seed=0), lambda thetas, _: sign * thetas.sum(axis=1), 15)
    assert sign * mean(search).sum() > 1


def test_a_search_starts_exactly_where_it_is_told_to(strategy):
    theta0 = np.random.default_rng(0).standard_normal(P).astype(np.float32)
    search = start(strategy, theta0, np.full(P, 0.1, np.float32), seed=0)
    assert mean(search).tolist() == theta0.tolist()
    assert mean(ask(search)[1]).tolist() == theta0.tolist()


def test_candidates_are_float32_one_a_row(strategy):
    search = start(strategy, ZERO, ONES, seed=0)
    for _ in range(2):
        thetas, search = ask(search)
        assert (thetas.shape, thetas.dtype) == ((strategy.population, P), np.float32)
        assert len(np.unique(thetas, axis=0)) == strategy.population
        search = tell(search, thetas, thetas[:, 0])
        assert (mean(search).shape, mean(search).dtype) == ((P,), np.float32)


@pytest.mark.parametrize("chosen", [OpenES, ARS, PGPE, CMAES, SNES])
def test_perturbations_are_sigma_times_scale(chosen):
    scales = np.geomspace(1e-3, 10, P).astype(np.float32)
    thetas, _ = ask(start(chosen(population=2000, sigma=0.05), ZERO, scales, seed=0))
    np.testing.assert_allclose(thetas.std(axis=0) / scales, 0.05, rtol=0.1)


@pytest.mark.parametrize("first", [0.0, 1.5])
def test_a_parameter_of_tiny_scale_hardly_moves_whatever_depends_on_it(strategy, evolve, first):
    theta0, scales, slopes = ZERO.copy(), ONES.copy(), ONES.copy()
    theta0[0], scales[0], slopes[0] = first, 1e-6, 1e5
    search = evolve(start(strategy, theta0, scales, seed=0), lambda thetas, _: thetas @ slopes, 30)
    moved = np.abs(mean(search) - theta0)
    assert moved[0] < 1e-4
    assert moved[1:].max() > 0.1


def test_parameters_of_scale_0_stay_and_the_others_are_searched_as_if_alone(strategy, evolve):
    scales = np.tile(np.array([1, 0], np.float32), P // 2)
    some = evolve(start(strategy, ONES, scales, seed=0), lambda x, _: x[:, ::2].sum(axis=1), 3)
    alone = evolve(start(strategy, ONES[::2], ONES[::2], seed=0), lambda x, _: x.sum(axis=1), 3)
    assert mean(some)[1::2].tolist() == ONES[1::2].tolist()
    assert mean(some)[::2].tolist() == mean(alone).tolist() != ONES[::2].tolist()


def test_scales_only_change_units(strategy, quadratic, evolve):
    if isinstance(strategy, OpenES):
        strategy = replace(strategy, weight_decay=0.0)  # it takes off a share of θ in its own units
    scales = np.exp2(np.arange(P) % 6 - 3).astype(np.float32)  # powers of two, so that no digit is lost
    plain = evolve(start(strategy, ZERO, ONES, seed=0), quadratic, 5)
    scaled = evolve(start(strategy, ZERO, scales, seed=0), lambda x, i: quadratic(x / scales, i), 5)
    assert mean(scaled).tolist() == (scales * mean(plain)).tolist()
    assert np.abs(mean(plain)).max() > 0.01


@pytest.mark.parametrize("value", [0.0, 3.5, np.nan, -np.inf])
def test_when_all_returns_tie_only_the_iteration_goes_on(strategy, quadratic, evolve, value):
    search = evolve(start(strategy, ZERO, ONES, seed=0), quadratic, 4)  # so that there is momentum
    thetas, search = ask(search)
    after = tell(search, thetas, np.full(strategy.population, value))
    assert after.iteration == search.iteration + 1
    assert_same(state_of(after), state_of(search))
    assert not np.array_equal(ask(after)[0], thetas)


def test_failed_candidates_are_tolerated(strategy, quadratic, evolve):
    def with_failures(thetas, iteration):
        returns = quadratic(thetas, iteration)
        failed = np.random.default_rng(iteration).random(len(thetas)) < 0.25
        return np.where(failed, np.nan, returns)

    search = start(strategy, ZERO, ONES, seed=1)
    before = distance(search)
    search = evolve(search, with_failures, 120)
    assert distance(search) < 0.3 * before
    assert not any(np.isnan(x).any() for x in state_of(search).values())


def test_a_failed_candidate_counts_no_better_than_the_worst(strategy):
    thetas, search = ask(start(strategy, ZERO, ONES, seed=0))
    returns = thetas[:, 0].copy()
    worst = np.argmin(returns)
    failed = np.where(np.arange(len(returns)) == worst, np.nan, returns)
    if strategy.shaping == "standardised":  # a number is needed: that of the worst candidate that finished
        returns[worst] = np.sort(returns)[1]
    assert_same(state_of(tell(search, thetas, failed)), state_of(tell(search, thetas, returns)))


def test_returns_of_any_size_leave_the_state_finite(strategy):
    rng = np.random.default_rng(0)
    search = start(strategy, ONES, np.geomspace(1e-8, 10, P).astype(np.float32), seed=0)
    for _ in range(100):
        thetas, search = ask(search)
        returns = rng.standard_normal(strategy.population) * 10.0 ** rng.integers(-300, 300)
        failed = rng.random(len(returns)) < rng.random()
        search = tell(search, thetas, np.where(failed, rng.choice([np.nan, np.inf, -np.inf]), returns))
        assert np.isfinite(mean(search)).all()


def test_the_order_of_candidates_does_not_matter(strategy, quadratic, evolve):
    thetas, search = ask(evolve(start(strategy, ZERO, ONES, seed=0), quadratic, 3))
    returns = quadratic(thetas, 0)
    shuffled = np.random.default_rng(0).permutation(strategy.population)
    if isinstance(strategy, ARS | PGPE):  # candidate i and candidate i + n/2 are a pair, and stay one
        half = np.random.default_rng(0).permutation(strategy.population // 2)
        shuffled = np.concatenate([half, half + strategy.population // 2])
    one, other = tell(search, thetas, returns), tell(search, thetas[shuffled], returns[shuffled])
    assert np.abs(mean(one) - mean(search)).max() > 1e-3
    np.testing.assert_allclose(mean(other), mean(one), atol=1e-5)


def test_the_seed_and_the_iteration_decide_everything(strategy, quadratic, evolve):
    first, again, other = (evolve(start(strategy, ZERO, ONES, seed), quadratic, 4) for seed in (7, 7, 8))
    assert_same(to_arrays(first), to_arrays(again))
    assert not np.array_equal(mean(first), mean(other))


def test_large_seeds_differ_in_all_their_digits():
    drawn = [ask(start(SNES(), ZERO, ONES, seed))[0] for seed in (0, 2**32, 2**62, 2**62 + 1)]
    assert len({x.tobytes() for x in drawn}) == 4


def test_asking_and_telling_leave_the_search_given_as_it_was(strategy, quadratic):
    search = start(strategy, ZERO, ONES, seed=0)
    before = to_arrays(search)
    thetas, asked = ask(search)
    between = to_arrays(asked)
    tell(asked, thetas, quadratic(thetas, 0))
    assert_same(to_arrays(search), before)
    assert_same(to_arrays(asked), between)


def test_all_is_float32_also_where_jax_is_set_to_float64(strategy, quadratic, evolve):
    expected = to_arrays(evolve(start(strategy, ZERO, ONES, seed=0), quadratic, 3))
    with jax.enable_x64(True):
        found = to_arrays(evolve(start(strategy, ZERO, ONES, seed=0), quadratic, 3))
    assert_same(found, expected)
    assert {x.dtype.name for x in found.values()} <= {"float32", "int32", "int64", "uint8"}


def test_importing_the_room_loads_no_jax():
    code = "import sys, iap.evolution; sys.exit(bool({'jax', 'evosax', 'optax'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_cma_es_refuses_what_its_matrix_is_too_large_for_and_names_snes():
    many = np.ones(2001, np.float32)
    with pytest.raises(ValueError, match=r"theta0 has 2001 parameters.*choose snes"):
        start(CMAES(), many, many, seed=0)
    assert ask(start(SNES(population=4), many, many, seed=0))[0].shape == (4, 2001)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta0": np.zeros((2, 10), np.float32)}, "theta0 must have 1 axes"),
        ({"theta0": np.zeros(0, np.float32)}, "theta0 must hold at least one parameter"),
        ({"theta0": np.full(P, np.nan, np.float32)}, "theta0 must be finite"),
        ({"scales": np.ones(P + 1, np.float32)}, r"scales must be one a parameter, \(20,\), not of shape \(21,\)"),
        ({"scales": np.zeros(P, np.float32)}, "scales must be 0 or more, and not all 0, but one is 0"),
        ({"scales": np.full(P, 1e-60)}, "scales must be 0 or more, and not all 0, but one is 0"),
        ({"scales": np.full(P, -1, np.float32)}, "scales must be 0 or more, and not all 0, but one is -1"),
        ({"scales": np.full(P, np.inf, np.float32)}, "scales must be finite"),
        ({"seed": -1}, "seed must be between 0"),
        ({"seed": 2**63}, "seed must be between 0"),
    ],
)
def test_a_bad_start_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        start(**{"strategy": SNES(), "theta0": ZERO, "scales": ONES, "seed": 0} | change)


@pytest.mark.parametrize(
    "change", [{"strategy": "snes"}, {"theta0": np.zeros(P, np.int64)}, {"theta0": [0.0]}, {"seed": 0.5}]
)
def test_a_start_of_wrong_types_is_refused(change):
    with pytest.raises(TypeError, match=f"{next(iter(change))} must be"):
        start(**{"strategy": SNES(), "theta0": ZERO, "scales": ONES, "seed": 0} | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"thetas": np.zeros((5, P), np.float32)}, r"thetas must be float32 of shape \(64, 20\)"),
        ({"thetas": np.zeros((64, P))}, "thetas must be float32 .* not float64"),
        ({"thetas": np.full((64, P), np.inf, np.float32)}, "thetas must be finite"),
        ({"returns": np.zeros(63)}, r"returns must be one a candidate, \(64,\), not of shape \(63,\)"),
        ({"returns": np.zeros((64, 1))}, "returns must be one a candidate"),
    ],
)
def test_bad_thetas_or_returns_are_refused(change, message):
    thetas, search = ask(start(SNES(), ZERO, ONES, seed=0))
    with pytest.raises(ValueError, match=message):
        tell(**{"search": search, "thetas": thetas, "returns": np.arange(64.0)} | change)
