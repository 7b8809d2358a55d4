"""Pages with generated parts, each between two marks."""

import re
from pathlib import Path

from lockstorm.base.errors import UsageError


def page_with(page: Path, text: str, begin: str, end: str) -> str:
    """The page with `text` between the marks. Raises UsageError when a mark is not there exactly once."""
    return content_with(page.read_text(), text, begin, end, page)


def content_with(content: str, text: str, begin: str, end: str, page: Path) -> str:
    """The same of the content of a page, which messages name."""
    if content.count(begin) != 1 or content.count(end) != 1:
        raise UsageError(f"{page}: the marks {begin} and {end} must each occur exactly once")
    return re.sub(
        f"({re.escape(begin)}\n).*({re.escape(end)})",
        lambda found: f"{found[1]}\n{text}\n{found[2]}",
        content,
        flags=re.S,
    )
