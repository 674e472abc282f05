"""Compiled functions and their cache: never stale, the same result from every process, and usable everywhere.

Each program runs in a process of its own, with a cache folder of its own.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding
import numba
import numpy as np
import pytest

import iap
from iap._compile import compiled, dispatched, implements

CALL = "import toy; print(toy.twice_plus(3))"
DOUBLE = """
import numpy as np
from iap.attention.kernels.families import times_powers_of_two
values = np.ones(2, np.float32)
times_powers_of_two(values, np.ones(2, np.float32))
print(values.round(3))
"""
STEP = """
import numpy as np
from iap.policies import Policy, PolicyConfig, PooledMoments, Rank, init
config = PolicyConfig((12, 16, 3), 2, 2, encoder=Rank(2, 2, features=PooledMoments(2)))
policy, rng = Policy(config, init(config, 0)), np.random.default_rng(0)
state = policy.reset()
for _ in range(5):
    image, sensors = rng.integers(0, 256, config.image_shape, np.uint8), rng.standard_normal(2, np.float32)
    action, state, attention = policy.act(state, {"image": image, "sensors": sensors})
    print(action.tobytes().hex(), state.inputs.tobytes().hex(), attention.scores.tobytes().hex())
"""


@pytest.fixture
def toy(tmp_path) -> Path:
    """A package outside of ours: a compiled function that inlines one of another file."""
    package = tmp_path / "packages" / "toy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from toy.outer import twice_plus\n")
    (package / "outer.py").write_text(
        "from iap._compile import compiled\nfrom toy.inner import twice\n\n"
        "@compiled\ndef twice_plus(x):\n    return twice(x) + 1\n"
    )
    (package / "inner.py").write_text(
        "from iap._compile import compiled\n\n@compiled(inner=True)\ndef twice(x):\n    return 2 * x\n"
    )
    return package


def environment(tmp_path: Path, **changes: str | None) -> dict[str, str]:
    """Of a process whose cache folder is in `tmp_path`; None removes a variable."""
    paths = [str(tmp_path / "packages"), os.environ.get("PYTHONPATH", "")]
    variables: dict[str, str | None] = {**os.environ, "IAP_CACHE_DIR": str(tmp_path / "cache")}
    variables |= {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(tmp_path)} | changes
    return {name: value for name, value in variables.items() if value is not None}


def run(program: str, tmp_path: Path, **changes: str | None) -> str:
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(tmp_path, **changes),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def machine_code(folder: Path) -> dict[str, int]:
    """The files of machine code below a folder, and when they were written."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*.nbc")}


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_an_edit_of_an_inlined_function_of_another_package_takes_effect(tmp_path, toy):
    assert run(CALL, tmp_path) == "7\n"
    before = machine_code(tmp_path / "cache")
    assert run(CALL, tmp_path) == "7\n"
    assert machine_code(tmp_path / "cache") == before  # loaded, not compiled again
    replace_text(toy / "inner.py", "2 * x", "20 * x")
    assert run(CALL, tmp_path) == "61\n"
    replace_text(toy / "inner.py", "20 * x", "2 * x")
    assert run(CALL, tmp_path) == "7\n"


def test_an_edit_of_an_inlined_function_of_the_package_takes_effect(tmp_path):
    copy = tmp_path / "packages" / "iap"
    shutil.copytree(Path(iap.__file__).parent, copy, ignore=shutil.ignore_patterns("*.policy", "__pycache__"))
    assert run(DOUBLE, tmp_path) == "[2. 2.]\n"
    inlined = copy / "attention" / "kernels" / "elementary.py"
    replace_text(inlined, "y = max(y, SMALLEST_EXPONENT)", "y = max(y, SMALLEST_EXPONENT) + np.float32(1)")
    assert run(DOUBLE, tmp_path) == "[4. 4.]\n"
    assert len(list((tmp_path / "cache").iterdir())) == 2  # one folder for each state of the sources


def test_processes_that_compile_the_same_function_at_the_same_time_all_succeed(tmp_path, toy):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CALL], env=environment(tmp_path), cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    assert [process.communicate(timeout=600)[0] for process in started] == ["7\n"] * 3
    assert [process.returncode for process in started] == [0] * 3
    assert len(machine_code(tmp_path / "cache")) == 2  # each function once


@pytest.mark.slow
def test_a_policy_step_is_the_same_to_the_last_bit_compiled_or_loaded(tmp_path):
    cold = run(STEP, tmp_path)
    before = machine_code(tmp_path / "cache")
    warm = run(STEP, tmp_path)
    assert machine_code(tmp_path / "cache") == before
    assert cold == warm
    assert len(cold.splitlines()) == 5


@pytest.mark.parametrize("folder", ["read-only", "/proc/none/such"])
def test_a_cache_folder_that_cannot_be_written_is_replaced_by_a_temporary_one(folder, tmp_path, toy):
    path = tmp_path / folder
    if folder == "read-only":
        path.mkdir(mode=0o555)
    assert run(CALL, tmp_path, IAP_CACHE_DIR=str(path)) == "7\n"
    written = machine_code(tmp_path)
    assert len(written) == 2
    if os.getuid() != 0 or folder != "read-only":  # root can write to any folder
        assert all(name.startswith(f"iap-compiled-{os.getuid()}/") for name in written)


