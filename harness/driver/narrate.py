"""A history told as a story: who does what, when, how long the lease still runs, what each believes, what the store
accepted - one line an event."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.driver.library import FLAG_TEXT, FOREVER, locks

Event = dict[str, Any]

EVIDENCE_SHOWN = 3
TRAIT_RENEWS = 16  # harness/locks/lock.h, in lock-open's `extra`
STANDING_STILL = ("pause-client", "stall-worker", "suspend-host")  # faults after which somebody does nothing
PROVED_LATER = ("stall-worker", "suspend-host")
# What a fault does to a server, and what is told when it is healed; None: it was over at once.
DONE_TO_SERVER: dict[str, tuple[str, str | None]] = {
    "crash-server": ("is killed", "has been started again"),
    "flush": ("loses all its keys", None),
    "kill-connections": ("closes its clients' connections", None),
    "script-flush": ("forgets its scripts", None),
}
CLOCK_STANDS = 1  # `extra` of a validity that the driver tells on behalf of a suspended client
GAUGE = 8  # characters of a full lease
COLORS = ("cyan", "magenta", "yellow", "blue", "green")
STATUS_STYLE = {"holds": "green", "violated": "bold red", "inconclusive": "yellow"}


@dataclass
class Line:
    """One event as it is shown. `held_by`: whose lease the server still counts, with the rest of it."""

    at_ms: float
    who: str
    what: str
    style: str = ""
    holder: str = ""
    rest_ms: float = 0
    believers: tuple[str, ...] = ()
    index: int = 0  # of the record that it tells


@dataclass
class Teller:
    """Goes through a history once and remembers what the next line needs."""

    lease_ms: float = 0
    start_ns: int | None = None
    granted: dict[str, float] = field(default_factory=dict)  # holder -> until when it believes, in ms
    server: str = "redis"  # what keeps the lease
    holder: str = ""  # by the server
    lease_end_ms: float = 0
    renews: bool = False  # a watchdog extends the lease as long as its process runs
    still: set[str] = field(default_factory=set)  # who is stopped

    def lines(self, events: list[Event]) -> Iterator[Line]:
        for event in events:
            if self.start_ns is None:
                self.start_ns = event.get("mono_ns", 0)
            if event["kind"] == "parameter" and event.get("name") == "lock":
                self.server = server_of(event.get("value_name", ""))
            if event["kind"] == "lock-open":
                self.lease_ms = event.get("value", 0)
                self.renews = bool(event.get("extra", 0) & TRAIT_RENEWS)
            at_ms = self._at_ms(event)
            if self.renews and self.holder and self.holder not in self.still:
                self.lease_end_ms = max(
                    self.lease_end_ms, at_ms + self.lease_ms
                )  # at the latest: renewals are not told
            if self.holder and self.lease_ms and at_ms > self.lease_end_ms:
                what = f"{self.holder}'s lease has run out: the lock is free"
                unaware = f", {self.holder} does not know" if self.believes(self.holder, at_ms) else ""
                index = event.get("index", 0)
                yield Line(self.lease_end_ms, self.server, what + unaware, "bold yellow", self.holder, 0.0, (), index)
                self.holder = ""
            told = self._tell(event)
            if told:
                who, what, style = told
                rest = max(0.0, self.lease_end_ms - at_ms) if self.holder else 0.0
                yield Line(at_ms, who, what, style, self.holder, rest, tuple(self.granted), event.get("index", 0))

    def believes(self, who: str, at_ms: float) -> bool:
        return self.granted.get(who, 0.0) > at_ms

    def _at_ms(self, event: Event) -> float:
        return self._stamp_ms(event.get("mono_ns", 0))

    def _stamp_ms(self, stamp_ns: int) -> float:
        return float(stamp_ns - (self.start_ns or 0)) / 1e6

    def _tell(self, event: Event) -> tuple[str, str, str] | None:
        tell = getattr(self, "_" + event["kind"].replace("-", "_"), None)
        told: tuple[str, str, str] | None = tell(event) if tell else None
        return told

    def _acquire_invoke(self, event: Event) -> tuple[str, str, str] | None:
        return event["actor"], "asks for the lock", "dim"

    def _acquire_return(self, event: Event) -> tuple[str, str, str] | None:
        who = event["actor"]
        if event.get("outcome") != "ok":
            return who, f"does not get the lock ({event.get('outcome', 'unknown')})", ""
        at_ms = self._at_ms(event)
        others = [other for other in self.granted if other != who and self.believes(other, at_ms)]
        self.granted[who] = self._stamp_ms(event["value"]) if event.get("value") else math.inf
        self.holder, self.lease_end_ms = who, at_ms + self.lease_ms
        token = f", token {event['token']}" if event.get("token") else ""
        beside = ""
        if others:
            crowd = " and ".join(others) if len(others) < 3 else f"{len(others)} others"
            beside = f" - and {crowd} still believe{'s' if len(others) == 1 else ''} in it"
        return who, f"is granted the lock{token}{beside}", "bold red" if others else "green"

    def _read_return(self, event: Event) -> tuple[str, str, str] | None:
        if event.get("outcome") != "ok":
            return event["actor"], f"may not read the {event['object']}", "yellow"
        return event["actor"], f"reads {event['object']} = {event.get('value', 0)}", ""

    def _validity(self, event: Event) -> tuple[str, str, str] | None:
        who = event["actor"]
        if who in self.granted:
            self.granted[who] = self._stamp_ms(event["value"])
        if event.get("extra") == CLOCK_STANDS:
            clock = "its clock stands" if event["value"] == FOREVER else "its clock stood meanwhile"
            return who, f"still believes in its grant: {clock}", "dim"
        if event.get("outcome") != "ok":
            return who, "is told by its lock that it is lost", "yellow"
        if who == self.holder:
            self.lease_end_ms = self._at_ms(event) + self.lease_ms
        return who, "extends its lease", "dim"

    def _store_write(self, event: Event) -> tuple[str, str, str] | None:
        token = f" with token {event['token']}" if event.get("token") else ""
        write = f"{event['object']} = {event.get('value', 0)} from {event.get('name')}{token}"
        if event.get("outcome") == "ok":
            return "store", f"accepts {write}", ""
        return "store", f"refuses {write}: a newer token was here", "bold green"

    def _release_return(self, event: Event) -> tuple[str, str, str] | None:
        who = event["actor"]
        self.granted.pop(who, None)
        if event.get("outcome") == "ok":
            if self.holder == who:
                self.holder = ""
            return who, "releases the lock", ""
        if event.get("outcome") == "refused":
            return who, "wants to release the lock: refused, it is not its own any more", "yellow"
        return who, "wants to release the lock: no answer", "yellow"

    def _fault_inject(self, event: Event) -> tuple[str, str, str] | None:
        who, name = str(event.get("value_name", "")), event.get("name")
        if name == "kill-client" or (name in STANDING_STILL and name not in PROVED_LATER):
            return None  # its proof, or the end of the process, is the event
        if name in DONE_TO_SERVER:
            return who, f"{DONE_TO_SERVER[name][0]} ({name})", "bold yellow"
        if name not in STANDING_STILL:
            return who, f"{name} begins", "bold yellow"
        self._stand(who, str(name))
        return who, f"stands still ({name})", "bold yellow"

    def _fault_prove(self, event: Event) -> tuple[str, str, str] | None:
        who, proved = str(event.get("value_name", "")), "proved" if event.get("outcome") == "ok" else "NOT proved"
        if event.get("name") not in STANDING_STILL or event.get("name") in PROVED_LATER:
            return who, f"{event.get('name')}: {proved}", "yellow"
        self._stand(who, str(event.get("name")))
        return who, f"stands still ({event.get('name')}, {proved})", "bold yellow"

    def _fault_heal(self, event: Event) -> tuple[str, str, str] | None:
        who = str(event.get("value_name", ""))
        if event.get("name") == "kill-client":
            return None
        if event.get("name") in DONE_TO_SERVER:
            healed = DONE_TO_SERVER[str(event.get("name"))][1]
            return (who, healed, "bold yellow") if healed else None
        if event.get("name") not in STANDING_STILL:
            return who, f"{event.get('name')} is over", "bold yellow"
        self.still -= set(who.split(", "))
        return who, "goes on and knows of nothing", "bold yellow"

    def _stand(self, who: str, fault: str) -> None:
        if fault != "stall-worker":  # its watchdog goes on
            self.still |= set(who.split(", "))

    def _rule(self, event: Event) -> tuple[str, str, str] | None:
        return "proxy", f"{event.get('name')}: fires on {event.get('extra_name', '')}", "yellow"

    def _released(self, event: Event) -> tuple[str, str, str] | None:
        return "proxy", f"{event.get('name')}: lets go what it held on {event.get('extra_name', '')}", "yellow"

    def _note(self, event: Event) -> tuple[str, str, str] | None:
        return event["actor"], str(event["name"]), "bold"

    def _phase(self, event: Event) -> tuple[str, str, str] | None:
        return "trial", f"from here on: {event.get('name')}", "dim"

    def _actor_exit(self, event: Event) -> tuple[str, str, str] | None:
        self.granted.pop(str(event.get("name")), None)
        self.still.add(str(event.get("name")))  # its watchdog has ended with it
        return str(event.get("name")), "ends", "bold yellow"


def server_of(lock: str) -> str:
    """What keeps the leases of a lock; of one that the table does not know, as most."""
    return next((known["service"] for known in locks() if known["name"] == lock), "redis")


def resolve_targets(events: list[Event]) -> list[Event]:
    """Adds `value_name` and `extra_name` where a record's value or extra is the index of a name."""
    names = {event["index"]: event["text"] for event in events if event["kind"] == "text" and "text" in event}
    for event in events:
        is_text = event["kind"] == "parameter" and event.get("flags", 0) & FLAG_TEXT
        if event["kind"].startswith("fault-") or event["kind"] == "checkpoint" or is_text:
            event["value_name"] = names.get(event.get("value"), "")
        if event["kind"] in ("rule", "released"):
            event["extra_name"] = names.get(event.get("extra"), "")
    return events


