"""docs/libraries.md: the tables of libraries and promises, and the findings. `make libraries` writes them anew."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_text
from lockstorm.base.marked_pages import content_with
from lockstorm.base.text_template import text_template
from lockstorm.libraries.finding import PLACE, findings, program_of
from lockstorm.libraries.library_rows import library_rows
from lockstorm.libraries.library_words import read_words
from lockstorm.libraries.promise_figures import PromiseFigures
from lockstorm.search.library_plan import PROMISES

PAGE = paths.ROOT / "docs" / "libraries.md"
TEMPLATE = Path(__file__).with_suffix(".md.j2")
KEPT, NOT_MADE = "·", "-"


def _cells(figures: PromiseFigures) -> Iterator[str]:
    """Of each promise: one in how many schedules broke it; bold: also without a fault."""
    for promise in PROMISES:
        count = figures.broken.get(promise, 0)
        kept = NOT_MADE if promise in figures.inapplicable else KEPT
        share = f"1:{max(1, round(figures.schedules / count)):,}" if count else kept
        yield f"**{share}**" if promise in figures.by_calls else share


def libraries_text() -> str:
    rows, content = list(library_rows().values()), PAGE.read_text()
    parts: Any = text_template(TEMPLATE).module  # its macros are attributes
    sections = (parts.finding(name, finding, program_of(PLACE / name)) for name, finding in findings().items())
    for name, text in {
        "libraries": parts.promises(rows, list(PROMISES), _cells),
        "traits": parts.traits(rows),
        "words": parts.words(rows, read_words()[1]),
        "findings": "\n".join(sections),
    }.items():
        content = content_with(content, text, f"<!-- {name}: begin -->", f"<!-- {name}: end -->", PAGE)
    return content


if __name__ == "__main__":
    write_text(PAGE, libraries_text())
