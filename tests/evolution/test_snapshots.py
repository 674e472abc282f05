"""A search saved, and continued by another process (this file, run as a script)."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from iap.evolution import (
    ARS,
    CMAES,
    PGPE,
    SNES,
    OpenES,
    Search,
    Strategy,
    ask,
    from_arrays,
    mean,
    start,
    tell,
    to_arrays,
)

P = 30
STRATEGIES: dict[str, Strategy] = {
    "open-es": OpenES(population=16, sigma_decay=0.9, learning_rate_decay=0.9),
    "ars": ARS(population=16),
    "pgpe": PGPE(population=16, shaping="standardised"),
    "cma-es": CMAES(population=12),
    "snes": SNES(population=12),
}

OPEN_ES_DTYPES = {
    "seed": "int64",
    "iteration": "int64",
    "origin": "float32",
    "scales": "float32",
    "state.best_solution": "float32",
    "state.best_fitness": "float32",
    "state.generation_counter": "int32",
    "state.mean": "float32",
    "state.std": "float32",
    "state.opt_state.0.count": "int32",
    "state.opt_state.0.mu": "float32",
    "state.opt_state.0.nu": "float32",
    "state.opt_state.1.count": "int32",
}


def fresh(strategy: Strategy) -> Search:
    rng = np.random.default_rng(0)
    return start(strategy, rng.standard_normal(P).astype(np.float32), rng.uniform(0.1, 2, P).astype(np.float32), 2**40)


def advance(search: Search, iterations: int) -> Search:
    for _ in range(iterations):
        thetas, search = ask(search)
        noise = np.random.default_rng(search.iteration).standard_normal(len(thetas))
        search = tell(search, thetas, -np.sum(thetas**2, axis=1) + noise)
    return search


@pytest.fixture(scope="module")
def continued(tmp_path_factory) -> Path:
    """Every strategy saved after three iterations, and continued for four by another process."""
    folder = tmp_path_factory.mktemp("searches")
    for name, strategy in STRATEGIES.items():
        np.savez(folder / f"{name}.npz", **to_arrays(advance(fresh(strategy), 3)))  # pyright: ignore[reportArgumentType]
    subprocess.run([sys.executable, "-W", "error", __file__, str(folder)], check=True)
    return folder


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_search_continued_by_another_process_equals_the_uninterrupted_one_bit_by_bit(name, continued):
    uninterrupted = to_arrays(advance(fresh(STRATEGIES[name]), 7))
    with np.load(continued / f"{name}-continued.npz", allow_pickle=False) as loaded:
        assert set(loaded) == set(uninterrupted)
        for key, x in uninterrupted.items():
            assert (loaded[key].dtype, loaded[key].shape) == (x.dtype, x.shape)
            assert loaded[key].tobytes() == x.tobytes(), key
    assert not np.array_equal(uninterrupted["state.mean"], to_arrays(advance(fresh(STRATEGIES[name]), 3))["state.mean"])


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_search_saved_between_asking_and_telling_goes_on_too(name):
    thetas, search = ask(advance(fresh(STRATEGIES[name]), 2))
    restored = from_arrays(STRATEGIES[name], to_arrays(search))
    one, other = (tell(each, thetas, thetas[:, 0]) for each in (search, restored))
    assert mean(one).tobytes() == mean(other).tobytes()
    assert restored.iteration == 2


def test_saved_arrays_are_numbers_and_copies():
    search = advance(fresh(STRATEGIES["cma-es"]), 1)
    arrays = to_arrays(search)
    assert all(x.dtype.kind in "iuf" for x in arrays.values())
    theta = mean(search).copy()
    arrays["state.mean"][:] = 0
    arrays["origin"][:] = 0
    assert mean(search).tolist() == theta.tolist()


def test_a_restored_search_does_not_follow_changes_of_its_arrays():
    arrays = to_arrays(advance(fresh(STRATEGIES["snes"]), 1))
    restored = from_arrays(STRATEGIES["snes"], arrays)
    theta = mean(restored).copy()
    for name in ("origin", "scales", "state.mean"):
        arrays[name][:] = 9
    assert mean(restored).tolist() == theta.tolist()


def test_whole_numbers_and_floats_of_one_value_are_one_strategy():
    arrays = to_arrays(start(SNES(sigma=1), np.ones(3, np.float32), np.ones(3, np.float32), 0))
    assert from_arrays(SNES(sigma=1.0), arrays).iteration == 0


@pytest.mark.parametrize("other", [SNES(population=16), OpenES(population=16, sigma=0.06), OpenES()])
def test_another_strategy_is_refused_with_both_named(other):
    arrays = to_arrays(fresh(OpenES(population=16)))
    with pytest.raises(ValueError, match=rf"strategy is .*{other.kind}.* the arrays are of .*open-es.*0.05"):
        from_arrays(other, arrays)


@pytest.mark.parametrize("name", ["strategy", *OPEN_ES_DTYPES])
def test_missing_arrays_are_named(name):
    arrays = to_arrays(fresh(STRATEGIES["open-es"]))
    del arrays[name]
    with pytest.raises(ValueError, match=rf"arrays must hold '{name}'"):
        from_arrays(STRATEGIES["open-es"], arrays)


@pytest.mark.parametrize(("name", "dtype"), OPEN_ES_DTYPES.items())
def test_arrays_of_a_wrong_dtype_are_named(name, dtype):
    arrays = to_arrays(fresh(STRATEGIES["open-es"]))
    assert arrays[name].dtype == dtype
    arrays[name] = arrays[name].astype(np.float64)
    with pytest.raises(ValueError, match=rf"{name} must be {dtype} of shape .*, not float64"):
        from_arrays(STRATEGIES["open-es"], arrays)


@pytest.mark.parametrize("name", [name for name in OPEN_ES_DTYPES if name != "origin"])
def test_arrays_of_a_wrong_shape_are_named(name):
    arrays = to_arrays(fresh(STRATEGIES["open-es"]))
    arrays[name] = np.stack([arrays[name]] * 2)
    with pytest.raises(ValueError, match=rf"{name} must be .* of shape .*, not .* of shape \(2,"):
        from_arrays(STRATEGIES["open-es"], arrays)


def test_arrays_of_another_number_of_parameters_do_not_fit_together():
    arrays = to_arrays(fresh(STRATEGIES["open-es"]))
    arrays["origin"] = np.zeros(P - 1, np.float32)
    with pytest.raises(ValueError, match=r"scales must be float32 of shape \(29,\), not float32 of shape \(30,\)"):
        from_arrays(STRATEGIES["open-es"], arrays)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("iteration", -1, "iteration must be at least 0, not -1"),
        ("seed", -1, "seed must be between 0"),
        ("scales", 0, "scales must be 0 or more"),
        ("origin", np.nan, "theta0 must be finite"),
    ],
)
def test_impossible_values_are_refused(name, value, message):
    arrays = to_arrays(fresh(STRATEGIES["ars"]))
    arrays[name] = np.full_like(arrays[name], value)
    with pytest.raises(ValueError, match=message):
        from_arrays(STRATEGIES["ars"], arrays)


@pytest.mark.parametrize("junk", [np.zeros(0, np.uint8), np.full(9, 255, np.uint8), np.array(0.5)])
def test_arrays_of_no_strategy_are_refused(junk):
    arrays = to_arrays(fresh(STRATEGIES["ars"])) | {"strategy": junk}
    with pytest.raises(ValueError, match="the arrays are of no known strategy"):
        from_arrays(STRATEGIES["ars"], arrays)


def _continue_all(folder: Path) -> None:
    for name, strategy in STRATEGIES.items():
        with np.load(folder / f"{name}.npz", allow_pickle=False) as loaded:
            search = from_arrays(strategy, loaded)
        np.savez(folder / f"{name}-continued.npz", **to_arrays(advance(search, 4)))  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    _continue_all(Path(sys.argv[1]))
