"""The C code of policies: it compiles without warnings, agrees with Python, and survives hostile observations."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from export_cases import ZOO, distilled_case, image_type_of_zoo, with_random_numbers, zoo_policy

from iap.interop.c import export_c, policy_to_c
from iap.interop.c.files import c_name
from iap.interop.compiling import compile_c, write_c
from iap.interop.native import NativePolicy
from iap.interop.recording import RecordedStep
from iap.policies import AttentionAgent, Policy, PolicyConfig, Rank, init
from iap.policies.image_format import ImageFormat

HOSTILE = """
#include "{name}.h"
#include <math.h>
#include <stdlib.h>
static {name}_state state;
int hostile_{name}(void);
int hostile_{name}(void)
{{
    enum {{ PIXELS = {upper}_HEIGHT * {upper}_WIDTH * {upper}_CHANNELS, KINDS = 5 }};
    {name}_pixel *image = malloc(PIXELS * sizeof *image);
    float *sensors = malloc(({upper}_SENSORS + 1) * sizeof *sensors);
    float *action = malloc({upper}_ACTIONS * sizeof *action);
    float *scores = malloc({patches} * sizeof *scores);
    const double kinds[KINDS] = {{0, 255, {nan}, {huge}, -{huge}}};
    for (int kind = 0; kind < KINDS; ++kind) {{
        {name}_reset(&state);
        for (int step = 0; step < 6; ++step) {{
            for (int i = 0; i < PIXELS; ++i) image[i] = ({name}_pixel)(step % 2 && i % 3 ? 1 : kinds[kind]);
            for (int i = 0; i < {upper}_SENSORS; ++i) sensors[i] = kind == 4 ? (float)NAN : (float)kinds[kind] * 1e3f;
            if ({name}_act(&state, image, sensors, action, step % 2 ? scores : NULL) == {upper}_OK && kind < 2)
                for (int i = 0; i < {upper}_ACTIONS; ++i) if (!(fabsf(action[i]) <= 1.0f)) return 2;
        }}
    }}
    free(image); free(sensors); free(action); free(scores);
    return 0;
}}
"""


def needs(tool: str, package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"needs {tool}: apt-get install {package}")


def kinds() -> dict[str, Policy]:
    """One policy for each combination of parts in the zoo, and one with the parts of the distilled presets."""
    found = {}
    for name in ZOO:
        policy = zoo_policy(name)
        config, hierarchy = policy.config, policy.config.hierarchy
        levels = config.controller, hierarchy and hierarchy.low_level
        of_encoder = (getattr(config.encoder, part, None) for part in ("kernel", "features"))
        parts = [type(part) for part in (config.encoder, *of_encoder, *levels, config.symmetry)]
        found.setdefault((*parts, config.preprocessing), (name, policy))
    return {**dict(found.values()), "distilled": distilled_case()}


def build_hostile(folder: Path, flags: tuple[str, ...], compiler: str) -> Path:
    """One program for all kinds of policies: their code with all warnings as errors, the main program without."""
    units: list[Path] = []
    for name, policy in kinds().items():
        image_type = image_type_of_zoo(name)
        files, is_float = policy_to_c(policy, name, image_type), image_type == "float32"
        window = policy.config.encoder.window(policy.config.input_shape)
        main = folder / f"{files.name}_main.c"
        main.write_text(
            HOSTILE.format(
                name=files.name,
                upper=files.name.upper(),
                patches=1 if window is None else window.grid.patches,
                nan="NAN" if is_float else "7",
                huge="3e38" if is_float else "3",
            )
        )
        flags_of_unit = (*flags, "-Werror", "-c")
        units += [main, compile_c(files, folder, f"{files.name}.o", flags=flags_of_unit, compiler=compiler)]
    names = [unit.stem for unit in units[1::2]]
    calls = "".join(f'    if (hostile_{name}() != 0) {{ puts("{name}"); return 2; }}\n' for name in names)
    declared = "".join(f"int hostile_{name}(void);\n" for name in names)
    (folder / "main.c").write_text(f"#include <stdio.h>\n{declared}int main(void)\n{{\n{calls}    return 0;\n}}\n")
    program = folder / "program"
    command = [compiler, "-std=c99", *flags, f"-I{folder}", folder / "main.c", *units, "-o", program, "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    return program


def assert_clean(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_hostile_observations_cause_no_undefined_behaviour(tmp_path: Path) -> None:
    flags = ("-O1", "-g", "-fsanitize=address,undefined,float-divide-by-zero", "-fno-sanitize-recover=all")
    assert_clean([build_hostile(tmp_path, flags, "cc")])


@needs("clang", "clang")
@needs("valgrind", "valgrind")
def test_valgrind_finds_no_error_with_hostile_observations_in_code_of_clang(tmp_path: Path) -> None:
    program = build_hostile(tmp_path, ("-O2", "-gdwarf-4"), "clang")
    assert_clean(["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", program])


@pytest.mark.parametrize("field", ["image", "sensors"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_an_observation_that_is_not_finite_is_refused_and_changes_nothing(field: str, number: float) -> None:
    policy = with_random_numbers(PolicyConfig((8, 8, 1), 2, 1, Rank(2, 2, 2, 3)))
    native = NativePolicy(policy, "float32")
    state = native.reset()
    observation = {"image": np.ones((8, 8, 1), np.float32), "sensors": np.ones(2, np.float32)}
    native.act(state, observation)
    before = bytes(state.memory)
    observation[field].flat[-1] = number
    with pytest.raises(ValueError, match="finite"):
        native.act(state, observation)
    assert bytes(state.memory) == before


def test_parts_without_c_code_are_refused_by_name() -> None:
    config = PolicyConfig((8, 8, 1), 0, 1, AttentionAgent(3, 2, top_k=4))
    with pytest.raises(ValueError, match="'attention-agent': this encoder cannot be exported as C; those that can: ra"):
        policy_to_c(with_random_numbers(config), "policy")
    config = PolicyConfig((8, 8, 1), 0, 1, Rank(2, 2, top_k=3, keys_every=2))
    with pytest.raises(ValueError, match="no C code for keys_every=2"):
        policy_to_c(with_random_numbers(config), "policy")


def test_names_become_c_names() -> None:
    assert c_name("My policy-2") == "my_policy_2"
    for name in ("", "2 legs", "—"):
        with pytest.raises(ValueError, match="must begin with a letter"):
            c_name(name)


def test_the_exported_folder_builds_and_its_test_program_notices_a_wrong_action(tmp_path: Path) -> None:
    paths = export_c(zoo_policy("seek"), tmp_path, "seek", test_steps=3)
    assert {path.name for path in paths} >= {
        "seek.h",
        "seek.c",
        "seek_test.c",
        "CMakeLists.txt",
        "arduino.ino",
        "zephyr.c",
    }
    test, program = tmp_path / "seek_test.c", tmp_path / "test"
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-o", program]
    subprocess.run([*command, tmp_path / "seek.c", test, "-lm"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    changed = re.sub(r"(expected\[STEPS\]\[ACTIONS\] = \{\s*\{\s*)[^,]+", r"\g<1>0.987f", test.read_text())
    assert changed != test.read_text()
    test.write_text(changed)
    subprocess.run([*command, tmp_path / "seek.c", test, "-lm"], check=True)
    assert subprocess.run([program], capture_output=True, check=False).returncode == 1


@needs("cmake", "cmake")
def test_the_exported_folder_builds_with_cmake(tmp_path: Path) -> None:
    export_c(zoo_policy("seek"), tmp_path, "seek", test_steps=2)
    for command in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"], ["build/seek_test"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


@needs("arm-none-eabi-gcc", "gcc-arm-none-eabi")
@needs("qemu-system-arm", "qemu-system-arm")
def test_a_cortex_m4_computes_the_actions_of_this_computer() -> None:
    from iap.bench.cortex_m4 import run_on_cortex_m4

    policy = zoo_policy("step-stones-single-foot")
    native = NativePolicy(policy, "float32", flags=("-O2",))
    rng, state, steps = np.random.default_rng(0), native.reset(), []
    for number in range(6):
        image = rng.random(policy.config.image_shape).astype(np.float32)
        sensors = rng.normal(0, 1, policy.config.sensors).astype(np.float32)
        action, state, _ = native.act(state, {"image": image, "sensors": sensors})
        steps.append(RecordedStep(number == 0, image, sensors, action, None, None))
    measured = run_on_cortex_m4(policy_to_c(policy, "stones", "float32"), steps)
    np.testing.assert_allclose(measured.actions, [step.action for step in steps], atol=1e-5)
    assert 0 < measured.instructions_a_frame < 1e6
    assert 0 < measured.code_bytes < 10_000
    assert measured.ram_bytes > 4 * 256
    assert 100 < measured.stack_bytes < 4_000


def test_loading_compiled_code_leaves_the_floating_point_arithmetic_of_the_process_alone() -> None:
    program = (
        "import numpy as np, iap; from iap.interop.native import NativePolicy\n"
        "NativePolicy(iap.load_policy('zoo:seek'))\n"
        "half = np.float64(2.0 ** -1022) / np.float64(2); assert half > 0, 'subnormal numbers became zero'"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_code_does_not_depend_on_the_run() -> None:
    first, second = (policy_to_c(zoo_policy("seek"), "seek") for _ in range(2))
    assert first == second


def test_writing_replaces_whole_files(tmp_path: Path) -> None:
    files = policy_to_c(zoo_policy("seek"), "seek")
    (tmp_path / "seek.c").write_text("old")
    assert [path.read_text() for path in write_c(files, tmp_path)] == [files.header, files.source]


def test_a_policy_for_scaled_images_is_refused() -> None:
    scaled = ImageFormat("float32", 0.0, 1.0)
    config = PolicyConfig((8, 8, 1), 0, 1, encoder=Rank(2, 2, top_k=3), image_format=scaled)
    with pytest.raises(ValueError, match="which are scaled, has no C code"):
        policy_to_c(Policy(config, init(config, 0)), "policy")
