"""The sensors of an observation: the key is left out where an environment has none."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

NO_SENSORS = np.zeros(0, np.float32)


def sensors_of(observation: Mapping[str, Any]) -> Float[np.ndarray, " n"]:
    """The sensors; an empty array if there are none."""
    sensors = observation.get("sensors", NO_SENSORS)
    if isinstance(sensors, np.ndarray) and sensors.dtype == np.float32:
        return sensors
    with np.errstate(over="ignore"):  # infinity is refused where finite numbers are needed
        try:
            return np.asarray(sensors, np.float32)
        except OverflowError as error:
            raise ValueError(f"sensors must be numbers of float32: {error}") from error


def sensor_count(space: Any) -> int:
    """The number of sensors in an observation space."""
    return int(space["sensors"].shape[0]) if "sensors" in space.keys() else 0  # noqa: SIM118 - a gymnasium space
