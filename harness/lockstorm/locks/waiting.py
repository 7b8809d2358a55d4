"""How long a free lock may go unnoticed by its waiters: what its pattern promises, and what a fault may add.

Every bound is for virtual time, in which messages and steps take none; a busy machine needs more (REAL_TIME_MS)."""

from lockstorm.results.lock_entry import LockEntry

BY_MESSAGE = ("push", "blocking-pop", "in-server")  # ways to wait in which a release wakes a waiter
STEPS_MS = 100  # for steps of a hand-over that sleep a little: a retry, a round of a majority
POLL_UNSTATED_MS = 2_000  # a poller's longest sleep, of one that does not state it, after a fault
REAL_TIME_MS = 2_000  # what a busy machine may add
MS_PER_S = 1000


def noticed_ms(lock: LockEntry) -> int | None:
    """While nothing is broken: within which time a waiter notices that the lock is free. None: the lock does not state
    it. Pollers of several nodes may each take a minority, and try again."""
    if lock.waits not in BY_MESSAGE and not lock.poll_ms:
        return None
    return STEPS_MS + lock.poll_ms * lock.nodes


def recovered_ms(lock: LockEntry, lease_ms: int, reply_limit_ms: int) -> int:
    """The same after faults that are healed. What was lost - a wake-up, a release, a grant that its client does not
    know of - is over with one lease, which may begin when an answer is given up. A blocking pop that has just begun
    then lasts for another one, in whole seconds."""
    polled_ms = noticed_ms(lock)
    pop_ms = -(-lease_ms // MS_PER_S) * MS_PER_S if lock.waits == "blocking-pop" else 0
    usual_ms = STEPS_MS + POLL_UNSTATED_MS if polled_ms is None else polled_ms
    return usual_ms + lease_ms + pop_ms + reply_limit_ms
