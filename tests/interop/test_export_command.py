"""`iap export`."""

from pathlib import Path

import pytest

from iap.cli import execute, parse


@pytest.mark.parametrize(
    ("options", "files"),
    [
        (["--format", "onnx"], {"seek.onnx"}),
        (["--image-type", "uint8", "--test-steps", "0"], {"seek.h", "seek.c", "CMakeLists.txt"}),
        (["--name", "My agent", "--image-type", "float32", "--test-steps", "0"], {"my_agent.h", "my_agent.c"}),
    ],
)
def test_a_policy_is_written_in_a_format(options: list[str], files: set[str], tmp_path: Path, capsys) -> None:
    execute(parse(["export", "zoo:seek", "--out", str(tmp_path / "out"), *options]))
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert files <= written
    printed = "".join(capsys.readouterr().out.split())
    assert all(name in printed for name in files)
