"""Pages with a generated part between two marks."""

import re
from pathlib import Path

from lockstorm.base.errors import UsageError


def page_with(page: Path, text: str, begin: str, end: str) -> str:
    """The page with `text` between the marks. Raises UsageError when a mark is not there exactly once."""
    content = page.read_text()
    if content.count(begin) != 1 or content.count(end) != 1:
        raise UsageError(f"{page}: the marks {begin} and {end} must each occur exactly once")
    return re.sub(
        f"({re.escape(begin)}\n).*({re.escape(end)})",
        lambda found: f"{found[1]}\n{text}\n{found[2]}",
        content,
        flags=re.S,
    )
