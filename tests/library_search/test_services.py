"""Searches of libraries on etcd, PostgreSQL and ZooKeeper, real servers in virtual time, which a search supervises."""

import hashlib
import json
import shlex
import sys
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import NotInstalled
from lockstorm.locks.adapter import PREFIX, adapter_entry
from lockstorm.search.replay import replay_library
from lockstorm.search.schedule_file import parse_library_schedule
from tests.helpers.daily import daily
from tests.helpers.support import lockstorm

SERVICES = {"etcd-mutex": "etcd", "kazoo": "zookeeper", "pals": "postgres"}
SAME = ("history_sha256", "steps", "verdict")


@pytest.mark.lengthy("starts real servers, and plays a search on them twice")
@pytest.mark.parametrize(
    "adapter", daily(sorted(SERVICES), ["etcd-mutex"], "one more service, a search of it played twice", 12)
)
def test_a_search_plays_real_servers_and_repeats_itself(adapter: str) -> None:
    try:
        entry = adapter_entry(PREFIX + adapter)
    except NotInstalled as reason:
        pytest.skip(str(reason))
    assert entry.service == SERVICES[adapter]
    words = ("explore", "--adapter", adapter, "--seed", "3", "--schedules", "12", "--workers", "1", "--all", "--json")
    one, two = (json.loads(lockstorm(*words, timeout=300).stdout) for _ in range(2))
    assert "schedules" in one and "schedules" in two, (one["sentence"], two["sentence"])
    assert one["schedules"] == two["schedules"] == 12 and one["unplayed"] == 0
    assert sum(one["injected"].values()) > 0
    assert [one[key] for key in SAME] == [two[key] for key in SAME]


def test_what_is_for_redis_alone_is_refused_elsewhere() -> None:
    for words, complaint in (
        (("--faults", "crash-server"), "--faults crash-server: on zookeeper there are client-clock-jump, "),
        (("--server", "valkey-server"), "--server is about redis-servers"),
        (("--lease", "100ms"), "--lease 100ms: from 200ms"),
    ):
        done = lockstorm("explore", "--adapter", "kazoo", *words)
        assert done.returncode == 2 and complaint in " ".join(done.stderr.split()), done.stderr


# A lock that is a row of a table, one for each resource. {delete}: how it is given back.
ROWS = """#!{python}
import sys
sys.path.insert(0, {shared!r})
import psycopg2
from lockstorm.adapter_program.lines import ThreadProgram
FORMS = [{{"form": "insert", "wait": ["none"], "lease": ["endless"]}}]
class Library:
    def open(self, question):
        at = question["nodes"][0]
        self.link = psycopg2.connect(host=at["host"], port=at["port"], user="lockstorm", dbname="postgres",
            sslmode="disable", gssencmode="disable")
        self.link.autocommit = True
        self.ask("CREATE TABLE IF NOT EXISTS holders (name text PRIMARY KEY, holder int)")
    def ask(self, statement, *values):
        with self.link.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.rowcount == 1
    def make(self, resource, question):
        return resource
    def acquire(self, resource, question):
        return self.ask("INSERT INTO holders VALUES (%s, %s) ON CONFLICT DO NOTHING", resource, question["lock"])
    def release(self, resource, question):
        return self.ask({delete!r}, resource, question["lock"])
ThreadProgram(Library(), (), {{"name": "rows", "service": "postgres", "tcp": True, "operations": []}},
    {{"owner": "object", "forms": FORMS}}).serve()
"""
DELETE = "DELETE FROM holders WHERE name = %s AND holder = %s"
KEEPS = "UPDATE holders SET holder = 0 WHERE name = %s AND holder = %s"


