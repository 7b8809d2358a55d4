"""A real PgBouncer in front of a PostgreSQL server: in a private directory, on a unix socket.

In transaction mode a client has a connection to the server only during its transaction. The next client may get the
same connection, with all that the client before has left in its session.
"""

import contextlib
import os
import subprocess
from typing import Literal

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive
from lockstorm.process.process import Sandbox
from lockstorm.servers.postgres_server import (
    DATABASE,
    PORT,
    ROLE,
    SOCKET,
    PostgresServer,
    PostgresSession,
    server_user,
)

PoolMode = Literal["session", "transaction"]

# It goes by the machine's clock, and does nothing by that clock during a trial, also if the machine stands still.
# Drivers of Go (lib/pq) and Java send extra_float_digits when they connect; by default PgBouncer refuses them.
CONFIGURATION = """[databases]
{database} = host={server} port={port} user={role} dbname={database}
[pgbouncer]
pool_mode = {mode}
unix_socket_dir = {sockets}
unix_socket_mode = 0700
listen_port = {port}
auth_type = any
admin_users = {role}
ignore_startup_parameters = extra_float_digits
default_pool_size = 20
server_check_delay = 86400
server_idle_timeout = 0
server_lifetime = 86400
server_connect_timeout = 86400
client_login_timeout = 86400
query_wait_timeout = 86400
"""


class PgBouncer:
    """Started by the constructor; `ready` waits until it answers."""

    def __init__(self, sandbox: Sandbox, name: str, database: PostgresServer, mode: PoolMode) -> None:
        self.name, self.mode = name, mode
        self.sockets = sandbox.directory / f"{name}-socket"
        self.socket = self.sockets / SOCKET
        self._sandbox = sandbox
        user = server_user()
        self.sockets.mkdir(mode=0o700)
        file = self.sockets / "pgbouncer.ini"
        words = {"database": DATABASE, "role": ROLE, "port": PORT, "server": database.sockets, "sockets": self.sockets}
        file.write_text(CONFIGURATION.format(mode=mode, **words))
        if user:
            for path in (self.sockets, file):
                os.chown(path, user.uid, user.gid)
        self.process = sandbox.start(name, [paths.pgbouncer(), "--quiet", str(file)], user=user)

    def ready(self) -> None:
        """Returns when it answers in its mode. Raises Inconclusive with its own log if it does not start."""
        self._sandbox.await_start("PgBouncer", self.name, self.process, self._answers, (Inconclusive,))

    def _answers(self) -> bool:
        """Reads the mode back from its console, for it would also start in another mode."""
        if not self.socket.exists():
            return False
        with contextlib.closing(PostgresSession(self.socket, "pgbouncer")) as session:
            modes = [row[1] for row in session.rows("SHOW CONFIG") if row[0] == "pool_mode"]
        assert modes == [self.mode], f"PgBouncer is in the mode {modes} instead of {self.mode}"
        return True


def pgbouncer_version() -> str:
    output = subprocess.run([paths.pgbouncer(), "--version"], capture_output=True, text=True, check=True).stdout
    return output.split()[1]
