"""The story: its sentences about leases must be true."""

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
