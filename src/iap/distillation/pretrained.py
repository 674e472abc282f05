"""The result of pretraining."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iap.policies import Normaliser

PRETRAINING = (1 << 31) + 2  # the stream of the episodes' seeds, far from those of training

Report = Callable[[str, float], None]  # what is being done, and which share of it is done


@dataclass(frozen=True)
class Pretrained:
    """A pretrained policy, and facts about its pretraining, for its file."""

    theta: Float[np.ndarray, " p"]
    normaliser: Normaliser
    facts: dict[str, Any]
