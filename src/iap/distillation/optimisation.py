"""Gradient descent in PyTorch: Adam, clipped gradients, a learning rate that follows a schedule."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from iap._extras import require_module

LARGEST_GRADIENT = 1.0  # norm
WARM_UP, WARM_UP_START = 0.25, 0.04  # share of the steps, and of the learning rate
MOMENT_NAMES = ("step", "exp_avg", "exp_avg_sq")  # of PyTorch's Adam

Schedule = Callable[[float], float]  # the share of the steps that are done → factor of the learning rate


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


def cosine(share: float) -> float:
    """A learning rate that falls from 1 to 0 along a cosine."""
    return 0.5 * (1 + math.cos(math.pi * share))


def one_cycle(share: float) -> float:
    """A learning rate that rises to 1 in the first `WARM_UP` of the steps, then falls to 0 along a cosine."""
    if share < WARM_UP:
        return WARM_UP_START + (1 - WARM_UP_START) * share / WARM_UP
    return cosine((share - WARM_UP) / (1 - WARM_UP))


class Descent:
    """Minimises a loss of one vector.

    Attributes:
        theta: the vector, a tensor with gradients.
        done: steps so far.
    """

    def __init__(self, theta: np.ndarray, steps: int, learning_rate: float, schedule: Schedule = cosine) -> None:
        torch = load_torch()
        self.theta = torch.tensor(np.asarray(theta, np.float32), requires_grad=True)
        self.done = 0
        self._torch, self._steps, self._learning_rate, self._schedule = torch, steps, learning_rate, schedule
        self._optimiser = torch.optim.Adam([self.theta], lr=learning_rate)

    def step(self, loss: Any) -> float:
        """One step down the gradient of a loss; the loss as a number."""
        for group in self._optimiser.param_groups:
            group["lr"] = self._learning_rate * self._schedule(min(self.done / self._steps, 1.0))
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self._torch.nn.utils.clip_grad_norm_([self.theta], LARGEST_GRADIENT)
        self._optimiser.step()
        self.done += 1
        return float(loss.detach())

    def moments(self) -> dict[str, np.ndarray]:
        """The state of Adam, for a checkpoint."""
        state = self._optimiser.state[self.theta]
        return {name: state[name].numpy().copy() for name in MOMENT_NAMES} if state else {}

    def restore(self, theta: np.ndarray, moments: dict[str, np.ndarray], done: int) -> None:
        """Continue with the vector and the state of Adam after `done` steps."""
        with self._torch.no_grad():
            self.theta.copy_(self._torch.from_numpy(theta))
        self._optimiser.state[self.theta] = {
            name: self._torch.from_numpy(moments[name].copy()) for name in MOMENT_NAMES
        }
        self.done = done

    def vector(self) -> np.ndarray:
        """The vector as a NumPy array of its own."""
        return self.theta.detach().numpy().copy()
