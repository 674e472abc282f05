"""Evolution strategies on plain vectors: ask for candidates θ, tell their returns; larger returns are better.

Importing this package does not import JAX; starting a search does.
"""

from iap.evolution.ars import ARS
from iap.evolution.cma_es import CMAES
from iap.evolution.openai_es import OpenES
from iap.evolution.pgpe import PGPE
from iap.evolution.registry import STRATEGIES
from iap.evolution.search import Search, ask, mean, start, tell
from iap.evolution.shaping import Shaping
from iap.evolution.snapshots import from_arrays, to_arrays
from iap.evolution.snes import SNES
from iap.evolution.strategy import EvosaxStrategy, Strategy

__all__ = [
    "ARS",
    "CMAES",
    "PGPE",
    "SNES",
    "STRATEGIES",
    "EvosaxStrategy",
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
