"""PostgreSQL: the sessions of clients, what is there, and the schema of a run."""

import contextlib
import socket
import struct
from collections.abc import Iterator

from lockstorm.attach.run_names import schema_of
from lockstorm.attach.server_access import ServerAccess, ServerLine, ServerSurvey
from lockstorm.attach.server_address import ServerAddress, place
from lockstorm.attach.transport import Login, Seed, not_answered_as
from lockstorm.base.errors import UsageError
from lockstorm.servers.postgres_wire import (
    NO_PASSWORD,
    SSL_REQUEST,
    NotPostgres,
    PostgresConnection,
    PostgresRefusal,
    UnknownLogin,
    read_startup,
)

SURVEY = """SELECT current_setting('server_version'), pg_is_in_recovery(),
has_database_privilege(current_database(), 'CREATE'), (SELECT count(*) FROM pg_class
JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE relkind IN ('r', 'p') AND nspname <> 'information_schema'
AND nspname NOT LIKE 'pg\\_%')"""
OURS = "application_name = '{run}' AND pid <> pg_backend_pid()"
HELD = f"""SELECT pid || ' with an advisory lock' FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND {OURS}
UNION SELECT pid || ' with an open transaction' FROM pg_stat_activity
WHERE state LIKE 'idle in transaction%' AND {OURS}"""
END_SESSIONS = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS}"
TABLES = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace('{schema}')"
IS_THERE = "SELECT to_regnamespace('{schema}') IS NOT NULL"
PATIENCE = "SET lock_timeout = '3s'; SET statement_timeout = '10s'"  # of our own session
WRONG_PASSWORD, NOT_ALLOWED, NO_DATABASE = "28P01", "28000", "3D000"
NO_ENCRYPTION = "no encryption"  # in the text of a refusal


class PostgresAccess(ServerAccess):
    """The clients' sessions have the run as their application_name, and its schema as their only search path."""

    def __init__(self, address: ServerAddress, run: str, login: Login) -> None:
        super().__init__(address, run, login)
        self._schema = schema_of(run)

    def check(self) -> None:
        with self._opened():
            pass

    def carry(self, client: socket.socket, seed: Seed) -> ServerLine:
        read_startup(client)
        connected = self._open(seed)
        with self.explained(seed, connected.socket):
            connected.rows(f"SET search_path = {self._schema}")
        return ServerLine(connected.socket, connected.greeting)

    def survey(self) -> ServerSurvey:
        address = self.address
        ((version, is_replica, may_create, tables),) = self._rows(SURVEY)
        if is_replica == "t":
            raise UsageError(f"{address.shown} is a standby, and a lock needs the primary: name that one")
        if may_create != "t":
            raise UsageError(
                f"the user {address.user} may not create a schema in the database {address.name} of {address.shown}: "
                f'GRANT CREATE ON DATABASE "{address.name}" TO "{address.user}", or name another user'
            )
        return ServerSurvey(version.split()[0], address.name, int(tables))

    def prepare(self) -> None:
        self._rows(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")

    def remains(self) -> dict[str, int]:
        """What sessions hold. Rows do not count: a row stays when its lease has expired."""
        return {row[0]: -1 for row in self._rows(HELD.format(run=self.run))}

    def remove_once(self) -> int:
        """Ends the sessions of clients, which may hold locks on the tables, and drops the schema. Counts tables."""
        self._rows(END_SESSIONS.format(run=self.run))
        ((is_there,),) = self._rows(IS_THERE.format(schema=self._schema))
        ((tables,),) = self._rows(TABLES.format(schema=self._schema))
        if is_there == "t":
            self._rows(f"DROP SCHEMA IF EXISTS {self._schema} CASCADE")
        return int(tables)

    # --- sessions ---

    def _rows(self, statement: str) -> list[list[str]]:
        """A statement in a session of our own."""
        seed = self.locate()
        with self._opened() as connected, self.explained(seed, connected.socket):
            connected.rows(PATIENCE)
            return connected.rows(statement)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[PostgresConnection]:
        connected = self._open(self.locate())
        with contextlib.closing(connected.socket):
            yield connected

    def _open(self, seed: Seed) -> PostgresConnection:
        address, plain = self.address, self.transport.connect(seed)
        if address.tls:
            plain = self._encrypt(seed, plain)
        connected = PostgresConnection(plain)
        with self.explained(seed, connected.socket):
            settings = {"application_name": self.run, "client_encoding": "UTF8"}
            connected.log_in(address.user, address.name, self.login.password, settings)
        return connected

    def _encrypt(self, seed: Seed, plain: socket.socket) -> socket.socket:
        with self.explained(seed, plain):
            plain.sendall(struct.pack("!II", 8, SSL_REQUEST))
            answer = plain.recv(1)
        if answer == b"S":
            return self.transport.encrypt(seed, plain)
        plain.close()
        if answer == b"N":
            raise UsageError(f"{place(*seed)} does not speak TLS: use sslmode=disable if it expects none")
        raise UsageError(
            not_answered_as(seed, "a PostgreSQL server") if answer else f"{place(*seed)} closes the connection"
        )

    def explain(self, seed: Seed, error: Exception) -> str:
        where = place(*seed)
        if isinstance(error, PostgresRefusal):
            return self._explain_refusal(where, error)
        if isinstance(error, UnknownLogin):
            return (
                f"{where} asks for a kind of login that attach does not know: it knows passwords (scram-sha-256, md5)"
            )
        return not_answered_as(seed, "a PostgreSQL server") if isinstance(error, NotPostgres) else ""

    def _explain_refusal(self, where: str, refusal: PostgresRefusal) -> str:
        user, variable = self.address.user, self.login.variable
        if refusal.state == NO_PASSWORD:
            return f"{where} asks for a password: put it into the variable {variable}"
        if refusal.state == WRONG_PASSWORD:
            return f"{where} refuses the user {user} or the password of the variable {variable}: check both"
        if refusal.state == NOT_ALLOWED and NO_ENCRYPTION in str(refusal) and not self.address.tls:
            return f"{where} does not let {user} in without TLS: add ?sslmode=verify-full to the URL"
        if refusal.state == NOT_ALLOWED:
            return f"{where} does not let {user} in: {refusal}"
        if refusal.state == NO_DATABASE:
            return f"{where} has no database called {self.address.name}: check the URL"
        return f"{where} refuses to work with lockstorm: {refusal}"
