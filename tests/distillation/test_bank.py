"""The dataset on disk: blocks of labelled episodes."""

import numpy as np

from iap.distillation.bank import FACTS, Bank
from iap.distillation.labelling import LabelledEpisode
from iap.policies import Moments


def episode(steps: int, value: float) -> LabelledEpisode:
    arrays = {"actions": np.full((steps, 2), value, np.float32), "step": np.arange(steps, dtype=np.float32)}
    return LabelledEpisode(0, value, steps, Moments.none(1), arrays=arrays, axes=((0, 1, None),))


def test_rows_are_those_of_all_blocks_in_the_order_that_is_asked_for(tmp_path):
    bank = Bank(tmp_path)
    bank.append([episode(3, 1.0), episode(2, 2.0)], round_number=0)
    bank.append([episode(4, 3.0)], round_number=1)
    assert (bank.steps(), bank.steps_of(0), bank.steps_of(1), bank.blocks) == (9, 5, 4, 2)
    rows = bank.rows(np.array([8, 0, 4, 5]))
    assert rows["actions"][:, 0].tolist() == [3, 1, 2, 3]
    assert rows["step"].tolist() == [3, 0, 1, 0]
    assert bank.episodes() == [(0, 3), (3, 5), (5, 9)]
    assert bank.returns_of(0) == [1.0, 2.0]
    assert bank.column("step", 1).tolist() == [0, 1, 2, 3]


def test_a_bank_that_is_opened_again_holds_the_same_but_no_block_that_is_incomplete(tmp_path):
    bank = Bank(tmp_path)
    bank.append([episode(3, 1.0)], round_number=0)
    bank.append([episode(2, 2.0)], round_number=0)
    (tmp_path / "block-0001" / FACTS).unlink()  # as after a kill while the block was written
    again = Bank(tmp_path)
    assert (again.steps(), again.axes) == (3, ((0, 1, None),))
    again.append([episode(5, 4.0)], round_number=0)
    assert Bank(tmp_path).rows(np.array([3]))["actions"][0, 0] == 4.0


def test_a_deleted_bank_is_empty(tmp_path):
    bank = Bank(tmp_path / "dataset")
    bank.append([episode(3, 1.0)], round_number=0)
    bank.delete()
    assert bank.blocks == 0
    assert not (tmp_path / "dataset").exists()
