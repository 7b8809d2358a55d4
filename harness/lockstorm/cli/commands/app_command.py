"""`lockstorm app init` and `lockstorm app check`."""

import json
import os
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from lockstorm.application.application_file import USUAL_FILE
from lockstorm.application.starter_application import starter_application
from lockstorm.base.atomic_file import write_text
from lockstorm.base.paths import USUAL_POLICY
from lockstorm.cli.options import json_option, path_option
from lockstorm.cli.terminal import check_new_file, console, print_result, waiting
from lockstorm.report.application_model import WORDS
from lockstorm.search.application_check import CheckedApplication, CheckedRequest, check_application


@click.group("app")
def app_command() -> None:
    """Describe an application, and see what its requests do to locks and data.

    \b
    Example: lockstorm app init; lockstorm app check; lockstorm explore --app lockstorm-app.toml
    `lockstorm docs applications` goes through it.
    """


@app_command.command("init")
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path("."))
@path_option("-o", "output", help=f"File to write.  [default: DIRECTORY/{USUAL_FILE}]")
def app_init(directory: Path, output: Path | None) -> int:
    """Write a commented description of the application in DIRECTORY, by what is there: pom.xml, package.json,
    pyproject.toml, manage.py, go.mod.

    \b
    Example: lockstorm app init ./shop
    """
    output = output or directory / USUAL_FILE
    check_new_file("-o", output)
    starter = starter_application(directory)
    write_text(output, starter.text)
    console().print(Text(f"{output} describes {starter.kind}: look for # fill in, then", "bold"))
    console().print(f"lockstorm app check {output}", soft_wrap=True)
    console().print(Text(f"\nIn a pipeline `lockstorm gate` searches it, with these lines in {USUAL_POLICY}:", "bold"))
    console().print(Text(f"[[app]]\nfile = {json.dumps(os.path.relpath(output))}"), soft_wrap=True)
    return 0


@app_command.command("check")
@click.argument("file", type=click.Path(path_type=Path), default=Path(USUAL_FILE))
@json_option
def app_check(file: Path, as_json: bool) -> int:
    """Start the application once, send each request alone, and show what it did: locks, transactions, rows; and warn of
    what can go wrong when two requests meet.

    \b
    Example: lockstorm app check lockstorm-app.toml
    """
    with waiting(f"the application of {file} ..."):
        checked = check_application(file)
    print_result(as_json, checked, show_checked)
    return checked.exit


def show_checked(out: Console, checked: CheckedApplication, *, quiet: bool = False) -> None:
    for request in checked.requests:
        _show_request(out, request)
    for warning in checked.warnings:
        out.print(Text(f"warning: {warning.rule}: {warning.sentence}", "yellow"))
    out.print(Text(checked.sentence, "bold"))


def _show_request(out: Console, request: CheckedRequest) -> None:
    out.print(Text(request.name, "bold"))
    for access in request.accesses:
        words = WORDS.get(access.kind, access.kind).format(access.object)
        quoted = access.kind.startswith("access")
        out.print(Text(f"  {words}{f': {access.text}' if quoted else ''}"), soft_wrap=True)
    for text in request.not_understood:
        out.print(Text(f"  not understood: {text}: is it a lock? name it in [locks]", "dim"), soft_wrap=True)
    if not request.accesses and not request.not_understood:
        out.print(Text("  nothing that its servers have heard", "dim"))
    out.print()
