"""What a search tries and requires unless the user says otherwise. Both follow from the traits of the lock: a right
lock with these traits survives the faults in what is required of it, so a violation says that this lock is wrong.

After a pause that outlasts a lease, two clients hold any lock with a lease at the same time, and without a fence the
resource is damaged: that says nothing about this lock. What a right lock with a lease does keep is that nobody gets it
while the lease of another certainly runs, that nobody else ends a grant, that a renewal reaches the lock, that tokens
rise, and that waiters are served."""

from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.properties import SORTS

USUAL = "usual"
USUAL_TOTAL = 3  # faults in a schedule
# Not what a client sees that looks: its write is late, or what it was granted is spent.
LEASE_KEPT = ("late_renewal", "hollow_renewal", "premature_grant", "broken_validity", "long_renewal")
# All but what the resource accepts.
TOKENS_RISE = ("missing_token", "repeated_token", "falling_token", "wrongful_refusal")
LAPSED = "broken_hold"  # also of a right lock, when a client re-enters a lock whose lease has ended
UNFENCED = "open"
DOWN_FAULTS = ("server-down", "server-silent")
MAJORITY_LEAST = 3  # servers: one of them can be down


def has_majority(lock: LockEntry) -> bool:
    """Whether it is a lock that a majority of its servers grants."""
    return lock.nodes >= MAJORITY_LEAST


def usual_faults(lock: LockEntry) -> tuple[str, ...]:
    """The kinds of fault that may strike. A lock without a lease is not freed when a release is lost, nor when a late
    acquire succeeds: only clients may be late there. A release that comes late, or twice, is taken for a new one where
    all grants of a client have the same owner."""
    anywhere = ("pause-client", "pause-client-before-send", "client-clock-jump")
    lost = ("error-reply", "lose-reply", "drop-request", "crash-server", "kill-client")
    late = () if lock.reentrant else ("hold-request", "duplicate-request")
    pushed = ("drop-message",) if lock.waits == "push" else ()
    down = DOWN_FAULTS if has_majority(lock) else ()
    return (*anywhere, *lost, *late, *pushed, *down) if lock.lease else anywhere


def usual_requirements(lock: LockEntry, permits: int, store: str) -> tuple[str, ...]:
    """Properties, and sorts of their violations as property/sort, that only a broken lock with these traits violates
    under those faults. Who owns one of several permits is not judged, nor what their holders write."""
    ordered = ("fairness",) if lock.fair else ()  # judged in schedules without a fault
    if not lock.lease:
        whole = ("capacity",) if permits > 1 else ("mutual_exclusion", "integrity", "ownership")
        return (*whole, "liveness", *ordered)
    kept = tuple(f"lease/{sort}" for sort in LEASE_KEPT)
    if permits > 1:
        return ("capacity/unowned_release", "liveness", *kept, *ordered)
    owned = tuple(f"ownership/{sort}" for sort in SORTS["ownership"] if sort != LAPSED or not lock.reentrant)
    fenced = lock.token and store != UNFENCED
    fencing = ("fencing", "integrity") if fenced else tuple(f"fencing/{sort}" for sort in TOKENS_RISE)
    return (*owned, "liveness", *kept, *(fencing if lock.token else ()), *ordered)


def steady_requirements(lock: LockEntry, permits: int, *, renews: bool) -> tuple[str, ...]:
    """Properties that a right lock keeps in schedules with one fault at most, which is over at once: a lock that renews
    its lease then tries again in time."""
    kept = "capacity" if permits > 1 else "mutual_exclusion"
    return (kept,) if lock.lease and renews else ()
