"""`lockstorm libraries`."""

import itertools
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.cli.options import json_option
from lockstorm.cli.terminal import console, print_json
from lockstorm.libraries.finding import FOUND, PLACE, Finding, program_of
from lockstorm.libraries.library_rows import LibraryRow, library_rows
from lockstorm.libraries.library_words import LibraryWords, read_words
from lockstorm.libraries.tried_release import TriedRelease, newest_release, try_release
from lockstorm.search.library_plan import PROMISES

VERDICT_STYLES = {"shown": "", "not shown": "green", "not tried": "yellow"}


@click.command("libraries")
@click.argument("name", required=False)
@click.option(
    "--newest", is_flag=True, help="Fetch the newest release of each library with findings, and replay them with it."
)
@click.option(
    "--release",
    "releases",
    metavar="VERSION,…",
    help="Fetch these releases of NAME's library, and replay its findings.",
)
@json_option
def libraries_command(name: str | None, newest: bool, releases: str | None, as_json: bool) -> int:
    """List lock libraries with what a search of each has shown; with NAME of an adapter, describe one in words.

    \b
    Example: lockstorm libraries; lockstorm libraries redis-py
             lockstorm libraries --newest
             lockstorm libraries sherlock --release 0.4.0,0.3.2
             lockstorm libraries --json > libraries.json; lockstorm report libraries.json
    Exit status of --newest and --release: 0 each release shows its findings, 1 one does not show a finding, 3 one could
    not be tried. `lockstorm docs libraries` has the whole table of libraries and promises, and all findings.
    """
    rows = library_rows()
    chosen = rows[choose("library", name, list(rows))] if name else None
    if releases is not None:
        if not chosen or newest:
            raise UsageError("--release needs NAME, and no --newest: lockstorm libraries NAME --release VERSION")
        words = [word.strip() for word in releases.split(",")]
        if not all(words):
            raise UsageError(f"--release {releases!r} has an empty version")
        return _try_releases([chosen], [partial(_named_release, word) for word in words], as_json)
    if newest:
        return _try_releases([chosen] if chosen else list(rows.values()), [newest_release], as_json)
    if chosen:
        if as_json:
            print_json(chosen.json)
        else:
            _tell(console(), chosen)
        return 0
    if as_json:
        left_out = [{"name": each.name, "why": each.why} for each in read_words()[1]]
        table = {"libraries": [row.json for row in rows.values()], "left_out": left_out, "promises": PROMISES}
        print_json(table)
        return 0
    console().print(_table(list(rows.values())))
    return 0


def _named_release(version: str, _: LibraryWords) -> str:
    return version


def _try_releases(rows: list[LibraryRow], releases_of: list[Callable[[LibraryWords], str]], as_json: bool) -> int:
    """`releases_of`: each tells a version of a library."""
    out, releases = console(), list[TriedRelease]()
    for row, release_of in itertools.product(rows, releases_of):
        for name, finding in row.findings.items():
            tried = try_release(name, finding, partial(release_of, row.words))
            releases.append(tried)
            if not as_json:
                library = f"{finding.library} {tried.release}".strip()
                out.print(Text(tried.verdict, VERDICT_STYLES[tried.verdict]), Text(library, "bold"), Text(name, "dim"))
                out.print(Text(f"    {tried.why}"))
    if as_json:
        print_json({"findings": [asdict(each) for each in releases]})
    elif not releases:
        out.print("There is no finding of it.")
    verdicts = {each.verdict for each in releases}
    return 1 if "not shown" in verdicts else 3 if "not tried" in verdicts else 0


def _table(rows: list[LibraryRow]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in ("adapter", "release", "findings", "the search"):
        table.add_column(title, no_wrap=title == "adapter", overflow="fold")
    for row in rows:
        kept = row.figures and not row.figures.broken
        table.add_row(
            Text(row.adapter, "bold"),
            row.release,
            Text(str(len(row.findings) or "-"), "" if row.findings else "dim"),
            Text(row.sentence, "green" if kept else ""),
        )
    return table


def _tell(out: Console, row: LibraryRow) -> None:
    words = row.words
    out.print(Text(row.release, "bold"), Text(f"{words.package}, {words.language}, {words.licence}", "dim"))
    out.print()
    out.print(words.use)
    if words.beware:
        out.print(words.beware)
    out.print(f"The search: {row.sentence}.")
    for name, finding in row.findings.items():
        out.print()
        _tell_finding(out, name, finding)


def _tell_finding(out: Console, name: str, finding: Finding) -> None:
    out.print(Text(finding.title, "bold"))
    table = Table(box=None, padding=(0, 1), show_header=False)
    program = program_of(PLACE / name)
    for key, value in {
        "releases": ", ".join(finding.shown_in),
        "promised": finding.promise,
        "instead": finding.what,
        "so": finding.consequence,
        "way round": finding.workaround,
        "reported": ", ".join((finding.reported, *finding.threads)),
        "again": f"lockstorm replay findings/{name}/{FOUND}",
        "without lockstorm": f"findings/{name}/{program.name}" if program else "",
    }.items():
        if value:
            table.add_row(Text(key, "dim"), value)
    out.print(table)
