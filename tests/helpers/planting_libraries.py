"""Plants a bug in a copy of a library, for tests: texts of one of its files are replaced. The shipped adapter hosts the
copy. tests/library_search/planted_bugs.toml has the bugs."""

import os
import shlex
import shutil
import subprocess
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.locks.adapter import SHIPPED

TABLE = paths.ROOT / "tests" / "library_search" / "planted_bugs.toml"


@dataclass(frozen=True)
class TextChange:
    """A text that occurs once in a file, and what takes its place."""

    was: str
    becomes: str


@dataclass(frozen=True)
class PlantedBug:
    """A bug, and its promises: a search of at most `schedules` schedules has to find one of them broken."""

    name: str
    adapter: str
    file: str
    needs: str  # what brings it about beside calls: "a fault", "two threads", ...
    promises: tuple[str, ...]
    schedules: int
    changes: tuple[TextChange, ...]
    daily: bool = False


def planted_bugs() -> list[PlantedBug]:
    """Each with the mends of its library, so that the bug is the only one."""
    rows = tomllib.loads(TABLE.read_text())
    mends = {row["adapter"]: _changes(row) for row in rows["mend"]}
    return [
        PlantedBug(
            **{name: value for name, value in row.items() if name not in ("promises", "change")},
            promises=tuple(row["promises"]),
            changes=mends.get(row["adapter"], ()) + _changes(row),
        )
        for row in rows["bug"]
    ]


def mended_library(adapter: str) -> tuple[TextChange, ...]:
    """What mends a library's own broken promises; nothing, if none is known."""
    rows: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["mend"]
    return next((_changes(row) for row in rows if row["adapter"] == adapter), ())


def searched_forms(adapter: str) -> str | None:
    """The acquires that are drawn; None: all that the library has."""
    forms: dict[str, str] = tomllib.loads(TABLE.read_text())["forms"]
    return forms.get(adapter)


def _changes(row: dict[str, Any]) -> tuple[TextChange, ...]:
    return tuple(TextChange(**change) for change in row["change"])


def plant_library(directory: Path, adapter: str, file: str, changes: Sequence[TextChange]) -> str:
    """A program that hosts the library of a shipped adapter, with these changes; none: only a copy of it. `file` is the
    name of the package and the path within it."""
    home = directory / "libraries"
    home.mkdir()
    package, _, inside = file.partition("/")
    environment = PLANTERS[Path(file).suffix](home, package, inside, changes)
    words = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    program = directory / adapter
    program.write_text("\n".join(["#!/bin/sh", *words, f"exec {shlex.quote(str(SHIPPED / adapter / 'run'))}", ""]))
    program.chmod(0o755)
    return str(program)


# --- by language: each returns the environment in which the shipped adapter finds the copy ---


def _python(home: Path, package: str, inside: str, changes: Sequence[TextChange]) -> dict[str, str]:
    copied = _linked(Path(sysconfig.get_path("purelib")) / package, home / package)
    _change(copied / inside, changes)
    return {"PYTHONPATH": str(home)}


def _node(home: Path, package: str, inside: str, changes: Sequence[TextChange]) -> dict[str, str]:
    built, node = paths.cache("adapters") / "node", home / "node"
    (node / "node_modules").mkdir(parents=True)
    for each in [*built.glob("*.mjs"), *(built / "node_modules").iterdir()]:
        if each.name != package:
            (node / each.relative_to(built)).symlink_to(each.resolve())
    _change(_linked(built / "node_modules" / package, node / "node_modules" / package) / inside, changes)
    return {"LOCKSTORM_LIBRARIES": str(home)}


def _go(home: Path, package: str, inside: str, changes: Sequence[TextChange]) -> dict[str, str]:
    source, module = SHIPPED / package, f"github.com/go-redsync/{package}/v4"
    go = shutil.which("go") or "/usr/local/go/bin/go"

    def run(*words: str) -> str:
        return subprocess.run([go, *words], cwd=source, check=True, capture_output=True, text=True).stdout.strip()

    copied = _linked(Path(run("list", "-m", "-f", "{{.Dir}}", module)), home / "module")
    _change(copied / inside, changes)
    shutil.copy(source / "go.sum", home)
    (home / "go.mod").write_text((source / "go.mod").read_text() + f"\nreplace {module} => {copied}\n")
    run("build", "-modfile", str(home / "go.mod"), "-o", str(home / package), ".")
    return {"LOCKSTORM_LIBRARIES": str(home)}


def _java(home: Path, package: str, inside: str, changes: Sequence[TextChange]) -> dict[str, str]:
    """Of a class, scripts are changed, which are constants of it: by texts that are no longer, which blanks fill up."""
    built, copied = paths.cache("adapters") / package, home / package
    (copied / "libraries").mkdir(parents=True)
    for each in [built / "adapter.jar", *(built / "libraries").iterdir()]:
        if not each.name.startswith(f"{package}-"):
            (copied / each.relative_to(built)).symlink_to(each)
    (jar,) = (built / "libraries").glob(f"{package}-*.jar")
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(copied / "libraries" / jar.name, "w") as new:
        for name in old.namelist():
            code = old.read(name)
            for change in changes if name == inside else ():
                was, becomes = change.was.encode(), change.becomes.encode()
                assert code.count(was) == 1 and len(becomes) <= len(was), change
                code = code.replace(was, becomes.ljust(len(was)))
            new.writestr(name, code)
    return {"LOCKSTORM_LIBRARIES": str(home)}


PLANTERS: dict[str, Callable[[Path, str, str, Sequence[TextChange]], dict[str, str]]] = {
    ".py": _python,
    ".js": _node,
    ".go": _go,
    ".class": _java,
}


def _linked(source: Path, target: Path) -> Path:
    """A copy of a directory, whose files are links to those of the source."""
    for folder, _, files in os.walk(source):
        (target / Path(folder).relative_to(source)).mkdir(parents=True)
        for file in files:
            (target / Path(folder).relative_to(source) / file).symlink_to((Path(folder) / file).resolve())
    return target


def _change(file: Path, changes: Sequence[TextChange]) -> None:
    text = file.read_text()
    for change in changes:
        assert text.count(change.was) == 1, change.was
        text = text.replace(change.was, change.becomes)
    file.unlink()
    file.write_text(text)
