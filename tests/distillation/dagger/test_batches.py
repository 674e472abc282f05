"""Mirror images of labelled steps."""

import numpy as np
import pytest

from iap.distillation.dagger.batches import Mirror, joined
from iap.policies import Symmetry

# Two feet, each with a place (forward, left) and a height: the mirror image exchanges them.
SYMMETRY = Symmetry(sensors=(2, 1, -3), actions=(4, -5, 6, 1, -2, 3))
AXES = ((0, 1, 2), (3, 4, 5))


def batch(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "images": rng.integers(0, 256, (4, 3, 5, 2), np.uint8),
        "sensors": rng.standard_normal((4, 3), np.float32),
        "actions": rng.uniform(-1, 1, (4, 6)).astype(np.float32),
        "weights": rng.random((4, 6), np.float32),
        "importance": np.ones(4, np.float32),
        "costs": rng.random((4, 2, 3, 4)).astype(np.float16),
        "dependent": rng.random((4, 2, 3, 4)).astype(np.float16),
    }


def cost_at(maps: np.ndarray, pair: np.ndarray) -> np.ndarray:
    """The cost of the cell at a pair of values."""
    rows, columns = maps.shape
    i, j = ((pair + 1) / 2 * (rows, columns)).astype(int)
    return maps[min(i, rows - 1), min(j, columns - 1)]


def test_the_mirror_image_of_a_mirror_image_is_the_step_itself():
    mirror = Mirror.of(SYMMETRY, AXES)
    once = mirror(batch())
    assert not np.array_equal(once["images"], batch()["images"])
    for name, array in mirror(once).items():
        np.testing.assert_array_equal(array, batch()[name])


def test_an_action_costs_the_same_in_the_mirror_image():
    plain = batch()
    mirrored = Mirror.of(SYMMETRY, AXES)(plain)
    for row in range(4):
        costs = [[cost_at(x["costs"][row, m], x["actions"][row, list(AXES[m][:2])]) for m in range(2)]
                 for x in (plain, mirrored)]  # fmt: skip
        assert costs[0] == costs[1][::-1]


def test_a_symmetry_that_tears_a_map_apart_is_refused():
    with pytest.raises(ValueError, match="exchange the cost maps"):
        Mirror.of(Symmetry(sensors=(1,), actions=(4, 2, 3, 1, 5, 6)), AXES)


def test_joined_batches_hold_the_steps_of_both():
    both = joined(batch(0), batch(1))
    assert len(both["actions"]) == 8
    np.testing.assert_array_equal(both["costs"][4:], batch(1)["costs"])