def gauge(line: Line, lease_ms: float) -> str:
    """The lease that the server still counts, as a bar and in seconds; nothing when there is none."""
    if not line.holder or lease_ms <= 0:
        return ""
    filled = round(GAUGE * line.rest_ms / lease_ms)
    bar = "█" * filled + "░" * (GAUGE - filled)
    return f"{bar} {line.rest_ms / 1000:5.1f} s" if line.rest_ms else f"{bar} over"


class StoryTable:
    """Lines of a story as a table; everybody has a colour."""

    def __init__(self, lease_ms: float) -> None:
        self.lease_ms = lease_ms
        self.table = Table(box=None, padding=(0, 1), show_edge=False, header_style="dim")
        self._colors: dict[str, str] = {}
        for title, justify in (("time", "right"), ("lease at the server", "left"), ("who", "left"), ("", "left")):
            self.table.add_column(title, justify=justify, no_wrap=title != "")  # type: ignore[arg-type]

    def add(self, line: Line) -> None:
        colors = self._colors
        if line.who not in colors:
            colors[line.who] = "bold" if line.who == "store" else COLORS[len(colors) % len(COLORS)]
        holder = Text(gauge(line, self.lease_ms), style=colors.get(line.holder, ""))
        self.table.add_row(
            f"{line.at_ms / 1000:.3f} s", holder, Text(line.who, colors[line.who]), Text(line.what, line.style)
        )

    def leave_out(self, what: str) -> None:
        self.table.add_row("", "", "", Text(what, "dim"))


