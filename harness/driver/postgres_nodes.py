"""The nodes of a lock on PostgreSQL."""

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.driver.errors import Inconclusive
from harness.driver.library import library
from harness.driver.nodes import Nodes
from harness.driver.pgbouncer import PgBouncer
from harness.driver.pgbouncer import version as pgbouncer_version
from harness.driver.postgres_server import SOCKET, PostgresServer, conninfo

if TYPE_CHECKING:
    from harness.driver.client import Client
    from harness.driver.trial import Trial

HELD = """SELECT pid || ' with an advisory lock' FROM pg_locks WHERE locktype = 'advisory'
UNION SELECT pid || ' with an open transaction' FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"""


class PostgresNodes(Nodes[PostgresServer]):
    """The conductor looks at their processes instead of asking them."""

    title = "PostgreSQL"
    touch = struct.pack("!II", 8, 80877103)  # SSLRequest
    remains_of = "session"

    def __init__(self, trial: "Trial") -> None:
        super().__init__(trial)
        self.databases: list[PostgresServer] = []
        self.replica: PostgresServer | None = None  # of the first, asynchronous
        self._successors: dict[str, PostgresServer] = {}  # node -> who is its master now, if not itself
        self.poolers: dict[str, PgBouncer] = {}  # database -> what stands before it

    @property
    def known(self) -> Sequence[PostgresServer]:
        return self.databases

    @property
    def every(self) -> Sequence[PostgresServer]:
        return [*self.databases, self.replica] if self.replica else self.databases

    @property
    def clocked(self) -> Sequence[PostgresServer]:
        return self.every

    def start(self) -> None:
        said = self.trial.settings
        if said.topology != "single" or said.replicas > 1 or said.persistence != "none" or said.server_options:
            raise Inconclusive(f"{said.lock} lives on PostgreSQL, and this story needs a redis-server")
        if self.trial.settings.settable_clocks and self.trial.settings.time == "real":
            raise Inconclusive("in real time nothing sets the clock of PostgreSQL: use virtual time")
        self.databases = [self._start_one(f"postgres-{each + 1}") for each in range(self.trial.settings.nodes)]
        if self.trial.lock["waits"] == "in-server":
            # Each session has a process of its own: who asks first is queued first only if each is let arrive.
            library().conductor_set_unreliable(self.trial.conductor)

    def _start_one(self, name: str, follows: str = "") -> PostgresServer:
        frozen, replicated = self.trial.settings.time == "virtual", bool(self.trial.settings.replicas)
        clock = self.trial.nursery.directory / f"{name}.clock" if frozen else None
        database = PostgresServer(self.trial.nursery, name, clock=clock, replicated=replicated, follows=follows)
        self.trial.at_exit(database.close)
        database.number = self.enlist(clock, None)
        library().conductor_set_process(self.trial.conductor, database.number, database.process.pid)
        return database

    def ready(self) -> None:
        for database in self.databases:
            database.ready()
            if self.trial.settings.pooled:
                self._start_pooler(database)
        if self.trial.settings.replicas:
            self._start_replica(self.databases[0])

    def _start_replica(self, node: PostgresServer) -> None:
        """It hears of its master's writes through a link of its own, after they were acknowledged."""
        name = f"{node.name}-replica-1"
        follows = self.trial.link(f"{name}>{node.name}", node.socket, listen="127.0.0.1:0", option="PLAIN")
        library().conductor_set_tcp(self.trial.conductor)
        self.replica = self._start_one(name, follows)
        self.replica.ready()
        self.catch_up()

    def catch_up(self) -> None:
        """Returns when the replica has all that was written, and has said so."""
        assert self.replica
        self.replica.await_write(self.databases[0].write())
        self.trial.settle()

    def fail_over(self) -> None:
        """The master is killed for good; its replica takes its place, and clients find it there."""
        master, replica = self.databases[0], self.replica
        assert replica
        self.trial.settle()
        library().conductor_set_unreliable(self.trial.conductor)
        library().conductor_set_silent(self.trial.conductor, master.number, True)
        library().conductor_set_process(self.trial.conductor, master.number, 0)
        master.kill()
        replica.promote()
        self._successors[master.name] = replica
        self.trial.lead(f"client-*>{master.name}", replica.socket)
        self.trial.settle()
        self.trial.note(f"{master.name} was killed, and {replica.name} promoted")

    def master(self, node: PostgresServer) -> PostgresServer:
        return self._successors.get(node.name, node)

    def _start_pooler(self, database: PostgresServer) -> None:
        """PgBouncer, whose process the conductor looks at together with the server's."""
        name = f"pgbouncer-{database.number + 1}"
        pooler = PgBouncer(self.trial.nursery, name, database, "session" if self.trial.control else "transaction")
        pooler.ready()
        library().conductor_set_process(self.trial.conductor, self.enlist(None, None), pooler.process.pid)
        self.poolers[database.name] = pooler

    def address(self, client: "Client", node: PostgresServer) -> str:
        """libpq wants to be told the directory of a socket, whose name it knows."""
        reached = self.poolers.get(node.name, self.master(node))
        socket = self.trial.link(f"{client.host}>{node.name}", reached.socket, option="PLAIN", file=SOCKET)
        return conninfo(Path(socket).parent)

    def versions(self) -> dict[str, str]:
        pooler = {"pgbouncer": pgbouncer_version()} if self.poolers else {}
        return {"postgres": self.master(self.databases[0]).version(), **pooler}

    def remains(self) -> dict[bytes, int]:
        """What sessions hold: a row is not gone when its lease is over."""
        return {os.fsencode(row[0]): -1 for each in map(self.master, self.databases) for row in each.session.rows(HELD)}

    def restart(self, server: PostgresServer) -> bool:
        super().restart(server)
        library().conductor_set_process(self.trial.conductor, server.number, server.process.pid)
        return True
