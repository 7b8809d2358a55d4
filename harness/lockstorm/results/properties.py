"""The properties that a history is judged by (docs/verdicts.md), and the policies that read unknown outcomes."""

from collections.abc import Iterable

REQUIRED = ("mutual_exclusion", "integrity", "fencing", "liveness", "capacity")  # by default, as far as they apply
PROPERTIES = (*REQUIRED[:3], "ownership", "liveness", "capacity", "lease", "fairness", "cost")
JUDGED = tuple(name for name in PROPERTIES if name != "cost")  # cost is reported, never judged

SORTS = {  # of violations, by property, as in struct checker; the others have one sort only
    "integrity": ("stale_write", "lost_update", "duplicated_operation"),
    "fencing": ("missing_token", "repeated_token", "falling_token", "stale_access", "wrongful_refusal"),
    "ownership": ("foreign_release", "foreign_renewal", "broken_hold", "foreign_extension", "empty_renewal"),
    "liveness": ("stuck_waiter", "lost_wake_up", "unserved", "residue"),
    "capacity": ("surplus_grant", "unowned_release"),
    "lease": (
        *("spent_grant", "late_write", "late_renewal", "hollow_renewal", "premature_grant", "broken_validity"),
        "long_renewal",
    ),
}


def current_name(word: str) -> str:
    """The name of a property or of a promise: files of before call mutual exclusion `exclusion` in a library's."""
    return "mutual_exclusion" if word in ("exclusion", "mutual-exclusion") else word


def property_of(word: str) -> str:
    """The property of "property" or "property/sort"."""
    return word.partition("/")[0]


def with_capacity(names: Iterable[str], permits: int | None) -> tuple[str, ...]:
    """The properties to require by default of a lock with this number of permits (None: 1). `names`: those of a lock
    with one. Holders of a semaphore work at the same time and may overwrite each other's data, so only their number is
    judged."""
    return tuple("capacity" if name == "integrity" and (permits or 1) > 1 else name for name in names)


def is_asked(name: str, required: Iterable[str]) -> bool:
    """Integrity is not asked of a lock that has to keep its capacity instead."""
    return name != "integrity" or name in required or "capacity" not in required


RELEASE_POLICIES = ("not-happened", "released", "unknown")
ACQUIRE_POLICIES = ("not-happened", "unknown")
REFUSAL_POLICIES = ("unknown", "lost")
