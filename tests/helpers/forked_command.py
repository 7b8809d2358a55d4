"""The `lockstorm` command in a process of its own that has not to load it: it is forked from one that has.

Loading takes a sixth of a second of processor time, and the tests run the command some two thousand times. What the
forked process does from there on is what `python -m lockstorm` does: it has its own arguments, environment, directory
and streams, and ends as the interpreter ends. Each process of pytest has a server, which ends with it."""

import gc
import json
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from lockstorm.base import paths

HEADER = 8  # bytes of a length
STREAMS, DESCRIPTORS = 3, 1024
# Read by the interpreter when it starts: a command with others of these is started anew.
OF_INTERPRETER = ("PYTHON", "LC_", "LANG", "LD_")


# --- the side of the tests ---


@cache
def _server() -> socket.socket:
    """Starts the server of this process, which ends with it. It is no child: tests look for children that are left."""
    mine, theirs = socket.socketpair()
    with theirs:
        subprocess.run(
            [sys.executable, "-m", "tests.helpers.forked_command", str(theirs.fileno())],
            cwd=paths.ROOT,
            env={**os.environ, "PYTHONPATH": paths.python_path()},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return mine


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether the environment is nothing to the interpreter itself."""
    kept = {**os.environ, "PYTHONPATH": paths.python_path()}
    differing = {key for key in {*kept, *environment} if kept.get(key) != environment.get(key)}
    return not any(key.startswith(OF_INTERPRETER) for key in differing)


def run_forked(
    words: Sequence[str], directory: Path, environment: Mapping[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """What subprocess.run(["python", "-m", "lockstorm", *words], capture_output=True, text=True) returns."""
    with ExitStack() as opened:
        read_out, write_out = os.pipe()
        read_error, write_error = os.pipe()
        ours = [opened.enter_context(os.fdopen(each, "rb", 0)) for each in (read_out, read_error)]
        mine, theirs = socket.socketpair()
        opened.enter_context(mine)
        with theirs, os.fdopen(write_out, "wb", 0), os.fdopen(write_error, "wb", 0):
            request = json.dumps(
                {"words": [*words], "directory": str(directory), "environment": {**environment}}
            ).encode()
            socket.send_fds(_server(), [b"?"], [theirs.fileno(), 0, write_out, write_error])
        mine.sendall(len(request).to_bytes(HEADER, "little") + request)
        pid = int.from_bytes(_exactly(mine, HEADER), "little")
        output = _until_end(ours, time.monotonic() + timeout_s)
        if output is None:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired([*words], timeout_s)
        status = int.from_bytes(_exactly(mine, HEADER), "little", signed=True)
    said, complained = (each.decode().replace("\r\n", "\n") for each in output)
    return subprocess.CompletedProcess([sys.executable, "-m", "lockstorm", *words], status, said, complained)


def _until_end(pipes: Sequence[Any], until_s: float) -> list[bytes] | None:
    """All that comes from the pipes; None: it is too late."""
    found = {each: b"" for each in pipes}
    with selectors.DefaultSelector() as selector:
        for each in pipes:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, until_s - time.monotonic()))
            if not ready:
                return None
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 16)
                found[key.fileobj] += piece
                if not piece:
                    selector.unregister(key.fileobj)
    return [*found.values()]


def _exactly(stream: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = stream.recv(size - len(found))
        if not piece:
            raise ConnectionError("the server of forked commands has ended")
        found += piece
    return found


# --- the server ---


def _load() -> None:
    from lockstorm.cli.main import COMMANDS, cli

    for name in COMMANDS:
        cli.get_command(None, name)  # type: ignore[arg-type]
    gc.collect()
    gc.freeze()


def _serve(control: socket.socket) -> dict[str, Any]:
    """Forks a process for each request. Returns in that process, with the request; the server itself ends with the
    process that started it."""
    running: dict[int, tuple[int, socket.socket]] = {}  # by pidfd: pid, who waits for its status
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not control:
                    selector.unregister(key.fileobj)
                    pid, asker = running.pop(key.fd)
                    os.close(key.fd)
                    _tell_status(pid, asker)
                    continue
                said, descriptors, _, _ = socket.recv_fds(control, 1, 1 + STREAMS)
                if not said:
                    os._exit(0)
                asker = socket.socket(fileno=descriptors[0])
                size = int.from_bytes(_exactly(asker, HEADER), "little")
                request: dict[str, Any] = json.loads(_exactly(asker, size))
                pid = os.fork()
                if pid == 0:
                    for place, descriptor in enumerate(descriptors[1:]):
                        os.dup2(descriptor, place)
                    return request
                for descriptor in descriptors[1:]:
                    os.close(descriptor)
                asker.sendall(pid.to_bytes(HEADER, "little"))
                watched = os.pidfd_open(pid)
                running[watched] = pid, asker
                selector.register(watched, selectors.EVENT_READ)


def _tell_status(pid: int, asker: socket.socket) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with asker:
        try:
            asker.sendall(status.to_bytes(HEADER, "little", signed=True))
        except OSError:  # nobody waits for it any more
            return


def _become(request: Mapping[str, Any]) -> None:
    os.closerange(STREAMS, DESCRIPTORS)  # the server's
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    random.seed()
    sys.argv = [str(Path(paths.__file__).parents[1] / "__main__.py"), *request["words"]]


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with pytest
    _load()
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))
    from lockstorm.cli.main import main

    main()