@pytest.mark.slow("one more search on a PostgreSQL of its own", seconds=5)
@pytest.mark.parametrize(
    ("delete", "left"),
    daily([(DELETE, ""), (KEEPS, "row public.holders")], [(KEEPS, "row public.holders")], "the control", 3),
)
def test_rows_are_seen_when_they_are_left_and_are_gone_with_the_next_schedule(
    tmp_path: Path, delete: str, left: str
) -> None:
    program = tmp_path / "rows"
    shared = str(paths.PACKAGE.parent)
    program.write_text(ROWS.format(python=sys.executable, shared=shared, delete=delete))
    program.chmod(0o755)
    words = ("--faults", "none", "--schedules", "40", "--seed", "1", "--workers", "1", "--require", "residue", "--json")
    result = json.loads(lockstorm("explore", "--adapter", str(program), *words, timeout=300).stdout)
    assert result["exit"] == (1 if left else 0), result["sentence"]
    assert left in result["sentence"]
    if not left:
        assert (result["schedules"], result["unplayed"]) == (40, 0)


# It connects so often that a schedule cannot follow all of it.
CONNECTS = """#!{python}
import socket
import sys
import uuid
sys.path.insert(0, {shared!r})
from lockstorm.adapter_program.lines import ThreadProgram
FORMS = [{{"form": "ask", "wait": ["none"], "lease": ["endless"]}}]
COMPARE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0"
class Library:
    def open(self, question):
        self.links = [socket.socket(socket.AF_UNIX) for _ in range({links})]
        for link in self.links:
            link.connect(question["nodes"][0]["unix"])
    def make(self, resource, question):
        return resource + " " + uuid.uuid4().hex
    def acquire(self, resource, question):
        self.links[-1].send(f"SET {{resource}} NX\\r\\n".encode())
        return b"OK" in self.links[-1].recv(100)
    def release(self, resource, question):
        self.links[-1].send(f'EVAL "{{COMPARE}}" 1 {{resource}}\\r\\n'.encode())
        return self.links[-1].recv(100) == b":1\\r\\n"
ThreadProgram(Library(), (), {{"name": "connects", "operations": []}}, {{"owner": "object", "forms": FORMS}}).serve()
"""


@pytest.mark.parametrize(("links", "status"), [(64, 0), (65, 3)])
def test_a_library_with_more_connections_than_can_be_followed_is_not_accused(
    tmp_path: Path, links: int, status: int
) -> None:
    program = tmp_path / "connects"
    shared = str(paths.PACKAGE.parent)
    program.write_text(CONNECTS.format(python=sys.executable, shared=shared, links=links))
    program.chmod(0o755)
    done = lockstorm("explore", "--adapter", str(program), "--schedules", "5", "--workers", "1", "--faults", "none")
    assert done.returncode == status, done.stdout + done.stderr
    assert status == 0 or "more connections than a schedule can follow" in done.stdout + done.stderr


def test_connections_that_have_ended_give_their_places_back(tmp_path: Path) -> None:
    """A connection for each call, and many of them in a call."""
    program = tmp_path / "connects"
    text = (
        CONNECTS.replace("self.links[-1].", "self.fresh(resource).")
        .replace(
            "    def acquire",
            "    def fresh(self, resource):\n"
            "        for _ in range(40):\n"
            "            link = socket.socket(socket.AF_UNIX)\n"
            "            link.connect(self.place)\n"
            "            link.send(b'PING\\r\\n')\n"
            "            link.recv(100)\n"
            "            link.close()\n"
            "        return self.links[-1]\n"
            "    def acquire",
        )
        .replace(
            "    def open(self, question):",
            '    def open(self, question):\n        self.place = question["nodes"][0]["unix"]',
        )
    )
    program.write_text(text.format(python=sys.executable, shared=str(paths.PACKAGE.parent), links=1))
    program.chmod(0o755)
    words = ("explore", "--adapter", str(program), "--schedules", "5", "--workers", "1", "--faults", "none", "--json")
    results = [json.loads(lockstorm(*words).stdout) for _ in range(2)]
    assert [result["unplayed"] for result in results] == [0, 0] and results[0]["calls"] > 10
    assert results[0]["history_sha256"] == results[1]["history_sha256"]


