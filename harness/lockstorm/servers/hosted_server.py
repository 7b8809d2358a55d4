"""Servers that the program of a search supervises itself, in virtual time (harness/library_service): each is a script
that starts it anew, without data, and the address at which it then listens."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lockstorm.process.process import COOKIE, Sandbox
from lockstorm.servers import postgres_server
from lockstorm.servers.etcd_server import etcd_command
from lockstorm.servers.zookeeper_server import class_archive, java_command, write_settings, zookeeper_settings

# Every tick of a server is a turn that it takes. etcd's shortest lease is one and a half election timeouts, rounded up
# to a second, and an election timeout is five ticks at least.
ETCD_TIMING = {"heartbeat-interval": 200, "election-timeout": 1000, "backend-batch-interval": "1s"}
ZOOKEEPER_TICK_MS = 100
# The background processes of PostgreSQL have nothing to do between a session's beginning and its end.
POSTGRES_TIMING = {"bgwriter_delay": "10s", "wal_writer_delay": "10s", "checkpoint_timeout": "1d"}
POSTGRES_OPTIONS = {**postgres_server.OPTIONS, **POSTGRES_TIMING}
LEASE_LEAST_MS = {"etcd": 2000, "zookeeper": 2 * ZOOKEEPER_TICK_MS}


def _script(directory: Path, fresh: Sequence[str], command: Sequence[str], prepare: str = ":") -> Path:
    """`fresh`: what an earlier start has left in the directory."""
    script = directory / "start"
    lines = ["#!/bin/sh", f"cd {shlex.quote(str(directory))}", shlex.join(["rm", "-rf", *fresh]), prepare]
    script.write_text("\n".join([*lines, f"exec {shlex.join(command)}", ""]))
    script.chmod(0o700)
    return script


def _alone(sandbox: Sandbox) -> list[str]:
    """Its environment is empty, but for what the sandbox's reaper knows its processes by."""
    return ["env", "-i", f"{COOKIE}={sandbox.directory}"]


def _etcd(sandbox: Sandbox, directory: Path, _: Path | None) -> tuple[str, Path]:
    name, client, peer = directory.name, f"{directory.name}:1", f"{directory.name}:2"  # sockets in its directory
    own = etcd_command(name, f"unix://{client}", f"unix://{peer}", f"{name}=unix://{peer}", ETCD_TIMING)
    return str(directory / client), _script(directory, ["data", client, peer], [*_alone(sandbox), *own])


def _zookeeper(sandbox: Sandbox, directory: Path, _: Path | None) -> tuple[str, Path]:
    port, configuration = sandbox.hold_port(), directory / "zoo.cfg"
    write_settings(configuration, zookeeper_settings(directory / "data", port, ZOOKEEPER_TICK_MS))
    with class_archive(sandbox) as classes:
        command = java_command(configuration, f"-XX:SharedArchiveFile={classes}")
    return f"127.0.0.1:{port}", _script(directory, ["data"], command)


def _postgres(sandbox: Sandbox, directory: Path, data: Path | None) -> tuple[str, Path]:
    user = postgres_server.server_user()
    command = [*_alone(sandbox), *postgres_server.server_command(directory / "data", directory, POSTGRES_OPTIONS)]
    if user:
        sandbox.grant_access(user)
        directory.parent.chmod(0o711)
        os.chown(directory, user.uid, user.gid)
        command = ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", *command]
    fresh = ["data", postgres_server.SOCKET, f"{postgres_server.SOCKET}.lock"]
    with postgres_server.data_template(sandbox, user) as template:
        copy = shlex.join(["cp", "-aT", "--reflink=auto", str(data or template), "data"])
    return str(directory / postgres_server.SOCKET), _script(directory, fresh, command, copy)


HOSTED: Mapping[str, Callable[[Sandbox, Path, Path | None], tuple[str, Path]]] = {
    "etcd": _etcd,
    "postgres": _postgres,
    "zookeeper": _zookeeper,
}


def hosted_server(service: str, sandbox: Sandbox, directory: Path, data: Path | None = None) -> tuple[str, Path]:
    """The address and the script of a server in this directory, which it creates. `data`: what PostgreSQL begins with,
    if it is not empty. NotInstalled when it is missing."""
    directory.mkdir(mode=0o700)
    return HOSTED[service](sandbox, directory, data)
