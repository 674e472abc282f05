"""Writing a page of the documentation from its template and the measured numbers."""

from collections.abc import Sequence
from pathlib import Path

from iap.cli.tables import number

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[1] / "docs"
IMAGES = DOCS / "images"
TEMPLATES = Path(__file__).parent / "templates"


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; measurements with three significant digits."""
    cells = [header, ["---"] * len(header), *([number(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells) + "\n"


def write_page(name: str, **parts: object) -> None:
    """Fill the template of a page and write the page."""
    template = (TEMPLATES / name).read_text(encoding="utf-8")
    (DOCS / name).write_text(template.format(**parts), encoding="utf-8")
    print(f"wrote {DOCS.name}/{name}")
