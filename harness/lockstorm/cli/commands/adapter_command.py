"""`lockstorm adapter`: lists the shipped adapters, writes a first one, and checks one against the protocol."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import msgspec
from rich.text import Text

from lockstorm.base.errors import NotInstalled
from lockstorm.base.option_fields import choose
from lockstorm.cli.options import json_option, path_option
from lockstorm.cli.terminal import NearestName, check_new_file, console, print_checks, print_json, write_starter_program
from lockstorm.conformance.adapter_check import check_adapter
from lockstorm.locks.adapter import PREFIX, SHIPPED, adapter_entry, adapter_path, install_libraries, shipped_adapters


@dataclass(frozen=True)
class Starter:
    """A first adapter in one language."""

    program: str  # in adapters/starters
    written: str  # the file to write; a program that is built or run by its suffix needs the suffix
    beside: tuple[str, ...] = ()  # files in adapters, which are written beside it
    build: str = ""  # the command that makes lock-adapter of it; empty: it is a program as it is

    @property
    def path(self) -> Path:
        return SHIPPED / "starters" / self.program


STARTERS = {
    "go": Starter(
        "lock-adapter.go",
        "lock-adapter.go",
        ("redsync/lines.go",),
        "go mod init lock-adapter && go mod tidy && go build -o lock-adapter .",
    ),
    "java": Starter("LockAdapter.java", "lock-adapter"),
    "node": Starter("lock-adapter.mjs", "lock-adapter.mjs"),
    "python": Starter("lock-adapter.py", "lock-adapter"),
    "rust": Starter(
        "lock-adapter.rs",
        "lock-adapter.rs",
        ("starters/lines.rs", "starters/Cargo.toml"),
        "cargo build --release && cp target/release/lock-adapter .",
    ),
}


@click.group("adapter", cls=NearestName)
def adapter_command() -> None:
    """Lock libraries in other languages (`lockstorm docs adapters`).

    \b
    Example: lockstorm adapter init python; lockstorm adapter check ./lock-adapter
    """


@adapter_command.command("list")
@json_option
def list_shipped(as_json: bool) -> int:
    """List the adapters that come with lockstorm, and whether their libraries are installed.

    \b
    Example: lockstorm adapter list
    """
    adapters = [_described(name) for name in shipped_adapters()]
    if as_json:
        print_json({"adapters": adapters})
        return 0
    width = max(len(each.name) for each in adapters)
    for each in adapters:
        console().print(Text.assemble((f"{each.name:{width}}  ", "bold"), each.library or each.missing))
    return 0


class ShippedAdapter(msgspec.Struct, frozen=True):
    name: str
    library: str  # its name and version
    missing: str  # why it is not installed


def _described(name: str) -> ShippedAdapter:
    try:
        return ShippedAdapter(name, adapter_entry(PREFIX + name).summary, "")
    except NotInstalled as reason:
        return ShippedAdapter(name, "", str(reason))


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
@path_option("-o", "output", help="File to write.  [default: ./lock-adapter]")
def adapter_init_command(language: str, output: Path | None) -> int:
    """Write a first adapter for you to change. LANGUAGE is go, java, node, python or rust. In Go and Rust it comes with
    files that speak the protocol, and need no change.

    \b
    Example: lockstorm adapter init python
    """
    starter = STARTERS[choose("starter in", language, list(STARTERS))]
    output = output or Path(starter.written)
    for name in starter.beside:
        check_new_file("-o", output.parent / Path(name).name)
    path = write_starter_program(output, starter.path)
    output.chmod(0o755)
    beside = [write_starter_program(output.parent / Path(name).name, SHIPPED / name) for name in starter.beside]
    program = str(Path(path).parent / "lock-adapter") if starter.build else path
    written = ", ".join([path, *beside])
    following = f"Build it: {starter.build}\nNext" if starter.build else "Next"
    check = f"lockstorm adapter check {program if '/' in program else f'./{program}'}"
    console().print(Text(f"{written} {'are' if beside else 'is'} written. {following}: {check}"))
    return 0
