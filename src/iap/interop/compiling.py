"""Writing and compiling the C code of a policy, and running other tools."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iap._files import write_whole

if TYPE_CHECKING:
    from iap.interop.c.files import CFiles

# What -ffast-math allows, without its start-up code: a library that is linked with -ffast-math makes subnormal numbers
# zero in the whole process that loads it.
FAST_MATH = tuple(
    f"-f{option}"
    for option in (
        "no-math-errno",
        "no-trapping-math",
        "no-signed-zeros",
        "finite-math-only",
        "associative-math",
        "reciprocal-math",
        "fp-contract=fast",
    )
)
FAST = ("-O3", "-march=native", *FAST_MATH)
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic")
LONGEST_S = 300  # of a compiler or a program


def find_compiler() -> str:
    """The C compiler: $CC, or the first of cc, gcc and clang."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    raise FileNotFoundError("there is no C compiler: install one (apt-get install gcc), or set CC to its path")


def compile_c(
    files: "CFiles",
    folder: Path,
    out: str,
    *,
    flags: Sequence[str] = (),
    sources: Sequence[Path] = (),
    compiler: str = "",
) -> Path:
    """Write the two files to a folder and compile them; warnings are shown in the error if it fails.

    Args:
        files: the policy in C.
        folder: where the files are written.
        out: the name of the result in the folder.
        flags: of the compiler.
        sources: further source files.
        compiler: the compiler; the system's by default.
    """
    write_c(files, folder)
    result = folder / out
    command = [compiler or find_compiler(), *WARNINGS, *flags, "-o", result, folder / f"{files.name}.c", *sources]
    run_tool(command if "-c" in flags else [*command, "-lm"], "the C compiler")
    return result


def run_tool(command: Sequence[Any], what: str, *, folder: Path | None = None) -> str:
    """The output of a command; a failure, or more than five minutes, is a RuntimeError with its messages.

    Args:
        command: the program and its arguments.
        what: its name in the message.
        folder: where it runs.
    """
    words = [str(part) for part in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{what} did not end within {LONGEST_S} s") from None
    if done.returncode != 0:
        raise RuntimeError(f"{what} failed with status {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def write_c(files: "CFiles", folder: Path) -> list[Path]:
    """Write NAME.h and NAME.c."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix, text in (("h", files.header), ("c", files.source)):
        path = folder / f"{files.name}.{suffix}"
        write_whole(path, text.encode())
        written.append(path)
    return written
