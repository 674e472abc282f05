"""What a walking robot measures after every control step, compiled."""

from iap._compile import compiled
from iap.locomotion import body_kernels
from iap.locomotion.body_kernels import roll_pitch_of

WITHIN, TIPPED_OVER, SUNK_DOWN = range(3)  # which limit of `fall_limits` a body has passed


@compiled
def measure(motion, position, quaternion, velocity, rates, angles, pressures, least_pressure, footholds, limits):
    """Measure the motion again: how far forward the body has come since, and which limit it has passed."""
    before = motion[0][0]
    body_kernels.measure(motion, position, quaternion, velocity, rates, angles, pressures, least_pressure)
    return motion[0][0] - before, passed_limit(motion[0], motion[1], footholds, limits)


@compiled
def passed_limit(position, rotation, footholds, limits):
    """Which limit a body passes that is above feet which stand there."""
    most_roll, most_pitch, least_height = limits
    roll, pitch = roll_pitch_of(rotation)
    if not (abs(roll) <= most_roll and abs(pitch) <= most_pitch):
        return TIPPED_OVER
    feet = (footholds[0, 2] + footholds[1, 2] + footholds[2, 2] + footholds[3, 2]) / 4
    return WITHIN if position[2] - feet > least_height else SUNK_DOWN
