"""What clients and a real Redis say to each other, through a socket that records it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis
from redis.exceptions import ResponseError

from lockstorm.process.process import Sandbox
from lockstorm.servers.redis_server import RedisServer
from tests.helpers.building import make
from tests.helpers.recorded_traffic import RecordedTraffic
from tests.helpers.wire_text import SCRIPTS, recognised

TOKEN, OTHER = "token-1", "token-2"
LEASE_MS = 30000


class Recording:
    """Clients of one Redis, each on a connection of its own."""

    def __init__(self, program: Path, path: Path, server: RedisServer) -> None:
        self._program = program
        self._path = path
        self._traffic = RecordedTraffic(path, server.socket)
        self._clients: list[redis.Redis] = []

    def client(self, protocol: int = 2) -> redis.Redis:
        """Its session has the next number."""
        client = redis.Redis(
            unix_socket_path=str(self._path), protocol=protocol, single_connection_client=True, decode_responses=True
        )
        self._clients.append(client)
        return client

    def events(self) -> list[str]:
        """Without the number of the statement."""
        for client in self._clients:
            client.close()
        self._traffic.close()
        found = recognised(self._program, "redis", ["settings - 0", *self._traffic.lines])
        return [" ".join((line.split(" ")[0], *line.split(" ")[2:])) for line in found]


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with closing(Sandbox()) as sandbox, closing(RedisServer(sandbox, "redis-1", clock=None)) as started:
        started.ready()
        yield started


@pytest.fixture
def recording(server: RedisServer, tmp_path: Path) -> Recording:
    server.flush()
    server.link.script_flush()  # or a client would use a script that it has not shown
    program = make("build/tests/recognise") / "tests" / "recognise"
    return Recording(program, tmp_path / "recorded.sock", server)


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_lock_of_redis_py(recording: Recording, protocol: int) -> None:
    one, two = recording.client(protocol), recording.client(protocol)
    held = one.lock("lock:a", timeout=30, thread_local=False)
    assert held.acquire(blocking=False, token=TOKEN)
    assert not two.lock("lock:a", timeout=30).acquire(blocking=False, token=OTHER)
    one.set("stock", 5)
    one.decr("stock")
    held.extend(60, replace_ttl=True)
    held.release()
    two.get("stock")
    lock = '"redis lock:a" key exclusive'
    assert recording.events() == [
        f"1 lock-asked {lock} owner={TOKEN} lease=30000",
        f"1 lock-granted {lock} owner={TOKEN} lease=30000",
        f"2 lock-asked {lock} owner={OTHER} lease=30000",
        f"2 lock-refused {lock} owner={OTHER} refused=held",
        '1 access-write "redis stock"',
        '1 access-write "redis stock" relative',
        f"1 lock-extended {lock} owner={TOKEN} lease=60000",
        f"1 lock-released {lock} owner={TOKEN}",
        '2 access-read "redis stock"',
    ]


def test_a_pipeline_that_is_a_transaction(recording: Recording) -> None:
    one, two = recording.client(), recording.client()
    with one.pipeline() as pipeline:
        pipeline.watch("stock")  # type: ignore[no-untyped-call]
        pipeline.get("stock")
        pipeline.multi()
        pipeline.set("stock", 4)
        pipeline.incr("sold")
        pipeline.execute()
    with two.pipeline() as pipeline:
        pipeline.watch("stock")  # type: ignore[no-untyped-call]
        one.set("stock", 9)
        pipeline.multi()
        pipeline.set("stock", 3)
        with pytest.raises(redis.WatchError):
            pipeline.execute()
    # Each pipeline has a connection of its own.
    assert recording.events() == [
        '3 access-read "redis stock"',
        "3 transaction-begun in-transaction",
        '3 access-write "redis stock" conditional in-transaction',
        '3 access-write "redis sold" relative conditional in-transaction',
        "3 transaction-committed in-transaction",
        '1 access-write "redis stock"',
        "4 transaction-begun in-transaction",
        "4 transaction-rolled-back in-transaction: a key that WATCH names has changed",
    ]


def test_messages_on_channels_are_no_answers(recording: Recording) -> None:
    one, two = recording.client(), recording.client()
    listener = one.pubsub()  # type: ignore[no-untyped-call]
    listener.subscribe("channel")
    assert listener.get_message(timeout=5)
    two.publish("channel", "x")
    two.set("stock", 1)
    assert listener.get_message(timeout=5)
    listener.unsubscribe("channel")
    listener.get_message(timeout=5)
    listener.close()
    assert [line for line in recording.events() if "access" in line] == ['2 access-write "redis stock"']


# What each library's scripts are called with: KEYS and ARGV of taking, extending and giving back; the owner is %s.
LIBRARIES: dict[str, dict[str, tuple[list[str], list[str]]]] = {
    "redisson": {
        "redisson-lock": (["lock:a"], [str(LEASE_MS), "%s"]),
        "redisson-renew": (["lock:a"], [str(LEASE_MS), "%s"]),
        "redisson-unlock": (["lock:a", "channel", "latch:%s"], ["0", str(LEASE_MS), "%s", "publish", "5000"]),
    },
    "redisson-fair": {
        "redisson-fair-lock": (["lock:a", "queue", "timeouts"], [str(LEASE_MS), "%s", "300000", "1700000000000"]),
        "redisson-renew": (["lock:a"], [str(LEASE_MS), "%s"]),
        "redisson-fair-unlock": (
            ["lock:a", "queue", "timeouts", "channel", "latch:%s"],
            ["0", str(LEASE_MS), "%s", "1700000000001", "publish", "5000"],
        ),
    },
    "redisson-write": {
        "redisson-write-lock": (["lock:a"], [str(LEASE_MS), "%s"]),
        "redisson-renew": (["lock:a"], [str(LEASE_MS), "%s"]),
        "redisson-write-unlock": (["lock:a", "channel", "latch:%s"], ["0", str(LEASE_MS), "%s", "publish", "5000"]),
    },
    "node-redlock": {
        "redlock-acquire": (["lock:a"], ["%s", str(LEASE_MS)]),
        "redlock-extend": (["lock:a"], ["%s", str(LEASE_MS)]),
        "redlock-release": (["lock:a"], ["%s"]),
    },
    "aioredlock": {
        "aioredlock-set": (["lock:a"], ["%s", str(LEASE_MS)]),
        "shedlock-extend": (["lock:a"], ["%s", str(LEASE_MS)]),
        "aioredlock-unset": (["lock:a"], ["%s"]),
    },
    "spring-integration": {
        "spring-obtain": (["lock:a"], ["%s", str(LEASE_MS)]),
        "shedlock-extend": (["lock:a"], ["%s", str(LEASE_MS)]),
        "spring-unlink": (["lock:a"], ["%s"]),
    },
    "bsm": {
        "redislock-obtain": (["lock:a"], ["%s", "7", str(LEASE_MS)]),
        "shedlock-extend": (["lock:a"], ["%s", str(LEASE_MS)]),
        "release-if-equal": (["lock:a"], ["%s"]),
    },
    "python-redis-lock": {
        "walrus-acquire": (["lock:a"], ["%s", str(LEASE_MS)]),
        "python-redis-lock-extend": (["lock:a"], ["%s", "30"]),
        "python-redis-lock-unlock": (["lock:a", "signal"], ["%s", "1000"]),
    },
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_scripts_of_libraries_on_a_real_server(recording: Recording, library: str) -> None:
    """An owner takes the lock, extends it and gives it back, while another one is refused each of these."""
    one, two = recording.client(), recording.client()

    def call(client: redis.Redis, script: str, owner: str) -> None:
        keys, arguments = LIBRARIES[library][script]
        words = [word.replace("%s", owner) for word in [*keys, *arguments]]
        try:
            client.eval((SCRIPTS / f"{script}.lua").read_text(), len(keys), *words)
        except ResponseError as reason:
            assert "ERROR" in str(reason)  # aioredlock's refusal

    take, extend, give = LIBRARIES[library]
    for script in (take, extend, give):
        call(one, script, TOKEN)
        if script != give:
            call(two, take if script == take else extend, OTHER)
            call(two, give, OTHER)
    call(two, take, OTHER)
    events = [line.partition(": ")[0] if "refused" in line else line for line in recording.events()]
    lock = '"redis lock:a" key exclusive'
    assert events == [
        f"1 lock-asked {lock} owner={TOKEN} lease=30000",
        f"1 lock-granted {lock} owner={TOKEN} lease=30000",
        f"2 lock-asked {lock} owner={OTHER} lease=30000",
        f"2 lock-refused {lock} owner={OTHER} refused=held",
        f"2 lock-release-refused {lock} owner={OTHER} refused=not-held",
        f"1 lock-extended {lock} owner={TOKEN} lease=30000",
        f"2 lock-extend-refused {lock} owner={OTHER} refused=not-held",
        f"2 lock-release-refused {lock} owner={OTHER} refused=not-held",
        f"1 lock-released {lock} owner={TOKEN}",
        f"2 lock-asked {lock} owner={OTHER} lease=30000",
        f"2 lock-granted {lock} owner={OTHER} lease=30000",
    ]


def test_redisson_readers_share_a_lock(recording: Recording) -> None:
    one, two = recording.client(), recording.client()
    texts = {
        name: (SCRIPTS / f"redisson-{name}.lua").read_text() for name in ("read-lock", "write-lock", "read-unlock")
    }
    timeouts = {owner: f"{{lock:a}}:{owner}:rwlock_timeout" for owner in ("one:7", "two:7")}

    def read(client: redis.Redis, owner: str) -> None:
        client.eval(texts["read-lock"], 2, "lock:a", timeouts[owner], str(LEASE_MS), owner, f"{owner}:write")

    def unlock(client: redis.Redis, owner: str) -> None:
        keys = ["lock:a", "channel", timeouts[owner], "{lock:a}", f"latch:{owner}"]
        client.eval(texts["read-unlock"], len(keys), *keys, "1", owner, "publish", "5000")

    read(one, "one:7")
    read(two, "two:7")
    two.eval(texts["write-lock"], 1, "lock:a", str(LEASE_MS), "two:8:write")
    unlock(one, "one:7")
    unlock(two, "two:7")
    two.eval(texts["write-lock"], 1, "lock:a", str(LEASE_MS), "two:8:write")
    shared, exclusive = '"redis lock:a" key shared', '"redis lock:a" key exclusive owner=two:8:write'
    assert recording.events() == [
        f"1 lock-asked {shared} owner=one:7 lease=30000",
        f"1 lock-granted {shared} owner=one:7 lease=30000",
        f"2 lock-asked {shared} owner=two:7 lease=30000",
        f"2 lock-granted {shared} owner=two:7 lease=30000",
        f"2 lock-asked {exclusive} lease=30000",
        f"2 lock-refused {exclusive} refused=held",
        f"1 lock-released {shared} owner=one:7 reenters",
        f"2 lock-released {shared} owner=two:7",
        f"2 lock-asked {exclusive} lease=30000",
        f"2 lock-granted {exclusive} lease=30000",
    ]
