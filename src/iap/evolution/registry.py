"""The strategies by name: one line each."""

from iap._registry import Registry
from iap.evolution.strategy import Strategy

STRATEGIES: Registry[type[Strategy]] = Registry("strategy", group="iap.strategies")
STRATEGIES.register("open-es", "iap.evolution.openai_es:OpenES")
STRATEGIES.register("ars", "iap.evolution.ars:ARS")
STRATEGIES.register("pgpe", "iap.evolution.pgpe:PGPE")
STRATEGIES.register("cma-es", "iap.evolution.cma_es:CMAES")
STRATEGIES.register("snes", "iap.evolution.snes:SNES")
