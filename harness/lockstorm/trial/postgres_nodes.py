"""The nodes of a lock on PostgreSQL."""

import os
import struct
from collections.abc import Sequence
from pathlib import Path

from lockstorm.base.errors import Inconclusive
from lockstorm.native.library import library
from lockstorm.servers.pgbouncer import PgBouncer, pgbouncer_version
from lockstorm.servers.postgres_server import SOCKET, PostgresServer, conninfo
from lockstorm.trial.client import Client
from lockstorm.trial.nodes import Nodes
from lockstorm.trial.trial_context import TrialContext

HELD = """SELECT pid || ' with an advisory lock' FROM pg_locks WHERE locktype = 'advisory'
UNION SELECT pid || ' with an open transaction' FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"""


class PostgresNodes(Nodes[PostgresServer]):
    """The scheduler watches their processes instead of sending them a PING."""

    title, program = "PostgreSQL", "postgres"
    touch = struct.pack("!II", 8, 80877103)  # SSLRequest
    remains_of = "session"

    def __init__(self, trial: TrialContext) -> None:
        super().__init__(trial)
        self.replica: PostgresServer | None = None  # of the first, asynchronous
        self.poolers: dict[str, PgBouncer] = {}  # database -> the pooler in front of it

    @property
    def every(self) -> Sequence[PostgresServer]:
        return [*self.known, self.replica] if self.replica else self.known

    @property
    def clocked(self) -> Sequence[PostgresServer]:
        return self.every

    def start(self) -> None:
        self.refuse_redis_settings(replicas_most=1)
        if self.trial.settings.settable_clocks and self.trial.settings.time == "real":
            raise Inconclusive("in real time nothing sets the clock of PostgreSQL: use virtual time")
        self.known = [self._start_one(f"postgres-{each + 1}") for each in range(self.trial.settings.nodes)]
        if self.trial.lock.waits == "in-server":
            # Each session has a process of its own: requests are queued in order only if each arrives before the next
            # one is sent.
            library().scheduler_set_unreliable(self.trial.scheduler)

    def _start_one(self, name: str, follows: str = "") -> PostgresServer:
        frozen, replicated = self.trial.settings.time == "virtual", bool(self.trial.settings.replicas)
        clock = self.trial.sandbox.directory / f"{name}.clock" if frozen else None
        deployment = self.trial.settings.deployment
        own = deployment.given("postgres") if deployment else {}
        database = PostgresServer(
            self.trial.sandbox, name, clock=clock, replicated=replicated, follows=follows, configured=own
        )
        self.trial.on_exit.callback(database.close)
        database.number = self.trial.scheduler.add_server(clock, None)
        library().scheduler_set_server_process(self.trial.scheduler, database.number, database.process.pid)
        return database

    def ready(self) -> None:
        for database in self.known:
            database.ready()
            if self.trial.settings.pooled:
                self._start_pooler(database)
        if self.trial.settings.replicas:
            self._start_replica(self.known[0])

    def _start_replica(self, node: PostgresServer) -> None:
        """It receives its master's writes through a link of its own, after they were acknowledged."""
        name = f"{node.name}-replica-1"
        follows = self.trial.links.link(f"{name}>{node.name}", node.socket, listen="127.0.0.1:0", option="PLAIN")
        library().scheduler_set_tcp(self.trial.scheduler)
        self.replica = self._start_one(name, follows)
        self.replica.ready()
        self.catch_up()

    def catch_up(self) -> None:
        """Returns when the replica has acknowledged all writes."""
        assert self.replica
        self.replica.await_write(self.known[0].write())
        self.trial.scheduler.settle()

    def fail_over(self) -> None:
        """Kills the master for good and promotes its replica; the clients' links lead there."""
        master, replica = self.known[0], self.replica
        assert replica
        self.trial.scheduler.settle()
        library().scheduler_set_unreliable(self.trial.scheduler)
        library().scheduler_set_server_silent(self.trial.scheduler, master.number, True)
        library().scheduler_set_server_process(self.trial.scheduler, master.number, 0)
        master.kill()
        replica.promote()
        self._successors[master.name] = replica
        self.trial.links.lead(f"client-*>{master.name}", replica.socket)
        self.trial.scheduler.settle()
        self.trial.recorder.is_disturbed = True
        self.trial.recorder.note(f"{master.name} was killed, and {replica.name} promoted")

    def _start_pooler(self, database: PostgresServer) -> None:
        """Starts PgBouncer; the scheduler watches its process as well as the server's."""
        name = f"pgbouncer-{database.number + 1}"
        pooler = PgBouncer(
            self.trial.sandbox, name, database, "session" if self.trial.settings.control else "transaction"
        )
        pooler.ready()
        library().scheduler_set_server_process(
            self.trial.scheduler, self.trial.scheduler.add_server(None, None), pooler.process.pid
        )
        self.poolers[database.name] = pooler

    def address(self, client: Client, node: PostgresServer) -> str:
        """For a lock of ours a connection string: libpq takes a socket's directory, and knows the socket's name."""
        reached = self.poolers.get(node.name, self.master(node))
        address = self.link(client, node, reached.socket, file=SOCKET)
        return address if self.trial.lock.adapter else conninfo(Path(address).parent)

    def versions(self) -> dict[str, str]:
        pooler = {"pgbouncer": pgbouncer_version()} if self.poolers else {}
        return {self.program: self.master(self.known[0]).version(), **pooler}

    def remains(self) -> dict[bytes, int]:
        """What sessions hold. Rows do not count: a row stays when its lease has expired."""
        return {os.fsencode(row[0]): -1 for each in map(self.master, self.known) for row in each.session.rows(HELD)}

    def restart(self, server: PostgresServer) -> bool:
        super().restart(server)
        library().scheduler_set_server_process(self.trial.scheduler, server.number, server.process.pid)
        return True
