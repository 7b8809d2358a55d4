"""The data directory of PostgreSQL that every session of an application begins with: its database, its user, and what
its setup makes."""

import signal
from pathlib import Path

from lockstorm.application.application_file import Database
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.read_file import read_text
from lockstorm.process.process import Sandbox
from lockstorm.servers.postgres_server import DATABASE, ROLE, STOP_LIMIT_S, PostgresServer, PostgresSession

NAME = "setup-postgres"


def database_template(sandbox: Sandbox, database: Database) -> Path:
    """Makes it in the sandbox. UsageError if the setup is refused."""
    server = PostgresServer(sandbox, NAME, clock=None)
    try:
        server.ready()
        users = dict.fromkeys((database.user, "postgres"))
        for user in users:
            if user != ROLE:
                server.session.rows(f'CREATE ROLE "{user}" SUPERUSER LOGIN')
        if database.name != DATABASE:
            server.session.rows(f'CREATE DATABASE "{database.name}" OWNER "{database.user}" TEMPLATE {DATABASE}')
        if database.setup:
            _set_up(server, database, database.setup)
        server._session_end()
        server.process.send_signal(signal.SIGINT)  # it ends in order, so that copies have nothing to recover
        server.process.wait_at_most(STOP_LIMIT_S)
    finally:
        server.close()
    return server.directory.resolve()


def _set_up(server: PostgresServer, database: Database, setup: Path) -> None:
    session = PostgresSession(server.socket, database.name)
    try:
        session.rows(f'SET ROLE "{database.user}"')
        session.rows(read_text(setup, "[servers] postgres names it as setup"))
    except Inconclusive as refused:
        raise UsageError(f"{setup}: {refused}") from None
    finally:
        session.close()
