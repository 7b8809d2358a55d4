"""What a lock answers to a renewal by a client that holds nothing: never ok, where the holder renews its lease."""

import pytest

from lockstorm.native.library import Outcome, locks
from lockstorm.results.lock_entry import LockEntry
from lockstorm.scenario.play import usual_time
from lockstorm.servers.services import missing_for
from tests.helpers.support import trial

SINGLE = [lock for lock in locks() if not lock.once]


def is_renewed_by_holder(lock: LockEntry) -> bool:
    return lock.lease and not lock.renews


@pytest.mark.parametrize("lock", SINGLE, ids=[lock.name for lock in SINGLE])
def test_who_holds_nothing_can_renew_nothing(lock: LockEntry) -> None:
    """Of a client that was never granted the lock, was refused it, and has released it. A lock without a lease, or with
    a watchdog, may say ok, and is not accused of it."""
    if reason := missing_for(lock, "open", pooled=False):
        pytest.skip(f"not installed: {reason}")
    with trial(lock.name, scenario="contention", time=usual_time(lock)) as running:
        one, two = running.clients(2)
        answers = [one.renew()]
        assert one.acquire().ok
        if two.acquire(wait_ms=0).ok:
            assert lock.name == "none"
        else:
            answers.append(two.renew())
        assert one.release().ok
        answers.append(one.renew())
        if is_renewed_by_holder(lock):
            assert {answer.outcome for answer in answers} == {Outcome.REFUSED}
        assert running.judge().properties["ownership"].sorts["empty_renewal"] == 0
