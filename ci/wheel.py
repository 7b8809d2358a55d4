"""Puts into the wheel what a checkout has beside the Python package: the C programs, which it builds, the scenarios,
the adapters, the pages of the documentation. In the wheel they are in lockstorm/installed
(harness/lockstorm/base/paths.py)."""

import os
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = ("adapters", "docs", "findings", "scenarios")
NOT_ALL_OF = {"docs": (".md", ".json")}  # the pages and schemas at its top; without pictures and decisions
NOT_IN_SOURCES = ("__pycache__", "node_modules")
LINES_SHOWN = 15


class WheelHook(BuildHookInterface):  # type: ignore[misc] # hatchling may not be installed where types are checked
    """A wheel for the machine that it is built on: its programs are linked with the libraries of that machine."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        build_data["pure_python"] = False
        platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
        build_data["tag"] = f"py3-none-{platform}"
        if version == "editable":
            _make(root, root / "build")  # where a checkout has them
            return
        built = Path(self.directory) / "programs"
        _make(root, built)
        include = build_data["force_include"]
        for path in _files(built, ("bin", "lib", "include")):
            include[str(path)] = f"lockstorm/installed/build/{path.relative_to(built)}"
        for path in _files(root, PLACES):
            include[str(path)] = f"lockstorm/installed/{path.relative_to(root)}"


def _make(root: Path, build: Path) -> None:
    """Builds the programs. What is missing is named by the package that has it, as in ci/packages."""
    jobs = f"-j{os.cpu_count() or 1}"
    command = ["make", "-s", jobs, "-C", str(root), f"BUILD={build}", "build"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit(f"make is not installed: {_packages(root)}") from None
    if done.returncode != 0:
        shown = "\n".join((done.stdout + done.stderr).splitlines()[-LINES_SHOWN:])
        raise SystemExit(f"{shown}\nthe C programs could not be compiled: {_packages(root)}")


def _packages(root: Path) -> str:
    lines = [line.split() for line in (root / "ci" / "packages").read_text().splitlines()]
    names = [line[1] for line in lines if line and line[0] == "run" and not line[1].startswith(("python", "ca-"))]
    return f"on Debian and Ubuntu, apt-get install {' '.join(names)}"


def _files(root: Path, places: tuple[str, ...]) -> list[Path]:
    """All files at these places, relative to root, which may be files themselves."""
    every = [path for place in places for path in (root / place, *(root / place).rglob("*")) if path.is_file()]
    kept = (path for path in every if not set(path.relative_to(root).parts) & set(NOT_IN_SOURCES))
    return sorted(path for path in kept if _is_shipped(path.relative_to(root)))


def _is_shipped(path: Path) -> bool:
    kinds = NOT_ALL_OF.get(path.parts[0])
    return not kinds or (len(path.parts) == 2 and path.suffix in kinds)
