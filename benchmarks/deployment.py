"""Exported policies: agreement with Python, closed-loop returns through C, speed, and Stable-Baselines3's extractor.

    python benchmarks/deployment.py agreement microcontroller returns speed extractor    # measures; about 30 minutes
    python benchmarks/deployment.py agreement --missing    # continues after an interruption
    python benchmarks/deployment.py    # writes docs/deployment.md and docs/sb3.md

Agreement needs the tools that tools/install_export_tools.sh installs; speed needs a quiet machine.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
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
from iap.interop.native import NativePolicy
from iap.interop.node import run_in_node
from iap.interop.onnx import OnnxPolicy, policy_to_onnx
from iap.interop.recording import image_type_of, record_steps
from iap.policies import Policy
from iap.rollouts import run_episode
from iap.zoo import zoo_file, zoo_names

OUT = RESULTS / "deployment.json"
STEPS, SEED = 1000, 1000
ON_CORTEX_M4, M4_STEPS = ("obstacle-course", "step-stones-single-foot", "step-stones", "step-stones-trans"), 100
Results = Iterator[tuple[str, Any]]  # the name of a policy → what was measured
CLOSED_LOOP, EPISODES = ("seek", "obstacle-course", "step-stones-single-foot"), 100
EXTRACTORS: tuple[str, ...] = ("NatureCNN", "AttentionExtractor(Rank)", "AttentionExtractor(Trans)")
TIMED = ("obstacle-course", "step-stones-single-foot", "seek", "cartpole-swingup", "walker-walk")


def measure_agreement(names: Sequence[str]) -> Results:
    """For each policy and format: the largest difference of an action, and the frames with the same patches."""
    for name in names:
        yield name, _agreement_of(name)


def _agreement_of(name: str) -> dict[str, Any]:
    import torch

    from iap.interop.torch.policy import Actor
    from iap.interop.torch.policy import Policy as Module

    torch.set_num_threads(1)
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
    print(name, {label: f"{row['worst']:.1e}" for label, row in rows.items() if "worst" in row}, flush=True)
    return rows


def measure_microcontroller(names: Sequence[str]) -> Results:
    """Size, instructions and agreement with the host of the C code on a Cortex-M4."""
    for name in names:
        yield name, _on_cortex_m4(name)


def _on_cortex_m4(name: str) -> dict[str, Any]:
    policy = Policy.load(zoo_file(name))
    image_type, steps = image_type_of(policy), record_steps(policy, M4_STEPS, SEED)
    files = policy_to_c(policy, name, image_type)
    measured = run_on_cortex_m4(files, steps)
    host, state, actions = NativePolicy(policy, image_type, flags=("-O2",)), None, []
    for step in steps:
        state = host.reset() if step.starts or state is None else state
        action, state, _ = host.act(state, {"image": step.image, "sensors": step.sensors})
        actions.append(action)
    row = {
        "code_bytes": measured.code_bytes,
        "ram_bytes": measured.ram_bytes,
        "stack_bytes": measured.stack_bytes,
        "instructions_a_frame": measured.instructions_a_frame,
        "instructions_a_held_step": measured.instructions_a_held_step,
        "difference_from_host": float(np.abs(measured.actions - np.array(actions)).max()),
    }
    print(name, row, flush=True)
    return row


def measure_returns(names: Sequence[str]) -> Results:
    """Mean returns over the same episodes, acting in Python and acting through the C code."""
    for name in names:
        policy = Policy.load(zoo_file(name))
        actors = {"python": policy, "c": NativePolicy(policy, image_type_of(policy))}
        row = {}
        for label, actor in actors.items():
            env = iap.make_env(policy.env)
            returns = np.array([run_episode(env, actor, SEED + i).total for i in range(EPISODES)])
            ci95 = 1.96 * returns.std(ddof=1) / np.sqrt(EPISODES)
            row[label] = {"mean": float(returns.mean()), "ci95": float(ci95)}
            env.close()
        print(name, row, flush=True)
        yield name, row


def measure_speed(names: Sequence[str]) -> Results:
    """`iap bench deploy` of some policies."""
    for name in names:
        yield name, bench_deploy(f"zoo:{name}")


def measure_extractor(names: Sequence[str]) -> Results:
    """Parameters and milliseconds of feature extractors on 84×84×3 images, on one thread."""
    import torch
    from gymnasium import spaces
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN

    from iap.interop.sb3 import AttentionExtractor
    from iap.policies import Trans

    torch.set_num_threads(1)
    space = spaces.Box(0, 255, (3, 84, 84), np.uint8)
    makers: Sequence[Callable[[], BaseFeaturesExtractor]] = (
        lambda: NatureCNN(space),
        lambda: AttentionExtractor(space),
        lambda: AttentionExtractor(space, Trans(4, 4, 8, 8, 8)),
    )
    make = dict(zip(EXTRACTORS, makers, strict=True))
    for name in names:
        extractor = make[name]()
        row: dict[str, Any] = {"parameters": sum(p.numel() for p in extractor.parameters())}
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
        print(name, row, flush=True)
        yield name, row


def _milliseconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(25):
        start = perf_counter()
        call()
        times.append(1e3 * (perf_counter() - start))
    return median(times[5:])


MEASURE: dict[str, Callable[[Sequence[str]], Results]] = {
    "agreement": measure_agreement,
    "microcontroller": measure_microcontroller,
    "returns": measure_returns,
    "speed": measure_speed,
    "extractor": measure_extractor,
}
DEFAULTS: dict[str, Callable[[], Sequence[str]]] = {
    "agreement": zoo_names,
    "microcontroller": lambda: ON_CORTEX_M4,
    "returns": lambda: CLOSED_LOOP,
    "speed": lambda: TIMED,
    "extractor": lambda: tuple(EXTRACTORS),
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
            f"{found['stack_bytes']:,}",
            f"{found['instructions_a_frame']:,.0f}",
            f"{found['instructions_a_held_step']:,.0f}" if found["instructions_a_held_step"] else "",
            f"{found['difference_from_host']:.0e}",
        ]
        for name, found in results.items()
    ]
    header = [
        "policy",
        "code, bytes",
        "state, bytes",
        "stack, bytes",
        "instructions a frame",
        "a held step",
        "difference from the host",
    ]
    return markdown(header, rows)


def extractor_table(results: dict[str, Any]) -> str:
    """One row an extractor."""
    cells = [
        [name, f"{row['parameters']:,}", str(row["features"]), row["one_ms"], row["batch_ms"]]
        for name, row in results.items()
    ]
    return markdown(
        ["extractor", "parameters", "features", "ms, one image", "ms, forward and backward, 64 images"], cells
    )


def main() -> None:
    """Measure what is named, then write the pages; each policy's results are kept as soon as there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measures", nargs="*", help=f"what to measure: {', '.join(MEASURE)}")
    parser.add_argument("--policies", nargs="*", default=[], help="of the zoo; by default all that belong to a measure")
    parser.add_argument("--missing", action="store_true", help="only policies without results, to continue a run")
    arguments = parser.parse_args()
    if unknown := set(arguments.measures) - set(MEASURE):
        parser.error(f"measures must be among {', '.join(MEASURE)}, not {', '.join(unknown)}")
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for measure in arguments.measures:
        kept = results.setdefault(measure, {})
        names = [name for name in arguments.policies or DEFAULTS[measure]() if not (arguments.missing and name in kept)]
        for name, found in MEASURE[measure](names):
            kept[name] = found
            results[measure] = {key: kept[key] for key in sorted(kept)} if measure == "agreement" else kept
            write_json(results, OUT)
    write_page(
        "deployment.md",
        agreement=agreement_table(results["agreement"]),
        returns=returns_table(results["returns"]),
        speed=speed_table(results["speed"]),
        cortex=cortex_table(results["microcontroller"]),
    )
    write_page("sb3.md", extractor=extractor_table(results["extractor"]))


if __name__ == "__main__":
    main()
