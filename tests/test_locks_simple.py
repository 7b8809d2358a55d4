"""What is particular about each lock on one node: its own promises, and the races that its source has."""

import signal

import pytest

from harness.driver import Client, Outcome, Trial
from harness.driver.library import Kind, library
from harness.driver.trial import RESOURCE
from tests.support import trial


def crash(running: Trial, client: Client) -> None:
    """Ends a client as a power cut does, and says so in the history."""
    assert client.process
    client.process.kill()
    status = client.process.wait()
    library().conductor_forget(running.conductor, client.pid)
    running.record(Kind.ACTOR_EXIT, name=client.identity, value=signal.SIGKILL if status < 0 else status)


# --- releases ---


def test_a_blind_delete_frees_the_successors_lock() -> None:
    with trial("set-nx-blind-del") as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        assert running.server.link.get(RESOURCE) == b""
        running.advance(running.lease_ms + 1)
        assert two.acquire().ok
        assert one.release().ok, "something was deleted, that is all it asks"
        assert three.acquire(wait_ms=0).ok, "beside client 2"
        assert two.release().ok, "and so on"
        assert three.release().outcome is Outcome.REFUSED, "nothing left to delete"


@pytest.mark.parametrize("lock", ["set-nx-get-del", "setnx-expire"])
def test_a_lease_that_ends_between_get_and_del_costs_the_next_holder_its_lock(lock: str) -> None:
    with trial(lock) as running:
        one, two, three = running.clients(3)
        assert one.acquire().ok
        one.start_release()
        one.run_to("between-get-and-del")
        running.advance(running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok
        assert one.finish().ok
        assert three.acquire(wait_ms=0).ok, "beside client 2"
        assert two.release().outcome is Outcome.REFUSED


def test_compare_and_delete_in_one_script_leaves_no_place_between() -> None:
    with trial("set-nx-px") as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        running.advance(running.lease_ms + 1)
        assert two.acquire(wait_ms=0).ok
        assert one.release().outcome is Outcome.REFUSED
        assert running.server.link.exists(RESOURCE)


# --- crashes ---


def test_a_crash_between_setnx_and_expire_locks_for_ever() -> None:
    with trial("setnx-expire") as running:
        one, two = running.clients(2)
        one.start_acquire()
        one.run_to("between-setnx-and-expire")
        crash(running, one)
        assert running.server.link.pttl(RESOURCE) == -1, "no expiry"
        assert two.acquire(wait_ms=10 * running.lease_ms).outcome is Outcome.REFUSED


def test_a_crash_after_the_expiry_was_set_locks_for_one_lease() -> None:
    with trial("setnx-expire") as running:
        one, two = running.clients(2)
        one.start_acquire()
        one.run_to("after-acquire-reply")
        crash(running, one)
        assert two.acquire(wait_ms=running.lease_ms + 101).ok
