"""The comparison of exported formats."""

import numpy as np

import iap
from iap.bench.deploy import measure_policy
from iap.interop.recording import record_steps
from iap.policies import Policy
from iap.zoo import zoo_file


def seek() -> Policy:
    """Without compiled steps, which take long to compile."""
    policy = iap.load_policy("zoo:seek")
    return Policy(policy.config, policy.params, policy.normaliser, env=policy.env, compiled=False)


def test_every_format_is_measured_and_agrees_with_python() -> None:
    policy = seek()
    rows = measure_policy(policy, "uint8", record_steps(policy, 3), zoo_file("seek"))
    assert [row.format for row in rows] == ["Python", "ONNX", "C", "wasm", "Cortex-M4 (QEMU)"]
    for row in rows:
        if row.worst is None:
            assert "apt-get install" in row.note
            continue
        assert row.worst < 1e-4
        assert row.bytes is not None
        assert 1000 < row.bytes < 100_000
        assert row.microseconds is None or row.microseconds > 0


def test_a_format_whose_tools_are_missing_says_what_to_install(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "")
    policy = seek()
    rows = {row.format: row for row in measure_policy(policy, "uint8", record_steps(policy, 2), zoo_file("seek"))}
    assert rows["Python"].worst == 0
    for name, tool in {"C": "C compiler", "wasm": "WebAssembly", "Cortex-M4 (QEMU)": "qemu-system-arm"}.items():
        assert tool in rows[name].note
        assert "apt-get install" in rows[name].note


def test_recorded_steps_are_those_of_the_policy() -> None:
    policy = seek()
    first, again = record_steps(policy, 3, seed=5), record_steps(policy, 3, seed=5)
    assert first[0].starts
    assert not first[1].starts
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.action, other.action)
