"""Maps on a grid, compared with slow and obvious computations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from iap.envs.indoor.grids import clearance_m, connected_parts, geodesic_m, interpolate, largest_part, ranges_m

maps = arrays(bool, st.tuples(st.integers(2, 9), st.integers(2, 9)), elements=st.booleans())


@given(maps)
def test_the_clearance_is_the_distance_to_the_nearest_obstacle(free):
    padded = np.pad(free, 1)
    obstacles = np.argwhere(~padded)
    for row, column in np.argwhere(padded):
        nearest = np.linalg.norm(obstacles - (row, column), axis=1).min()
        assert clearance_m(free, 0.1)[row - 1, column - 1] == pytest.approx(0.1 * (nearest - 0.5), abs=1e-6)
    assert not clearance_m(free, 0.1)[~free].any()


@given(maps)
def test_cells_are_in_one_part_exactly_if_steps_between_free_cells_connect_them(free):
    parts, sizes = connected_parts(free)
    assert ((parts > 0) == free).all()
    assert sizes.sum() == free.size
    for one, other in ((free[1:], free[:-1]), (free[:, 1:], free[:, :-1])):
        both = one & other
        near, far = (parts[1:], parts[:-1]) if one.shape[0] < free.shape[0] else (parts[:, 1:], parts[:, :-1])
        assert (near[both] == far[both]).all()
    if free.any():
        biggest = largest_part(free)
        assert biggest.sum() == sizes[1:].max()
        assert len(np.unique(parts[biggest])) == 1


def test_a_map_without_free_cells_has_no_largest_part():
    assert not largest_part(np.zeros((3, 3), bool)).any()


def test_geodesic_distances_in_an_empty_room_are_straight():
    slowness = np.ones((60, 80), np.float32)
    found = geodesic_m(slowness, (10, 20), 0.05)
    rows, columns = np.mgrid[:60, :80]
    straight = 0.05 * np.hypot(rows - 10, columns - 20)
    far = straight > 1
    assert np.abs(found[far] / straight[far] - 1).max() < 0.06


def test_geodesic_distances_lead_around_a_wall_and_do_not_pass_it():
    slowness = np.ones((41, 41), np.float32)
    slowness[:30, 20] = np.inf
    found = geodesic_m(slowness, (10, 10), 0.1)
    around = 0.1 * 2 * np.hypot(20, 10)
    assert found[10, 30] == pytest.approx(around, rel=0.06)
    assert np.isinf(found[:30, 20]).all()
    slowness[:, 20] = np.inf
    assert np.isinf(geodesic_m(slowness, (10, 10), 0.1)[:, 20:]).all()


def test_higher_costs_make_paths_longer_in_proportion():
    slowness = np.ones((20, 20), np.float32)
    np.testing.assert_allclose(geodesic_m(3 * slowness, (3, 3), 0.1), 3 * geodesic_m(slowness, (3, 3), 0.1), rtol=1e-5)


@given(st.floats(-np.pi, np.pi))
def test_a_range_ends_at_the_wall_of_a_room(angle):
    free = np.zeros((62, 62), bool)
    free[1:-1, 1:-1] = True
    middle = 30.5
    [found] = ranges_m(clearance_m(free, 1.0).astype(float), (middle, middle), np.array([angle]), 100.0)
    wall = 30.5 / max(abs(np.cos(angle)), abs(np.sin(angle)))
    assert abs(found - wall) < 1.5


def test_a_range_is_cut_at_the_longest_that_is_measured():
    free = np.ones((50, 50), bool)
    clearance = clearance_m(free, 1.0).astype(float)
    assert ranges_m(clearance, (25.0, 25.0), np.array([0.0, 1.0]), 7.5).tolist() == [7.5, 7.5]


def test_interpolation_is_exact_for_linear_values():
    rows, columns = np.mgrid[:5, :7]
    values = 2.0 * rows - 3.0 * columns
    assert interpolate(values, 1.25, 4.75, 0.0) == pytest.approx(2 * 1.25 - 3 * 4.75)
    assert interpolate(values, 4.0, 6.0, 0.0) == values[4, 6]
    assert interpolate(values, -0.1, 2.0, -1.0) == -1.0
