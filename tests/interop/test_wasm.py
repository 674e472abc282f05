"""Policies as WebAssembly, in Node."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from export_cases import distilled_case, image_type_of_zoo, recorded, zoo_policy

from iap.interop.c import policy_to_c
from iap.interop.node import run_in_node
from iap.interop.wasm import export_wasm, find_wasm_compiler


def has_tools() -> bool:
    try:
        find_wasm_compiler()
    except FileNotFoundError:
        return False
    return shutil.which("node") is not None


DISTILLED = "distilled preset"
TOOLS = "apt-get install clang lld wasi-libc libclang-rt-dev-wasm32 nodejs"
needs_tools = pytest.mark.skipif(not has_tools(), reason=f"needs a compiler for WebAssembly and Node: {TOOLS}")


@needs_tools
@pytest.mark.parametrize("name", ["obstacle-course", "stairs-single-foot", "cartpole-swingup-teacher", DISTILLED])
def test_a_module_in_node_does_what_the_policy_does_in_python(name: str) -> None:
    policy = distilled_case() if name == DISTILLED else zoo_policy(name)
    image_type = image_type_of_zoo(name)
    steps = recorded(policy, image_type, episodes=1)
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
    [step] = recorded(policy, "float32", 1, 1)
    broken = step._replace(image=np.full(policy.config.image_shape, np.nan, np.float32))
    with pytest.raises(RuntimeError, match="image and sensors must be finite"):
        run_in_node(policy_to_c(policy, "stairs", "float32"), policy, [broken])
