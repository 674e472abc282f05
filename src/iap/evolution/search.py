"""A search for the θ with the largest return: ask for candidates, tell their returns.

    search = start(OpenES(), theta0, scales, seed=0)
    thetas, search = ask(search)
    search = tell(search, thetas, returns)

All functions are pure. A search consists of its strategy, its seed and the state of the strategy, all in float32.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from iap._validation import require_count
from iap.attention.arrays import require_finite, require_floats
from iap.evolution.registry import STRATEGIES
from iap.evolution.shaping import shape
from iap.evolution.strategy import State, Strategy


@dataclass(frozen=True, eq=False)
class Search:
    """A search between two iterations.

    The strategy works on x = (θ − origin) / scales, so that it can treat all parameters alike, and starts at x = 0.
    Parameters of scale 0 are fixed; the strategy does not receive them.

    Attributes:
        strategy: the evolution strategy.
        seed: seed of all random numbers, together with the iteration.
        iteration: number of completed iterations.
        origin: the initial θ.
        scales: scale of each parameter's perturbation; 0 for a fixed parameter.
        state: the state of the strategy, a tree of arrays.
    """

    strategy: Strategy
    seed: int
    iteration: int
    origin: Float[np.ndarray, " p"]
    scales: Float[np.ndarray, " p"]
    state: State


def start(strategy: Strategy, theta0: Float[np.ndarray, " p"], scales: Float[np.ndarray, " p"], seed: int) -> Search:
    """Start a search at `theta0`; candidates deviate from the mean by sigma × scale in each parameter.

    A parameter does not change if its perturbation is below the float32 resolution of θ.
    """
    if type(strategy) not in STRATEGIES.values():
        raise TypeError(f"strategy must be one of {', '.join(STRATEGIES)} (see STRATEGIES.register), not {strategy!r}")
    origin, scales = _read_only_copy("theta0", theta0), _read_only_copy("scales", scales)
    if not origin.size:
        raise ValueError("theta0 must hold at least one parameter, not none")
    if scales.shape != origin.shape:
        raise ValueError(f"scales must have one entry per parameter, {origin.shape}, not shape {scales.shape}")
    if (scales < 0).any() or not scales.any():
        raise ValueError(f"scales must be 0 or more, and not all 0, but one is {scales.min()}")
    size = int(np.count_nonzero(scales))
    strategy.check_size(size)
    require_count("seed", seed, least=0, most=2**63 - 1)
    return Search(strategy, int(seed), 0, origin, scales, strategy.init(size))


def ask(search: Search) -> tuple[Float[np.ndarray, "n p"], Search]:
    """Return the candidates of the iteration, and the search that takes their returns."""
    candidates, state = search.strategy.ask(search.state, search.seed, search.iteration)
    return _to_theta(search, candidates), replace(search, state=state)


def tell(search: Search, thetas: Float[np.ndarray, "n p"], returns: Float[np.ndarray, " n"]) -> Search:
    """Return the search after an update from the `returns` of `thetas`, in the order of `ask`; larger is better.

    A return that is not finite marks a failed candidate, which ranks last. If all returns are equal, only the iteration
    advances: there is no gradient, but the momentum of some strategies would still move θ.
    """
    expected = (search.strategy.population, search.origin.size)
    thetas, returns = np.asarray(thetas), np.asarray(returns, dtype=np.float64)
    if thetas.shape != expected or thetas.dtype != np.float32:
        raise ValueError(f"thetas must be float32 of shape {expected}, not {thetas.dtype} of shape {thetas.shape}")
    require_finite("thetas", thetas)
    if returns.shape != expected[:1]:
        raise ValueError(f"returns must have one entry per candidate, {expected[:1]}, not shape {returns.shape}")
    utilities = shape(search.strategy.shaping, returns)
    state = search.state
    if utilities.any():
        free = search.scales > 0
        candidates = (thetas - search.origin)[:, free] / search.scales[free]
        state = search.strategy.tell(state, candidates, utilities, mean(search)[free])
    return replace(search, iteration=search.iteration + 1, state=state)


def mean(search: Search) -> Float[np.ndarray, " p"]:
    """Return the θ at the centre of the next candidates, the search's current estimate of the best."""
    return _to_theta(search, search.state.mean[None])[0]


def _to_theta(search: Search, candidates: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "n p"]:
    """Convert candidates of the strategy, which hold the free parameters only, to θ."""
    free = search.scales > 0
    thetas = np.repeat(search.origin[None], len(candidates), axis=0)
    thetas[:, free] += search.scales[free] * candidates
    return thetas


def _read_only_copy(name: str, x: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    copy = np.array(require_floats(name, x, rank=1), dtype=np.float32)
    copy.flags.writeable = False
    return require_finite(name, copy)