def test_a_temporary_folder_that_others_can_write_to_is_not_used(tmp_path, toy):
    shared = tmp_path / f"iap-compiled-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    assert run(CALL, tmp_path, IAP_CACHE_DIR="/proc/none/such") == "7\n"
    assert not list(shared.iterdir())
    assert len(machine_code(tmp_path)) == 2


@pytest.mark.parametrize("home", [None, "/none/such"])
def test_it_works_without_a_home_folder(home, tmp_path, toy):
    cache = str(tmp_path / "xdg")
    assert run(CALL, tmp_path, IAP_CACHE_DIR=None, XDG_CACHE_HOME=cache, HOME=home) == "7\n"
    assert len(machine_code(tmp_path / "xdg" / "iap" / "compiled")) == 2
    program = "from iap._compile_cache import cache_folder; print(cache_folder().is_dir())"
    assert run(program, tmp_path, IAP_CACHE_DIR=None, XDG_CACHE_HOME=None, HOME=home) == "True\n"


def test_folders_of_old_sources_are_deleted_after_a_month(tmp_path, toy):
    old, recent = tmp_path / "cache" / "old", tmp_path / "cache" / "recent"
    for folder, days in ((old, 31), (recent, 29)):
        folder.mkdir(parents=True)
        then = time.time() - days * 24 * 3600
        os.utime(folder, (then, then))
    assert run(CALL, tmp_path) == "7\n"
    assert not old.exists()
    assert recent.exists()


def test_classes_of_other_packages_leave_the_cache_readable_without_them(tmp_path, toy):
    (toy / "classes.py").write_text(
        "from typing import Any, NamedTuple\n\nclass Other(NamedTuple):\n"
        "    sensor_places: Any\n    sensor_signs: Any\n    sensor_offsets: Any\n"
    )
    places, numbers = "np.array([1, 0])", "np.float32([1, -1]), np.float32([0, 0])"
    reflect = "import numpy as np; from iap.policies.symmetry import Reflection, reflect_sensors as f; x = [2, 3];"
    foreign = f"{reflect} from toy.classes import Other; print(f(np.float32(x), Other({places}, {numbers})))"
    own = f"{reflect} print(f(np.float32(x), Reflection({places}, {numbers}, {places}, np.float32([1, 1]), 4)))"
    assert run(foreign, tmp_path) == "[ 3. -2.]\n"
    assert run(own, tmp_path, PYTHONPATH=os.environ.get("PYTHONPATH", "")) == "[ 3. -2.]\n"
    before = machine_code(tmp_path / "cache")
    assert run(foreign, tmp_path) == "[ 3. -2.]\n"
    assert machine_code(tmp_path / "cache") == before


class Cat(NamedTuple):
    weight: float


class Dog(NamedTuple):
    weight: float


class Fish(NamedTuple):
    weight: float


class Chain(NamedTuple):
    value: float
    rest: object


@dispatched
def sound(animal, times):
    """Replaced at compile time."""


@implements(sound, Cat)
@compiled(inner=True)
def _sound_of_cat(animal, times):
    return times * animal.weight


@implements(sound, Chain)
def _sound_of_chain(animal, times):
    return animal.value + sound(animal.rest, times)


@compiled
def listen(animal):
    return sound(animal, 3)


def test_the_class_of_the_first_argument_selects_the_implementation():
    assert listen(Cat(2.0)) == 6
    implements(sound, Dog)(compiled(inner=True)(lambda animal, times: -animal.weight))
    assert listen(Dog(2.0)) == -2
    assert listen(Cat(2.0)) == 6
    with pytest.raises(numba.TypingError, match="sound"):
        listen(Fish(2.0))


def test_an_implementation_may_call_the_same_function_for_what_follows_in_a_chain():
    assert listen(Chain(100.0, Chain(10.0, Cat(2.0)))) == 116


def test_an_inner_function_cannot_be_called_from_python():
    assert listen(Cat(1.0)) == 3
    with pytest.raises(TypeError, match="_sound_of_cat can be called only from compiled functions"):
        _sound_of_cat(Cat(1.0), 3)


def test_algebraic_transformations_are_off_unless_asked_for():
    @compiled
    def difference(x):
        return (x[0] + x[1]) - x[1]

    assert difference(np.array([1.0, 1e20])) == 0


HAS_FMA = llvmlite.binding.get_host_cpu_features().get("fma", False)
CONTRACTED = """
from iap._compile import _numba_dispatcher

def multiply_and_add(x):
    total = 0.0
    for i in range(x.size):
        total = total * x[i] + x[0]
    return total

from numba.core.types import float64
function = _numba_dispatcher(multiply_and_add, {"contract"}, inner=False)
function.compile((float64[::1],))
print("fma" in "".join(function.inspect_asm().values()))
"""


@pytest.mark.skipif(not HAS_FMA, reason="the processor has no such instruction")
def test_the_portable_mode_does_not_contract_multiplications_and_additions(tmp_path):
    assert run(CONTRACTED, tmp_path) == "True\n"
    assert run(CONTRACTED, tmp_path, IAP_PORTABLE="1") == "False\n"
