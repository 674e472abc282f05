"""Conventions of the source tree that no linter checks."""

import re
from collections import Counter
from pathlib import Path

import iap

SOURCES = Path(iap.__file__).parent
MOST_LINES = 300
MOST_MODULES = 15  # in one folder
ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "docs/*.md", "examples/*.py", "examples/*.ipynb", "benchmarks/**/*.py", "benchmarks/**/*.md")
PRIVATE_WORDS = (  # of earlier versions, with the word that is used now
    ("anchored", "relative to the first frame"),
    ("begun", "initialised"),
    ("departures?", "difference to the first frame"),
    ("eyes", "encoder"),
    ("foreign frames?", "replayed frames"),
    ("glances?|glanced", "encode"),
    ("keep_statistics", "freeze_normaliser"),
    ("lessons?", "samples"),
    ("look_every", "image_every"),
    ("obeys?|obeyed", "apply"),
    ("practises?|practised", "DAgger"),
    ("pupils?", "student"),
    ("recalls?", "first-frame features"),
    ("screened|screening", "random search"),
    ("start_from", "warm_start"),
    ("swapped attention", "random attention"),
    ("tally", "task queue"),
    ("taught", "distilled, pretrained"),
    ("told", "keypoints, teacher"),
    ("what holds", "guarantees"),
    ("who(ever|soever)", "name the actor"),
)


def test_no_module_has_more_than_300_lines():
    lines = {str(path.relative_to(SOURCES)): len(path.read_text().splitlines()) for path in SOURCES.rglob("*.py")}
    assert lines["__init__.py"] > 0
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_no_folder_has_more_than_15_modules():
    modules = Counter(path.parent for path in SOURCES.rglob("*.py"))
    assert modules[SOURCES] > 0
    assert {folder: count for folder, count in modules.items() if count > MOST_MODULES} == {}


def test_pages_and_sources_use_the_words_of_the_field():
    """Upgrades of old files are the only place for old words."""
    files = [path for path in SOURCES.rglob("*.py") if path.name != "upgrades.py"]
    files += [path for pattern in PAGES for path in ROOT.glob(pattern)]
    assert len(files) > len(PAGES)
    for path in files:
        text = path.read_text(encoding="utf-8")
        found = {word: now for word, now in PRIVATE_WORDS if re.search(rf"\b({word})\b", text, re.IGNORECASE)}
        assert found == {}, path
