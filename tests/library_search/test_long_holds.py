"""Holds of a minute or two: what ends after a minute of silence, a lock among it."""

from pathlib import Path

import pytest

from lockstorm.servers.services import missing
from tests.helpers.planting_watched import plant_program
from tests.helpers.searching import searched

# An advisory lock of a session. Its pool closes connections that nobody has used for a while.
SESSIONS = r"""#!{python}
import sys, threading
sys.path.insert(0, "{lines}")
import psycopg2
from lockstorm.adapter_program.lines import ThreadProgram
IDLE_S = 60
class SessionLock:
    def __init__(self, at, name): self.at, self.name, self.idle = at, name, None
    def ask(self, function):
        with self.link.cursor() as cursor:
            cursor.execute(f"SELECT {function}(hashtext(%s))", [self.name])
            return cursor.fetchone()[0]
    def acquire(self, waits):
        self.link = psycopg2.connect(host=self.at["host"], port=self.at["port"], user="lockstorm", dbname="postgres",
            sslmode="disable", gssencmode="disable")
        self.link.autocommit = True
        if self.ask("pg_advisory_lock" if waits else "pg_try_advisory_lock") is False:
            self.link.close()
            return False
        self.idle = threading.Timer(IDLE_S, self.link.close)
        self.idle.daemon = True
        self.idle.start()
        return True
    def release(self):
        self.idle.cancel()
        done = self.ask("pg_advisory_unlock")
        self.link.close()
        return done
class Library:
    def open(self, asked): self.at = asked["nodes"][0]
    def make(self, resource, asked): return SessionLock(self.at, resource)
    def acquire(self, lock, asked): return lock.acquire(asked["wait_ms"] is None)
    def release(self, lock, asked): return lock.release()
HELLO = {"name": "session lock", "service": "postgres", "tcp": True, "waits": "in-server", "operations": []}
FORMS = [{"form": "lock", "wait": ["none", "forever"], "lease": ["endless"]}]
HELLO_2 = {"threads": 4, "owner": "object", "forms": FORMS}
ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
"""
NEVER = {"        self.idle.start()\n": ""}


@pytest.mark.slow("searches some hundred schedules on a real PostgreSQL", seconds=60)
@pytest.mark.parametrize("changes", [{}, NEVER], ids=["closes", "never"])
def test_a_lock_that_an_idle_timeout_of_a_minute_ends_is_found(tmp_path: Path, changes: dict[str, str]) -> None:
    if reason := missing("postgres"):
        pytest.skip(reason)
    result = searched(plant_program(tmp_path, SESSIONS, changes), schedules=400, faults="none")
    if changes:
        assert result["exit"] == 0, result["sentence"]
    else:
        assert result["exit"] == 1 and "mutual_exclusion" in result["found"]["violates"], result["sentence"]
