"""./lockstorm itself: quick when everything is installed, clear when something is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths

NEEDED = (
    "sh",
    "dirname",
    "readlink",
    "sed",
    "tr",
    "cat",
    "cksum",
    "cut",
    "flock",
    "mkdir",
    "make",
    "id",
    "tail",
    "grep",
)


def launch(*words: str, root: Path = paths.ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LOCKSTORM_")}
    command = [str(root / "lockstorm"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**kept, **environment})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A fresh checkout: only what belongs to the project, nothing built."""
    root = tmp_path / "checkout"
    root.mkdir()
    for name in ("harness", "faults", "checkers", "scenarios", "ci", "lockstorm", "Makefile"):
        source = paths.ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, root / name)
    return root


def path_without(directory: Path, *missing: str) -> str:
    """A PATH with just enough tools."""
    directory.mkdir()
    for tool in NEEDED:
        found = shutil.which(tool)
        assert found, tool
        if tool not in missing:
            (directory / tool).symlink_to(found)
    return str(directory)


def test_a_second_call_is_silent() -> None:
    done = launch("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("lockstorm, version")


def test_it_works_from_anywhere_and_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(paths.ROOT / "lockstorm")
    done = subprocess.run([str(tmp_path / "linked"), "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_without_apt_it_lists_what_is_missing(checkout: Path, tmp_path: Path) -> None:
    done = launch("demo", root=checkout, PATH=path_without(tmp_path / "bin"))
    assert done.returncode == 2
    assert "there is no apt-get to install it" in done.stderr
    assert "gcc" in done.stderr and "redis-server" in done.stderr
    assert not (checkout / ".venv").exists()


def test_it_installs_nothing_when_told_so(checkout: Path) -> None:
    done = launch("demo", root=checkout, LOCKSTORM_NO_INSTALL="1")
    assert done.returncode == 2
    assert "LOCKSTORM_NO_INSTALL is set" in done.stderr
    assert not (checkout / ".venv").exists()


def test_packages_that_cannot_be_installed_are_named(checkout: Path, tmp_path: Path) -> None:
    """apt-get is there and fails: its own words are shown."""
    tools = path_without(tmp_path / "bin")
    fakes = {
        "apt-get": "echo E: no such thing as the network; exit 100",
        "apt-cache": "exit 0",
        "dpkg-query": "exit 1",
        "sudo": 'exec "$@"',
        "env": 'shift; exec "$@"',
        "tee": "cat >/dev/null",
        "chmod": "exit 0",
        "rm": "exit 0",
    }
    for name, script in fakes.items():
        tool = Path(tools) / name
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
    done = launch("demo", root=checkout, PATH=tools)
    assert done.returncode == 2
    assert "no such thing as the network" in done.stderr
    assert "libhiredis-dev" in done.stderr


def test_a_program_that_does_not_compile_is_shown(checkout: Path) -> None:
    shutil.copytree(paths.ROOT / ".venv", checkout / ".venv", symlinks=True)
    (checkout / "build").mkdir()
    shutil.copy2(paths.ROOT / "build" / "set-up", checkout / "build" / "set-up")
    source = checkout / "harness" / "process" / "spawn.c"
    source.write_text(source.read_text() + "\nthis is no C\n")
    done = launch("demo", root=checkout)
    assert done.returncode == 2
    assert "spawn.c" in done.stderr and "could not be compiled" in done.stderr


def test_every_shell_script_is_portable_shell() -> None:
    first = (paths.ROOT / "lockstorm").read_text().splitlines()[0]
    assert first == "#!/bin/sh"
    subprocess.run(["sh", "-n", str(paths.ROOT / "lockstorm")], check=True)
