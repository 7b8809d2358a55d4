"""What a search of a library tries and requires: promises, faults, and the forms of acquires."""

from lockstorm.base.durations import duration_text
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.locks.adapter import adapter_facts, adapter_path
from lockstorm.native.fault_names import choose_fault, fault_names
from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.properties import current_name
from lockstorm.search.schedule_file import LIBRARY_LEASE_LIMIT_MS
from lockstorm.search.usual_search import DOWN_FAULTS, USUAL, has_majority
from lockstorm.servers.hosted_server import LEASE_LEAST_MS

PROMISES = {  # promise_name in checkers/promises; docs/promises.md defines each
    "mutual_exclusion": "a lock is never held by two owners at once, and a semaphore never by more than it has permits",
    "ownership": "who holds the lock can release and renew it, and nobody else can",
    "lease-too-short": "a lease lasts at least as long as was asked for",
    "lease-too-long": "a lease lasts no longer than was asked for",
    "lease-endless": "a lease has an end",
    "renewal": "the watchdog renews the lease as long as the lock is held, and no longer",
    "validity": "a grant is not spent when it is handed over",
    "wait": "an acquire answers within the time that it was given, and waits for as long",
    "token": "fencing tokens are there, unique, and rise",
    "refusal": "an acquire that was refused leaves nothing behind",
    "cancel": "an acquire that was cancelled leaves nothing behind",
    "release": "a release that failed can be asked once more",
    "loss": "a notice comes in time if the lock is lost, and only then",
    "liveness": "who waits for a lock that is free gets it",
    "fairness": "a lock that says that it is fair grants in the order of the requests",
    "place": "a client that ended while it waited does not keep its place for longer than the library says",
    "residue": "nothing is left at the servers when everything has ended",
    "answer": "every call is answered",
}
USUAL_FAULTS = ("pause-client", "hold-request", "hold-reply", "drop-request", "lose-reply", "error-reply")
RARE_FAULTS = ("kill-client", "client-clock-jump", "crash-server", *DOWN_FAULTS)  # one, in a sixth of the schedules
ONLY_REDIS = ("error-reply", "crash-server", "crash-server-empty")
USUAL_IN_ALL, TOTAL_MOST = 2, 4  # faults in a schedule; LIBRARY_FAULTS_MOST
LEASE_OF_LIBRARY_MS, PERMITS_USUAL = 2000, 2


def library_lease_ms(lock: LockEntry, chosen_ms: int | None) -> int:
    unit_ms = lock.lease_unit_ms or 1
    lease_ms = -(-LEASE_OF_LIBRARY_MS // unit_ms) * unit_ms if chosen_ms is None else chosen_ms
    least_ms = LEASE_LEAST_MS.get(lock.service, 1)
    if not least_ms <= lease_ms <= LIBRARY_LEASE_LIMIT_MS or lease_ms % unit_ms:
        given, least, most, unit = map(duration_text, (lease_ms, least_ms, LIBRARY_LEASE_LIMIT_MS, unit_ms))
        raise UsageError(f"--lease {given}: from {least} to {most}, a multiple of {unit}")
    return lease_ms


def faults_on(lock: LockEntry) -> tuple[str, ...]:
    """The kinds of faults for a library with these servers."""
    absent = (*(() if lock.service == "redis" else ONLY_REDIS), *(() if has_majority(lock) else DOWN_FAULTS))
    return tuple(name for name in fault_names("library") if name not in absent)


def library_budget(text: str | None, lock: LockEntry) -> tuple[dict[str, int], int]:
    """The most faults of each kind in a schedule, and of all together."""
    if text in (None, USUAL):
        usual = (name for name in USUAL_FAULTS if name in faults_on(lock))
        rare = (name for name in RARE_FAULTS if name in faults_on(lock))
        return {**dict.fromkeys(usual, USUAL_IN_ALL), **dict.fromkeys(rare, 1)}, USUAL_IN_ALL
    if text == "none":
        return {}, 0
    budget, total = named_budget(str(text))
    for kind in budget:
        if kind in DOWN_FAULTS and not has_majority(lock):
            raise UsageError(f"--faults {kind}: it is for locks of a majority of servers, and {lock.name} is not one")
        if kind not in faults_on(lock):
            raise UsageError(f"--faults {kind}: on {lock.service} there are {', '.join(faults_on(lock))}")
    return budget, total


def named_budget(text: str) -> tuple[dict[str, int], int]:
    """The faults that a user names."""
    budget: dict[str, int] = {}
    for word in text.split(","):
        name, has_number, number = word.strip().partition("=")
        if has_number and not number.isdecimal():
            raise UsageError(f"--faults {word}: a fault is NAME or NAME=N")
        kind = choose_fault(name, "library")
        budget[kind] = budget.get(kind, 0) + (int(number) if has_number else 1)
    if not 1 <= sum(budget.values()) <= TOTAL_MOST:
        raise UsageError(f"--faults {text}: from 1 to {TOTAL_MOST} in all")
    return budget, sum(budget.values())


def required_promises(text: str | None) -> tuple[str, ...]:
    if text in (None, USUAL):
        return tuple(PROMISES)
    return tuple(choose("promise", current_name(name.strip()), list(PROMISES)) for name in text.split(","))


def promises_made(
    *, lease: bool, renews: bool, token: bool, fair: bool, cancels: bool, asks_again: bool, tells: bool
) -> tuple[str, ...]:
    """The promises that such a library makes. The others cannot be broken, so they are not kept either."""
    made = dict.fromkeys(("lease-too-short", "lease-too-long", "lease-endless"), lease)
    made |= {"renewal": renews, "token": token, "fairness": fair, "cancel": cancels, "release": asks_again}
    made["loss"] = tells
    return tuple(name for name in PROMISES if made.get(name, True))


def promises_of(lock: LockEntry) -> tuple[str, ...]:
    """Those of an adapter's library, by its hello."""
    facts = adapter_facts(lock.library.path)
    return promises_made(
        **{name: getattr(lock, name) for name in ("lease", "renews", "token", "fair")},
        cancels=facts is not None and facts.cancel,
        asks_again=facts is not None and facts.protocol > 2,
        tells=facts is not None and facts.loss_notice != "never",
    )


def drawn_forms(text: str | None, adapter: str) -> tuple[str, ...]:
    """The forms of acquires to draw, each once; empty: all."""
    if text is None:
        return ()
    facts = adapter_facts(str(adapter_path(adapter)))
    known = [form.form for form in facts.forms] if facts else []
    return tuple(dict.fromkeys(choose(f"form of {adapter}", name.strip(), known) for name in text.split(";")))
