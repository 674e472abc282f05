"""Without a library or a compiler the error is one line with the command that installs it."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from export_cases import recorded, zoo_policy

from iap._extras import MissingExtraError
from iap.cli import main
from iap.interop.c import policy_to_c
from iap.interop.native import NativePolicy
from iap.interop.node import run_in_node
from iap.interop.onnx import OnnxPolicy, policy_to_onnx
from iap.interop.wasm import find_wasm_compiler


@pytest.mark.parametrize(
    ("package", "module", "extra"),
    [
        ("iap.interop.torch", "torch", "torch"),
        ("iap.interop.sb3", "torch", "torch"),
        ("iap.interop.sb3", "stable_baselines3", "sb3"),
    ],
)
def test_a_package_whose_library_is_missing_cannot_be_imported(
    package: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("iap.interop.torch", "iap.interop.sb3"))]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("stable_baselines3.")]:
        monkeypatch.delitem(sys.modules, name)  # an imported part is found without its package
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as error:
        import_module(package)
    assert str(error.value) == f'{package} needs {module}: install it with pip install "iap-rl[{extra}]"'


@pytest.mark.parametrize("module", ["onnx", "onnxruntime"])
def test_onnx_names_its_extra(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = policy_to_onnx(zoo_policy("seek")).SerializeToString()
    monkeypatch.setitem(sys.modules, module, None)
    use: dict[str, Callable[[], object]] = {
        "onnx": lambda: policy_to_onnx(zoo_policy("seek")),
        "onnxruntime": lambda: OnnxPolicy(content),
    }
    with pytest.raises(MissingExtraError, match=rf'^.* needs {module}: install it with pip install "iap-rl\[onnx\]"$'):
        use[module]()


@pytest.mark.parametrize(
    ("use", "command"),
    [
        (NativePolicy, "apt-get install gcc"),
        (lambda policy: find_wasm_compiler(), "apt-get install clang lld wasi-libc libclang-rt-dev-wasm32"),
        (
            lambda policy: run_in_node(policy_to_c(policy, "seek"), policy, recorded(policy, "uint8", 1, 1)),
            "apt-get install nodejs",
        ),
    ],
)
def test_a_missing_compiler_is_named_with_its_package(
    use: Callable, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "")
    with pytest.raises(FileNotFoundError) as error:
        use(zoo_policy("seek"))
    assert command in str(error.value)
    assert "\n" not in str(error.value)


def test_the_command_line_prints_that_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ["iap", "export", "zoo:seek", "--format", "wasm", "--image-type", "uint8", "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(
        SystemExit, match=r"^iap: there is no compiler for WebAssembly: apt-get install clang lld"
    ) as done:
        main()
    assert "\n" not in str(done.value)
    assert "Traceback" not in capsys.readouterr().err
