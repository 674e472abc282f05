from itertools import pairwise

from iap.rollouts.seeds import EVALUATION_SEEDS, RANGE_SIZE, TRAINING_SEEDS, VALIDATION_SEEDS, draw_seeds


def test_the_three_ranges_are_disjoint_and_fit_into_32_bits():
    starts = [EVALUATION_SEEDS, VALIDATION_SEEDS, TRAINING_SEEDS]
    ranges = [range(first, first + RANGE_SIZE) for first in starts]
    assert all(one.stop <= other.start for one, other in pairwise(ranges))
    assert ranges[-1].stop <= 1 << 32
    for first, within in zip(starts, ranges, strict=True):
        assert all(seed in within for seed in draw_seeds(0, 1, 1000, first))


def test_seeds_depend_on_the_run_and_the_stream_only():
    assert draw_seeds(3, 7, 4) == draw_seeds(3, 7, 5)[:4] == [432540817, 79665575, 148998887, 5741499]
    assert len({tuple(draw_seeds(seed, stream, 4)) for seed in (0, 1) for stream in (0, 1)}) == 4
