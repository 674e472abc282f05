from iap.bench.indoor_frames import measure


def test_both_robots_are_measured():
    rows = measure(faces=2_000, size=(16, 16), steps=3)
    assert [row["robot"] for row in rows] == ["rolling-base", "a1"]
    assert all(row["frame_ms"] > 0 and row["steps_per_s"] > 0 for row in rows)