def story_table(events: list[Event], limit: int = 60, told: Callable[[Event], bool] | None = None) -> Table:
    """The story as a table; `told` may leave events out. Of a long one only the beginning is shown and what was noted,
    with a line that says so."""
    teller = Teller()
    left_out = {event["index"] for event in events if told and not told(event)}
    lines = [line for line in teller.lines(resolve_targets(events)) if line.index not in left_out]
    table = StoryTable(teller.lease_ms)
    for line in lines[:limit]:
        table.add(line)
    if len(lines) > limit:
        noted = {event.get("index") for event in events if event["kind"] == "note"}
        rest = [line for line in lines[limit:] if line.index in noted]
        table.leave_out(f"... and {len(lines) - limit - len(rest)} more events (save the history with -o FILE)")
        for line in rest:
            table.add(line)
    return table.table


def excerpt_table(events: list[Event], records: list[int], around: int = 5) -> Table:
    """Of a story that is too long to be told, what stands around these records."""
    teller = Teller()
    lines = list(teller.lines(resolve_targets(events)))
    table = StoryTable(teller.lease_ms)
    told = sorted({bisect_left(lines, record, key=lambda line: line.index) for record in records})
    shown = sorted({near for at in told for near in range(at - around, at + around + 1) if 0 <= near < len(lines)})
    next_line = 0
    for near in shown:
        if near > next_line:
            table.leave_out(f"... {near - next_line} events")
        table.add(lines[near])
        next_line = near + 1
    return table.table


