import ctypes.util
import os
import re
import select
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import iap
from iap.doctor.machine import CheckError, check_disk, check_machine
from iap.doctor.parts import Part, all_parts
from iap.doctor.report import Result, doctor, run_check, table
from iap.envs.rendering.gl import INSTALL, RenderingError, explained

SOURCE = str(Path(iap.__file__).parents[1])
LONG_S = 300.0  # time limit that no working check reaches, even on a busy machine


def check(name: str) -> Result:
    [part] = [part for part in all_parts() if part.name == name]
    return run_check(part, LONG_S)


def check_code(code: str, limit_s: float = LONG_S, *, required: bool = True, extra: str = "") -> Result:
    return run_check(Part("part", (sys.executable, "-c", code), required, extra), limit_s)


@pytest.fixture
def fake_module(tmp_path, monkeypatch):
    """Replace an installed module by a fake one in all child processes."""

    def put(name: str, code: str) -> None:
        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), SOURCE]))

    return put


@pytest.fixture
def no_display(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
def test_all_required_parts_work_here_and_extras_work_if_they_are_installed(tmp_path, no_display):
    progress = []
    results = doctor(tmp_path, lambda name, share: progress.append((name, share)), budget_s=15 * LONG_S)
    found = {result.name: result for result in results}

    assert [result for result in results if result.required and not result.ok] == []
    for extra, module in {"box2d": "Box2D", "torch": "torch", "ray": "ray"}.items():
        assert found[extra].ok == (find_spec(module) is not None), found[extra]
        assert not found[extra].required
    assert all((result.fix is None) == result.ok for result in results)

    assert f"NumPy {version('numpy')}, Numba {version('numba')}" in found["NumPy and Numba"].detail
    assert found["JAX"].detail.startswith(f"{version('jax')} on ")
    assert f"mujoco {version('mujoco')}, dm_control {version('dm_control')}" in found["MuJoCo"].detail
    [rate] = re.findall(r"cheetah at 100×100: ([\d,]+) frames per second", found["OpenGL, egl"].detail)
    assert int(rate.replace(",", "")) > 0
    assert str(tmp_path) in found["disk"].detail

    names, shares = zip(*progress, strict=True)
    assert names == (*found, "done")
    assert list(shares) == [i / len(results) for i in range(len(results) + 1)]


def test_the_parent_process_imports_none_of_the_checked_libraries():
    code = "import sys, iap.doctor.report; print(sys.modules.keys() & {'numpy', 'jax', 'gymnasium', 'mujoco'})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.slow
def test_the_compilation_time_is_reported_unless_the_cache_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("IAP_CACHE_DIR", str(tmp_path))
    assert re.search(r"compiled in \d+\.\d s", check("NumPy and Numba").detail)
    assert "loaded from the cache" in check("NumPy and Numba").detail


def test_if_egl_is_missing_the_fix_is_to_install_its_packages(tmp_path, monkeypatch, no_display):
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_DIRS", str(tmp_path))
    found = check("OpenGL, egl")
    assert not found.ok
    assert found.required
    assert "EGL display" in found.detail
    assert found.fix is not None
    assert "apt-get update && " in found.fix
    assert found.fix.endswith(INSTALL.removeprefix("sudo "))
    assert found.fix.startswith("sudo ") == (os.geteuid() != 0)


@pytest.mark.skipif(ctypes.util.find_library("OSMesa") is not None, reason="OSMesa is installed")
@pytest.mark.parametrize("chosen", ["egl", "osmesa"])
def test_if_osmesa_is_missing_the_fix_is_its_package_and_it_is_required_only_if_chosen(chosen, monkeypatch, no_display):
    monkeypatch.setenv("MUJOCO_GL", chosen)
    found = check("OpenGL, osmesa")
    assert not found.ok
    assert found.required == (chosen == "osmesa")
    assert found.detail == "the library libOSMesa is not installed"
    assert found.fix is not None
    assert found.fix.endswith("apt-get install -y libosmesa6")


@pytest.mark.parametrize(("chosen", "package"), [("egl", "libegl1"), ("osmesa", "libosmesa6")])
def test_a_rendering_error_names_the_packages_of_its_backend(chosen, package, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", chosen)
    with pytest.raises(RenderingError, match=f"MUJOCO_GL is {chosen}.*apt-get install -y {package}"), explained():
        raise ImportError("no such library")


@pytest.mark.parametrize("chosen", ["glfw", "nonsense"])
def test_if_a_backend_cannot_work_here_the_fix_is_another_backend(chosen, monkeypatch, no_display):
    monkeypatch.setenv("MUJOCO_GL", chosen)
    found = check(f"OpenGL, {chosen}")
    assert (found.ok, found.required) == (False, True)
    assert chosen in found.detail
    assert found.fix == "export MUJOCO_GL=egl"


@pytest.mark.parametrize(("backend", "platform"), [("egl", "osmesa"), ("osmesa", "egl")])
def test_if_a_variable_excludes_a_backend_the_fix_is_to_unset_it(backend, platform, monkeypatch, no_display):
    monkeypatch.setenv("PYOPENGL_PLATFORM", platform)
    found = check(f"OpenGL, {backend}")
    assert not found.ok
    assert f"set to '{platform}'" in found.detail
    assert found.fix == "unset PYOPENGL_PLATFORM"


def test_if_a_backend_crashes_the_fix_is_another_backend(fake_module, no_display):
    fake_module("mujoco", "import ctypes; ctypes.string_at(0)")
    assert check("OpenGL, egl") == Result(
        "OpenGL, egl", False, True, "crashes: Segmentation fault", "export MUJOCO_GL=osmesa"
    )


@pytest.mark.parametrize(("name", "module"), [("box2d", "Box2D"), ("torch", "torch"), ("ray", "ray")])
def test_if_an_extra_is_missing_the_fix_is_to_install_it(name, module, fake_module):
    fake_module(module, f"raise ModuleNotFoundError('No module named {module}')")
    found = check(name)
    assert (found.ok, found.required) == (False, False)
    assert found.fix == f'pip install "iap-rl[{name}]"'


def test_if_a_package_is_broken_the_fix_is_to_reinstall_it(fake_module):
    fake_module("ray", "raise ImportError('_raylet.so: undefined symbol')")
    found = check("ray")
    assert not found.ok
    assert found.detail == "ImportError: _raylet.so: undefined symbol"
    assert found.fix == 'pip install --force-reinstall "iap-rl[ray]"'


def test_output_of_a_library_is_not_part_of_the_result(fake_module):
    fake_module("ray", "import os; print('hello'); os.write(1, b'hello'); __version__ = '1.2.3'")
    found = check("ray")
    assert found.ok
    assert found.detail == "ray 1.2.3, imported"


def test_a_segmentation_fault_is_reported_as_a_crash():
    found = check_code("import ctypes; ctypes.string_at(0)", required=False, extra="ray")
    assert found == Result(
        "part", False, False, "crashes: Segmentation fault", 'pip install --force-reinstall "iap-rl[ray]"'
    )


def test_an_exit_status_is_reported_with_the_last_line_of_standard_error():
    assert (
        check_code("import sys; print('first', file=sys.stderr); sys.exit('last')").detail == "crashes: status 1: last"
    )


def test_a_check_without_a_result_has_failed():
    found = check_code("import os; os._exit(0)")
    assert not found.ok
    assert found.detail == "crashes: status 0"


def test_a_command_that_cannot_be_started_is_a_failed_check(tmp_path):
    found = run_check(Part("part", (str(tmp_path / "nothing"),)), LONG_S)
    assert not found.ok
    assert found.detail.startswith("could not be run: ")


def test_a_check_that_hangs_is_killed_with_its_child_processes(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        hanging = Part("part", ("sh", "-c", f"exec 3> {fifo}; echo started >&3; sleep 600 & wait"))
        found = run_check(hanging, limit_s=5)
        assert not found.ok
        assert found.detail.startswith("no result after 5.0 s")
        assert os.read(reader, 100) == b"started\n"
        readable, _, _ = select.select([reader], [], [], 60)
        assert readable, "a process still holds the pipe open"
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_the_time_limit_holds_even_if_all_checks_hang(fake_module, tmp_path):
    fake_module("platform", "import time; time.sleep(600)")
    results = doctor(tmp_path, budget_s=4)
    assert len(results) == len(all_parts())
    assert not any(result.ok for result in results)
    assert all("no result after" in result.detail for result in results)


def test_a_long_message_is_shortened_to_one_line(fake_module):
    fake_module("ray", "raise ImportError('several\\nlines, and ' + 200 * 'many words ')")
    detail = check("ray").detail
    assert detail.startswith("ImportError: several lines, and many words")
    assert len(detail) <= 300


def test_the_limits_of_a_container_are_respected(tmp_path):
    memory = tmp_path / "meminfo"
    memory.write_text("MemTotal: 64000000 kB\nMemAvailable: 32000000 kB\n")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000000000\n")
    assert "32.8 GB of free memory" in check_machine(tmp_path, memory)
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text("4000000000\n")
    assert check_machine(tmp_path, memory) == "1 usable core, 3.0 GB of free memory: enough for 1 worker"
    (tmp_path / "memory.max").write_text("2000000000\n")
    with pytest.raises(CheckError, match=r"1\.0 GB of free memory; 1\.5 GB are needed"):
        check_machine(tmp_path, memory)


def test_free_space_is_that_of_the_nearest_folder_that_exists(tmp_path):
    assert check_disk(str(tmp_path / "not" / "yet")).endswith(f"GB free in {tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(CheckError, match=f"{file} cannot be written to"):
        check_disk(str(file / "runs"))


def test_the_table_shows_the_fixes_unchanged():
    results = [
        Result("one", True, True, "works [well]"),
        Result("two", False, False, "absent", 'pip install "iap-rl[box2d]"'),
        Result("three", False, True, "broken"),
    ]
    out = StringIO()
    Console(file=out, width=100).print(table(results))
    lines = [re.split(r"\s{2,}", line.strip()) for line in out.getvalue().splitlines()]
    assert ["one", "yes", "works [well]"] in lines
    assert lines[lines.index(["two", "no, optional", "absent"]) + 1] == ['pip install "iap-rl[box2d]"']
    assert ["three", "no", "broken"] in lines


def test_checks_do_not_import_modules_of_the_current_folder(tmp_path, monkeypatch):
    Path(tmp_path, "json.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    assert check("Python").ok
