"""Makes the pictures of the README from real runs, and of the table that real runs are held against:
`.venv/bin/python docs/make_pictures.py`, after ./lockstorm test."""

import io
import sys
import tempfile
from pathlib import Path

import msgspec
from rich.console import Console
from rich.terminal_theme import MONOKAI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

from lockstorm.matrix.matrix import expected_matrix
from lockstorm.report.report import write
from lockstorm.report.story import show_result
from lockstorm.report.window import ROWS_USUAL
from lockstorm.results.event import Event
from lockstorm.scenario.play import play
from lockstorm.trial.settings import TrialSettings
from tests.helpers.browsing import browser, visit

# rich's own format without the web fonts: the picture loads nothing.
FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
 line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>{lines}</defs>
<rect fill="#0c0c0c" x="1" y="1" width="{width}" height="{height}" rx="8" />
<g transform="translate({terminal_x}, 12)" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


HERE = Path(__file__).parent
SCREEN = {"width": 1280, "height": 1230}


def main() -> None:
    picture_of_the_story()
    pictures_of_the_report()
    picture_of_the_matrix()


def picture_of_the_matrix() -> None:
    with tempfile.TemporaryDirectory() as directory:
        matrix, page = Path(directory) / "matrix.json", Path(directory) / "matrix.html"
        matrix.write_bytes(msgspec.json.encode(expected_matrix()))
        write(matrix, None, page, None, ROWS_USUAL, None)
        with browser() as running, visit(running, page, viewport=SCREEN) as seen:
            seen.page.get_by_label("gc-pause, redlock, open: violated").click()
            seen.page.mouse.move(0, 0)
            seen.page.evaluate("scrollTo(0, 0)")
            seen.page.screenshot(path=HERE / "matrix.png")


def pictures_of_the_report() -> None:
    with tempfile.TemporaryDirectory() as directory:
        history, page = Path(directory) / "gc.history", Path(directory) / "gc.html"
        play(TrialSettings("set-nx-px", "gc-pause"), save=history)
        write(history, None, page, HERE / "report.svg", ROWS_USUAL, None)
        with browser() as running, visit(running, page, viewport=SCREEN) as seen:
            seen.page.locator(".event", has_text="accepts 1 of client-1").locator("text.word").click()
            seen.page.mouse.move(0, 0)
            seen.page.evaluate("scrollTo(0, 0)")
            seen.page.screenshot(path=HERE / "report.png")


def picture_of_the_story() -> None:
    console = Console(record=True, width=118, file=io.StringIO(), highlight=False)
    for request in (
        TrialSettings("set-nx-px", "gc-pause"),
        TrialSettings("set-nx-px-fenced", "gc-pause", store="fence-reads-and-writes"),
    ):
        events: list[Event] = []
        result = play(request, story_to=events)
        console.print(f"[bold]$ ./{result.replay}[/bold]")
        show_result(console, result, events)
        console.print()
    picture = console.export_svg(title="", theme=MONOKAI, code_format=FORMAT, unique_id="lockstorm")
    (HERE / "gc-pause.svg").write_text(picture)


if __name__ == "__main__":
    main()