def verdict_table(verdict: dict[str, Any], required: list[str]) -> Table:
    """A line a property, with its first piece of evidence."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    for name, said in verdict.items():
        if name not in required and said["status"] == "inconclusive":
            continue
        details = [piece["text"] for piece in said["evidence"][:EVIDENCE_SHOWN]] or [said.get("reason", "")]
        if said["status"] == "holds" and said.get("fenced"):
            details = [f"{said['fenced']} stale access{'es' if said['fenced'] > 1 else ''} refused by the store"]
        if said["count"] > len(details):
            causes = len(said["evidence"])
            details.append(f"... {said['count']} violations in all" + (f", {causes} causes" if causes > 1 else ""))
        for line, detail in enumerate(details):
            status = Text(said["status"], STATUS_STYLE[said["status"]]) if line == 0 else Text("")
            table.add_row(name.replace("_", " ") if line == 0 else "", status, detail)
    return table


def policy_sentence(verdict: dict[str, Any]) -> str:
    """Under which reading a verdict holds, and how much there was to read."""
    policy = verdict["policy"]
    releases, acquires = verdict["failed_releases"], verdict["unknown_acquires"]
    return (
        f"read: a failed release as {policy['release']} ({releases} in this history), an acquire of unknown outcome as "
        f"{policy['acquire_timeout']} ({acquires})"
    )


def policy_table(policies: list[dict[str, Any]]) -> Table:
    """A line a pair of policies: what every property comes to that is not inconclusive under all of them."""
    table = Table(box=None, padding=(0, 1), header_style="dim")
    told = {name for each in policies for name, said in each["verdict"].items() if said["status"] != "inconclusive"}
    names = [name for name in policies[0]["verdict"] if name in told]
    for title in ("failed release", "unknown acquire", *(name.replace("_", " ") for name in names), "exit"):
        table.add_column(title)
    for each in policies:
        statuses = [each["verdict"][name]["status"] for name in names]
        table.add_row(
            each["policy"]["release"],
            each["policy"]["acquire_timeout"],
            *(Text(status, STATUS_STYLE[status]) for status in statuses),
            str(each["exit"]),
        )
    return table


def show_result(console: Console, result: dict[str, Any], events: list[Event] | None) -> None:
    """One trial for a reader: the story, the verdict, how to repeat it."""
    if events:
        console.print(story_table(events))
        console.print()
    if result["records"]:
        console.print(verdict_table(result["verdict"], result["required"]))
        console.print()
    style = {0: "bold green", 1: "bold red"}.get(result["exit"], "bold yellow")
    console.print(Text(result["sentence"], style))
