"""Shared libraries that the project's programs need and the machine lacks, with the package that has each."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive

CANNOT_START = 127  # exit status of a program whose libraries are not there; the dynamic linker writes which
NOT_FOUND = re.compile(r"(lib[^\s:/]+\.so\.[0-9][0-9.]*)(?: => not found|: cannot open shared object file)")


def missing_in(text: str) -> list[str]:
    """The libraries that the dynamic linker, or ldd, says it does not find."""
    return list(dict.fromkeys(NOT_FOUND.findall(text)))


def missing_for_files(files: Iterable[Path]) -> list[str]:
    """The libraries that any of these programs and libraries lacks. Empty, too, where there is no ldd."""
    try:
        done = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True)
    except OSError:
        return []
    return missing_in(done.stdout + done.stderr)


def check_started(done: "subprocess.CompletedProcess[str]") -> None:
    """Raises Inconclusive if a program of the project ended because a library is not there."""
    if done.returncode == CANNOT_START and (lacking := missing_in(done.stderr)):
        raise Inconclusive(missing_sentence(lacking))


def package_of(library: str) -> str:
    """The name that Debian's rule gives the package of a library: libev.so.4 is in libev4."""
    name, _, version = library.partition(".so.")
    return f"{name}{'-' if name[-1].isdigit() else ''}{version}".lower()


def missing_sentence(libraries: list[str]) -> str:
    """What is not there, and how to get it."""
    are = "is" if len(libraries) == 1 else "are"
    packages = ", ".join(map(package_of, libraries))
    again = "install it again from its sources" if paths.IS_INSTALLED else "run make clean, then ./lockstorm"
    return (
        f"{', '.join(libraries)} {are} not installed: on Debian and Ubuntu install {packages}; if there is no such "
        f"package, lockstorm was built on another system: {again}"
    )
