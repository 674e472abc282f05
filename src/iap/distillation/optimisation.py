"""Gradient descent in PyTorch: Adam, clipped gradients, a learning rate that falls to 0 along a cosine."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from iap._extras import require_module

LARGEST_GRADIENT = 1.0  # norm


def load_torch() -> Any:
    """PyTorch, or an error that says how to install it."""
    return require_module("torch", "distillation")


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """One thread: sums then have one order, and several threads would wait for each other on a busy machine."""
    torch = load_torch()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Descent:
    """Minimises a loss of one vector.

    Attributes:
        theta: the vector, a tensor with gradients.
    """

    def __init__(self, theta: np.ndarray, steps: int, learning_rate: float) -> None:
        torch = load_torch()
        self.theta = torch.tensor(np.asarray(theta, np.float32), requires_grad=True)
        self._torch = torch
        self._optimiser = torch.optim.Adam([self.theta], lr=learning_rate)
        cosine: Callable[[int], float] = lambda i: 0.5 * (1 + math.cos(math.pi * min(i, steps) / steps))  # noqa: E731
        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimiser, cosine)

    def step(self, loss: Any) -> float:
        """One step down the gradient of a loss; the loss as a number."""
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self._torch.nn.utils.clip_grad_norm_([self.theta], LARGEST_GRADIENT)
        self._optimiser.step()
        self._schedule.step()
        return float(loss.detach())

    def vector(self) -> np.ndarray:
        """The vector as a NumPy array of its own."""
        return self.theta.detach().numpy().copy()
