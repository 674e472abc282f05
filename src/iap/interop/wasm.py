"""A policy as WebAssembly: its C code compiled with clang or zig, and a JavaScript wrapper without dependencies."""

import shutil
import tempfile
from pathlib import Path

from iap._files import write_whole
from iap.interop.c.files import CFiles, policy_to_c
from iap.interop.compiling import run_tool, write_c
from iap.interop.recording import image_type_of
from iap.policies import Policy

OPTIONS = ("-std=c99", "-O3", "-ffast-math", "-msimd128", "-mexec-model=reactor")
EXPORTS = ("reset", "needs_image", "act", "image", "sensors", "action", "scores", "state")

GLUE = """\
#include "{name}.h"

static {name}_state own_state;
static {name}_pixel image_buffer[{pixels}];
static float sensor_buffer[{sensors}], action_buffer[{actions}], score_buffer[{patches}];

void reset(void) {{ {name}_reset(&own_state); }}
int needs_image(void) {{ return {name}_needs_image(&own_state); }}
int act(void) {{ return {name}_act(&own_state, image_buffer, sensor_buffer, action_buffer, score_buffer); }}
{name}_pixel *image(void) {{ return image_buffer; }}
float *sensors(void) {{ return sensor_buffer; }}
float *action(void) {{ return action_buffer; }}
float *scores(void) {{ return score_buffer; }}
{name}_state *state(void) {{ return &own_state; }}
"""
WRAPPER = """\
// {title}
//   const policy = await Policy.load(bytes);    // of {name}.wasm: an ArrayBuffer, a Uint8Array or a Response
//   const {{ action, scores }} = policy.act(image, sensors);
export class Policy {{
  static imageShape = [{height}, {width}, {channels}];
  static sensors = {sensors};
  static actions = {actions};
  static grid = {grid}; // rows, columns, side and stride of the patches

  static async load(source) {{
    const streams = typeof Response !== "undefined" && source instanceof Response;
    const bytes = streams ? await source.arrayBuffer() : source;
    const {{ instance }} = await WebAssembly.instantiate(bytes, {{}});
    return new Policy(instance.exports);
  }}

  constructor(code) {{
    const view = (type, address, count) => new type(code.memory.buffer, address, count);
    code._initialize?.();
    this.code = code;
    this.image = view({array}, code.image(), {pixels});
    this.sensors = view(Float32Array, code.sensors(), {sensors});
    this.action = view(Float32Array, code.action(), {actions});
    this.scores = view(Float32Array, code.scores(), {patches});
    this.reset();
  }}

  // Start an episode.
  reset() {{
    this.code.reset();
  }}

  // Whether the next step encodes an image; otherwise it may be null.
  needsImage() {{
    return this.code.needs_image() !== 0;
  }}

  // The action, {actions} numbers from -1 to 1, and the score of each patch, or null if no image was encoded.
  act(image, sensors = []) {{
    const encodes = this.needsImage();
    if (encodes) this.image.set(image);
    this.sensors.set(sensors);
    if (this.code.act() !== 0) throw new RangeError("image and sensors must be finite");
    return {{ action: this.action.slice(), scores: encodes && Policy.grid ? this.scores.slice() : null }};
  }}
}}
"""


def find_wasm_compiler() -> list[str]:
    """The command that compiles C to WebAssembly: clang with wasm-ld, or zig."""
    if shutil.which("clang") and shutil.which("wasm-ld"):
        return ["clang", "--target=wasm32-wasi"]
    if shutil.which("zig"):
        return ["zig", "cc", "--target=wasm32-wasi"]
    packages = "clang lld wasi-libc libclang-rt-dev-wasm32"
    raise FileNotFoundError(f"there is no compiler for WebAssembly: apt-get install {packages}, or pip install ziglang")


def policy_to_wasm(files: CFiles, policy: Policy) -> bytes:
    """The WebAssembly module of a policy in C; it imports nothing."""
    compiler = find_wasm_compiler()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_c(files, folder)
        glue, out = folder / "glue.c", folder / "out.wasm"
        glue.write_text(GLUE.format(**_sizes(files, policy)))
        exports = [f"-Wl,--export={function}" for function in EXPORTS]
        sources = [folder / f"{files.name}.c", glue]
        run_tool([*compiler, *OPTIONS, "-Wl,--strip-all", *exports, *sources, "-o", out, "-lm"], compiler[0])
        return out.read_bytes()


def javascript_wrapper(files: CFiles, policy: Policy) -> str:
    """The JavaScript module."""
    return WRAPPER.format(**_sizes(files, policy))


def export_wasm(policy: Policy, folder: Path, name: str, *, image_type: str | None = None) -> list[Path]:
    """Write NAME.wasm and NAME.mjs; the paths.

    Args:
        policy: the policy.
        folder: where to.
        name: of the files.
        image_type: of the images, "uint8" or "float32"; by default what the policy's environment gives.
    """
    files = policy_to_c(policy, name, image_type_of(policy) if image_type is None else image_type)
    module = policy_to_wasm(files, policy)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix, content in (("wasm", module), ("mjs", javascript_wrapper(files, policy).encode())):
        path = folder / f"{files.name}.{suffix}"
        write_whole(path, content)
        paths.append(path)
    return paths


def _sizes(files: CFiles, policy: Policy) -> dict[str, object]:
    config = policy.config
    height, width, channels = config.image_shape
    window = config.encoder.window(config.input_shape)
    return {
        "name": files.name,
        "title": f"{files.name}: a policy of {len(policy.theta)} parameters, in WebAssembly.",
        "height": height,
        "width": width,
        "channels": channels,
        "pixels": height * width * channels,
        "sensors": max(1, config.sensors),
        "actions": config.actions,
        "patches": 1 if window is None else window.grid.patches,
        "grid": "null" if window is None else str([*window.grid, window.patch, window.stride]),
        "array": "Uint8Array" if files.pixel == "uint8_t" else "Float32Array",
    }
