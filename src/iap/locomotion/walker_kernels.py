"""The computations of `walker` at every control step, compiled: body, horizon problem, feet, motor commands.

Feet are a tuple of arrays, which the functions change: states, which feet lift off now, swing progress, toe positions,
footholds, landings, start positions and clearances of swings, and the time since feet lost contact.
"""

import math

import numpy as np

from iap._compile import compiled
from iap.locomotion.footholds import feedback_velocity, raibert
from iap.locomotion.gait import EARLY, LOST, STANCE, SWING, foot_states, scheduled_contacts, swing_progress
from iap.locomotion.kinematics import find_angles, find_jacobians, find_toes
from iap.locomotion.swing import PRESS_M, standard_swing, vertical_swing

SHORTEST_STANCE_M = 0.1  # lower bound of the distance between rear and front feet in the slope
REACH_M_S, MAX_REACH_M = 0.3, 0.1  # how a foot that should be in stance moves down to find the ground


@compiled
def measure(motion, position, quaternion, velocity, rates, angles, pressures, least_pressure):
    """Fill the arrays of a `walker.Motion` with measured values."""
    motion[0][:] = position
    motion[1][:] = rotation_of(quaternion)
    motion[2][:] = velocity
    motion[3][:] = motion[1] @ rates
    for leg in range(4):
        for joint in range(3):
            motion[4][leg, joint] = angles[3 * leg + joint]
        motion[5][leg] = pressures[leg] > least_pressure


@compiled
def rotation_of(quaternion):
    """The matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@compiled
def roll_pitch_of(rotation):
    """Roll and pitch of the body; pitch is positive nose down."""
    return math.atan2(rotation[2, 1], rotation[2, 2]), -math.asin(min(max(rotation[2, 0], -1.0), 1.0))


@compiled
def heading_of(rotation):
    """The rotation from the heading frame, which has the body's yaw but is level, to the world."""
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


@compiled
def ground_below(footholds, position, heading):
    """The slope from the rear to the front feet, and the height of their plane below the body."""
    feet = (footholds - position) @ heading
    front, rear = (feet[0] + feet[1]) / 2, (feet[2] + feet[3]) / 2
    slope = (front[2] - rear[2]) / max(front[0] - rear[0], SHORTEST_STANCE_M)
    middle = (front + rear) / 2
    return slope, position[2] + middle[2] - slope * middle[0]


@compiled
def carries_weight(state):
    """Whether a foot in this state is in contact."""
    return state in (STANCE, EARLY)


@compiled
def raibert_landings(stance, motion, wanted, lead_s, drop_m):
    """Where feet that lift off now would land by Raibert's rule, in the world.

    The ground is assumed to be parallel to the body: each foot is as far below its hip as the base is above the ground.
    """
    position, rotation, velocity = motion
    heading = heading_of(rotation)
    ahead = raibert(np.zeros((1, 2)), (velocity @ heading)[:2], np.array(wanted), lead_s)[0]
    landings = np.outer(stance[:, 0], rotation[:, 0]) + np.outer(stance[:, 1], rotation[:, 1]) + position
    landings[:, 0] += heading[0, 0] * ahead[0] + heading[0, 1] * ahead[1]
    landings[:, 1] += heading[1, 0] * ahead[0] + heading[1, 1] * ahead[1]
    landings[:, 2] -= drop_m
    return landings


@compiled
def correct_contacts(contacts, states):
    """Replace the first scheduled contacts by the actual ones; early contacts last until the stance begins."""
    for leg in range(4):
        contacts[0, leg] = carries_weight(states[leg])
        k = 1
        while states[leg] == EARLY and k < len(contacts) and not contacts[k, leg]:
            contacts[k, leg] = True
            k += 1


@compiled
def horizon_problem(robot, motion, feet, gait, wanted, follows_feet, horizon):
    """State, reference, contacts and feet of the quadratic program in the heading frame, and that frame.

    Feet are relative to the reference position of the centre of mass in the middle of each step. Feet in contact are at
    their current positions; after a swing they are at their landings.
    """
    (stance, com_offset, toe_radius), (clock, time_s, lead_s), (steps, step_s) = robot, gait, horizon
    position, rotation = motion[:2]
    states, _, _, toes, footholds, landings = feet[:6]
    ahead, left, turning, height, roll, pitch = wanted
    contacts = scheduled_contacts(clock, time_s, steps, step_s)
    correct_contacts(contacts, states)
    nominal = raibert_landings(stance, motion[:3], (ahead, left), lead_s, height - toe_radius)

    heading = heading_of(rotation)
    arm = rotation @ com_offset
    com = position + arm
    slope, ground = ground_below(footholds, position, heading)
    ground -= toe_radius
    if follows_feet:
        more_left, more_turning = feedback_velocity(footholds[:, :2], com[:2], math.atan2(heading[1, 0], heading[0, 0]))
        left, turning = left + more_left, turning + more_turning

    speed = np.array([0.0, 0.0, turning, ahead, left, slope * ahead])
    reference = np.empty((steps, 12))
    positions = np.empty((steps, 4, 3))
    next_landings = landings.copy()
    for leg in range(4):
        if contacts[0, leg]:  # a foot in contact may lift off and land again within the horizon
            next_landings[leg] = nominal[leg]
    now, later = (toes - com) @ heading, (next_landings - com) @ heading
    has_swung = np.zeros(4, np.bool_)
    for k in range(steps):
        reference[k, :6] = speed * ((k + 1) * step_s)
        reference[k, 0] += roll
        reference[k, 1] += pitch
        reference[k, 5] += height + arm[2]
        reference[k, 6:] = speed
        for leg in range(4):
            has_swung[leg] |= not contacts[k, leg]
            positions[k, leg] = (later if has_swung[leg] else now)[leg] - speed[3:] * ((k + 0.5) * step_s)
    return body_state(motion, arm, com[2] - ground, heading), reference, contacts, positions, heading


