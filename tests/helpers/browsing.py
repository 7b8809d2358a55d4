"""Opens pages in a headless Chromium. A test fails if its page logs an error or loads a file."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE_MS = 60_000  # a busy machine may take seconds for a frame


@dataclass
class Visit:
    """An open page, its console messages and errors, and the addresses that it loaded."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)


def chromium() -> str:
    """The browser that ci/packages names; LOCKSTORM_CHROMIUM chooses another one. The one without windows takes a third
    of the processor time of the others."""
    names = (os.environ.get("LOCKSTORM_CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser")
    found = next((where for name in names if name and (where := shutil.which(name))), None)
    assert found, "no chromium here: ./lockstorm test installs it"
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    # A page of our own needs no sandbox, and in a container root does not get one.
    with sync_playwright() as started:
        running = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


@contextmanager
def visit(running: Browser, path: Path, **requests: Any) -> Iterator[Visit]:
    """Opens a page file. `requests`: as for a new page, such as viewport or color_scheme."""
    page = running.new_page(**{"viewport": {"width": 1400, "height": 900}, **requests})
    page.set_default_timeout(PATIENCE_MS)
    seen = Visit(page)
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", lambda request: seen.loads.append(request.url))
    try:
        page.goto(path.as_uri())
        yield seen
    finally:
        page.close()
    assert seen.complaints == []
    assert [url for url in seen.loads if not url.startswith(("data:", "blob:"))] == [path.as_uri()]
