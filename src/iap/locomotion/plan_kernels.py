"""What model-predictive control is asked at a step of `walker`, compiled."""

import math

import numpy as np

from iap._compile import compiled
from iap.locomotion.body_kernels import ground_below, heading_of, roll_pitch_of
from iap.locomotion.footholds import follow_feet, raibert
from iap.locomotion.gait_kernels import EARLY, STANCE, coming_contacts


@compiled
def stands(state):
    """Whether a foot in this state carries weight."""
    return state in (STANCE, EARLY)


@compiled
def raibert_landings(stance, motion, wanted, lead_s, drop_m):
    """Where feet that lift off now would land by Raibert's rule, in the world.

    Below a body that leans, the ground leans too: each foot is as far below its hip as the base is above the ground.
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
    """Make the coming contacts begin with the present ones; who has landed early stands until its stance begins."""
    for leg in range(4):
        contacts[0, leg] = stands(states[leg])
        k = 1
        while states[leg] == EARLY and k < len(contacts) and not contacts[k, leg]:
            contacts[k, leg] = True
            k += 1


@compiled
def horizon_problem(robot, motion, feet, gait, wanted, follows_feet, horizon):
    """State, reference, contacts and feet of the quadratic program, and the frame of all that, turned with the body.

    Feet are taken from where the centre of mass shall be in the middle of each step; those that stand now are where
    they are, and after a swing they are where they shall land.
    """
    (stance, com_offset, toe_radius), (clock, time_s, lead_s), (steps, step_s) = robot, gait, horizon
    position, rotation = motion[:2]
    states, _, _, toes, footholds, landings = feet[:6]
    ahead, left, turning, height, roll, pitch = wanted
    contacts = coming_contacts(clock, time_s, steps, step_s)
    correct_contacts(contacts, states)
    nominal = raibert_landings(stance, motion[:3], (ahead, left), lead_s, height - toe_radius)

    heading = heading_of(rotation)
    arm = rotation @ com_offset
    com = position + arm
    slope, ground = ground_below(footholds, position, heading)
    ground -= toe_radius
    if follows_feet:
        more_left, more_turning = follow_feet(footholds[:, :2], com[:2], math.atan2(heading[1, 0], heading[0, 0]))
        left, turning = left + more_left, turning + more_turning

    speed = np.array([0.0, 0.0, turning, ahead, left, slope * ahead])
    reference = np.empty((steps, 12))
    places = np.empty((steps, 4, 3))
    coming = landings.copy()
    for leg in range(4):
        if contacts[0, leg]:  # whoever stands now may lift off and land again within the horizon
            coming[leg] = nominal[leg]
    now, later = (toes - com) @ heading, (coming - com) @ heading
    has_swung = np.zeros(4, np.bool_)
    for k in range(steps):
        reference[k, :6] = speed * ((k + 1) * step_s)
        reference[k, 0] += roll
        reference[k, 1] += pitch
        reference[k, 5] += height + arm[2]
        reference[k, 6:] = speed
        for leg in range(4):
            has_swung[leg] |= not contacts[k, leg]
            places[k, leg] = (later if has_swung[leg] else now)[leg] - speed[3:] * ((k + 0.5) * step_s)
    return body_state(motion, arm, com[2] - ground, heading), reference, contacts, places, heading


@compiled
def body_state(motion, arm, height, heading):
    """Angles, place, turning speed and speed of the centre of mass at the end of this arm, above the ground by this."""
    _, rotation, velocity, turning_speed = motion[:4]
    state = np.zeros(12)
    state[0], state[1] = roll_pitch_of(rotation)
    state[5] = height
    state[6:9] = turning_speed @ heading
    state[9:12] = (velocity + np.cross(turning_speed, arm)) @ heading
    return state