def test_a_connection_for_each_call_of_which_some_stay_open(tmp_path: Path) -> None:
    """Forty that stay open and are not used again, and 30 more in each call: all numbers are given out, and none is
    left in the place of an ended connection."""
    program = tmp_path / "connects"
    fresh = """
    def fresh(self):
        pool = [socket.socket(socket.AF_UNIX) for _ in range(20)]
        for link in pool:
            link.connect(self.place)
        for link in pool:
            link.send(b'PING\\r\\n')
            link.recv(100)
        for link in pool:
            link.close()
        return self.links[-1]
    def acquire"""
    text = CONNECTS.replace("self.links[-1].", "self.fresh().").replace("\n    def acquire", fresh)
    text = text.replace(
        "question):\n        self.links",
        'question):\n        self.place = question["nodes"][0]["unix"]\n        self.links',
    )
    program.write_text(text.format(python=sys.executable, shared=str(paths.PACKAGE.parent), links=40))
    program.chmod(0o755)
    words = ("explore", "--adapter", str(program), "--schedules", "8", "--workers", "1", "--faults", "none", "--json")
    results = [json.loads(lockstorm(*words).stdout) for _ in range(2)]
    assert [result["unplayed"] for result in results] == [0, 0], results[0]["unplayed_reason"]
    assert results[0]["history_sha256"] == results[1]["history_sha256"]


@pytest.mark.parametrize(("leaked", "status"), [(1, 0), (9, 3)], ids=("few", "many"))
def test_schedules_that_could_not_be_played_are_counted_and_repeated(tmp_path: Path, leaked: int, status: int) -> None:
    """Connections for each call, and none is closed: now and then a schedule cannot be played. What was tried is
    repeated as a whole; where more than one in ten was not played, nothing is said to be kept."""
    program = tmp_path / "connects"
    leak = """
    def fresh(self):
        for _ in range(LEAKED):
            self.links.append(socket.socket(socket.AF_UNIX))
            self.links[-1].connect(self.place)
        return self.links[-1]
    def acquire"""
    text = CONNECTS.replace("self.links[-1].send", "self.fresh().send").replace("\n    def acquire", leak)
    place = 'self.place = question["nodes"][0]["unix"]'
    text = text.replace("question):\n        self.links", f"question):\n        {place}\n        self.links")
    shared = str(paths.PACKAGE.parent)
    text = text.replace("LEAKED", str(leaked)).format(python=sys.executable, shared=shared, links=1)
    program.write_text(text)
    program.chmod(0o755)
    words = ("explore", "--adapter", str(program), "--schedules", "70", "--workers", "1", "--faults", "none", "--json")
    result = json.loads(lockstorm(*words, timeout=300).stdout)
    assert 0 < result["unplayed"] < 70 and result["tried"] == result["schedules"] == 70 - result["unplayed"]
    assert (result["unplayed"] > 7) == (status == 3) and result["exit"] == status, result["sentence"]
    assert "--schedules 70" in result["replay"]
    more = f"; {result['unplayed']} more could not be played: the program of client-"
    assert result["sentence"].removeprefix("Inconclusive: " if status else "").startswith("connects kept every promise")
    assert more in result["sentence"] and "makes more connections than a schedule can follow" in result["sentence"]
    again = json.loads(lockstorm(*shlex.split(result["replay"])[1:], "--json", timeout=300).stdout)
    same = ("history_sha256", "schedules", "unplayed", "distinct")
    assert [again[key] for key in same] == [result[key] for key in same]
    assert result["distinct"] > 1 and result["history_sha256"] != hashlib.sha256(b"").hexdigest()


@pytest.mark.slow("one more search on a PostgreSQL of its own", seconds=6)
def test_a_transaction_that_locks_nothing_is_left_and_its_connection_lives_on() -> None:
    """PALs gives a connection back to its pool with an open transaction. Sessions that end would be held against it."""
    try:
        adapter_entry(PREFIX + "pals")
    except NotInstalled as reason:
        pytest.skip(str(reason))
    words = ("--faults", "none", "--schedules", "10", "--workers", "1", "--all", "--require", "residue", "--json")
    result = json.loads(lockstorm("explore", "--adapter", "pals", *words, timeout=300).stdout)
    found = result["found"]
    assert result["verdict"]["residue"]["count"] == 10
    assert result["sessions"] < 10  # programs played several schedules
    assert (found["number"], len(found["workload"]), found["with_new_programs"]) == (1, 2, True)
    assert "transaction without a lock" in found["sentence"]


