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

    files: dict[str, str]  # to write, by name: their sources in adapters/starters. The first is executable
    first: str = ""  # the command that fetches its library, and builds what lockstorm does not build
    program: str = ""  # that this command makes; empty: the first file

    @property
    def main(self) -> str:
        return next(iter(self.files))


STARTER_FILES = SHIPPED / "starters"
STARTERS = {
    "go": Starter(
        {"lock-adapter": "lock-adapter-go.sh", "lock-adapter.go": "lock-adapter.go"},
        "go mod init lock-adapter && go get github.com/redis/go-redis/v9",
    ),
    "java": Starter(
        {"lock-adapter": "lock-adapter-java.sh", "LockAdapter.java": "LockAdapter.java", "pom.xml": "pom.xml"},
        "mvn -q dependency:copy-dependencies -DoutputDirectory=libraries",
    ),
    "node": Starter({"lock-adapter.cjs": "lock-adapter.cjs"}, "npm install ioredis"),
    "python": Starter({"lock-adapter": "lock-adapter.py"}),
    "rust": Starter(
        {"lock-adapter.rs": "lock-adapter.rs", "lines.rs": "lines.rs", "Cargo.toml": "Cargo.toml"},
        "cargo build --release && cp target/release/lock-adapter .",
        "lock-adapter",
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
    """Write a first adapter for you to change. LANGUAGE is go, java, node, python or rust. In Rust it comes with a file
    that speaks the protocol, and needs no change; in the others lockstorm brings that.

    \b
    Example: lockstorm adapter init python
    """
    starter = STARTERS[choose("starter in", language, list(STARTERS))]
    output = output or Path(starter.main)
    places = {name: output if name == starter.main else output.parent / name for name in starter.files}
    for place in places.values():
        check_new_file("-o", place)
    written = [write_starter_program(places[name], STARTER_FILES / source) for name, source in starter.files.items()]
    output.chmod(0o755)
    program = str(Path(written[0]).parent / starter.program) if starter.program else written[0]
    following = f"\nFirst: {starter.first}\nNext" if starter.first else " Next"
    check = f"lockstorm adapter check {program if '/' in program else f'./{program}'}"
    are = "are" if len(written) > 1 else "is"
    console().print(Text(f"{', '.join(written)} {are} written.{following}: {check}"))
    return 0
