"""Time and size of a policy in each format it can be exported to: Python, ONNX, C and WebAssembly, in one run."""

import ctypes
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from iap._extras import MissingExtraError
from iap.bench.cortex_m4 import run_on_cortex_m4
from iap.bench.one_core import run_on_one_core, send
from iap.interop.c.files import policy_to_c
from iap.interop.recording import RecordedStep, image_type_of, record_steps
from iap.policies import Policy
from iap.zoo.locate import locate_policy

ROUNDS, SHORTEST_ROUND_S, RECORDED = 101, 0.002, 20  # short rounds: few of them are interrupted


@dataclass(frozen=True)
class Row:
    """One format of a policy.

    Attributes:
        format: its name.
        microseconds: of a step that encodes an image: the median of rounds; None where it was not timed.
        fastest: the fastest round.
        held_microseconds: of a step without an image; None for policies without such steps.
        bytes: what has to be deployed: the policy file, the ONNX file, the code and constants, the .wasm module.
        worst: the largest difference of an action on recorded steps from Python's.
        note: what was measured in place of time, or why nothing was.
    """

    format: str
    microseconds: float | None = None
    fastest: float | None = None
    held_microseconds: float | None = None
    bytes: int | None = None
    worst: float | None = None
    note: str = ""


def bench_deploy(policy: str) -> list[dict[str, Any]]:
    """Measure every format of a policy, given by its name, in a process with one core; formats without tools say so."""
    [rows] = run_on_one_core(__name__, request=policy)
    return rows


def measure(name: str) -> list[Row]:
    """The rows of all formats of a policy, by its name."""
    file, path = locate_policy(name)
    policy = Policy.of(file)
    return measure_policy(policy, image_type_of(policy), record_steps(policy, RECORDED), Path(path))


def measure_policy(policy: Policy, image_type: str, steps: list[RecordedStep], path: Path) -> list[Row]:
    """The rows of all formats, one after the other.

    Args:
        policy: the policy.
        image_type: of its images.
        steps: recorded steps.
        path: of its file.
    """
    formats: dict[str, Callable[..., Row]] = {"Python": _python, "ONNX": _onnx, "C": _c, "wasm": _wasm}
    formats["Cortex-M4 (QEMU)"] = _cortex_m4
    rows = []
    for label, measure_one in formats.items():
        try:
            rows.append(measure_one(label, policy, image_type, steps, path))
        except (FileNotFoundError, MissingExtraError, ValueError, RuntimeError) as error:
            rows.append(Row(label, note=" ".join(str(error).split())))
    return rows


def _python(label: str, policy: Policy, image_type: str, steps: list[RecordedStep], path: Path) -> Row:
    return Row(label, *_times(policy, steps), path.stat().st_size, 0.0)


def _onnx(label: str, policy: Policy, image_type: str, steps: list[RecordedStep], path: Path) -> Row:
    from iap.interop.agreement import agreement
    from iap.interop.onnx import OnnxPolicy, policy_to_onnx

    content = policy_to_onnx(policy, "policy", image_type).SerializeToString()
    runner = OnnxPolicy(content)
    return Row(label, *_times(runner, steps), len(content), agreement(runner, steps).worst)


def _c(label: str, policy: Policy, image_type: str, steps: list[RecordedStep], path: Path) -> Row:
    from iap.interop.agreement import agreement
    from iap.interop.compiling import compile_c
    from iap.interop.native import NativePolicy

    native = NativePolicy(policy, image_type)
    worst = agreement(native, steps).worst
    image = next((step.image for step in steps if step.image is not None), None)
    sensors, action = steps[0].sensors, np.zeros(policy.config.actions, np.float32)
    arrays = [None if x is None else ctypes.c_void_p(x.ctypes.data) for x in (image, sensors, action)]
    state = native.reset()

    def act(hold_steps: int) -> Callable[[], object]:
        side, call, memory = state.memory.side, native.library.policy_act, ctypes.byref(state.memory)

        def step() -> None:
            for one in side:
                one.hold_steps = hold_steps
            call(memory, *arrays, None)

        return step

    times = _microseconds(act(0))
    held = _microseconds(act(1))[0] if any(step.image is None for step in steps) else None
    with tempfile.TemporaryDirectory() as folder:
        unit = compile_c(native.files, Path(folder), "small.o", flags=("-Os", "-c"))
        size = _code_bytes(unit)
    return Row(label, *times, held, size, worst)


def _code_bytes(unit: Path) -> int:
    """Bytes of code and constants of an object file."""
    from iap.interop.compiling import run_tool

    text, data = run_tool(["size", unit], "size").splitlines()[1].split()[:2]
    return int(text) + int(data)


def _wasm(label: str, policy: Policy, image_type: str, steps: list[RecordedStep], path: Path) -> Row:
    from iap.interop.node import run_in_node
    from iap.interop.wasm import policy_to_wasm

    files = policy_to_c(policy, "policy", image_type)
    size = len(policy_to_wasm(files, policy))
    done = run_in_node(files, policy, steps, repeats=40)
    worst = float(np.abs(done.actions - np.array([step.action for step in steps])).max())
    return Row(label, done.microseconds, done.fastest, None, size, worst, "in Node")


def _cortex_m4(label: str, policy: Policy, image_type: str, steps: list[RecordedStep], path: Path) -> Row:
    measured = run_on_cortex_m4(policy_to_c(policy, "policy", image_type), steps)
    worst = float(np.abs(measured.actions - np.array([step.action for step in steps])).max())
    frame, held = measured.instructions_a_frame, measured.instructions_a_held_step
    note = (
        f"{frame:,.0f} instructions a frame, {measured.ram_bytes:,} bytes of state, {measured.stack_bytes:,} of stack"
    )
    if held:
        note += f", {held:,.0f} instructions a held step"
    return Row(label, None, None, None, measured.code_bytes, worst, note)


def _times(policy: Any, steps: list[RecordedStep]) -> tuple[float, float, float | None]:
    """Of a step with an image, median and fastest, and of one without."""
    states: dict[bool, Any] = {}
    observations: dict[bool, Any] = {}
    state, image = policy.reset(), next((step.image for step in steps if step.image is not None), None)
    for step in steps:
        encodes = step.image is not None or image is None
        image = step.image if step.image is not None else image
        observation = {"image": image, "sensors": step.sensors}
        states.setdefault(encodes, state)
        observations.setdefault(encodes, observation)
        _, state, _ = policy.act(state, observation)
    times = _microseconds(lambda: policy.act(states[True], observations[True]))
    held = _microseconds(lambda: policy.act(states[False], observations[False]))[0] if False in states else None
    return *times, held


def _microseconds(call: Callable[[], object]) -> tuple[float, float]:
    """Of one call: the median and the fastest of rounds."""
    call()
    count, start = 0, perf_counter()
    while perf_counter() - start < SHORTEST_ROUND_S:
        call()
        count += 1
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(count):
            call()
        times.append(1e6 * (perf_counter() - start) / count)
    return median(times), min(times)


if __name__ == "__main__":
    send([asdict(row) for row in measure(json.load(sys.stdin))])
