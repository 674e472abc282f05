"""A strategy defined outside the package, registered by name."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from search_cases import ONES, TARGET, ZERO, evolve

from iap.evolution import STRATEGIES, Strategy, ask, from_arrays, mean, start, to_arrays


class EliteState(NamedTuple):
    """The centre of the next candidates."""

    mean: np.ndarray


@dataclass(frozen=True)
class EliteMean(Strategy):
    """Move to the mean of the best quarter of the candidates. NumPy only, no evosax."""

    population: int = 40
    sigma: float = 0.2

    def init(self, size: int) -> EliteState:
        return EliteState(np.zeros(size, np.float32))

    def ask(self, state: EliteState, seed: int, iteration: int) -> tuple[np.ndarray, EliteState]:
        noise = np.random.default_rng([seed, iteration]).standard_normal((self.population, state.mean.size))
        return (state.mean + self.sigma * noise).astype(np.float32), state

    def tell(self, state: EliteState, candidates: np.ndarray, utilities: np.ndarray, theta: np.ndarray) -> EliteState:
        best = np.argsort(-utilities)[: self.population // 4]
        return EliteState(candidates[best].mean(axis=0))


@pytest.fixture
def registered(monkeypatch) -> EliteMean:
    """The strategy, registered for one test."""
    monkeypatch.setattr(STRATEGIES, "_entries", dict(STRATEGIES._entries))
    STRATEGIES.register("elite-mean", EliteMean)
    return EliteMean()


def test_a_registered_strategy_learns_through_ask_and_tell(registered):
    search = evolve(start(registered, ZERO, ONES, seed=0), 100)
    assert np.sum((mean(search) - TARGET) ** 2) < 0.1 * np.sum(TARGET**2)


def test_a_registered_strategy_is_saved_and_restored(registered):
    search = evolve(start(registered, ZERO, ONES, seed=0), 3)
    restored = from_arrays(registered, to_arrays(search))
    assert restored.iteration == 3
    assert ask(restored)[0].tobytes() == ask(search)[0].tobytes()


def test_a_strategy_that_is_not_registered_is_refused():
    with pytest.raises(TypeError, match=r"strategy must be one of open-es, .* not EliteMean\(population=40"):
        start(EliteMean(), ZERO, ONES, seed=0)


def test_a_name_is_registered_once(registered):
    with pytest.raises(ValueError, match="there is already a strategy 'snes'"):
        STRATEGIES.register("snes", EliteMean)
