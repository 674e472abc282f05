"""`iap export --format c`: the C files of a policy, a test program, a CMake file and examples."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from iap._files import write_whole
from iap.interop.c.files import CFiles, policy_to_c
from iap.interop.c.source import float_literal, wrapped
from iap.interop.compiling import write_c
from iap.interop.recording import RecordedStep, image_type_of, record_steps
from iap.policies import Policy

TOLERANCE = 1e-4

PROGRAM = """\
/* Test of {name}: recorded observations, and the actions that Python computed. Returns 0 if all agree. */
#include "{name}.h"

#include <math.h>
#include <stdio.h>

enum {{ STEPS = {steps}, PIXELS = {pixels}, SENSORS = {sensors}, ACTIONS = {actions} }};

static const {name}_pixel images[][PIXELS] = {{
{images}
}};
static const float observed[STEPS][SENSORS] = {{
{observed}
}};
static const float expected[STEPS][ACTIONS] = {{
{expected}
}};
/* The number of each step's image, or -1, and whether it is the first of an episode. */
static const int image_numbers[STEPS] = {{
{numbers}
}};
static const int starts[STEPS] = {{
{starts}
}};

static {name}_state state;

int main(void)
{{
    double worst = 0.0;
    for (int step = 0; step < STEPS; ++step) {{
        float action[ACTIONS];
        const int number = image_numbers[step];
        if (starts[step]) {{
            {name}_reset(&state);
        }}
        if ({name}_needs_image(&state) != (number >= 0)) {{
            printf("step %d: image needed at other steps than recorded\\n", step);
            return 1;
        }}
        if ({name}_act(&state, number >= 0 ? images[number] : NULL, observed[step], action, NULL) != {upper}_OK) {{
            printf("step %d: refused\\n", step);
            return 1;
        }}
        for (int i = 0; i < ACTIONS; ++i) {{
            const double difference = fabs((double)action[i] - (double)expected[step][i]);
            worst = difference <= worst ? worst : difference;
        }}
    }}
    printf("{name}: %d steps, largest difference of an action %.2g\\n", STEPS, worst);
    return worst <= {tolerance} ? 0 : 1;
}}
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project({name} C)
set(CMAKE_C_STANDARD 99)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library({name} STATIC {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_link_libraries({name} PUBLIC m)
"""
CMAKE_TEST = """
enable_testing()
add_executable({name}_test {name}_test.c)
target_link_libraries({name}_test {name})
add_test(NAME {name} COMMAND {name}_test)
"""
ARDUINO = """\
// Put {name}.h and {name}.c into the folder of this sketch, and fill in the two functions.
#include "{name}.h"

static {name}_state state;
static {name}_pixel image[{upper}_HEIGHT * {upper}_WIDTH * {upper}_CHANNELS];
static float sensors[{sensors}], action[{upper}_ACTIONS];

void read_observation({name}_pixel *image, float *sensors) {{ /* camera and sensors */ }}
void apply_action(const float *action) {{ /* motors: each number is from -1 to 1 */ }}

void setup() {{
  {name}_reset(&state);
}}

void loop() {{
  read_observation(image, sensors);
  if ({name}_act(&state, image, sensors, action, NULL) == {upper}_OK) {{
    apply_action(action);
  }}
}}
"""
ZEPHYR = """\
/* src/main.c of a Zephyr application; add ../{name}.c to target_sources(app ...). */
#include "{name}.h"

#include <zephyr/kernel.h>

static {name}_state state;
static {name}_pixel image[{upper}_HEIGHT * {upper}_WIDTH * {upper}_CHANNELS];
static float sensors[{sensors}], action[{upper}_ACTIONS];

extern int read_camera({name}_pixel *image);   /* yours: 0 if a frame was read */
extern void read_sensors(float *sensors);      /* yours */
extern void apply_action(const float *action); /* yours: each number is from -1 to 1 */

int main(void)
{{
    {name}_reset(&state);
    for (;;) {{
        const int needs_image = {name}_needs_image(&state);
        read_sensors(sensors);
        if ((!needs_image || read_camera(image) == 0)
            && {name}_act(&state, needs_image ? image : NULL, sensors, action, NULL) == {upper}_OK) {{
            apply_action(action);
        }}
        k_msleep(10);
    }}
}}
"""


def export_c(
    policy: Policy, folder: Path, name: str, *, image_type: str | None = None, test_steps: int = 8, seed: int = 0
) -> list[Path]:
    """Write NAME.h, NAME.c, NAME_test.c, CMakeLists.txt and two examples; the paths.

    Args:
        policy: the policy.
        folder: where to.
        name: the prefix of the C names.
        image_type: of the images, "uint8" or "float32"; by default what the policy's environment gives.
        test_steps: recorded steps in the test program, from the policy's environment; 0 for no test program.
        seed: of the recorded episode.
    """
    chosen = image_type_of(policy) if image_type is None else image_type
    files = policy_to_c(policy, name, chosen)
    test = self_test(files, record_steps(policy, test_steps, seed)) if test_steps else None
    paths = write_c(files, folder)
    cmake = CMAKE + ("" if test is None else CMAKE_TEST)
    others = {"CMakeLists.txt": _filled(cmake, files, policy)}
    if test is not None:
        others[f"{files.name}_test.c"] = test
    others |= {
        "examples/arduino.ino": _filled(ARDUINO, files, policy),
        "examples/zephyr.c": _filled(ZEPHYR, files, policy),
    }
    for file, text in others.items():
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        write_whole(path, text.encode())
        paths.append(path)
    return paths


def _filled(text: str, files: CFiles, policy: Policy) -> str:
    return text.format(name=files.name, upper=files.name.upper(), sensors=max(1, policy.config.sensors))


def self_test(files: CFiles, steps: Sequence[RecordedStep]) -> str:
    """The program, for recorded steps."""
    images = [step.image for step in steps if step.image is not None]
    numbers = np.cumsum([step.image is not None for step in steps]) - 1
    sensors = max(1, len(steps[0].sensors))
    return PROGRAM.format(
        name=files.name,
        upper=files.name.upper(),
        steps=len(steps),
        pixels=images[0].size if images else 1,
        sensors=sensors,
        actions=len(steps[0].action),
        images=_rows([_numbers(image, files.pixel) for image in images] or [["0"]]),
        observed=_rows([_numbers(np.resize(step.sensors, sensors), "float") for step in steps]),
        expected=_rows([_numbers(step.action, "float") for step in steps]),
        numbers=wrapped([str(n if step.image is not None else -1) for n, step in zip(numbers, steps, strict=True)]),
        starts=wrapped([str(int(step.starts)) for step in steps]),
        tolerance=TOLERANCE,
    )


def _numbers(x: np.ndarray, kind: str) -> list[str]:
    if kind == "float":
        return [float_literal(value) for value in np.asarray(x, np.float32).ravel()]
    return [str(int(value)) for value in np.asarray(x).ravel()]


def _rows(rows: Sequence[list[str]]) -> str:
    return ",\n".join(f"  {{\n{wrapped(row)}\n  }}" for row in rows)
