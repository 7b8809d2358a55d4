"""`lockstorm adapter`: lists the shipped adapters, writes a first one, and checks one against the protocol."""

from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from lockstorm.base.errors import NotInstalled
from lockstorm.base.option_fields import choose
from lockstorm.cli.options import json_option
from lockstorm.cli.terminal import NearestName, console, print_checks, print_json, write_starter_program
from lockstorm.conformance.adapter_check import check_adapter
from lockstorm.locks.adapter import PREFIX, SHIPPED, adapter_entry, adapter_path, install_libraries, shipped_adapters

# Of each language the starter and the file to write. A program that is built or run by its suffix needs the suffix.
STARTER_FILES = {
    "go": ("lock-adapter.go", "lock-adapter.go"),
    "java": ("LockAdapter.java", "lock-adapter"),
    "node": ("lock-adapter.mjs", "lock-adapter.mjs"),
    "python": ("lock-adapter.py", "lock-adapter"),
    "rust": ("lock-adapter.rs", "lock-adapter.rs"),
}
COMPILED = ("go", "rust")


def starters() -> dict[str, Path]:
    """The starters that there are, by language."""
    paths = {language: SHIPPED / "starters" / name for language, (name, _) in STARTER_FILES.items()}
    return {language: path for language, path in paths.items() if path.is_file()}


@click.group("adapter", cls=NearestName)
def adapter_command() -> None:
    """Lock libraries in other languages (docs/adapters.md).

    \b
    Example: lockstorm adapter init python; lockstorm adapter check ./lock-adapter
    """


@adapter_command.command("list")
@json_option
def list_shipped(as_json: bool) -> int:
    """List the adapters that come with lockstorm, and whether their libraries are installed."""
    adapters = [_described(name) for name in shipped_adapters()]
    if as_json:
        print_json({"adapters": adapters})
        return 0
    width = max(len(each["name"]) for each in adapters)
    for each in adapters:
        console().print(Text.assemble((f"{each['name']:{width}}  ", "bold"), each["library"] or each["missing"]))
    return 0


def _described(name: str) -> dict[str, Any]:
    try:
        return {"name": name, "library": adapter_entry(PREFIX + name).summary, "missing": ""}
    except NotInstalled as reason:
        return {"name": name, "library": "", "missing": str(reason)}


@adapter_command.command("install")
def adapter_install_command() -> int:
    """Fetch and build the libraries of the shipped adapters, in exact versions, for the languages that are installed:
    Node with npm, Go, Java with Maven. Those of Python come with lockstorm.

    \b
    Example: lockstorm adapter install
    """
    return install_libraries()


@adapter_command.command("check")
@click.argument("program")
@json_option
def adapter_check_command(program: str, as_json: bool) -> int:
    """Check whether PROGRAM keeps to the protocol and to its own hello. Explains each failure.

    \b
    Example: lockstorm adapter check ./mine
    Exit status: 0 it does, 1 a check failed, 2 there is no such program, or its hello is not valid
    """
    entry = adapter_entry(PREFIX + program)
    return print_checks(f"{entry.summary} ({adapter_path(program)})", partial(check_adapter, entry), as_json)


@adapter_command.command("init")
@click.argument("language")
@click.option("-o", "output", type=click.Path(path_type=Path), help="File to write.  [default: ./lock-adapter]")
def adapter_init_command(language: str, output: Path | None) -> int:
    """Write a first adapter for you to change. LANGUAGE is java, python, or another one for which there is a starter; a
    starter in Go, Rust or JavaScript has the usual suffix.

    \b
    Example: lockstorm adapter init python
    """
    language = choose("starter in", language, list(starters()))
    output = output or Path(STARTER_FILES[language][1])
    path = write_starter_program(output, starters()[language])
    output.chmod(0o755)
    following = "Build it as its first lines say, then" if language in COMPILED else "Next"
    program = path.removesuffix(output.suffix) if language in COMPILED else path
    console().print(Text(f"{path} is written. {following}: lockstorm adapter check {program}"))
    return 0
