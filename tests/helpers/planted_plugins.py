"""Builds plug-ins for tests, as a user does: the shipped example with some of its text replaced."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lockstorm.base import paths
from lockstorm.locks.plugin import STARTER

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")


def built_from(source: str, directory: Path, name: str = "lock.so", *more: str) -> str:
    """Compiles a plug-in and returns the path of the shared object."""
    directory.mkdir(exist_ok=True)
    text, target = directory / f"{name}.c", directory / name
    text.write_text(source)
    command = ["cc", *FLAGS, *more, "-I", str(paths.build() / "include"), "-o", str(target), str(text)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return str(target)


def changed(changes: Mapping[str, str]) -> str:
    """The example's source with these replacements; each old text must occur exactly once."""
    source = STARTER.read_text()
    for old, new in changes.items():
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def plant(directory: Path, changes: Mapping[str, str] | None = None, *more: str) -> str:
    return built_from(changed(changes or {}), directory, "lock.so", *more)


def one_mistake(directory: Path, lock: str, *mistakes: str) -> str:
    """The shared object of a lock of tests/c with these mistakes; without any, the right one."""
    room = paths.ROOT / "tests" / "c"
    source = (room / f"{lock}_lock_plugin.c").read_text()
    name = re.sub(r"\W+", "-", f"{lock}{''.join(mistakes)}")
    return built_from(source, directory, f"{name}.so", "-I", str(room), *(f"-D{each}" for each in mistakes))
