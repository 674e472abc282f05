"""The loops behind `one_foot` and the windows of `ground_cameras`, compiled."""

import math

import numpy as np

from iap._compile import compiled
from iap.envs.rendering.depth_kernels import nearest_pixel, place, points
from iap.locomotion.body_kernels import ground_below, heading_of, roll_pitch_of
from iap.locomotion.gait_kernels import phases_at, rounded
from iap.locomotion.plan_kernels import raibert_landings

SENSED = 9
SOON_S = 0.125  # before lifting off, until which rear feet choose on stairs
WINDOW = (16, 16)
DROP_M, NEAR_LANDING_M = 0.25, 0.3  # what a window tells apart
MISS_PIXELS = 2  # about four centimetres on the ground
EVEN_M = 0.04  # by which heights differ at most within those


@compiled
def next_turn(gait, rear_first, stance, motion, wanted, drop_m):
    """Whose turn it is, and where that foot would land: one of the two that lift off next."""
    clock, time_s, lead_s = gait
    period_s, duty, _ = clock
    phases = phases_at(clock, time_s)
    until_s = np.empty(4)
    for leg in range(4):
        until_s[leg] = rounded(duty - phases[leg]) % 1.0 * period_s
    soon_s = until_s.min()
    front, rear = np.flatnonzero(until_s == soon_s)[:2]
    chooses_rear = soon_s > SOON_S if rear_first else soon_s == 0
    leg = rear if chooses_rear else front
    landing = raibert_landings(stance, motion, wanted, lead_s, drop_m)[leg]
    landing[:2] += soon_s * motion[2][:2]
    return leg, landing


@compiled
def place_foot(turn, offset, chosen, is_chosen, motion, stance, wanted, lead_s, drop_m):
    """Remember where a foot shall land, and tell the offsets of all feet that have been placed."""
    leg, landing = turn
    heading = heading_of(motion[1])
    chosen[leg] = landing + heading @ offset
    is_chosen[leg] = True
    landings = raibert_landings(stance, motion, wanted, lead_s, drop_m)
    offsets = np.zeros((4, 3))
    for other in range(4):
        if is_chosen[other]:
            offsets[other] = (chosen[other] - landings[other]) @ heading
    return offsets


@compiled
def sense_turn(is_rear, side, motion, footholds):
    """What the body feels as if the foot were a right one: see `one_foot.sense_turn`."""
    position, rotation, velocity, turning_speed = motion
    heading = heading_of(rotation)
    _, ground = ground_below(footholds, position, heading)
    speed, rates = velocity @ heading, turning_speed @ heading
    roll, pitch = roll_pitch_of(rotation)
    felt = np.empty(SENSED, np.float32)
    felt[0] = is_rear
    felt[1], felt[2], felt[3] = speed[0], side * speed[1], speed[2]
    felt[4] = position[2] - ground
    felt[5], felt[6], felt[7], felt[8] = side * roll, pitch, side * rates[0], rates[1]
    return felt


@compiled
def see_around(landing, side, toe_radius, mount, position, rotation, scene):
    """The footing in the window around the place where a foot would land."""
    boxes, farthest, widest, columns, rows = scene
    camera = place(mount, position, rotation)
    window_rows, window_columns = find_window(camera, scene, landing, side, toe_radius)
    # No more of the image is needed than the window, and what a foot that misses a place in it may meet.
    top, bottom = max(window_rows[0] - MISS_PIXELS, 0), window_rows[-1] + MISS_PIXELS + 1
    left = max(min(window_columns[0], window_columns[-1]) - MISS_PIXELS, 0)
    right = max(window_columns[0], window_columns[-1]) + MISS_PIXELS + 1
    part = (boxes, farthest, widest, columns[left:right], rows[top:bottom])
    seen = footing(points(camera, part), landing, toe_radius)
    window = np.empty((*WINDOW, 2), np.float32)
    for i in range(WINDOW[0]):
        for j in range(WINDOW[1]):
            window[i, j] = seen[window_rows[i] - top, window_columns[j] - left]
    return window


@compiled
def window_around(landing, side, toe_radius, mount, position, rotation, scene):
    """The rows and columns of that window in the image of the camera that is mounted like this."""
    return find_window(place(mount, position, rotation), scene, landing, side, toe_radius)


@compiled
def find_window(camera, scene, landing, side, toe_radius):
    """Rows and columns around the pixel that would show the landing if the ground were there; edges are repeated."""
    ground = np.array([landing[0], landing[1], landing[2] - toe_radius])
    row, column = nearest_pixel(camera, scene, ground)
    rows, columns = np.empty(WINDOW[0], np.int64), np.empty(WINDOW[1], np.int64)
    for i in range(WINDOW[0]):
        rows[i] = min(max(row + i - WINDOW[0] // 2, 0), len(scene[4]) - 1)
    for j in range(WINDOW[1]):
        columns[j] = min(max(column + side * (j - WINDOW[1] // 2), 0), len(scene[3]) - 1)
    return rows, columns


@compiled
def footing(points_m, landing, toe_radius):
    """How much higher than `DROP_M` below a landing the ground is, and how much nearer than `NEAR_LANDING_M` to it.

    Both are 0 where a foot that misses its place by `MISS_PIXELS` may come to rest at another height: at edges.
    """
    height, width = points_m.shape[:2]
    ups = points_m[..., 2] + toe_radius - landing[2]
    seen = np.zeros((height, width, 2), np.float32)
    for row in range(height):
        for column in range(width):
            up = ups[row, column]
            if up > -DROP_M and _is_even(ups, row, column):
                ahead, aside = points_m[row, column, 0] - landing[0], points_m[row, column, 1] - landing[1]
                seen[row, column, 0] = up + DROP_M
                seen[row, column, 1] = max(NEAR_LANDING_M - math.sqrt(ahead * ahead + aside * aside), 0.0)
    return seen


@compiled
def _is_even(ups, row, column):
    """Whether a foot that misses this pixel comes to rest at its height."""
    lowest = highest = ups[row, column]
    for i in range(max(row - MISS_PIXELS, 0), min(row + MISS_PIXELS + 1, ups.shape[0])):
        for j in range(max(column - MISS_PIXELS, 0), min(column + MISS_PIXELS + 1, ups.shape[1])):
            lowest, highest = min(lowest, ups[i, j]), max(highest, ups[i, j])
    return highest - lowest < EVEN_M
