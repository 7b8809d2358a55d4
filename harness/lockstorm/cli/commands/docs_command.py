"""`lockstorm docs`."""

import sys
from pathlib import Path

import click
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from lockstorm.base import paths
from lockstorm.base.option_fields import choose
from lockstorm.cli.options import json_option
from lockstorm.cli.terminal import console, print_json


def doc_pages() -> dict[str, Path]:
    """The pages by the names that `lockstorm docs` takes."""
    return {path.stem: path for path in sorted((paths.ROOT / "docs").glob("*.md")) if path.stem != "README"}


def page_title(page: Path) -> str:
    return next(line.removeprefix("# ") for line in page.read_text().splitlines() if line.startswith("# "))


def _list_pages(as_json: bool) -> None:
    titles = [(name, page_title(page)) for name, page in doc_pages().items()]
    if as_json:
        print_json({"docs": [{"name": name, "title": title} for name, title in titles]})
        return
    table = Table(box=None, padding=(0, 1), show_header=False)
    for name, title in titles:
        table.add_row(Text(name, "bold"), title)
    console().print(table)


@click.command("docs")
@click.argument("page", required=False)
@json_option
def docs_command(page: str | None, as_json: bool) -> int:
    """List the pages of the documentation; with PAGE, show one.

    On a terminal the page is formatted and goes through a pager. In a pipe it is Markdown.

    \b
    Example: lockstorm docs gate
    """
    if not page:
        _list_pages(as_json)
        return 0
    name = choose("page", page.removeprefix("docs/").removesuffix(".md"), list(doc_pages()))
    text = doc_pages()[name].read_text()
    if as_json:
        print_json({"name": name, "title": page_title(doc_pages()[name]), "text": text})
    elif not sys.stdout.isatty():
        click.echo(text, nl=False)
    else:
        out = console()
        with out.pager(styles=True):
            out.print(Markdown(text))
    return 0
