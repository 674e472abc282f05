"""A search saved, and continued by another process (this file, run as a script)."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from search_cases import PARAMETERS, SETTINGS, evolve

from iap.evolution import SNES, STRATEGIES, OpenES, Search, Strategy, ask, from_arrays, mean, start, tell, to_arrays

OPEN_ES = SETTINGS["open-es"]
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


def start_search(strategy: Strategy) -> Search:
    rng = np.random.default_rng(0)
    theta0 = rng.standard_normal(PARAMETERS).astype(np.float32)
    return start(strategy, theta0, rng.uniform(0.1, 2, PARAMETERS).astype(np.float32), 2**40)


@pytest.fixture(scope="module")
def continued(tmp_path_factory) -> Path:
    """Every strategy saved after three iterations, and continued for four by another process."""
    folder = tmp_path_factory.mktemp("searches")
    for name, strategy in SETTINGS.items():
        np.savez(folder / f"{name}.npz", **to_arrays(evolve(start_search(strategy), 3)))  # pyright: ignore[reportArgumentType]
    subprocess.run([sys.executable, "-W", "error", __file__, str(folder)], check=True)
    return folder


@pytest.mark.parametrize("name", SETTINGS)
def test_a_search_continued_by_another_process_equals_the_uninterrupted_one_bit_by_bit(name, continued):
    uninterrupted = to_arrays(evolve(start_search(SETTINGS[name]), 7))
    with np.load(continued / f"{name}-continued.npz", allow_pickle=False) as loaded:
        assert set(loaded) == set(uninterrupted)
        for key, x in uninterrupted.items():
            assert (loaded[key].dtype, loaded[key].shape) == (x.dtype, x.shape)
            assert loaded[key].tobytes() == x.tobytes(), key
    interrupted = to_arrays(evolve(start_search(SETTINGS[name]), 3))
    assert not np.array_equal(uninterrupted["state.mean"], interrupted["state.mean"])


def test_a_search_can_be_saved_between_ask_and_tell(strategy):
    thetas, search = ask(evolve(start_search(strategy), 2))
    restored = from_arrays(strategy, to_arrays(search))
    one, other = (tell(each, thetas, thetas[:, 0]) for each in (search, restored))
    assert mean(one).tobytes() == mean(other).tobytes()
    assert restored.iteration == 2


def test_saved_arrays_are_numbers_and_copies():
    search = evolve(start_search(SETTINGS["cma-es"]), 1)
    arrays = to_arrays(search)
    assert all(x.dtype.kind in "iuf" for x in arrays.values())
    theta = mean(search).copy()
    arrays["state.mean"][:] = 0
    arrays["origin"][:] = 0
    assert mean(search).tolist() == theta.tolist()


def test_a_restored_search_does_not_share_memory_with_its_arrays():
    arrays = to_arrays(evolve(start_search(SETTINGS["snes"]), 1))
    restored = from_arrays(SETTINGS["snes"], arrays)
    theta = mean(restored).copy()
    for name in ("origin", "scales", "state.mean"):
        arrays[name][:] = 9
    assert mean(restored).tolist() == theta.tolist()


def test_integers_and_floats_of_one_value_are_the_same_strategy():
    arrays = to_arrays(start(SNES(sigma=1), np.ones(3, np.float32), np.ones(3, np.float32), 0))
    assert from_arrays(SNES(sigma=1.0), arrays).iteration == 0


@pytest.mark.parametrize("other", [SNES(population=32), replace(OPEN_ES, sigma=0.06), OpenES()])  # pyright: ignore[reportArgumentType]
def test_an_error_names_both_strategies_if_they_differ(other):
    arrays, name = to_arrays(start_search(OPEN_ES)), STRATEGIES.name_of(type(other))
    with pytest.raises(ValueError, match=rf"strategy is .*{name}.* the arrays are of .*open-es.*'sigma': 0.1"):
        from_arrays(other, arrays)


def test_an_error_names_a_missing_array():
    arrays = to_arrays(start_search(OPEN_ES))
    assert {"strategy", *OPEN_ES_DTYPES} == arrays.keys()
    for name in arrays:
        with pytest.raises(ValueError, match=rf"arrays must hold '{name}'"):
            from_arrays(OPEN_ES, {key: x for key, x in arrays.items() if key != name})


def test_an_error_names_an_array_of_a_wrong_dtype():
    arrays = to_arrays(start_search(OPEN_ES))
    for name, dtype in OPEN_ES_DTYPES.items():
        assert arrays[name].dtype == dtype
        with pytest.raises(ValueError, match=rf"{name} must be {dtype} of shape .*, not float64"):
            from_arrays(OPEN_ES, arrays | {name: arrays[name].astype(np.float64)})


def test_an_error_names_an_array_of_a_wrong_shape():
    arrays = to_arrays(start_search(OPEN_ES))
    for name in OPEN_ES_DTYPES.keys() - {"origin"}:
        with pytest.raises(ValueError, match=rf"{name} must be .* of shape .*, not .* of shape \(2,"):
            from_arrays(OPEN_ES, arrays | {name: np.stack([arrays[name]] * 2)})


def test_arrays_of_different_numbers_of_parameters_are_refused():
    arrays = to_arrays(start_search(OPEN_ES)) | {"origin": np.zeros(PARAMETERS - 1, np.float32)}
    with pytest.raises(ValueError, match=r"scales must be float32 of shape \(19,\), not float32 of shape \(20,\)"):
        from_arrays(OPEN_ES, arrays)


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
    arrays = to_arrays(start_search(SETTINGS["ars"]))
    arrays[name] = np.full_like(arrays[name], value)
    with pytest.raises(ValueError, match=message):
        from_arrays(SETTINGS["ars"], arrays)


@pytest.mark.parametrize("content", [np.zeros(0, np.uint8), np.full(9, 255, np.uint8), np.array(0.5)])
def test_arrays_without_a_known_strategy_are_refused(content):
    arrays = to_arrays(start_search(SETTINGS["ars"])) | {"strategy": content}
    with pytest.raises(ValueError, match="the arrays are of no known strategy"):
        from_arrays(SETTINGS["ars"], arrays)


def _continue_all(folder: Path) -> None:
    for name, strategy in SETTINGS.items():
        with np.load(folder / f"{name}.npz", allow_pickle=False) as loaded:
            search = from_arrays(strategy, loaded)
        np.savez(folder / f"{name}-continued.npz", **to_arrays(evolve(search, 4)))  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    _continue_all(Path(sys.argv[1]))
