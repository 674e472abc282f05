"""Shared by the tests of policies: any IAP-rank, random parameters, statistics and observations."""

from typing import Any

import numpy as np
from config_cases import configs, random_normaliser, random_theta, ranks

from iap.policies import Normaliser, Policy, PolicyConfig

__all__ = ["configs", "observations", "ranks", "some_normaliser", "some_policy", "some_theta"]

some_theta = random_theta
some_normaliser = random_normaliser


def some_policy(
    config: PolicyConfig, seed: int = 0, normaliser: Normaliser | None = None, *, compiled: bool = True
) -> Policy:
    """A policy with random parameters."""
    return Policy(config, some_theta(config, seed), normaliser, compiled=compiled)


def observations(config: PolicyConfig, count: int, seed: int = 0, dtype: Any = np.uint8) -> list[dict[str, np.ndarray]]:
    """Random images, bytes or floats in [0, 1), and random normal sensors."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, *config.image_shape), dtype=np.uint8)
    if dtype != np.uint8:
        images = (images / 256).astype(dtype)
    sensors = rng.standard_normal((count, config.sensors), np.float32)
    return [{"image": image, "sensors": row} for image, row in zip(images, sensors, strict=True)]
