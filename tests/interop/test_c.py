"""The C code of policies: it compiles without warnings, agrees with Python, and survives hostile observations."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from export_cases import (
    ZOO,
    built_cases,
    image_type_of_zoo,
    with_random_numbers,
    worst_difference,
    zoo_policy,
)

from iap.interop.c import export_c, policy_to_c
from iap.interop.c.files import c_name
from iap.interop.compiling import compile_c, write_c
from iap.interop.native import NativePolicy
from iap.interop.recording import RecordedStep
from iap.policies import AttentionAgent, Policy, PolicyConfig, Rank, init
from iap.policies.image_format import ImageFormat

QUICK = ("-O1", "-Werror")
BUILT = built_cases()
ROUNDING = 5e-4  # of float32 on synthetic images; on recorded steps of their environments all agree to 1e-4
HOSTILE = """
#include "{name}.h"
#include <math.h>
#include <stdlib.h>
static {name}_state state;
int main(void)
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


def build_hostile(name: str, folder: Path, flags: tuple[str, ...], compiler: str = "") -> Path:
    policy, image_type = zoo_policy(name), image_type_of_zoo(name)
    files = policy_to_c(policy, name, image_type)
    is_float = image_type == "float32"
    window = policy.config.encoder.window(policy.config.input_shape)
    text = HOSTILE.format(
        name=files.name,
        upper=files.name.upper(),
        patches=1 if window is None else window.grid.patches,
        nan="NAN" if is_float else "7",
        huge="3e38" if is_float else "3",
    )
    main = folder / "main.c"
    main.write_text(text)
    return compile_without_warnings(files, folder, main, flags, compiler)


def compile_without_warnings(files, folder: Path, main: Path, flags: tuple[str, ...], compiler: str = "") -> Path:
    """The policy with all warnings as errors, the main program without."""
    folder.mkdir(exist_ok=True)
    unit = compile_c(files, folder, "policy.o", flags=(*flags, "-Werror", "-c"), compiler=compiler)
    program = folder / "program"
    command = [compiler or "cc", "-std=c99", *flags, f"-I{folder}", str(main), str(unit), "-o", str(program), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    return program


@pytest.mark.parametrize("name", ZOO)
def test_a_zoo_policy_in_c_does_what_it_does_in_python(name: str) -> None:
    policy, image_type = zoo_policy(name), image_type_of_zoo(name)
    assert worst_difference(policy, NativePolicy(policy, image_type, flags=QUICK), image_type) < ROUNDING


@pytest.mark.parametrize("image_type", ["uint8", "float32"])
@pytest.mark.parametrize("name", BUILT)
def test_every_part_in_c_does_what_it_does_in_python(name: str, image_type: str) -> None:
    policy = BUILT[name]
    assert worst_difference(policy, NativePolicy(policy, image_type, flags=QUICK), image_type) < 1e-4


@pytest.mark.parametrize(
    "name",
    [
        "obstacle-course",
        "stairs-single-foot",
        "ball_in_cup-catch",
        "walker-walk",
        "reacher-easy",
        "stairs",
        "stone-grid-trans",
    ],
)
def test_hostile_observations_cause_no_undefined_behaviour(name: str, tmp_path: Path) -> None:
    flags = ("-O1", "-g", "-fsanitize=address,undefined,float-divide-by-zero", "-fno-sanitize-recover=all")
    program = build_hostile(name, tmp_path, flags)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@needs("valgrind", "valgrind")
def test_valgrind_finds_no_error_with_hostile_observations(tmp_path: Path) -> None:
    program = build_hostile("stairs-single-foot", tmp_path, ("-O2", "-g"))
    command = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@needs("clang", "clang")
@pytest.mark.parametrize("name", ["obstacle-course", "cartpole-swingup", "walker-walk", "step-stones", "stairs-trans"])
def test_clang_has_no_warnings_either(name: str, tmp_path: Path) -> None:
    policy = zoo_policy(name)
    files = policy_to_c(policy, name, image_type_of_zoo(name))
    assert compile_c(files, tmp_path, "a.o", flags=("-O1", "-Werror", "-c"), compiler="clang").exists()


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
