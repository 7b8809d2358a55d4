"""The story: its sentences about leases must be true."""

import msgspec
import pytest

from lockstorm.report.story import story_rows
from lockstorm.results.event import Event
from tests.helpers.support import trial


def rendered(events: list[Event]) -> list[str]:
    return [f"{row.who} {row.story}" for row in story_rows(events)]


def test_a_lease_that_runs_out_has_a_line() -> None:
    with trial("set-nx-px") as running:
        one, _ = running.clients(2)
        one.acquire()
        running.advance(running.lease_ms * 2)
        one.release()
        lines = rendered(running.story())
    assert "redis client-1's lease has run out: the lock is free, client-1 does not know" in lines


@pytest.mark.lengthy("starts PostgreSQL and a library's program")
def test_a_lease_runs_out_at_the_service_of_the_library() -> None:
    with trial("adapter:cirello-pglock") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        with running.pause(one):
            assert two.acquire(wait_ms=4 * running.lease_ms).ok
        lines = rendered(running.story())
    assert [line for line in lines if line.startswith("postgres client-1's lease has run out")]


def test_a_lease_that_is_renewed_does_not_run_out() -> None:
    with trial("set-nx-px-renew") as running:
        one, two = running.clients(2)
        one.acquire()
        running.advance(running.lease_ms * 3)
        assert not two.acquire(wait_ms=0).ok
        assert one.release().ok
        lines = rendered(running.story())
    assert not [line for line in lines if "run out" in line]


def test_a_watchdog_that_stands_still_renews_nothing() -> None:
    with trial("set-nx-px-renew") as running:
        one, two = running.clients(2)
        one.acquire()
        with running.pause(one):
            two.acquire()
        lines = rendered(running.story())
    assert [line for line in lines if "client-1's lease has run out" in line]


def test_faults_of_a_server_have_sentences() -> None:
    with trial("set-nx-px") as running:
        for fault in ("flush", "script-flush", "kill-connections", "crash-server"):
            running.clients(1)[0].acquire(wait_ms=0)
            with running.fault(fault, running.server):
                pass
        lines = [line for line in rendered(running.story()) if line.startswith("redis-1")]
    assert lines == [
        "redis-1 loses all its keys (flush)",
        "redis-1 flush: proved",
        "redis-1 forgets its scripts (script-flush)",
        "redis-1 script-flush: proved",
        "redis-1 closes its clients' connections (kill-connections)",
        "redis-1 kill-connections: proved",
        "redis-1 is killed (crash-server)",
        "redis-1 has been started again",
        "redis-1 crash-server: proved",
    ]


@pytest.mark.parametrize(
    ("lock", "store", "reason"),
    [
        ("set-nx-px-fenced", "fence-writes", " with token 1: it has seen a newer token"),
        ("set-nx-px-fenced", "table-fence-reads-and-writes", " with token 1: it has seen a newer token"),
        ("set-nx-px", "compare-owner", ": the last read was under another grant"),
        ("set-nx-px", "compare-and-set", ": it was not computed from the newest version"),
    ],
)
def test_a_refusal_has_the_reason_of_its_store(lock: str, store: str, reason: str) -> None:
    """Only a store that checks tokens refuses a write because of one."""
    with trial(lock, store=store) as running:
        one, two = running.clients(2)
        one.acquire()
        one.read()
        running.advance(running.lease_ms * 2)
        two.increment()
        one.write(1)
        lines = [line for line in rendered(running.story()) if line.startswith("store refuses")]
    assert lines == [f"store refuses counter = 1 from client-1{reason}"]


@pytest.mark.parametrize(
    ("lock", "store", "reason"),
    [
        ("set-nx-px-fenced", "fence-writes", "it came without a token"),
        ("set-nx-px", "compare-owner", "it came without a grant"),
        ("set-nx-px", "compare-and-set", "it was not computed from the newest version"),
    ],
)
def test_a_write_without_a_grant_is_refused_for_that(lock: str, store: str, reason: str) -> None:
    with trial(lock, store=store) as running:
        (one,) = running.clients(1)
        one.write(1)
        (line,) = [line for line in rendered(running.story()) if line.startswith("store refuses")]
    assert line == f"store refuses counter = 1 from client-1: {reason}"


