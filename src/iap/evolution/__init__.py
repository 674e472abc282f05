"""Evolution strategies over plain vectors: θ is asked for, returns are told, and a larger return is better.

Importing this room loads no JAX; the first search does.
"""

from iap.evolution.search import Search, ask, mean, start, tell
from iap.evolution.shaping import Shaping
from iap.evolution.snapshots import from_arrays, to_arrays
from iap.evolution.strategies import ARS, CMAES, PGPE, SNES, STRATEGIES, OpenES, Strategy

__all__ = [
    "ARS",
    "CMAES",
    "PGPE",
    "SNES",
    "STRATEGIES",
    "OpenES",
    "Search",
    "Shaping",
    "Strategy",
    "ask",
    "from_arrays",
    "mean",
    "start",
    "tell",
    "to_arrays",
]
