"""Exported policies: agreement with Python, closed-loop returns through C, speed, and Stable-Baselines3's extractor.

    python benchmarks/deployment.py agreement returns speed extractor    # measures; about 15 minutes in all
    python benchmarks/deployment.py                                      # writes docs/deployment.md and docs/sb3.md

Agreement needs the tools that tools/install_export_tools.sh installs; speed needs a quiet machine.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from pages import RESULTS, markdown, write_page

import iap
from iap.bench.cortex_m4 import run_on_cortex_m4
from iap.bench.deploy import bench_deploy
from iap.cli.tables import write_json
from iap.interop.agreement import agreement
from iap.interop.c import policy_to_c
from iap.interop.compiling import FAST, compile_c
from iap.interop.native import NativePolicy
from iap.interop.node import run_in_node
from iap.interop.onnx import OnnxPolicy, policy_to_onnx
from iap.interop.recording import image_type_of, record_steps
from iap.policies import Policy
from iap.rollouts import run_episode
from iap.zoo import zoo_file, zoo_names

OUT = RESULTS / "deployment.json"
STEPS, SEED = 1000, 1000
ON_CORTEX_M4, M4_STEPS = ("obstacle-course", "step-stones-single-foot"), 100
CLOSED_LOOP, EPISODES = ("seek", "obstacle-course", "step-stones-single-foot"), 100
TIMED = ("obstacle-course", "step-stones-single-foot", "seek", "cartpole-swingup", "walker-walk")


def measure_agreement() -> dict[str, Any]:
    """For each policy and format: the largest difference of an action, and the frames with the same patches."""
    return {name: _agreement_of(name) for name in zoo_names()}


def _agreement_of(name: str) -> dict[str, Any]:
    from iap.interop.torch.policy import Actor
    from iap.interop.torch.policy import Policy as Module

    policy = Policy.load(zoo_file(name))
    image_type = image_type_of(policy)
    steps = record_steps(policy, STEPS, SEED)
    plain = Policy(policy.config, policy.params, policy.normaliser, compiled=False)
    onnx = OnnxPolicy(policy_to_onnx(policy, "policy", image_type).SerializeToString())
    rows: dict[str, Any] = {}
    actors = {"numpy": plain, "torch": Actor(Module.of(policy)), "onnx": onnx}
    actors["c"] = NativePolicy(policy, image_type)
    for label, actor in actors.items():
        found = agreement(actor, steps)
        rows[label] = {
            "worst": found.worst,
            "frames": found.frames,
            "same": found.same,
            "out_of_step": found.out_of_step,
        }
    files = policy_to_c(policy, name, image_type)
    done = run_in_node(files, policy, steps)
    worst = float(np.abs(done.actions - np.array([step.action for step in steps])).max())
    frames = [i for i, step in enumerate(steps) if step.selected is not None and len(step.selected) > 0]
    # The module gives the patches of the image itself; a symmetric policy has those of the mirror image besides.
    same = sum(set(done.selected[i]) <= set(np.asarray(steps[i].selected).tolist()) for i in frames)
    rows["wasm"] = {"worst": worst, "frames": len(frames), "same": same, "out_of_step": done.out_of_step}
    with tempfile.TemporaryDirectory() as folder:
        for compiler in ("gcc", "clang"):
            for flags in (("-O2",), FAST):
                compile_c(files, Path(folder), "unit.o", flags=("-Werror", *flags, "-c"), compiler=compiler)
    if name in ON_CORTEX_M4:
        rows["cortex_m4"] = _on_cortex_m4(policy, name, image_type, steps[:M4_STEPS])
    print(name, {label: f"{row['worst']:.1e}" for label, row in rows.items() if "worst" in row}, flush=True)
    return rows


def _on_cortex_m4(policy: Policy, name: str, image_type: str, steps: list[Any]) -> dict[str, Any]:
    files = policy_to_c(policy, name, image_type)
    measured = run_on_cortex_m4(files, steps)
    host, state, actions = NativePolicy(policy, image_type, flags=("-O2",)), None, []
    for step in steps:
        state = host.reset() if step.starts or state is None else state
        action, state, _ = host.act(state, {"image": step.image, "sensors": step.sensors})
        actions.append(action)
    return {
        "code_bytes": measured.code_bytes,
        "ram_bytes": measured.ram_bytes,
        "instructions_a_frame": measured.instructions_a_frame,
        "instructions_a_held_step": measured.instructions_a_held_step,
        "difference_from_host": float(np.abs(measured.actions - np.array(actions)).max()),
    }


def measure_returns() -> dict[str, Any]:
    """Mean returns over the same episodes, acting in Python and acting through the C code."""
    results = {}
    for name in CLOSED_LOOP:
        policy = Policy.load(zoo_file(name))
        image_type = image_type_of(policy)
        actors = {"python": policy, "c": NativePolicy(policy, image_type)}
        results[name] = {}
        for label, actor in actors.items():
            env = iap.make_env(policy.env)
            returns = np.array([run_episode(env, actor, SEED + i).total for i in range(EPISODES)])
            ci95 = 1.96 * returns.std(ddof=1) / np.sqrt(EPISODES)
            results[name][label] = {"mean": float(returns.mean()), "ci95": float(ci95)}
            env.close()
        print(name, results[name], flush=True)
    return results


def measure_speed() -> dict[str, Any]:
    """`iap bench deploy` of some policies."""
    return {name: bench_deploy(f"zoo:{name}") for name in TIMED}


def measure_extractor() -> list[dict[str, Any]]:
    """Parameters and milliseconds of feature extractors on 84×84×3 images, on one thread."""
    import torch
    from gymnasium import spaces
    from stable_baselines3.common.torch_layers import NatureCNN

    from iap.interop.sb3 import AttentionExtractor
    from iap.policies import Trans

    torch.set_num_threads(1)
    space = spaces.Box(0, 255, (3, 84, 84), np.uint8)
    extractors = {
        "NatureCNN": NatureCNN(space),
        "AttentionExtractor(Rank)": AttentionExtractor(space),
        "AttentionExtractor(Trans)": AttentionExtractor(space, Trans(4, 4, 8, 8, 8)),
    }
    rows = []
    for name, extractor in extractors.items():
        row: dict[str, Any] = {"extractor": name, "parameters": sum(p.numel() for p in extractor.parameters())}
        row["features"] = extractor.features_dim
        for label, count in (("one_ms", 1), ("batch_ms", 64)):
            images = torch.rand(count, 3, 84, 84)

            def run(images: torch.Tensor = images, extractor: torch.nn.Module = extractor) -> None:
                if len(images) == 1:
                    with torch.no_grad():
                        extractor(images)
                else:
                    extractor(images).sum().backward()

            row[label] = _milliseconds(run)
        rows.append(row)
        print(row, flush=True)
    return rows


def _milliseconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(25):
        start = perf_counter()
        call()
        times.append(1e3 * (perf_counter() - start))
    return median(times[5:])


MEASURE: dict[str, Callable[[], Any]] = {
    "agreement": measure_agreement,
    "returns": measure_returns,
    "speed": measure_speed,
    "extractor": measure_extractor,
}


def agreement_table(results: dict[str, Any]) -> str:
    """One row a policy; a difference, and the share of frames if it is not 100 %."""

    def cell(row: dict[str, Any]) -> str:
        share = "" if row["same"] == row["frames"] else f" ({100 * row['same'] / row['frames']:.1f} %)"
        return f"{row['worst']:.0e}{share}"

    formats = ("numpy", "torch", "onnx", "c", "wasm")
    rows = [[f"`{name}`", *(cell(found[label]) for label in formats)] for name, found in results.items()]
    return markdown(["policy", "NumPy", "PyTorch", "ONNX", "C", "WebAssembly"], rows)


def returns_table(results: dict[str, Any]) -> str:
    """Mean and interval, in Python and through C."""
    rows = [
        [f"`{name}`", *(f"{found[by]['mean']:.3f} ± {found[by]['ci95']:.3f}" for by in ("python", "c"))]
        for name, found in results.items()
    ]
    return markdown(["policy", "Python", "C"], rows)


def speed_table(results: dict[str, Any]) -> str:
    """One row a policy and format."""
    rows = [
        [f"`{name}`", row["format"], row["microseconds"], row["fastest"], row["held_microseconds"], f"{row['bytes']:,}"]
        for name, found in results.items()
        for row in found
        if row["microseconds"] is not None
    ]
    return markdown(["policy", "format", "µs a frame", "fastest round", "µs a held step", "bytes"], rows)


def cortex_table(results: dict[str, Any]) -> str:
    """The policies that were run on a Cortex-M4."""
    rows = [
        [
            f"`{name}`",
            f"{found['code_bytes']:,}",
            f"{found['ram_bytes']:,}",
            f"{found['instructions_a_frame']:,.0f}",
            f"{found['instructions_a_held_step']:,.0f}" if found["instructions_a_held_step"] else "",
            f"{found['difference_from_host']:.0e}",
        ]
        for name in ON_CORTEX_M4
        for found in [results[name]["cortex_m4"]]
    ]
    header = ["policy", "code, bytes", "RAM, bytes", "instructions a frame", "a held step", "difference from the host"]
    return markdown(header, rows)


def extractor_table(rows: list[dict[str, Any]]) -> str:
    """One row an extractor."""
    cells = [
        [row["extractor"], f"{row['parameters']:,}", str(row["features"]), row["one_ms"], row["batch_ms"]]
        for row in rows
    ]
    return markdown(
        ["extractor", "parameters", "features", "ms, one image", "ms, forward and backward, 64 images"], cells
    )


def main() -> None:
    """Measure what is named, then write the page."""
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in sys.argv[1:]:
        results[name] = MEASURE[name]()
        write_json(results, OUT)
    write_page(
        "deployment.md",
        agreement=agreement_table(results["agreement"]),
        returns=returns_table(results["returns"]),
        speed=speed_table(results["speed"]),
        cortex=cortex_table(results["agreement"]),
    )
    write_page("sb3.md", extractor=extractor_table(results["extractor"]))


if __name__ == "__main__":
    main()
