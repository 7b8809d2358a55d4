"""etcd on a port, which a test starts by itself: lockstorm did not start it."""

import base64
import contextlib
import http.client
import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstorm.attach.run_names import key_prefixes
from lockstorm.base import paths
from lockstorm.base.hang_limit import CONNECTION_LIMIT_S, START_LIMIT_S, HangLimit
from lockstorm.process.held_port import HeldPort

EVERY_KEY = base64.b64encode(b"\0").decode()  # as both ends of a range: all keys


@dataclass
class OutsideEtcd:
    """`token`: of a user, once users are asked for."""

    port: int
    process: subprocess.Popen[bytes]
    tls: ssl.SSLContext | None
    token: str = ""

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(self, path: str, **question: Any) -> dict[str, Any]:
        connection = http.client.HTTPConnection("localhost", self.port, timeout=CONNECTION_LIMIT_S)
        if self.tls:
            limit_s = CONNECTION_LIMIT_S
            connection = http.client.HTTPSConnection("localhost", self.port, context=self.tls, timeout=limit_s)
        with contextlib.closing(connection):
            connection.request("POST", path, json.dumps(question), {"Authorization": self.token} if self.token else {})
            said: dict[str, Any] = json.loads(connection.getresponse().read())
            return said

    def put(self, key: str, value: str) -> None:
        self.ask("/v3/kv/put", key=_bytes(key), value=_bytes(value))

    def key_names(self) -> list[str]:
        found = self.ask("/v3/kv/range", key=EVERY_KEY, range_end=EVERY_KEY, keys_only=True).get("kvs", [])
        return [_text(each["key"]) for each in found]

    def leases(self) -> list[str]:
        return [each["ID"] for each in self.ask("/v3/lease/leases").get("leases", [])]

    def revision(self) -> int:
        """The number of the latest change."""
        return int(self.ask("/v3/maintenance/status")["header"]["revision"])

    def past_leases(self, run: str, since: int) -> set[str]:
        """All leases that keys of a run have been tied to, after this revision."""
        found, beginnings = set(), key_prefixes(run)
        for revision in range(since + 1, self.revision() + 1):
            then = self.ask("/v3/kv/range", key=EVERY_KEY, range_end=EVERY_KEY, revision=revision)
            found |= {each["lease"] for each in then.get("kvs", []) if _text(each["key"]).startswith(beginnings)}
        return found

    def ask_for_users(self, user: str, password: str) -> None:
        """From now on a user has to log in; there are root and this one, who may touch the keys of runs only."""
        for name in ("root", user):
            self.ask("/v3/auth/user/add", name=name, password=password)
        self.ask("/v3/auth/role/add", name="locks")
        for begin in ("lockstorm:attach:", b"lockstorm:attach:".hex()):
            end = begin[:-1] + chr(ord(begin[-1]) + 1)
            allowed = {"permType": "READWRITE", "key": _bytes(begin), "range_end": _bytes(end)}
            self.ask("/v3/auth/role/grant", name="locks", perm=allowed)
        self.ask("/v3/auth/user/grant", user=user, role="locks")
        self.ask("/v3/auth/user/grant", user="root", role="root")
        self.ask("/v3/auth/enable")
        self.token = self.ask("/v3/auth/authenticate", name="root", password=password)["token"]


def _text(key: str) -> str:
    return base64.b64decode(key).decode()


def _bytes(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextlib.contextmanager
def outside_etcd(directory: Path, certificates: Path | None = None, *options: str) -> Iterator[OutsideEtcd]:
    """`certificates`: the directory with its certificate, if it speaks TLS."""
    with HeldPort() as held, HeldPort() as peers:
        scheme = "https" if certificates else "http"
        client, own = f"{scheme}://localhost:{held.number}", f"http://127.0.0.1:{peers.number}"
        listen = f"{scheme}://127.0.0.1:{held.number}"
        words = {"name": "outside", "data-dir": str(directory / f"etcd-{held.number}"), "log-level": "error"}
        words |= {"listen-client-urls": listen, "advertise-client-urls": client, "logger": "zap"}
        words |= {"listen-peer-urls": own, "initial-advertise-peer-urls": own, "initial-cluster": f"outside={own}"}
        if certificates:
            words |= {"cert-file": str(certificates / "own.pem"), "key-file": str(certificates / "own.key")}
        command = [paths.etcd(), *(f"--{key}={value}" for key, value in words.items()), "--unsafe-no-fsync", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        context = ssl.create_default_context(cafile=str(certificates / "ca.pem")) if certificates else None
        server = OutsideEtcd(held.number, process, context)
        try:
            _await(server)
            yield server
        finally:
            process.kill()
            process.wait()


def _await(server: OutsideEtcd) -> None:
    limit = HangLimit(START_LIMIT_S)
    while True:
        with contextlib.suppress(OSError, ValueError):
            if int(server.ask("/v3/maintenance/status").get("leader", 0)):
                return
        assert not limit.is_over() and server.process.poll() is None
        time.sleep(0.05)
