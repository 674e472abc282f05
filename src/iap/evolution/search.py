"""A search for the θ of the largest return: ask for candidates, tell their returns.

    search = start(OpenES(), theta0, scales, seed=0)
    thetas, search = ask(search)
    search = tell(search, thetas, returns)

Every function is pure; a search is its strategy, its seed and what it has learnt. All is float32.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from iap.attention.arrays import require_count, require_finite, require_floats
from iap.evolution.shaping import shape
from iap.evolution.strategies import CMAES, STRATEGIES, Strategy


@dataclass(frozen=True, eq=False)
class Search:
    """Where a search stands.

    The strategy works on x = (θ − origin)/scales, so that it may treat all parameters alike, and x = 0 is the start. It
    knows nothing of parameters of scale 0, which stay as they are.

    Attributes:
        strategy: what was chosen.
        seed: of all its random numbers, together with the iteration.
        iteration: how often it was told returns.
        origin: the θ it started from.
        scales: of each parameter's perturbations; 0 for one that is fixed.
        state: the strategy's own, a tree of arrays.
    """

    strategy: Strategy
    seed: int
    iteration: int
    origin: Float[np.ndarray, " p"]
    scales: Float[np.ndarray, " p"]
    state: Any


def start(strategy: Strategy, theta0: Float[np.ndarray, " p"], scales: Float[np.ndarray, " p"], seed: int) -> Search:
    """A search from `theta0`; candidates differ from its mean by sigma × scale in each parameter.

    A parameter whose perturbation is lost in float32's rounding of θ stays as it is.
    """
    from iap.evolution import algorithms

    if type(strategy) not in STRATEGIES.values():
        raise TypeError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
    origin, scales = _vector("theta0", theta0), _vector("scales", scales)
    if not origin.size:
        raise ValueError("theta0 must hold at least one parameter, not none")
    if scales.shape != origin.shape:
        raise ValueError(f"scales must be one a parameter, {origin.shape}, not of shape {scales.shape}")
    if (scales < 0).any() or not scales.any():
        raise ValueError(f"scales must be 0 or more, and not all 0, but one is {scales.min()}")
    size = int(np.count_nonzero(scales))
    if isinstance(strategy, CMAES) and size > strategy.most_parameters:
        raise ValueError(
            f"theta0 has {size} parameters, but cma-es keeps a matrix of their squared number and takes at most "
            f"{strategy.most_parameters}: choose snes, which keeps one σ a parameter"
        )
    require_count("seed", seed, least=0, most=2**63 - 1)
    return Search(strategy, int(seed), 0, origin, scales, algorithms.first_state(strategy, size))


def ask(search: Search) -> tuple[Float[np.ndarray, "n p"], Search]:
    """The iteration's candidates, and the search to tell their returns to."""
    from iap.evolution import algorithms

    candidates, state = algorithms.sample(search.strategy, search.state, search.seed, search.iteration)
    return _placed(search, candidates), replace(search, state=state)


def tell(search: Search, thetas: Float[np.ndarray, "n p"], returns: Float[np.ndarray, " n"]) -> Search:
    """The search after `returns`, larger being better, of `thetas` in the order in which they were asked for.

    A return that is not finite is of a failed candidate and ranks worst. When all tie nothing is learnt, and only the
    iteration goes on: momentum alone would move θ all the same.
    """
    from iap.evolution import algorithms

    population = (search.strategy.population, search.origin.size)
    thetas, returns = np.asarray(thetas), np.asarray(returns, dtype=np.float64)
    if thetas.shape != population or thetas.dtype != np.float32:
        raise ValueError(f"thetas must be float32 of shape {population}, not {thetas.dtype} of shape {thetas.shape}")
    require_finite("thetas", thetas)
    if returns.shape != population[:1]:
        raise ValueError(f"returns must be one a candidate, {population[:1]}, not of shape {returns.shape}")
    utilities = shape(search.strategy.shaping, returns)
    state = search.state
    if utilities.any():
        free = search.scales > 0
        candidates = (thetas - search.origin)[:, free] / search.scales[free]
        state = algorithms.update(search.strategy, state, candidates, utilities, mean(search)[free])
    return replace(search, iteration=search.iteration + 1, state=state)


def mean(search: Search) -> Float[np.ndarray, " p"]:
    """The θ that the search holds for best: the centre of its next candidates."""
    return _placed(search, search.state.mean[None])[0]


def _placed(search: Search, candidates: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "n p"]:
    """The θ of candidates that tell of the parameters that are free."""
    free = search.scales > 0
    thetas = np.repeat(search.origin[None], len(candidates), axis=0)
    thetas[:, free] += search.scales[free] * candidates
    return thetas


def _vector(name: str, x: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """A float32 copy that nobody can change."""
    copy = np.array(require_floats(name, x, rank=1), dtype=np.float32)
    copy.flags.writeable = False
    return require_finite(name, copy)
