"""The way to a goal."""

import math

import numpy as np
import pytest

from iap.envs.indoor.route import Route
from iap.envs.indoor.scenes.floor_map import FloorMap

RADIUS_M = 0.2


@pytest.fixture
def two_rooms() -> FloorMap:
    """Rooms of 3 × 3 m with a door in the middle of the wall between them; x from 0 to 6."""
    free = np.zeros((62, 122), bool)
    free[1:-1, 1:-1] = True
    free[:, 60:62] = False
    free[22:40, 60:62] = True
    return FloorMap(free, 0.05, (-0.025, -0.025))


def test_a_route_through_a_door_is_as_long_as_the_string_pulled_through_it(two_rooms):
    route = Route.to(two_rooms, RADIUS_M, (5.5, 0.5))
    string = math.dist((0.5, 0.5), (3.0, 1.05 + RADIUS_M)) + math.dist((3.0, 1.05 + RADIUS_M), (5.5, 0.5))
    assert route.distance(0.5, 0.5) == pytest.approx(string, rel=0.05)
    assert route.distance(5.5, 0.5) == pytest.approx(0, abs=0.06)


def test_the_point_ahead_is_on_the_way_and_the_goal_at_its_end(two_rooms):
    route = Route.to(two_rooms, RADIUS_M, (5.5, 0.5))
    position = (0.5, 0.5)
    for _ in range(12):
        point = route.point_ahead(*position, 0.5)
        assert route.distance(*point) < route.distance(*position) - 0.3
        position = point
        if route.distance(*position) < 0.6:
            break
    assert route.point_ahead(*position, 1.0) == pytest.approx((5.5, 0.5), abs=0.06)


def test_the_straight_point_can_be_reached_without_touching_a_wall(two_rooms):
    route = Route.to(two_rooms, RADIUS_M, (5.5, 0.5))
    for start in ((0.5, 0.5), (2.5, 2.5), (2.9, 1.4), (4.0, 2.6)):
        end = route.straight_point(*start, 3.0, 0.3)
        for share in np.linspace(0.2, 1, 40):
            x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
            assert two_rooms.clearance[two_rooms.cell(x, y)] >= RADIUS_M - 1e-6


def test_a_guided_robot_keeps_away_from_walls_where_there_is_room(two_rooms):
    route = Route.to(two_rooms, RADIUS_M, (2.5, 0.3))
    point = route.point_ahead(0.5, 0.3, 1.0)
    assert point[1] > 0.35


def test_a_robot_outside_the_walkable_floor_has_a_finite_distance(two_rooms):
    route = Route.to(two_rooms, RADIUS_M, (5.5, 0.5))
    assert route.distance(0.02, 0.5) == pytest.approx(route.distance(0.25, 0.5) + 0.2, abs=0.15)
    assert math.isfinite(route.distance(-50.0, 3.0))


def test_a_goal_in_a_wall_is_moved_to_the_nearest_floor(two_rooms):
    route = Route.to(two_rooms, RADIUS_M, (7.0, 0.5))
    assert route.distance(5.7, 0.5) < 0.2


def test_a_floor_too_narrow_for_the_robot_is_refused(two_rooms):
    with pytest.raises(ValueError, match="no floor for a robot with a radius of 2 m"):
        Route.to(two_rooms, 2.0, (1.0, 1.0))
