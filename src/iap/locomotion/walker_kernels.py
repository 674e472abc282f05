"""The loops behind `walker`, compiled: they run at every control step.

Feet are a tuple of arrays, which the loops change: states, which feet lift off now, the progress of swings, toes,
footholds, landings, where swings start, their clearances, and for how long feet have lost the ground.
"""

import numpy as np

from iap._compile import compiled
from iap.locomotion.body_kernels import heading_of
from iap.locomotion.gait_kernels import LOST, SWING, foot_states, swing_progress
from iap.locomotion.kinematics import find_angles, find_jacobians, find_toes
from iap.locomotion.plan_kernels import raibert_landings, stands
from iap.locomotion.swing import PRESS_M, standard_swing, vertical_swing

REACH_M_S, MOST_REACH_M = 0.3, 0.1  # how a foot looks for the ground that it should stand on


@compiled
def toes_in_world(geometry, angles, rotation, position):
    """Where the toes are."""
    hips, lateral, bones = geometry
    return find_toes(hips, lateral, bones, angles) @ rotation.T + position


@compiled
def sense_feet(geometry, motion, feet, clock, time_s, step_s):
    """Find where the toes are and what the feet do, and say whether any foot does something else than before."""
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
    """Choose the landings of the feet that lift off now, by offsets from where Raibert's rule puts them."""
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
    """Torques of the standing legs, Jᵀ·(−force), and angles that bring the others' feet to where they shall be."""
    hips, lateral, bones = geometry
    position, rotation, _, _, angles, _ = motion
    states, _, progress, toes, _, landings, starts, clearances, lost_s = feet
    goals = _foot_goals(states, progress, toes, (starts, landings, clearances), lost_s, lifts_first)
    commands = find_angles(hips, lateral, bones, (goals - position) @ rotation)
    gives_torque = np.zeros((4, 3), np.bool_)
    jacobians = find_jacobians(hips, lateral, bones, angles)
    pushes = -forces @ rotation
    for leg in range(4):
        if stands(states[leg]):
            commands[leg] = pushes[leg] @ jacobians[leg]
            gives_torque[leg] = True
    return commands.ravel(), gives_torque.ravel()


@compiled
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
