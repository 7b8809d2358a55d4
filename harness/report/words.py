"""What a record says, in the few words that fit beside its mark."""

from collections.abc import Callable
from typing import Any

Event = dict[str, Any]

CLOCK_STANDS = 1  # `extra` of a validity that the driver tells on behalf of a suspended client
SIGNAL_KILL = 9


def phrase(event: Event) -> tuple[str, str]:
    """The words, and their tone: "", "good", "warn", "dim"."""
    say = PHRASES.get(event["kind"])
    return say(event) if say else (event["kind"], "dim")


def outcome(event: Event) -> str:
    return str(event.get("outcome", "unknown"))


def by_outcome(event: Event, ok: str, refused: str, unknown: str, tone: str = "") -> tuple[str, str]:
    if outcome(event) == "ok":
        return ok, tone
    return (refused, "warn") if outcome(event) == "refused" else (unknown, "warn")


def with_token(event: Event) -> str:
    return f" · token {event['token']}" if event.get("token") else ""


def thing(event: Event) -> str:
    return str(event.get("object", "resource"))


def _acquired(event: Event) -> tuple[str, str]:
    return by_outcome(event, f"granted{with_token(event)}", "not granted", "asked: no answer", "good")


def _validity(event: Event) -> tuple[str, str]:
    if event.get("extra") == CLOCK_STANDS:
        return "believes on: its clock stands", "dim"
    return by_outcome(event, "lease extended", "told that it is lost", "lease: no answer", "dim")


def _read_back(event: Event) -> tuple[str, str]:
    return by_outcome(event, f"{thing(event)} = {event.get('value', 0)}", "read refused", "read: no answer")


def _store_read(event: Event) -> tuple[str, str]:
    ok = f"shows {event.get('value', 0)} to {event.get('name')}{with_token(event)}"
    return by_outcome(event, ok, f"refuses {event.get('name')}'s read{with_token(event)}", "read: unknown")


def _store_write(event: Event) -> tuple[str, str]:
    written = f"{event.get('value', 0)} of {event.get('name')}{with_token(event)}"
    return by_outcome(event, f"accepts {written}", f"refuses {written}", f"{written}: unknown")


def _proved(event: Event) -> tuple[str, str]:
    return by_outcome(
        event, f"{event.get('name')}: proved", f"{event.get('name')}: taken back", f"{event.get('name')}: not proved"
    )


def _ended(event: Event) -> tuple[str, str]:
    return (
        f"{event.get('name')} is killed" if event.get("value") == SIGNAL_KILL else f"{event.get('name')} ends"
    ), "warn"


PHRASES: dict[str, Callable[[Event], tuple[str, str]]] = {
    "lock-open": lambda event: (f"starts as {event.get('actor')}", "dim"),
    "acquire-invoke": lambda event: ("asks for the lock", "dim"),
    "acquire-return": _acquired,
    "renew-invoke": lambda event: ("renews", "dim"),
    "renew-return": lambda event: by_outcome(event, "renewed", "renewal refused", "renewal: no answer", "dim"),
    "validity": _validity,
    "release-invoke": lambda event: ("releases", "dim"),
    "release-return": lambda event: by_outcome(event, "released", "release refused", "release: no answer"),
    "read-invoke": lambda event: (f"reads {thing(event)}", "dim"),
    "read-return": _read_back,
    "write-invoke": lambda event: (f"writes {event.get('value', 0)}", "dim"),
    "write-return": lambda event: by_outcome(event, "write done", "write refused", "write: no answer"),
    "store-read": _store_read,
    "store-write": _store_write,
    "fault-inject": lambda event: (f"{event.get('name')} begins", "warn"),
    "fault-prove": _proved,
    "fault-heal": lambda event: (f"{event.get('name')} is over", "warn"),
    "checkpoint": lambda event: (f"held at {event.get('name')}", "dim"),
    "actor-exit": _ended,
    "rule": lambda event: (f"{event.get('name')} fires", "warn"),
    "released": lambda event: (f"{event.get('name')} lets go", "warn"),
    "phase": lambda event: (f"from here on: {event.get('name')}", "dim"),
    "residue": lambda event: (f"left behind: {event.get('value', 0)} {event.get('name')}", "warn"),
    "note": lambda event: (str(event.get("name", "")), "dim"),
    "torn": lambda event: ("a record that was never finished", "warn"),
}
