"""What can be chosen of a search: one frozen class a strategy, of plain values.

Lengths (σ, learning rates, speeds) are in units of the scales that the search is started with: a parameter of scale
0.1 is perturbed, and moves, a tenth as far.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from iap.attention.arrays import require_count
from iap.evolution.shaping import SHAPINGS, Shaping


@dataclass(frozen=True)
class OpenES:
    """OpenAI's strategy (Salimans et al. 2017): mirrored perturbations weighted by their returns, then Adam.

    Attributes:
        population: candidates an iteration, in mirrored pairs, so even.
        sigma: σ, the standard deviation of the perturbations.
        learning_rate: Adam's step.
        learning_rate_decay: the factor of the learning rate from each update to the next; 1 keeps it.
        sigma_decay: the same for σ.
        decay_floor: the share of their start below which neither decays.
        weight_decay: the share of θ that each update takes off, for each unit of the parameter's learning rate.
        shaping: what the returns become: centred ranks, or standardised values.
    """

    population: int = 64
    sigma: float = 0.05
    learning_rate: float = 0.03
    learning_rate_decay: float = 1.0
    sigma_decay: float = 1.0
    decay_floor: float = 0.1
    weight_decay: float = 0.005
    shaping: Shaping = "ranks"

    kind: ClassVar[str] = "open-es"

    def __post_init__(self) -> None:
        _require_pairs(self.population)
        _require_positive("sigma", self.sigma)
        _require_positive("learning_rate", self.learning_rate)
        _require_share("learning_rate_decay", self.learning_rate_decay)
        _require_share("sigma_decay", self.sigma_decay)
        _require_share("decay_floor", self.decay_floor)
        _require_number("weight_decay", self.weight_decay)
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay must be 0 or more, not {self.weight_decay}")
        _require_shaping(self.shaping)


@dataclass(frozen=True)
class ARS:
    """Augmented random search (Mania et al. 2018): a plain step along the best directions.

    The step is divided by the standard deviation of the returns it uses, so returns are not shaped otherwise.

    Attributes:
        population: candidates an iteration, in mirrored pairs, so even.
        sigma: σ, the standard deviation of the perturbations.
        learning_rate: the length of the step.
        top: the share of directions that are used: those with the larger max(r⁺, r⁻).
    """

    population: int = 64
    sigma: float = 0.03
    learning_rate: float = 0.02
    top: float = 0.5

    kind: ClassVar[str] = "ars"
    shaping: ClassVar[Shaping] = "standardised"

    def __post_init__(self) -> None:
        _require_pairs(self.population)
        _require_positive("sigma", self.sigma)
        _require_positive("learning_rate", self.learning_rate)
        _require_share("top", self.top)


@dataclass(frozen=True)
class PGPE:
    """Parameter-exploring policy gradients with ClipUp (Toklu et al. 2020): σ is learnt for each parameter.

    Attributes:
        population: candidates an iteration, in mirrored pairs, so even.
        sigma: σ at the start, of every parameter.
        max_speed: the longest step; None is a fifteenth of a perturbation's length, σ√p.
        momentum: the share of the velocity that is kept.
        sigma_learning_rate: how fast σ follows its gradient; it changes by a fifth an iteration at most.
        shaping: what the returns become: centred ranks, or standardised values.
    """

    population: int = 64
    sigma: float = 0.05
    max_speed: float | None = None
    momentum: float = 0.9
    sigma_learning_rate: float = 0.1
    shaping: Shaping = "ranks"

    kind: ClassVar[str] = "pgpe"

    def __post_init__(self) -> None:
        _require_pairs(self.population)
        _require_positive("sigma", self.sigma)
        if self.max_speed is not None:
            _require_positive("max_speed", self.max_speed)
        _require_number("momentum", self.momentum)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be at least 0 and less than 1, not {self.momentum}")
        _require_positive("sigma_learning_rate", self.sigma_learning_rate)
        _require_shaping(self.shaping)


@dataclass(frozen=True)
class CMAES:
    """CMA-ES (Hansen 2016) with its full covariance matrix, for up to some hundred parameters.

    It uses only the order of the returns.

    Attributes:
        population: candidates an iteration.
        sigma: σ at the start.
    """

    population: int = 24
    sigma: float = 0.1

    kind: ClassVar[str] = "cma-es"
    shaping: ClassVar[Shaping] = "ranks"
    most_parameters: ClassVar[int] = 2_000

    def __post_init__(self) -> None:
        require_count("population", self.population, least=4)
        _require_positive("sigma", self.sigma)


@dataclass(frozen=True)
class SNES:
    """Separable natural evolution strategy (Wierstra et al. 2014): a σ for each parameter, for any number of them.

    It uses only the order of the returns.

    Attributes:
        population: candidates an iteration.
        sigma: σ at the start, of every parameter.
    """

    population: int = 64
    sigma: float = 0.05

    kind: ClassVar[str] = "snes"
    shaping: ClassVar[Shaping] = "ranks"

    def __post_init__(self) -> None:
        require_count("population", self.population, least=2)
        _require_positive("sigma", self.sigma)


Strategy = OpenES | ARS | PGPE | CMAES | SNES
STRATEGIES: dict[str, type[Strategy]] = {each.kind: each for each in (OpenES, ARS, PGPE, CMAES, SNES)}


def _require_pairs(population: int) -> None:
    require_count("population", population, least=2)
    if population % 2:
        raise ValueError(f"population must be even, as candidates come in mirrored pairs, not {population}")


def _require_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {value!r}")


def _require_positive(name: str, value: float) -> None:
    _require_number(name, value)
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, not {value}")


def _require_share(name: str, value: float) -> None:
    _require_number(name, value)
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be more than 0 and at most 1, not {value}")


def _require_shaping(shaping: object) -> None:
    if shaping not in SHAPINGS:
        raise ValueError(f"shaping must be one of {', '.join(SHAPINGS)}, not {shaping!r}")
