"""The story: its sentences about leases must be true."""

import pytest

from lockstorm.report.story import StoryRenderer, resolve_targets
from lockstorm.results.event import Event
from tests.helpers.support import trial


def rendered(events: list[Event]) -> list[str]:
    return [f"{line.actor} {line.text}" for line in StoryRenderer().lines(resolve_targets(events))]


def test_a_lease_that_runs_out_has_a_line() -> None:
    with trial("set-nx-px") as running:
        one, _ = running.clients(2)
        one.acquire()
        running.advance(running.lease_ms * 2)
        one.release()
        lines = rendered(running.story())
    assert "redis client-1's lease has run out: the lock is free, client-1 does not know" in lines


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
