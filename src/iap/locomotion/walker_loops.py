"""The loops behind `walker`, compiled: they run at every control step."""

import math

import numpy as np
from numba import njit

from iap.locomotion.footholds import follow_feet, raibert
from iap.locomotion.gait import FootState, foot_states
from iap.locomotion.kinematics import find_angles, find_jacobians, find_toes
from iap.locomotion.swing import PRESS_M, standard_swing, vertical_swing

REACH_M_S, MOST_REACH_M = 0.3, 0.1  # how a foot looks for the ground that it should stand on
SHORTEST_STANCE_M = 0.1  # from rear feet to front feet, of which a slope can be told

LOST, STANCE, SWING, EARLY = (int(state) for state in FootState)


@njit(cache=True)
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


@njit(cache=True)
def roll_pitch_of(rotation):
    """The angles of the body against the level, with pitch positive nose down."""
    return math.atan2(rotation[2, 1], rotation[2, 2]), -math.asin(min(max(rotation[2, 0], -1.0), 1.0))


@njit(cache=True)
def heading_of(rotation):
    """From the frame that has turned with the body, but lies level, to the world."""
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


@njit(cache=True)
def toes_in_world(geometry, angles, rotation, position):
    """Where the toes are."""
    hips, lateral, bones = geometry
    return find_toes(hips, lateral, bones, angles) @ rotation.T + position


@njit(cache=True)
def sense_feet(geometry, angles, rotation, position, touching, progress, before, memory, step_s):
    """Where the toes are and what the feet do; the memory of footholds and of the time without contact goes on.

    The last two results say whether any foot does something else than before, and which lift off now.
    """
    footholds, lost_s = memory
    toes = toes_in_world(geometry, angles, rotation, position)
    states = foot_states(progress, touching, before)
    has_changed = False
    lifting = np.zeros(4, np.bool_)
    for leg in range(4):
        if touching[leg]:
            footholds[leg] = toes[leg]
        lost_s[leg] = lost_s[leg] + step_s if states[leg] == LOST else 0.0
        if states[leg] != before[leg]:
            has_changed = True
            lifting[leg] = states[leg] == SWING
    return toes, states, has_changed, lifting


@njit(cache=True)
def raibert_landings(stance, motion, wanted, lead_s, drop_m):
    """Where feet that lift off now would land by Raibert's rule, in the world.

    Below a body that leans, the ground leans too: each foot is as far below its hip as the base is above the ground.
    """
    position, rotation, velocity = motion
    heading = heading_of(rotation)
    ahead = raibert(np.zeros((1, 2)), (velocity @ heading)[:2], wanted, lead_s)[0]
    landings = np.outer(stance[:, 0], rotation[:, 0]) + np.outer(stance[:, 1], rotation[:, 1]) + position
    landings[:, 0] += heading[0, 0] * ahead[0] + heading[0, 1] * ahead[1]
    landings[:, 1] += heading[1, 0] * ahead[0] + heading[1, 1] * ahead[1]
    landings[:, 2] -= drop_m
    return landings


@njit(cache=True)
def motor_commands(geometry, angles, rotation, position, states, progress, toes, swings, lost_s, forces, lifts_first):
    """Torques of the standing legs, Jᵀ·(−force), and angles that bring the others' feet to where they shall be."""
    hips, lateral, bones = geometry
    goals = _foot_goals(states, progress, toes, swings, lost_s, lifts_first)
    commands = find_angles(hips, lateral, bones, (goals - position) @ rotation)
    gives_torque = np.zeros((4, 3), np.bool_)
    jacobians = find_jacobians(hips, lateral, bones, angles)
    pushes = -forces @ rotation
    for leg in range(4):
        if stands(states[leg]):
            commands[leg] = pushes[leg] @ jacobians[leg]
            gives_torque[leg] = True
    return commands.ravel(), gives_torque.ravel()


@njit(cache=True)
def stands(state):
    """Whether a foot in this state carries weight."""
    return state in (STANCE, EARLY)


@njit(cache=True)
def _foot_goals(states, progress, toes, swings, lost_s, lifts_first):
    """Where the feet that do not stand shall be now, in the world."""
    starts, landings, clearances = swings
    goals = toes.copy()
    for leg in range(4):
        if states[leg] == SWING:
            if lifts_first:
                goals[leg] = vertical_swing(progress[leg], starts[leg], landings[leg], clearances[leg])
            else:
                goals[leg] = standard_swing(progress[leg], starts[leg], landings[leg], clearances[leg])
        elif states[leg] == LOST:
            goals[leg] = landings[leg]
            pressed_m = PRESS_M if lifts_first else 0.0  # on stairs, a foot that is taken back up falls behind the body
            goals[leg, 2] -= pressed_m + min(REACH_M_S * lost_s[leg], MOST_REACH_M)
    return goals


@njit(cache=True)
def ground_below(footholds, position, heading):
    """The slope from the rear feet to the front feet, and how high their plane is below the body."""
    feet = (footholds - position) @ heading
    front, rear = (feet[0] + feet[1]) / 2, (feet[2] + feet[3]) / 2
    slope = (front[2] - rear[2]) / max(front[0] - rear[0], SHORTEST_STANCE_M)
    middle = (front + rear) / 2
    return slope, position[2] + middle[2] - slope * middle[0]


@njit(cache=True)
def correct_contacts(contacts, states):
    """Make the coming contacts begin with the present ones; who has landed early stands until its stance begins."""
    for leg in range(4):
        contacts[0, leg] = stands(states[leg])
        k = 1
        while states[leg] == EARLY and k < len(contacts) and not contacts[k, leg]:
            contacts[k, leg] = True
            k += 1


@njit(cache=True)
def horizon_problem(motion, turning_speed, com_offset, feet, contacts, wanted, follows_feet, step_s):
    """State, reference and feet of the quadratic program, in the frame that has turned with the body.

    Feet are taken from where the centre of mass shall be in the middle of each step; those that stand now are where
    they are, and after a swing they are where they shall land.
    """
    position, rotation, velocity = motion
    toes, footholds, landings, toe_radius = feet
    ahead, left, turning, height, roll, pitch = wanted
    heading = heading_of(rotation)
    arm = rotation @ com_offset
    com = position + arm
    slope, ground = ground_below(footholds, position, heading)
    ground -= toe_radius
    if follows_feet:
        more_left, more_turning = follow_feet(footholds[:, :2], com[:2], math.atan2(heading[1, 0], heading[0, 0]))
        left, turning = left + more_left, turning + more_turning

    state = np.zeros(12)
    state[0], state[1] = roll_pitch_of(rotation)
    state[5] = com[2] - ground
    state[6:9] = turning_speed @ heading
    state[9:12] = (velocity + np.cross(turning_speed, arm)) @ heading

    horizon = len(contacts)
    speed = np.array([0.0, 0.0, turning, ahead, left, slope * ahead])
    reference = np.empty((horizon, 12))
    places = np.empty((horizon, 4, 3))
    now, later = (toes - com) @ heading, (landings - com) @ heading
    has_swung = np.zeros(4, np.bool_)
    for k in range(horizon):
        reference[k, :6] = speed * ((k + 1) * step_s)
        reference[k, 0] += roll
        reference[k, 1] += pitch
        reference[k, 5] += height + arm[2]
        reference[k, 6:] = speed
        for leg in range(4):
            has_swung[leg] |= not contacts[k, leg]
            places[k, leg] = (later if has_swung[leg] else now)[leg] - speed[3:] * ((k + 0.5) * step_s)
    return state, reference, places, heading
