"""A WebAssembly policy in Node on recorded steps: its actions, its selected patches and its time."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from iap.interop.c.files import CFiles
from iap.interop.compiling import run_tool
from iap.interop.native import state_type
from iap.interop.recording import RecordedStep
from iap.interop.wasm import javascript_wrapper, policy_to_wasm
from iap.policies import Policy

SCRIPT = """\
import { readFileSync, writeFileSync } from "node:fs";
import { Policy } from "./policy.mjs";

const { starts, encoded, pixel, pixels, sensors, actions, offset, count, size, repeats } =
  JSON.parse(readFileSync("steps.json"));
const images = readFileSync("images.bin"), observed = readFileSync("sensors.bin");
const imageType = pixel === "float" ? Float32Array : Uint8Array;
const imageBytes = pixels * imageType.BYTES_PER_ELEMENT;
const policy = await Policy.load(readFileSync("policy.wasm"));
const results = new Float32Array(starts.length * actions), selected = [];
let number = -1, image = null;
const at = (buffer, type, start, n) => new type(buffer.buffer.slice(buffer.byteOffset + start,
  buffer.byteOffset + start + n * type.BYTES_PER_ELEMENT));
const choose = (step) => {
  if (encoded[step]) image = at(images, imageType, ++number * imageBytes, pixels);
  return at(observed, Float32Array, step * sensors * 4, sensors);
};
let outOfStep = 0;
for (let step = 0; step < starts.length; ++step) {
  if (starts[step]) policy.reset();
  const sensed = choose(step);
  outOfStep += policy.needsImage() !== encoded[step];
  results.set(policy.act(image, sensed).action, step * actions);
  if (count) selected.push(Array.from(new (size === 2 ? Uint16Array : Uint32Array)(
    policy.code.memory.buffer, policy.code.state() + offset, count)));
}
const times = [];
const sensed = at(observed, Float32Array, 0, sensors);
for (let round = 0; round < 101 && repeats; ++round) {
  const start = performance.now();
  for (let i = 0; i < repeats; ++i) { policy.reset(); policy.act(image, sensed); }
  times.push((performance.now() - start) / repeats * 1000);
}
writeFileSync("actions.bin", results);
writeFileSync("results.json", JSON.stringify({ selected, outOfStep, times }));
"""


@dataclass(frozen=True)
class InNode:
    """What the policy did.

    Attributes:
        actions: (steps, actions).
        selected: the patches that were last selected at each step, of the image and not of its mirror image.
        out_of_step: steps at which it needed an image and none was recorded, or the other way round.
        microseconds: of a step with an image and the reset before it, the median of rounds; None if not timed.
        fastest: the fastest round.
    """

    actions: np.ndarray
    selected: list[list[int]]
    out_of_step: int
    microseconds: float | None
    fastest: float | None


def run_in_node(files: CFiles, policy: Policy, steps: Sequence[RecordedStep], *, repeats: int = 0) -> InNode:
    """Run a policy as WebAssembly on recorded steps.

    Args:
        files: the policy in C.
        policy: the policy.
        steps: the recorded steps.
        repeats: steps of each of 101 rounds that are timed; 0 for none.
    """
    node = shutil.which("node")
    if node is None:
        raise FileNotFoundError("there is no node: apt-get install nodejs")
    state = state_type(files)
    selected = next((field for field in files.memory if field.name == "selected"), None)
    count = 0 if selected is None else selected.count
    offset = 0 if selected is None else dict(state._fields_)["side"]._type_.selected.offset  # pyright: ignore
    images = [step.image for step in steps if step.image is not None]
    sensors = np.stack([np.resize(step.sensors, max(1, len(step.sensors))) for step in steps]).astype(np.float32)
    height, width, channels = policy.config.image_shape
    description = {
        "starts": [step.starts for step in steps],
        "encoded": [step.image is not None for step in steps],
        "pixel": files.pixel,
        "pixels": height * width * channels,
        "sensors": sensors.shape[1],
        "actions": policy.config.actions,
        "offset": offset,
        "count": count,
        "size": 2 if files.index == "uint16_t" else 4,
        "repeats": repeats,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "policy.wasm").write_bytes(policy_to_wasm(files, policy))
        (folder / "policy.mjs").write_text(javascript_wrapper(files, policy))
        (folder / "run.mjs").write_text(SCRIPT)
        (folder / "steps.json").write_text(json.dumps(description))
        (folder / "images.bin").write_bytes(b"".join(np.ascontiguousarray(image).tobytes() for image in images))
        (folder / "sensors.bin").write_bytes(sensors.tobytes())
        run_tool([node, "run.mjs"], "node", folder=folder)
        results = json.loads((folder / "results.json").read_text())
        actions = np.frombuffer((folder / "actions.bin").read_bytes(), np.float32)
    times = results["times"]
    timed = (median(times), min(times)) if times else (None, None)
    return InNode(actions.reshape(len(steps), -1), results["selected"], results["outOfStep"], *timed)