def made(*records: dict[str, object]) -> list[Event]:
    """Events in order; each a millisecond after the one before, unless it says `at` (ms)."""
    told = []
    for index, record in enumerate(records, 1):
        fields = {key: value for key, value in record.items() if key != "at"}
        told.append({"index": index, "mono_ns": int(str(record.get("at", index))) * 1_000_000, **fields})
    return msgspec.convert(told, list[Event])


def test_a_read_stands_where_the_store_answered() -> None:
    asked = {"object": "counter", "op": 2}
    shown = {"kind": "store-read", "actor": "store", "name": "A", "outcome": "ok", "value": 7, **asked}
    other = {"kind": "store-write", "actor": "store", "name": "B", "outcome": "ok", "value": 8, "object": "counter"}
    heard = {"kind": "read-return", "actor": "A", "outcome": "ok", "value": 7, **asked}
    assert rendered(made(shown, {**heard, "at": 2})) == ["A reads counter = 7"]
    assert rendered(made(shown, other, {**heard, "at": 90})) == [
        "A reads counter = 7",
        "store accepts counter = 8 from B",
        "A hears that it has read counter = 7",
    ]
    assert rendered(made(shown, {**heard, "outcome": "unknown"})) == [
        "A reads counter = 7",
        "A hears no answer to its read of counter",
    ]
    assert rendered(made(heard)) == ["A reads counter = 7"], "a store that records nothing"


def answered(value: int, extra: int = 1, outcome: str = "refused") -> dict[str, object]:
    return {"kind": "answers", "actor": "A", "name": "stock", "value": value, "extra": extra, "outcome": outcome}


def test_the_votes_of_nodes_have_a_sentence() -> None:
    asks: dict[str, object] = {"kind": "acquire-invoke", "actor": "A", "name": "stock"}
    refused: dict[str, object] = {"kind": "acquire-return", "actor": "A", "name": "stock", "outcome": "refused"}
    polled = rendered(made(asks, answered(11223), answered(31213, 3), answered(22222), answered(22222), refused))
    assert polled == [
        "A asks for the lock",
        "A is answered: nodes 1 and 2 grant it, nodes 3 and 4 refuse, node 5 does not answer",
        "A gives the lock back: nodes 2 and 4 free it, node 3 has nothing of it, nodes 1 and 5 do not answer",
        "A is answered: nodes 1, 2, 3, 4 and 5 refuse",
        "A does not get the lock (refused)",
    ]
    assert rendered(made(answered(112, 2))) == ["A asks for a longer lease: nodes 1 and 2 extend it, node 3 refuses"]
    assert rendered(made(answered(12, 9))) == ["A is answered: part 1 grants it, part 2 refuses"]
    assert rendered(made(answered(111, 3, "ok"))) == [], "a release as it should be"
    assert rendered(made(answered(122, 3)))[0].endswith(": node 1 frees it, nodes 2 and 3 have nothing of it")


def test_locks_on_several_nodes_tell_their_votes() -> None:
    with trial("redlock") as running:
        one, two = running.clients(2)
        one.acquire()
        two.acquire(wait_ms=0)
        one.release()
        lines = rendered(running.story())
    assert "client-1 is answered: nodes 1, 2, 3, 4 and 5 grant it" in lines
    assert "client-2 is answered: nodes 1, 2, 3, 4 and 5 refuse" in lines
    assert not [line for line in lines if "gives the lock back" in line]


def test_renewals_and_refused_ones_have_lines() -> None:
    with trial("set-nx-px-renew") as running:
        one, _ = running.clients(2)
        one.acquire()
        running.advance(running.lease_ms)
        with running.fault("flush", running.server):
            pass
        running.advance(running.lease_ms)
        lines = rendered(running.story())
    assert "client-1 extends its lease (watchdog)" in lines
    assert "client-1 cannot extend its lease any more: its watchdog was refused" in lines


def test_a_client_that_asks_whether_it_holds_the_lock_and_extends_it() -> None:
    with trial("set-nx-px") as running:
        one, two = running.clients(2)
        one.acquire()
        for client in (one, two):
            client.is_held()
            client.renew()
        lines = [line for line in rendered(running.story()) if "asks whether" in line or "extend" in line]
    assert lines == [
        "client-1 asks whether it holds the lock: yes",
        "client-1 extends its lease",
        "client-2 asks whether it holds the lock: no",
        "client-2 wants to extend its lease: refused",
    ]
