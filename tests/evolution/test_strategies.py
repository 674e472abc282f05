import json
from dataclasses import FrozenInstanceError, asdict, fields
from typing import Any

import pytest

from iap.evolution import ARS, CMAES, PGPE, SNES, STRATEGIES, OpenES

CLASSES = list(STRATEGIES.values())


def test_the_registry_holds_the_strategies_by_name():
    assert dict(STRATEGIES) == {"open-es": OpenES, "ars": ARS, "pgpe": PGPE, "cma-es": CMAES, "snes": SNES}


@pytest.mark.parametrize("chosen", CLASSES)
def test_a_strategy_is_frozen_hashable_documented_and_survives_json(chosen: type[Any]):
    strategy = chosen(population=12, sigma=0.07)
    assert chosen(**json.loads(json.dumps(asdict(strategy)))) == strategy
    assert {strategy: 1}[chosen(population=12, sigma=0.07)] == 1
    with pytest.raises(FrozenInstanceError):
        strategy.sigma = 0.1
    assert all(f"        {field.name}: " in (chosen.__doc__ or "") for field in fields(chosen))
    assert 0 < chosen().sigma <= 0.1


@pytest.mark.parametrize("chosen", [OpenES, ARS, PGPE])
def test_antithetic_pairs_need_an_even_population(chosen: type[Any]):
    with pytest.raises(ValueError, match=r"population must be even.*not 7"):
        chosen(population=7)


@pytest.mark.parametrize("chosen", [CMAES, SNES])
def test_unpaired_strategies_take_an_odd_population(chosen: type[Any]):
    assert chosen(population=7).population == 7


@pytest.mark.parametrize("chosen", CLASSES)
def test_an_error_names_a_bad_population_or_sigma_and_its_value(chosen: type[Any]):
    cases = [
        ("population", 0, ValueError),
        ("population", 8.0, TypeError),
        ("population", True, TypeError),
        ("sigma", 0.0, ValueError),
        ("sigma", -0.1, ValueError),
        ("sigma", float("nan"), ValueError),
        ("sigma", float("inf"), ValueError),
        ("sigma", "0.1", TypeError),
        ("sigma", True, TypeError),
    ]
    for name, value, error in cases:
        with pytest.raises(error, match=rf"{name} must .*not {value!r}"):
            chosen(**{name: value})


@pytest.mark.parametrize(
    ("chosen", "name", "value"),
    [
        (OpenES, "learning_rate", 0),
        (OpenES, "learning_rate_decay", 1.5),
        (OpenES, "sigma_decay", 0.0),
        (OpenES, "decay_floor", -1.0),
        (OpenES, "weight_decay", -0.1),
        (OpenES, "shaping", "none"),
        (ARS, "learning_rate", -1.0),
        (ARS, "top", 0.0),
        (ARS, "top", 1.1),
        (PGPE, "max_speed", 0.0),
        (PGPE, "momentum", 1.0),
        (PGPE, "sigma_learning_rate", 0.0),
        (PGPE, "shaping", "standardized"),
        (CMAES, "population", 3),
        (SNES, "population", 1),
    ],
)
def test_an_error_names_a_bad_option_and_its_value(chosen: type[Any], name: str, value: Any):
    with pytest.raises(ValueError, match=rf"{name} must .*not {value!r}"):
        chosen(**{name: value})


@pytest.mark.parametrize(
    ("chosen", "name"), [(OpenES, "weight_decay"), (OpenES, "learning_rate"), (ARS, "top"), (PGPE, "momentum")]
)
def test_an_option_that_is_not_a_number_is_a_type_error(chosen: type[Any], name: str):
    with pytest.raises(TypeError, match=rf"{name} must be a number, not '0.5'"):
        chosen(**{name: "0.5"})
