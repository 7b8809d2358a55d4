"""Makes the picture of the README from real runs: `.venv/bin/python docs/make_pictures.py`, after ./lockstorm demo."""

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.driver.narrate import Event, show_result
from harness.driver.play import Wish, play

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


def main() -> None:
    console = Console(record=True, width=118, file=io.StringIO(), highlight=False)
    for wish in (
        Wish("gc-pause", "set-nx-px"),
        Wish("gc-pause", "set-nx-px-fenced", "fence-reads-and-writes"),
    ):
        events: list[Event] = []
        result = play(wish, story_to=events)
        console.print(f"[bold]$ ./{result['replay']}[/bold]")
        show_result(console, result, events)
        console.print()
    picture = console.export_svg(title="", theme=MONOKAI, code_format=FORMAT, unique_id="lockstorm")
    (Path(__file__).parent / "gc-pause.svg").write_text(picture)


if __name__ == "__main__":
    main()
