"""The story of a schedule of a library: who asked for what, what was answered, what struck, and what the server knew of
the lease."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

NO_KEY, NO_END = -2, -1  # LEASE_NO_KEY, LEASE_WITHOUT_END
NEVER = 2**63 - 1  # LATE_FOR_EVER


@dataclass(frozen=True)
class LibraryStoryLine:
    """A line of a story. `broken`: the sentence of the promise that it shows to be broken."""

    at_s: float
    who: str
    what: str
    broken: str = ""

    @property
    def json(self) -> dict[str, Any]:
        line: dict[str, Any] = {"at_s": self.at_s, "who": self.who, "what": self.what}
        return {**line, "broken": self.broken} if self.broken else line


def story_lines(events: Sequence[dict[str, Any]], broken: Sequence[dict[str, Any]]) -> list[LibraryStoryLine]:
    """The events that a reader needs, in their order. Of each promise that is broken the first event that shows it."""
    first = {each["promise"]: each for each in reversed(broken)}
    shown = {each["event"]: each["sentence"] for each in reversed(first.values())}
    lines, leases = [], _Leases()
    several = _several(events)
    for place, event in enumerate(events):
        sentence = shown.get(place, "")
        for who, what in _told(event, leases, several, needed=bool(sentence)):
            lines.append(LibraryStoryLine(event["at_ns"] / 1e9, who, what, sentence))
            sentence = ""
    return lines


@dataclass(frozen=True)
class _Several:
    """Of what there are several, so that a line has to name it."""

    threads: bool
    locks: bool
    resources: bool


def _several(events: Sequence[dict[str, Any]]) -> _Several:
    asked = [event for event in events if event["event"] == "ask"]
    threads = {(event["client"], event["thread"]) for event in asked}
    locks = {(event["client"], event["lock"]) for event in asked}
    clients = {event["client"] for event in asked}
    resources = {event["resource"] for event in asked}
    return _Several(len(threads) > len(clients), len(locks) > len(clients), len(resources) > 1)


class _Leases:
    """What the server said last of each resource: the moment at which its lease ends, NO_KEY or NO_END."""

    def __init__(self) -> None:
        self.known: dict[int, int] = {}

    def changed(self, event: dict[str, Any]) -> bool:
        """Of several servers no changes are told: they are many, and a majority counts."""
        if "node" in event:
            return False
        left_ms, resource = event["remaining_ms"], event["resource"]
        now = left_ms if left_ms < 0 else left_ms + event["at_ns"] // 1_000_000
        before = self.known.get(resource, NO_KEY)
        self.known[resource] = now
        return bool(now != before)


def _told(event: dict[str, Any], leases: _Leases, several: _Several, *, needed: bool) -> Iterator[tuple[str, str]]:
    kind = event["event"]
    if kind == "ask":
        yield _who(event, several), _asked(event, several)
    elif kind == "answer":
        yield _who(event, several), _answered(event)
    elif kind in ("fault", "late"):
        yield f"client-{event['client']}" if "client" in event else "server", _struck(event)
    elif kind == "lease" and (leases.changed(event) or needed):
        yield f"server-{event['node']}" if "node" in event else "server", _lease(event, several)
    elif kind == "left":
        yield "server", f"still has the {event['left']}"
    elif kind == "end":
        yield "", "the workload is over"
    elif needed:
        yield f"client-{event['client']}" if "client" in event else "", ""


def _who(event: dict[str, Any], several: _Several) -> str:
    return f"client-{event['client']} thread-{event['thread']}" if several.threads else f"client-{event['client']}"


def _asked(event: dict[str, Any], several: _Several) -> str:
    words = [event["call"]]
    if event["mode"] not in ("exclusive", "permits"):
        words.append(event["mode"])
    words += [f"lock-{event['lock']}"] if several.locks else []
    words += [f"of resource-{event['resource']}"] if several.resources else []
    if event["call"] == "acquire":
        words.append(f"by {event['form']}:")
        lease = {"given": f"lease {event.get('lease_ms', 0)} ms", "renewed": "lease renewed by the watchdog"}
        lease |= {"endless": "lease without an end", "default": "the library's default lease"}
        wait = {"none": "no wait", "time": f"waits at most {event.get('wait_ms', 0)} ms", "forever": "waits for ever"}
        words.append(f"{lease[event['lease']]}, {wait[event['wait']]}")
    return " ".join(words)


def _answered(event: dict[str, Any]) -> str:
    granted = {"ok": "granted", "refused": "refused", "unknown": "ends without an outcome"}
    done = {"ok": "done", "refused": "refused: not its own", "unknown": "ends without an outcome"}
    held = {"ok": "yes", "refused": "no", "unknown": "ends without an outcome"}
    by_call = {"acquire": granted, "is_held": held}
    words = f"{event['call']}: {by_call.get(event['call'], done)[event['outcome']]}"
    words += f", token {event['token']}" if "token" in event else ""
    words += ", cancelled" if event.get("cancelled") else ""
    return words + (f" ({event['error']})" if event.get("error") else "")


def _struck(event: dict[str, Any]) -> str:
    if event["until_ns"] == NEVER:
        late = "an answer" if event["fault"] == "hold-reply" else "a command"
        return f"closes the connection on which {late} is late"
    lasts_ms = (event["until_ns"] - event["at_ns"]) / 1e6
    words = {
        "pause": f"stands still for {lasts_ms:,.0f} ms",
        "crash": "is killed",
        "hold-request": f"its command is late by {lasts_ms:,.0f} ms",
        "hold-reply": f"the answer to it is late by {lasts_ms:,.0f} ms",
        "drop-request": "its connection is lost with the command that is on its way",
        "lose-reply": "its connection is lost with the answer to a command that was executed",
        "error-reply": "its command is answered with an error and not executed",
        "clock-jump": "its clock jumps",
        "client-clock-jump": "its wall clock jumps",
        "restart": "restarts with its data",
        "restart-empty": "restarts without its data",
    }
    return words[event["fault"]]


def _lease(event: dict[str, Any], several: _Several) -> str:
    left_ms = event["remaining_ms"]
    of = f" of resource-{event['resource']}" if several.resources else ""
    if left_ms == NO_KEY:
        return f"the lock{of} is free"
    if left_ms == NO_END:
        return f"the lock{of} is held without an end"
    return f"the lock{of} is held for {left_ms:,} ms more"
