"""The story: what is told about leases must be true of them."""

from typing import Any

from harness.driver.narrate import Teller, resolve_targets
from tests.support import trial


def told(events: list[dict[str, Any]]) -> list[str]:
    return [f"{line.who} {line.what}" for line in Teller().lines(resolve_targets(events))]


def test_a_lease_that_runs_out_is_told_when_it_does() -> None:
    with trial("set-nx-px") as running:
        one, _ = running.clients(2)
        one.acquire()
        running.advance(running.lease_ms * 2)
        one.release()
        lines = told(running.story())
    assert "redis client-1's lease has run out: the lock is free, client-1 does not know" in lines


def test_a_lease_that_is_renewed_is_not_said_to_have_run_out() -> None:
    with trial("set-nx-px-renew") as running:
        one, two = running.clients(2)
        one.acquire()
        running.advance(running.lease_ms * 3)
        assert not two.acquire(wait_ms=0).ok
        assert one.release().ok
        lines = told(running.story())
    assert not [line for line in lines if "run out" in line]


def test_a_watchdog_that_stands_still_renews_nothing() -> None:
    with trial("set-nx-px-renew") as running:
        one, two = running.clients(2)
        one.acquire()
        with running.pause(one):
            two.acquire()
        lines = told(running.story())
    assert [line for line in lines if "client-1's lease has run out" in line]


def test_what_is_done_to_a_server_is_told_in_words() -> None:
    with trial("set-nx-px") as running:
        for fault in ("flush", "script-flush", "kill-connections", "crash-server"):
            running.clients(1)[0].acquire(wait_ms=0)
            with running.fault(fault, running.server):
                pass
        lines = [line for line in told(running.story()) if line.startswith("redis-1")]
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
