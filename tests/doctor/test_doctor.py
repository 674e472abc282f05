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
from iap.doctor.machine import UnfitError, try_disk, try_machine
from iap.doctor.parts import Trial, all_trials
from iap.doctor.report import Check, doctor, examine, table
from iap.envs.rendering.gl import INSTALL, RenderingError, explained

SOURCE = str(Path(iap.__file__).parents[1])
LONG_S = 300.0  # no trial that answers takes as long, however busy the machine


def check(name: str) -> Check:
    [trial] = [trial for trial in all_trials() if trial.name == name]
    return examine(trial, LONG_S)


def try_code(code: str, limit_s: float = LONG_S, *, required: bool = True, extra: str = "") -> Check:
    return examine(Trial("part", (sys.executable, "-c", code), required, extra), limit_s)


@pytest.fixture
def shadow(tmp_path, monkeypatch):
    """Put a module of one's own before the installed one, for all processes to come."""

    def put(name: str, code: str) -> None:
        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), SOURCE]))

    return put


@pytest.fixture
def without_screen(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
def test_the_doctor_finds_what_is_installed_here(tmp_path, without_screen):
    told = []
    checks = doctor(tmp_path, lambda name, share: told.append((name, share)), budget_s=15 * LONG_S)
    found = {check.name: check for check in checks}

    assert [check for check in checks if check.required and not check.ok] == []
    for extra, module in {"box2d": "Box2D", "torch": "torch", "ray": "ray"}.items():
        assert found[extra].ok == (find_spec(module) is not None), found[extra]
        assert not found[extra].required
    assert all((check.fix is None) == check.ok for check in checks)

    assert f"NumPy {version('numpy')}, Numba {version('numba')}" in found["NumPy and Numba"].detail
    assert found["JAX"].detail.startswith(f"{version('jax')} on ")
    assert f"mujoco {version('mujoco')}, dm_control {version('dm_control')}" in found["MuJoCo"].detail
    [rate] = re.findall(r"cheetah at 100×100: ([\d,]+) frames per second", found["OpenGL, egl"].detail)
    assert int(rate.replace(",", "")) > 0
    assert str(tmp_path) in found["disk"].detail

    names, shares = zip(*told, strict=True)
    assert names == (*found, "done")
    assert list(shares) == [i / len(checks) for i in range(len(checks) + 1)]


def test_the_doctor_itself_loads_none_of_what_it_tries():
    code = "import sys, iap.doctor.report; print(sys.modules.keys() & {'numpy', 'jax', 'gymnasium', 'mujoco'})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.slow
def test_the_time_of_compiling_is_told_when_there_was_any(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert re.search(r"compiled in \d+\.\d s", check("NumPy and Numba").detail)
    assert "compiled before" in check("NumPy and Numba").detail


def test_without_egl_the_packages_to_install_are_told(tmp_path, monkeypatch, without_screen):
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
def test_without_osmesa_its_package_is_told_and_is_required_only_if_chosen(chosen, monkeypatch, without_screen):
    monkeypatch.setenv("MUJOCO_GL", chosen)
    found = check("OpenGL, osmesa")
    assert not found.ok
    assert found.required == (chosen == "osmesa")
    assert found.detail == "the library libOSMesa is not installed"
    assert found.fix is not None
    assert found.fix.endswith("apt-get install -y libosmesa6")


@pytest.mark.parametrize(("chosen", "package"), [("egl", "libegl1"), ("osmesa", "libosmesa6")])
def test_a_drawing_that_fails_names_the_packages_of_its_backend(chosen, package, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", chosen)
    with pytest.raises(RenderingError, match=f"MUJOCO_GL is {chosen}.*apt-get install -y {package}"), explained():
        raise ImportError("no such library")


@pytest.mark.parametrize("chosen", ["glfw", "nonsense"])
def test_a_backend_that_cannot_work_here_is_to_be_changed(chosen, monkeypatch, without_screen):
    monkeypatch.setenv("MUJOCO_GL", chosen)
    found = check(f"OpenGL, {chosen}")
    assert (found.ok, found.required) == (False, True)
    assert chosen in found.detail
    assert found.fix == "export MUJOCO_GL=egl"


@pytest.mark.parametrize(("backend", "platform"), [("egl", "osmesa"), ("osmesa", "egl")])
def test_a_variable_that_forbids_a_backend_is_to_be_unset(backend, platform, monkeypatch, without_screen):
    monkeypatch.setenv("PYOPENGL_PLATFORM", platform)
    found = check(f"OpenGL, {backend}")
    assert not found.ok
    assert f"set to '{platform}'" in found.detail
    assert found.fix == "unset PYOPENGL_PLATFORM"


def test_where_a_backend_crashes_another_is_to_be_chosen(shadow, without_screen):
    shadow("mujoco", "import ctypes; ctypes.string_at(0)")
    assert check("OpenGL, egl") == Check(
        "OpenGL, egl", False, True, "crashes: Segmentation fault", "export MUJOCO_GL=osmesa"
    )


@pytest.mark.parametrize(("name", "module"), [("box2d", "Box2D"), ("torch", "torch"), ("ray", "ray")])
def test_a_missing_extra_is_to_be_installed(name, module, shadow):
    shadow(module, f"raise ModuleNotFoundError('No module named {module}')")
    found = check(name)
    assert (found.ok, found.required) == (False, False)
    assert found.fix == f'pip install "iap-rl[{name}]"'


def test_an_installed_but_broken_package_is_to_be_installed_anew(shadow):
    shadow("ray", "raise ImportError('_raylet.so: undefined symbol')")
    found = check("ray")
    assert not found.ok
    assert found.detail == "ImportError: _raylet.so: undefined symbol"
    assert found.fix == 'pip install --force-reinstall "iap-rl[ray]"'


def test_what_a_library_prints_does_not_get_into_the_answer(shadow):
    shadow("ray", "import os; print('hello'); os.write(1, b'hello'); __version__ = '1.2.3'")
    found = check("ray")
    assert found.ok
    assert found.detail == "ray 1.2.3, imported"


def test_a_segmentation_fault_is_told_as_such():
    found = try_code("import ctypes; ctypes.string_at(0)", required=False, extra="ray")
    assert found == Check(
        "part", False, False, "crashes: Segmentation fault", 'pip install --force-reinstall "iap-rl[ray]"'
    )


def test_a_process_that_gives_up_is_told_with_its_last_words():
    assert try_code("import sys; print('first', file=sys.stderr); sys.exit('last')").detail == "crashes: status 1: last"


def test_a_process_that_ends_without_an_answer_has_failed():
    found = try_code("import os; os._exit(0)")
    assert not found.ok
    assert found.detail == "crashes: status 0"


def test_a_command_that_cannot_be_started_is_a_finding(tmp_path):
    found = examine(Trial("part", (str(tmp_path / "nothing"),)), LONG_S)
    assert not found.ok
    assert found.detail.startswith("could not be tried: ")


def test_a_hanging_process_is_ended_with_all_that_it_started(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        hanging = Trial("part", ("sh", "-c", f"exec 3> {fifo}; echo started >&3; sleep 600 & wait"))
        found = examine(hanging, limit_s=5)
        assert not found.ok
        assert found.detail.startswith("no answer in 5.0 s")
        assert os.read(reader, 100) == b"started\n"
        readable, _, _ = select.select([reader], [], [], 60)
        assert readable, "something still holds the pipe open"
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_the_doctor_ends_in_time_even_if_everything_hangs(shadow, tmp_path):
    shadow("platform", "import time; time.sleep(600)")
    checks = doctor(tmp_path, budget_s=4)
    assert len(checks) == len(all_trials())
    assert not any(check.ok for check in checks)
    assert all("no answer in" in check.detail for check in checks)


def test_a_long_message_is_shortened_to_one_line(shadow):
    shadow("ray", "raise ImportError('several\\nlines, and ' + 200 * 'many words ')")
    detail = check("ray").detail
    assert detail.startswith("ImportError: several lines, and many words")
    assert len(detail) <= 300


def test_the_limits_of_a_container_are_respected(tmp_path):
    memory = tmp_path / "meminfo"
    memory.write_text("MemTotal: 64000000 kB\nMemAvailable: 32000000 kB\n")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000000000\n")
    assert "32.8 GB of free memory" in try_machine(tmp_path, memory)
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text("4000000000\n")
    assert try_machine(tmp_path, memory) == "1 usable core, 3.0 GB of free memory: room for 1 worker"
    (tmp_path / "memory.max").write_text("2000000000\n")
    with pytest.raises(UnfitError, match=r"1\.0 GB of free memory; 1\.5 GB are needed"):
        try_machine(tmp_path, memory)


def test_the_disk_is_that_of_the_nearest_folder_there_is(tmp_path):
    assert try_disk(str(tmp_path / "not" / "yet")).endswith(f"GB free in {tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_named(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UnfitError, match=f"{file} cannot be written to"):
        try_disk(str(file / "runs"))


def test_the_table_shows_each_command_letter_by_letter():
    checks = [
        Check("one", True, True, "works [well]"),
        Check("two", False, False, "absent", 'pip install "iap-rl[box2d]"'),
        Check("three", False, True, "broken"),
    ]
    out = StringIO()
    Console(file=out, width=100).print(table(checks))
    lines = [re.split(r"\s{2,}", line.strip()) for line in out.getvalue().splitlines()]
    assert ["one", "yes", "works [well]"] in lines
    assert lines[lines.index(["two", "no, optional", "absent"]) + 1] == ['pip install "iap-rl[box2d]"']
    assert ["three", "no", "broken"] in lines


def test_the_modules_of_the_current_folder_are_not_taken_for_the_installed_ones(tmp_path, monkeypatch):
    Path(tmp_path, "json.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    assert check("Python").ok