@compiled
def body_state(motion, arm, height, heading):
    """Angles, position, angular velocity and velocity of the centre of mass, which is at `arm` from the base."""
    _, rotation, velocity, angular_velocity = motion[:4]
    state = np.zeros(12)
    state[0], state[1] = roll_pitch_of(rotation)
    state[5] = height
    state[6:9] = angular_velocity @ heading
    state[9:12] = (velocity + np.cross(angular_velocity, arm)) @ heading
    return state


@compiled
def toes_in_world(geometry, angles, rotation, position):
    """The world positions of the toes."""
    hips, lateral, bones = geometry
    return find_toes(hips, lateral, bones, angles) @ rotation.T + position


@compiled
def update_feet(geometry, motion, feet, clock, time_s, step_s):
    """Update toe positions and foot states, and return whether any state has changed."""
    position, rotation, _, _, angles, touching = motion
    states, lifting, progress, toes, footholds, _, _, _, lost_s = feet
    toes[:] = toes_in_world(geometry, angles, rotation, position)
    progress[:] = swing_progress(clock, time_s)
    now = foot_states(progress, touching, states)
    has_changed = False
    for leg in range(4):
        if touching[leg]:
            footholds[leg] = toes[leg]
        lost_s[leg] = lost_s[leg] + step_s if now[leg] == LOST else 0.0
        lifting[leg] = now[leg] == SWING and states[leg] != SWING
        has_changed |= now[leg] != states[leg]
        states[leg] = now[leg]
    return has_changed


@compiled
def lift_off(motion, feet, stance, velocity, lead_s, drop_m, offsets, clearances):
    """Set the landings of the feet that lift off now, by offsets from Raibert's rule."""
    _, lifting, _, toes, _, landings, starts, swing_clearances, _ = feet
    nominal = raibert_landings(stance, motion[:3], velocity, lead_s, drop_m)
    chosen = nominal + offsets @ heading_of(motion[1]).T
    for leg in range(4):
        if lifting[leg]:
            landings[leg] = chosen[leg]
            starts[leg] = toes[leg]
            swing_clearances[leg] = clearances[leg]


@compiled
def motor_commands(geometry, motion, feet, forces, lifts_first):
    """Torques Jᵀ·(−force) of legs in contact, and angles that move the other feet to their targets."""
    hips, lateral, bones = geometry
    position, rotation, _, _, angles, _ = motion
    states, _, progress, toes, _, landings, starts, clearances, lost_s = feet
    targets = foot_targets(states, progress, toes, (starts, landings, clearances), lost_s, lifts_first)
    commands = find_angles(hips, lateral, bones, (targets - position) @ rotation)
    gives_torque = np.zeros((4, 3), np.bool_)
    jacobians = find_jacobians(hips, lateral, bones, angles)
    pushes = -forces @ rotation
    for leg in range(4):
        if carries_weight(states[leg]):
            commands[leg] = pushes[leg] @ jacobians[leg]
            gives_torque[leg] = True
    return commands.ravel(), gives_torque.ravel()


@compiled
def foot_targets(states, progress, toes, swings, lost_s, lifts_first):
    """The current target positions of feet without contact, in the world."""
    starts, landings, clearances = swings
    targets = toes.copy()
    for leg in range(4):
        if states[leg] == SWING:
            if lifts_first:
                targets[leg] = vertical_swing(progress[leg], starts[leg], landings[leg], clearances[leg])
            else:
                targets[leg] = standard_swing(progress[leg], starts[leg], landings[leg], clearances[leg])
        elif states[leg] == LOST:
            targets[leg] = landings[leg]
            pressed_m = PRESS_M if lifts_first else 0.0  # on stairs, a foot that moves up again falls behind the body
            targets[leg, 2] -= pressed_m + min(REACH_M_S * lost_s[leg], MAX_REACH_M)
    return targets
