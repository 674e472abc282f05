"""Policies as WebAssembly, in Node."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from export_cases import image_type_of_zoo, observations, zoo_policy

from iap.interop.c import policy_to_c
from iap.interop.node import run_in_node
from iap.interop.recording import RecordedStep
from iap.interop.wasm import export_wasm, find_wasm_compiler


def has_tools() -> bool:
    try:
        find_wasm_compiler()
    except FileNotFoundError:
        return False
    return shutil.which("node") is not None


TOOLS = "apt-get install clang lld wasi-libc libclang-rt-dev-wasm32 nodejs"
needs_tools = pytest.mark.skipif(not has_tools(), reason=f"needs a compiler for WebAssembly and Node: {TOOLS}")


def steps_of(policy, image_type: str, count: int) -> list[RecordedStep]:
    state, steps = policy.reset(), []
    for observation in observations(policy.config, image_type, count):
        image = observation["image"] if policy.needs_image(state) else None
        action, state, attention = policy.act(state, observation)
        selected = None if attention is None else attention.selected
        steps.append(RecordedStep(not steps, image, observation["sensors"], action, None, selected))
    return steps


@needs_tools
@pytest.mark.parametrize("name", ["obstacle-course", "stairs-single-foot", "cartpole-swingup-teacher"])
def test_a_module_in_node_does_what_the_policy_does_in_python(name: str) -> None:
    policy, image_type = zoo_policy(name), image_type_of_zoo(name)
    steps = steps_of(policy, image_type, 12)
    done = run_in_node(policy_to_c(policy, name, image_type), policy, steps)
    np.testing.assert_allclose(done.actions, [step.action for step in steps], atol=1e-4)
    assert done.out_of_step == 0
    for step, selected in zip(steps, done.selected, strict=False):
        if step.selected is not None:
            assert set(selected) <= set(step.selected.tolist())


@needs_tools
def test_the_exported_module_is_small_and_imports_nothing(tmp_path: Path) -> None:
    module, wrapper = export_wasm(zoo_policy("obstacle-course"), tmp_path, "course", image_type="uint8")
    assert module.stat().st_size < 30_000
    assert len(wrapper.read_text().splitlines()) <= 50
    count = "WebAssembly.compile(read(process.argv[1])).then(m => console.log(WebAssembly.Module.imports(m).length))"
    script = f"const read = require('fs').readFileSync; {count}"
    done = subprocess.run(["node", "-e", script, module], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


@needs_tools
def test_an_observation_that_is_not_finite_is_an_error_in_javascript() -> None:
    policy = zoo_policy("stairs-single-foot")
    [step] = steps_of(policy, "float32", 1)
    broken = step._replace(image=np.full(policy.config.image_shape, np.nan, np.float32))
    with pytest.raises(RuntimeError, match="image and sensors must be finite"):
        run_in_node(policy_to_c(policy, "stairs", "float32"), policy, [broken])


def test_without_a_compiler_the_error_names_the_packages(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="apt-get install clang lld wasi-libc"):
        find_wasm_compiler()
