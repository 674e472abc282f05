"""Conventions of the source tree that no linter checks."""

from collections import Counter
from pathlib import Path

import iap

SOURCES = Path(iap.__file__).parent
MOST_LINES = 300
MOST_MODULES = 15  # in one folder


def test_no_module_has_more_than_300_lines():
    lines = {str(path.relative_to(SOURCES)): len(path.read_text().splitlines()) for path in SOURCES.rglob("*.py")}
    assert lines["__init__.py"] > 0
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_no_folder_has_more_than_15_modules():
    modules = Counter(path.parent for path in SOURCES.rglob("*.py"))
    assert modules[SOURCES] > 0
    assert {folder: count for folder, count in modules.items() if count > MOST_MODULES} == {}
