"""What a search of an application tries and requires."""

from lockstorm.application.application_file import Application
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.results.lock_entry import HostedLibrary, LockEntry
from lockstorm.search.library_plan import RARE_FAULTS, USUAL_FAULTS, USUAL_IN_ALL, named_budget
from lockstorm.search.usual_search import DOWN_FAULTS, USUAL

REQUIRED = {  # application_property_name in harness/application
    "check": "what must be so at the end, by the application's file, is so",
    "answer": "every request is answered",
}
RULES = {  # application_rule_name in checkers/rules; docs/application-rules.md defines each
    "unlock-before-commit": "a lock is given back after the transaction that wrote under it was committed",
    "snapshot-before-lock": "a transaction does not read by a snapshot that is older than its lock",
    "read-before-lock": "what is written under a lock was read under it",
    "row-lock-outside-transaction": "a row that is locked stays locked until it was written",
    "beyond-the-lease": "what is written under a lease takes effect before its end",
    "refused-and-goes-on": "who was refused the lock does not write what it protects",
    "released-by-a-stranger": "a lock is given back by who holds it",
    "lock-order": "all requests take two locks in one order",
    "done-twice": "two requests do not do the same piece of work",
    "unprotected-write": "two requests that write the same data have a lock in common",
    "lock-left": "a request that was answered holds no lock",
}
APPLICATION_PROPERTIES = {**REQUIRED, **RULES}
FAULTS = tuple(name for name in (*USUAL_FAULTS, *RARE_FAULTS, "crash-server-empty") if name not in DOWN_FAULTS)


def application_entry(application: Application) -> LockEntry:
    """What stands in the place of a lock's entry where a search needs one: the program that is hosted."""
    return LockEntry(
        name=application.name,
        summary="an application",
        explanation="",
        source="",
        fixed=None,
        lease=True,
        token=False,
        reentrant=False,
        fair=False,
        renews=False,
        renewable=False,
        once=False,
        capacity=1,
        waits="not",
        service="redis",
        built=True,
        real_time_only=False,
        nodes=1,
        replicas=0,
        adapter=HostedLibrary(str(application.file), application.name, "", tcp=True, operations=[]),
    )


def application_budget(text: str | None, application: Application) -> tuple[dict[str, int], int]:
    """The most faults of each kind in a schedule, and of all together."""
    known = FAULTS if "redis" in application.services else tuple(name for name in FAULTS if not _of_redis(name))
    if text in (None, USUAL):
        usual = dict.fromkeys((name for name in USUAL_FAULTS if name in known), USUAL_IN_ALL)
        return usual | dict.fromkeys((name for name in RARE_FAULTS if name in known), 1), USUAL_IN_ALL
    if text == "none":
        return {}, 0
    budget, total = named_budget(str(text))
    for name in budget:
        if name not in known:
            raise UsageError(f"--faults {name}: of this application's servers there are {', '.join(known)}")
    return budget, total


def _of_redis(fault: str) -> bool:
    return fault == "error-reply" or fault.startswith("crash-server")


def application_properties(text: str | None) -> tuple[str, ...]:
    if text in (None, USUAL):
        return tuple(REQUIRED)
    names = (name.strip() for name in str(text).split(","))
    return tuple(choose("property of an application", name, list(APPLICATION_PROPERTIES)) for name in names)
