"""The commands about adapters: which are shipped, a first one of one's own, and whether it keeps to the protocol."""

from pathlib import Path
from typing import Any

import click
from rich.text import Text

from harness.driver.adapter import PREFIX, SHIPPED, entry_of, path_of, shipped
from harness.driver.adapter_check import check_adapter
from harness.driver.errors import NotInstalled, UsageError
from harness.driver.play import choose
from harness.driver.terminal import NearestName, console, json_option, print_json

STARTERS = {"java": SHIPPED / "starters" / "LockAdapter.java", "python": SHIPPED / "starters" / "lock-adapter.py"}


@click.group(cls=NearestName)
def adapter() -> None:
    """Lock libraries in other languages (docs/adapters.md).

    \b
    Example: lockstorm adapter init python; lockstorm adapter check ./lock-adapter
    """


@adapter.command("list")
@json_option
def list_shipped(as_json: bool) -> int:
    """The adapters that come with lockstorm, and whether their libraries are here."""
    said = [_described(name) for name in shipped()]
    if as_json:
        print_json({"adapters": said})
        return 0
    width = max(len(each["name"]) for each in said)
    for each in said:
        console().print(Text.assemble((f"{each['name']:{width}}  ", "bold"), each["library"] or each["missing"]))
    return 0


def _described(name: str) -> dict[str, Any]:
    try:
        return {"name": name, "library": entry_of(PREFIX + name)["summary"], "missing": ""}
    except NotInstalled as reason:
        return {"name": name, "library": "", "missing": str(reason)}


@adapter.command()
@click.argument("program")
@json_option
def check(program: str, as_json: bool) -> int:
    """Does PROGRAM keep to the protocol, and to what it says of itself? Says in words what is wrong.

    \b
    Example: lockstorm adapter check ./mine
    Exit status: 0 it does, 1 something is wrong, 2 there is no such program, or its hello is none
    """
    entry, out = entry_of(PREFIX + program), console()
    if not as_json:
        out.print(Text(f"{entry['summary']} ({path_of(program)})", "bold"))

    def tell(done: dict[str, Any]) -> None:
        if not as_json:
            mark = ("  ok     ", "green") if done["ok"] else ("  WRONG  ", "red")
            out.print(Text.assemble(mark, done["name"]))
            if not done["ok"]:
                out.print(Text(f"         {done['wrong']}"))

    result = check_adapter(entry, tell)
    if as_json:
        print_json(result)
    else:
        wrong = sum(not each["ok"] for each in result["checks"])
        out.print(Text(f"{len(result['checks'])} checks, {wrong} wrong", "bold"))
    return 0 if result["ok"] else 1


@adapter.command()
@click.argument("language")
@click.option("-o", "output", type=click.Path(path_type=Path), default="lock-adapter", show_default=True)
def init(language: str, output: Path) -> int:
    """Write a first adapter to change: LANGUAGE is java or python.

    \b
    Example: lockstorm adapter init python
    """
    starter = STARTERS[choose("starter in", language, list(STARTERS))]
    if output.exists() or not output.parent.is_dir():
        why = "exists already" if output.exists() else "its directory does not exist"
        raise UsageError(f"-o {output}: {why}")
    output.write_text(starter.read_text())
    output.chmod(0o755)
    path = output if output.is_absolute() else f"./{output}"
    console().print(Text(f"{path} is written. Next: lockstorm adapter check {path}"))
    return 0
