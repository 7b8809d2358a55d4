"""The text of each kind of record, short enough to stand beside its mark."""

from collections.abc import Callable

from lockstorm.report.answers import EXTENSION, GRANT, RELEASE, answers_of
from lockstorm.results.event import Event

CLOCK_STANDS = 1  # `extra` of a validity that the driver records for a suspended client
SIGNAL_KILL = 9


def phrase(event: Event) -> tuple[str, str]:
    """The text of a record, and its tone: "", "good", "warn", "dim"."""
    render = PHRASES.get(event.kind)
    return render(event) if render else (event.kind, "dim")


def by_outcome(event: Event, ok: str, refused: str, unknown: str, tone: str = "") -> tuple[str, str]:
    if event.outcome == "ok":
        return ok, tone
    return (refused, "warn") if event.outcome == "refused" else (unknown, "warn")


def with_token(event: Event) -> str:
    return f" · token {event.token}" if event.token else ""


def thing(event: Event) -> str:
    return str(event.object or "resource")


def _acquired(event: Event) -> tuple[str, str]:
    return by_outcome(event, f"granted{with_token(event)}", "not granted", "asked: no answer", "good")


def _validity(event: Event) -> tuple[str, str]:
    if event.extra == CLOCK_STANDS:
        return "still believes: its clock stands still", "dim"
    return by_outcome(event, "lease extended", "lease reported lost", "lease: no answer", "dim")


def _read_back(event: Event) -> tuple[str, str]:
    return by_outcome(event, f"{thing(event)} = {event.value}", "read refused", "read: no answer")


def _store_read(event: Event) -> tuple[str, str]:
    ok = f"shows {event.value} to {event.name}{with_token(event)}"
    return by_outcome(event, ok, f"refuses {event.name}'s read{with_token(event)}", "read: unknown")


def _store_write(event: Event) -> tuple[str, str]:
    written = f"{event.value} of {event.name}{with_token(event)}"
    return by_outcome(event, f"accepts {written}", f"refuses {written}", f"{written}: unknown")


def _proved(event: Event) -> tuple[str, str]:
    return by_outcome(event, f"{event.name}: proved", f"{event.name}: taken back", f"{event.name}: not proved")


def _server_renewal(event: Event) -> tuple[str, str]:
    if event.extra:
        return f"a server lengthens the key of {event.extra_name}", "warn"
    return by_outcome(event, "a server hears of the renewal", "a server finds nothing to renew", "", "dim")


def _answered(event: Event) -> tuple[str, str]:
    answers = answers_of(event)
    if not answers.count:
        return by_outcome(event, "lease extended", "extension refused", "extension: no answer", "dim")
    what = {GRANT: "asked", EXTENSION: "extension", RELEASE: "given back"}[answers.asked]
    doubtful = answers.silent or (answers.no and answers.asked != RELEASE)
    return f"{what}: {answers.brief}", "warn" if doubtful else "dim"


PHRASES: dict[str, Callable[[Event], tuple[str, str]]] = {
    "lock-open": lambda event: (f"starts as {event.actor}", "dim"),
    "acquire-invoke": lambda event: ("asks for the lock", "dim"),
    "acquire-return": _acquired,
    "renew-invoke": lambda event: ("renews", "dim"),
    "renew-return": lambda event: by_outcome(event, "renewed", "renewal refused", "renewal: no answer", "dim"),
    "validity": _validity,
    "server-renewal": _server_renewal,
    "answers": _answered,
    "is-held": lambda event: by_outcome(event, "holds the lock: yes", "holds the lock: no", "holds the lock: ?"),
    "release-invoke": lambda event: ("releases", "dim"),
    "release-return": lambda event: by_outcome(event, "released", "release refused", "release: no answer"),
    "read-invoke": lambda event: (f"reads {thing(event)}", "dim"),
    "read-return": _read_back,
    "write-invoke": lambda event: (f"writes {event.value}", "dim"),
    "write-return": lambda event: by_outcome(event, "write done", "write refused", "write: no answer"),
    "store-read": _store_read,
    "store-write": _store_write,
    "fault-inject": lambda event: (f"{event.name} begins", "warn"),
    "fault-prove": _proved,
    "fault-heal": lambda event: (f"{event.name} is over", "warn"),
    "checkpoint": lambda event: (f"held at {event.name}", "dim"),
    "actor-exit": lambda event: (f"{event.name} {'is killed' if event.value == SIGNAL_KILL else 'ends'}", "warn"),
    "rule": lambda event: (f"{event.name} fires", "warn"),
    "released": lambda event: (f"{event.name} delivers", "warn"),
    "phase": lambda event: (f"from here on: {event.name}", "dim"),
    "residue": lambda event: (f"left behind: {event.value} {event.name}", "warn"),
    "note": lambda event: (str(event.name or ""), "dim"),
    "torn": lambda event: ("an unfinished record", "warn"),
}
