import json
import subprocess
import sys

import pytest
from training_cases import iap, iap_here

from iap.attention import KERNELS
from iap.cli import COMMANDS, overview
from iap.evolution import STRATEGIES
from iap.policies import CONTROLLERS, ENCODERS
from iap.training.presets import HIERARCHIES, PRESETS

BENCHMARKS = ["attention", "database", "rollouts", "frames"]
PACKAGES = {f"iap.cli.commands{name}" for name in ("", ".training", ".evaluation", ".policies", ".machine")}
HEAVY = ("jax", "mujoco", "dm_control", "numba", "matplotlib", "torch")


def modules_after(code: str) -> set[str]:
    """The modules that a new process has imported after some code."""
    code += "\nimport json, sys; sys.stderr.write(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr))


@pytest.mark.parametrize("words", [[name] for name in COMMANDS] + [["bench", name] for name in BENCHMARKS])
def test_every_command_has_help_with_an_example(words):
    shown = " ".join(iap_here(*words, "--help").stdout.split())
    assert f"Example: iap {' '.join(words)}" in shown


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_the_overview_lists_every_command_with_the_first_line_of_its_docstring(words):
    lines = {line.split()[0]: line for line in iap_here(*words).stdout.splitlines() if line.startswith("  ")}
    assert set(lines) == set(COMMANDS)
    for name, line in lines.items():
        assert line.split(maxsplit=1)[1] == (COMMANDS[name].__doc__ or "").splitlines()[0]


def test_the_overview_is_the_same_before_and_after_commands_are_imported():
    before = iap("--help").stdout
    assert all(COMMANDS[name] for name in COMMANDS)
    assert overview() == before


def test_the_overview_imports_no_command():
    modules = modules_after("from iap.cli import overview; overview()")
    assert not {name for name in modules if name.startswith("iap.cli.")} - PACKAGES
    assert not modules & {*HEAVY, "numpy", "tyro", "rich"}


AFTER_HELP = """
import json, os, sys
import iap.cli.console  # with the parser, which all commands use
for name in sys.argv[1:]:
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            iap.cli.parse([name, "--help"])
        except SystemExit:
            sys.stderr.write(json.dumps([name, list(sys.modules)]) + "\\n")
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def modules_after_help():
    """The modules that the help of each command imports, each in a process of its own."""
    words = [sys.executable, "-c", AFTER_HELP, *COMMANDS]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = {name: set(modules) for name, modules in map(json.loads, done.stderr.splitlines())}
    assert list(found) == list(COMMANDS)
    return found


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"train", "distill"}))
def test_help_of_a_command_imports_only_its_module_and_no_heavy_library(name, modules_after_help):
    modules = modules_after_help[name]
    imported = {module for module in modules if module.startswith("iap.cli.")}
    assert COMMANDS[name].__module__ in imported
    assert not imported & {COMMANDS[other].__module__ for other in COMMANDS if other != name}
    assert not modules & {*HEAVY, "numpy"}


@pytest.mark.parametrize("name", ["train", "distill"])
def test_help_of_training_imports_no_simulator_and_no_jax(name, modules_after_help):
    assert not modules_after_help[name] & {"jax", "mujoco", "dm_control", "matplotlib", "torch", "evosax"}


def test_help_of_train_lists_all_registered_names():
    shown = " ".join(iap_here("train", "--help").stdout.replace("│", " ").split())
    for registry in (PRESETS, ENCODERS, KERNELS, CONTROLLERS, HIERARCHIES, STRATEGIES):
        assert ", ".join(registry) in shown
