"""What a config from a file may ask for: a run's folder from somebody else cannot use all memory or run forever."""

from collections.abc import Iterator, Mapping
from typing import Any

from iap.envs.registration import require_bounded_options
from iap.policies import count_params
from iap.training.config import TrainConfig
from iap.training.sac.config import SAC

MOST_PARAMS = 1 << 22
MOST_NUMBERS = 1 << 28  # of all candidates of an iteration, or of a covariance matrix: 1 GB
MOST = 10**9  # of any whole number, but a seed
LIMITS = {
    "population": 10**5,
    "iterations": 10**7,
    "episodes": 10**5,
    "evaluate_episodes": 10**5,
    "random_search": 10**7,
    "max_steps": 10**7,
    "batch": 10**6,
    "hidden": 10**4,
    "decisions": 10**8,
}


def require_bounded(config: TrainConfig | SAC, data: Mapping[str, Any]) -> None:
    """Refuse a config whose numbers are beyond what any run needs.

    Args:
        config: the config.
        data: the same as JSON.
    """
    for name, number in _whole_numbers("", data):
        most = LIMITS.get(name, MOST)
        if name != "seed" and abs(number) > most:
            raise ValueError(f"{name} must be at most {most} in a file, not {number}")
    require_bounded_options(dict(config.env.kwargs))
    if isinstance(config, TrainConfig):
        params = count_params(config.policy)
        if params > MOST_PARAMS:
            raise ValueError(f"a policy of a file must have at most {MOST_PARAMS} parameters, not {params}")
        population = getattr(config.strategy, "population", 1)
        rows = params if type(config.strategy).__name__ == "CMAES" else population
        if rows * params > MOST_NUMBERS:
            raise ValueError(f"population {population} and {params} parameters need more than {MOST_NUMBERS} numbers")


def _whole_numbers(name: str, data: Any) -> Iterator[tuple[str, int]]:
    """All whole numbers of a tree of JSON with the names of their fields."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _whole_numbers(str(key), value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _whole_numbers(name, value)
    elif isinstance(data, int) and not isinstance(data, bool):
        yield name, data
