"""Ridge regression from a controller's inputs to what the simulator knows."""

import numpy as np
from jaxtyping import Float

from iap.policies import Normaliser


def normalised_with_one(x: Float[np.ndarray, "n d"], normaliser: Normaliser) -> Float[np.ndarray, "n d+1"]:
    """Normalised inputs, and a column of ones."""
    rows = normaliser.apply(x).astype(np.float64)
    return np.hstack([rows, np.ones((len(x), 1))])


def ridge(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n s"], share: float) -> Float[np.ndarray, "d s"]:
    """The weights of a ridge regression from x to y; the regularisation is a share of x's variance."""
    return np.linalg.solve(x.T @ x + share * len(x) * np.eye(x.shape[1]), x.T @ y)
