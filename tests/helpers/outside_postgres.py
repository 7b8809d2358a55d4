"""PostgreSQL servers on ports, which a test starts by itself: lockstorm did not start them."""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.base.hang_limit import START_LIMIT_S, HangLimit
from lockstorm.process.held_port import HeldPort
from lockstorm.servers.postgres_server import server_user
from lockstorm.servers.postgres_wire import PostgresConnection, PostgresRefusal

ADMIN = "admin"
ADMIN_PASSWORD = "root's own"


@dataclass
class OutsidePostgres:
    """`ask`: rows of a statement of the administrator, in a database, each joined by "|"."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(self, statement: str, database: str = "postgres") -> list[str]:
        with socket.create_connection(("127.0.0.1", self.port)) as connected:
            session = PostgresConnection(connected)
            session.log_in(ADMIN, database, ADMIN_PASSWORD, {})
            return ["|".join(row) for row in session.rows(statement)]

    def traces(self, database: str = "postgres") -> list[str]:
        """What a run has left: schemas, sessions, advisory locks."""
        return self.ask(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'lockstorm%' UNION "
            "SELECT 'session ' || pid FROM pg_stat_activity WHERE application_name LIKE 'lockstorm%' UNION "
            "SELECT 'advisory ' || pid FROM pg_locks WHERE locktype = 'advisory'",
            database,
        )

    def left(self, database: str = "postgres") -> list[str]:
        """What a run has left for good: the server ends a session a moment after its connection."""
        limit = HangLimit(START_LIMIT_S)
        while (found := self.traces(database)) and not limit.is_over():
            time.sleep(0.01)
        return found


@contextlib.contextmanager
def outside_postgres(
    options: dict[str, str] | None = None, hba: str = "", certificates: Path | None = None
) -> Iterator[OutsidePostgres]:
    """`options`: of the server. `hba`: lines of its pg_hba.conf, before those of the administrator. With a password for
    everybody. `certificates`: the directory with its certificate."""
    user = server_user()
    who: dict[str, Any] = {"user": user.uid, "group": user.gid, "extra_groups": []} if user else {}
    with tempfile.TemporaryDirectory() as directory, HeldPort() as held:
        place = Path(directory)
        if user:
            os.chown(place, user.uid, user.gid)
        (place / "password").write_text(ADMIN_PASSWORD + "\n")
        words = ("--auth", "scram-sha-256", "--username", ADMIN, "--pwfile", str(place / "password"), "--no-sync")
        more = ("--encoding", "UTF8", "--no-locale", "--no-instructions", "-D", str(place / "data"))
        subprocess.run([paths.postgres("initdb"), *words, *more], check=True, capture_output=True, cwd="/", **who)
        rules = f"{hba}\nhost all all 127.0.0.1/32 scram-sha-256\nhost replication all 127.0.0.1/32 trust\n"
        (place / "data" / "pg_hba.conf").write_text(rules)
        for name, own in (("own.pem", "server.crt"), ("own.key", "server.key")) if certificates else ():
            assert certificates
            copied = place / "data" / own
            copied.write_bytes((certificates / name).read_bytes())
            copied.chmod(0o600)
            if user:
                os.chown(copied, user.uid, user.gid)
        settings = {"listen_addresses": "127.0.0.1", "port": str(held.number), "unix_socket_directories": ""}
        settings |= {"fsync": "off", **(options or {})}
        chosen = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        command = [paths.postgres(), "-D", str(place / "data"), *chosen]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **who)
        server = OutsidePostgres(held.number, process)
        try:
            _await(server)
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait()


def _await(server: OutsidePostgres) -> None:
    limit = HangLimit(START_LIMIT_S)
    while True:
        with contextlib.suppress(OSError, PostgresRefusal):
            server.ask("SELECT 1")
            return
        assert not limit.is_over() and server.process.poll() is None
        time.sleep(0.05)
