import pytest

from iap.bench import frames as bench_frames
from iap.bench.frames import measure


@pytest.mark.parametrize(("method", "rows"), [("dm_control", 1), ("iap", 3)])
def test_both_renderers_are_measured(monkeypatch, method, rows):
    monkeypatch.setattr(bench_frames, "FRAMES", {"dm_control": 7, "iap": 7})
    measured = measure(method, ["cartpole-swingup"], [(8, 10)])
    assert len(measured) == rows
    assert all(row["frame_ms"] > 0 and row["size"] == "8×10" for row in measured)
