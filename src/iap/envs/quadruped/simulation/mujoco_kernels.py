"""What `mujoco_simulator` does at every control step beside simulating, compiled."""

from iap._compile import compiled


@compiled
def includes_any(touching, is_part):
    """Whether any of the shapes that touch is such a part."""
    for i in range(touching.shape[0]):
        for j in range(touching.shape[1]):
            if is_part[touching[i, j]]:
                return True
    return False


@compiled
def set_motors(gives_torque, position_gain, position_bias, gain, bias):
    """Make motors give torques, or hold angles by their position gains."""
    for motor in range(len(gives_torque)):
        gain[motor, 0] = 1.0 if gives_torque[motor] else position_gain[motor, 0]
        for i in range(bias.shape[1]):
            bias[motor, i] = 0.0 if gives_torque[motor] else position_bias[motor, i]
