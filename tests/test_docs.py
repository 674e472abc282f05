"""The documentation: links, commands, code examples and generated tables."""

import ast
import importlib
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from iap.cli import COMMANDS, parse

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *ROOT.glob("benchmarks/templates/*.md"),
    ]
)
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(iap [^`]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PLACEHOLDERS = {"n", "…"}


def code_blocks(text: str, language: str) -> list[str]:
    return [code for name, code in FENCED.findall(text) if name == language]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    headings = HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def is_example(words: list[str]) -> bool:
    """Whether a command is complete: without placeholders, and with more than the command's name."""
    return len(words) > 1 and not any(word.isupper() or word in PLACEHOLDERS for word in words)


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command that starts with `iap`."""
    lines = [line for code in code_blocks(text, "") for line in code.splitlines()]
    for line in [*lines, *INLINE.findall(FENCED.sub("", text))]:
        words = shlex.split(line, comments=True)
        if words[:1] == ["iap"]:
            yield words[1:]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_relative_links_have_a_target(page: Path) -> None:
    folder = ROOT / "docs" if "templates" in page.parts else page.parent  # a template becomes a page in docs
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = folder / path if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_parse(page: Path) -> None:
    for words in commands(page.read_text(encoding="utf-8").replace("{first_seed}", "1000")):
        assert words[0] in COMMANDS, f"{page.name}: iap {' '.join(words)}"
        if is_example(words) and "--help" not in words:
            parse(words)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_examples_compile_and_their_imports_resolve(page: Path) -> None:
    for code in code_blocks(page.read_text(encoding="utf-8"), "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("iap"):
                module = importlib.import_module(node.module or "")
                for alias in node.names:
                    assert hasattr(module, alias.name), f"{page.name}: {node.module} has no {alias.name}"


def test_public_names_of_the_examples_exist() -> None:
    import iap

    used = {
        name
        for page in PAGES
        for code in code_blocks(page.read_text(encoding="utf-8"), "python")
        for name in re.findall(r"\biap\.(\w+)\(", code)
    }
    assert used
    for name in used:
        assert callable(getattr(iap, name)), name


def test_generated_tables_are_up_to_date() -> None:
    tables = runpy.run_path(str(ROOT / "tools" / "write_tables.py"))
    for page in tables["PAGES"]:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert tables["with_tables"](text) == text, f"{page}: run python tools/write_tables.py"


def test_the_navigation_lists_every_page() -> None:
    listed = re.findall(r"[\w-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(page.name for page in ROOT.glob("docs/*.md"))