@pytest.mark.lengthy("starts a real etcd")
@pytest.mark.parametrize(
    ("adapter", "form", "outcome", "violates"),
    [
        ("etcd-election", "Election.Campaign", "ok", ["mutual_exclusion"]),
        ("etcd-mutex", "Mutex.Lock", "refused", []),
    ],
)
def test_who_queued_with_a_session_that_ended_is_not_granted_the_lock(
    adapter: str, form: str, outcome: str, violates: list[str]
) -> None:
    """client-2 is paused for 6 s, and its session ends after 2 s. 10 s later it is its turn: a mutex refuses it, an
    election grants, and client-3 leads beside it."""
    text = (paths.ROOT / "tests" / "library_search" / "found" / "election-after-own-lease.schedule").read_text()
    text = text.replace("adapter etcd-election", f"adapter {adapter}").replace("Election.Campaign", form)
    try:
        again = replay_library(parse_library_schedule(text, "the schedule"), "the schedule")
    except NotInstalled as reason:
        pytest.skip(str(reason))
    answers = [each for each in again.events if (each.kind, each.call, each.client) == ("answer", "acquire", 2)]
    assert [each.outcome for each in answers] == [outcome]
    assert again.violates == violates, again.sentence


# Sessions that a fault of half a lease may end, because of the moment at which they were kept up last.
ENDED_SESSIONS = {
    # A client of ZooKeeper gives its connection up, and draws when it connects again.
    "curator": """\
client-1 thread-1: acquire lock-1 resource-1 exclusive wait=none lease=renewed form=acquire(time, SECONDS)
client-1 thread-1: work 5000
client-1 thread-1: release lock-1 resource-1 exclusive
client-2 thread-1: acquire lock-1 resource-1 exclusive wait=forever lease=renewed form=acquire()
client-2 thread-1: release lock-1 resource-1 exclusive
schedule
before clock 8: pause-client client-1 1000
""",
    # A client of etcd keeps a session of 2 s up after half of it.
    "etcd-mutex": """\
client-1 thread-1: acquire lock-1 resource-1 exclusive wait=forever lease=renewed form=Mutex.Lock
client-1 thread-1: release lock-1 resource-1 exclusive
client-2 thread-1: acquire lock-1 resource-1 exclusive wait=none lease=renewed form=Mutex.TryLock
client-2 thread-1: work 4000
client-2 thread-1: release lock-1 resource-1 exclusive
schedule
before request client-1 link-1 2: call client-2 thread-1
before request client-2 link-1 4: hold-request client-2 link-1 1000
""",
}


@pytest.mark.lengthy("starts a real server, and Java virtual machines")
@pytest.mark.parametrize("adapter", sorted(ENDED_SESSIONS))
def test_a_session_that_a_long_fault_ended_is_no_certain_hold(adapter: str) -> None:
    """A schedule was accused or not by the moment at which its programs had kept their sessions up last."""
    try:
        hosted = adapter_entry(PREFIX + adapter).adapter
    except NotInstalled as reason:
        pytest.skip(str(reason))
    assert hosted
    head = f"lockstorm-schedule 2\nadapter {adapter}\nlibrary {hosted.name} {hosted.version}\n"
    head += "lease_ms 2000\npermits 2\nseed 1\nnumber 1\nviolates mutual_exclusion\nworkload\n"
    text = head + ENDED_SESSIONS[adapter]
    again = replay_library(parse_library_schedule(text, "ended"), "ended")
    granted = [line.at_s for line in again.story if line.what.startswith("acquire: granted")]
    assert len(granted) == 2 and granted[1] < 4, "the second grant is within the first one's hold"
    assert again.violates == []
