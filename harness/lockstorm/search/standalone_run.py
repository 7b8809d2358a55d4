"""Runs a stand-alone program once, with the libraries of the shipped adapters, on a redis-server of its own: what is
handed to maintainers has shown what it announces, or says that it has not (issue #55)."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lockstorm.base import paths
from lockstorm.base.errors import LockstormError
from lockstorm.locks.adapter import SHIPPED
from lockstorm.process.process import Sandbox
from lockstorm.servers.lacking_commands import lacking_options

RUN_LIMIT_S, BUILD_LIMIT_S = 300, 600
NEEDS = {"python": sys.executable, "java": "java", "js": "node", "go": "go"}
FOUND, KEPT, OTHERWISE = "BROKEN", "kept", "not shown"


def standalone_command(program: Path, adapter: str, directory: Path) -> list[str]:
    """The command that runs a program of this adapter's library; `directory`: where it may put what it needs. Raises
    OSError or subprocess.SubprocessError if it cannot be made."""
    built = Path(paths.cache("adapters"))
    if program.suffix == ".py":
        return [sys.executable, str(program)]
    if program.suffix == ".java":
        return ["java", "-cp", f"{built}/redisson/libraries/*", str(program)]
    copied = Path(shutil.copy(program, directory / program.name))
    if program.suffix == ".mjs":
        modules = directory / "node_modules"
        modules.mkdir()
        for module in (built / "node" / "node_modules").iterdir():
            (modules / module.name).symlink_to(module)
        (modules / "redlock").symlink_to(built / "node" / "node_modules" / "redlock-5")
        return ["node", "--preserve-symlinks", str(copied)]
    for file in ("go.mod", "go.sum"):
        shutil.copy(SHIPPED / "redsync" / file, directory)
    build = ["go", "build", "-o", "found", copied.name]
    subprocess.run(build, cwd=directory, check=True, timeout=BUILD_LIMIT_S, capture_output=True, env=_environment())
    return [str(directory / "found")]


def run_standalone(
    program: Path, adapter: str, language: str, *, breaks: bool = True, lacking: Sequence[str] = ()
) -> str:
    """What one run of it has shown, in words. `breaks`: its schedule breaks a promise; `lacking`: commands that the
    server lacks."""
    if not shutil.which(NEEDS[language], path=_environment()["PATH"]):
        return f"it was not run: there is no {NEEDS[language]}"
    try:
        with contextlib.closing(Sandbox()) as sandbox, tempfile.TemporaryDirectory() as directory:
            command = standalone_command(program, adapter, Path(directory))
            port = _start_server(sandbox, lacking)
            done = subprocess.run(
                [*command, str(port)], capture_output=True, text=True, timeout=RUN_LIMIT_S, env=_environment()
            )
    except (OSError, subprocess.SubprocessError, LockstormError) as error:
        return f"it was not run: {str(error).splitlines()[0]}"
    last = (done.stdout.splitlines() or [""])[-1]
    if last == FOUND:
        return "it was run once and shows it: BROKEN"
    if last == KEPT and not breaks:
        return "it was run once: kept"
    if last == KEPT or last.startswith(OTHERWISE):
        return f"it was run once and does NOT show it: {last}"
    errors = done.stderr.splitlines() or [f"exit status {done.returncode}"]
    why = errors[-1] if language == "python" else errors[0]
    return f"it was run once and did not work: {why}"


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/local/go/bin"}


def _start_server(sandbox: Sandbox, lacking: Sequence[str]) -> int:
    port = sandbox.hold_port()
    command = [paths.redis_server(None), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--dir", str(sandbox.directory), *lacking_options(lacking)]
    server = sandbox.start("redis", command)
    sandbox.await_start(
        "redis-server", "redis", server, lambda: socket.create_connection(("127.0.0.1", port)).close(), (OSError,)
    )
    return port
