"""Renders a history as a story, one line for each event: time, the rest of the lease, actor, and what happened: grants,
ends of leases, clients that still believe in a lease that has ended, writes that the store accepted or refused."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import structs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.native.library import FLAG_MADE, FLAG_TEXT, FOREVER, locks
from lockstorm.report.answers import EXTENSION, GRANT, RELEASE, AnswerSelection, answers_of
from lockstorm.results.event import Event
from lockstorm.results.properties import is_asked
from lockstorm.results.verdict import PolicyVerdict, PropertyVerdict, TrialResult, Verdict, played_again_words

EVIDENCE_SHOWN = 3
HEARD_AT_ONCE_NS = 10_000_000  # an answer that takes longer has a line of its own
TRAIT_RENEWS = 16  # harness/locks/common/lock.h, in lock-open's `extra`
STANDING_STILL = ("pause-client", "stall-worker", "suspend-host")  # faults that stop a client or a thread of it
PROVED_LATER = ("stall-worker", "suspend-host")
# The sentences for a fault of a server and for its end; None: the fault ends at once.
DONE_TO_SERVER: dict[str, tuple[str, str | None]] = {
    "crash-server": ("is killed", "has been started again"),
    "flush": ("loses all its keys", None),
    "kill-connections": ("closes its clients' connections", None),
    "script-flush": ("forgets its scripts", None),
}
CLOCK_STANDS = 1  # `extra` of a validity that the driver records for a suspended client
# Why a store refuses a write, by the beginning of its mode; "table-" before it makes no difference. The second reason
# is for a write that lacks what the mode checks: a token, a grant (harness/resource/resource.c).
REFUSAL_REASONS = {
    "fence": ("it has seen a newer token", "it came without a token"),
    "compare-owner": ("the last read was under another grant", "it came without a grant"),
    "compare-and-set": ("it was not computed from the newest version",) * 2,
}
GAUGE = 8  # characters of a full lease
COLORS = ("cyan", "magenta", "yellow", "blue", "green")
STATUS_STYLE = {"holds": "green", "violated": "bold red", "inconclusive": "yellow"}


@dataclass
class StoryLine:
    """One event as it is shown. `holder`: the client whose lease runs at the server, for another `rest_ms`."""

    at_ms: float
    actor: str
    text: str
    style: str = ""
    holder: str = ""
    rest_ms: float = 0
    believers: tuple[str, ...] = ()
    index: int = 0  # of its record


@dataclass
class StoryRenderer:
    """Reads a history once, in order, and keeps the state that the next line needs."""

    lease_ms: float = 0
    start_ns: int | None = None
    granted: dict[str, float] = field(default_factory=dict)  # holder -> end of its belief, in ms
    store: str = "open"  # its mode
    server: str = "redis"  # the service that keeps the lease
    holder: str = ""  # according to the server
    lease_end_ms: float = 0
    renews: bool = False  # a watchdog extends the lease as long as its process runs
    still: set[str] = field(default_factory=set)  # clients that are stopped
    announced: dict[str, int] = field(default_factory=dict)  # client -> the stamp at which its lock stated a validity
    answered_ns: dict[tuple[str, int], int] = field(default_factory=dict)  # (client, op) -> when the store showed it

    def lines(self, events: list[Event]) -> Iterator[StoryLine]:
        selection = AnswerSelection()
        for event in filter(selection.is_shown, events):
            if self.start_ns is None:
                self.start_ns = event.mono_ns
            if event.kind == "parameter" and event.name == "lock":
                self.server = server_of(event.value_name or "")
            if event.kind == "parameter" and event.name == "service":
                self.server = event.value_name or self.server
            if event.kind == "parameter" and event.name == "store":
                self.store = event.value_name or ""
            if event.kind == "lock-open":
                self.lease_ms = event.value
                self.renews = bool(event.extra & TRAIT_RENEWS)
            at_ms = self._at_ms(event)
            if self.renews and self.holder and self.holder not in self.still:
                # The latest end possible: a watchdog's renewals are not recorded.
                self.lease_end_ms = max(self.lease_end_ms, at_ms + self.lease_ms)
            if self.holder and self.lease_ms and at_ms > self.lease_end_ms:
                text = f"{self.holder}'s lease has run out: the lock is free"
                unaware = f", {self.holder} does not know" if self.believes(self.holder, at_ms) else ""
                index = event.index
                yield StoryLine(
                    self.lease_end_ms, self.server, text + unaware, "bold yellow", self.holder, 0.0, (), index
                )
                self.holder = ""
            rendered = self._render(event)
            if rendered:
                actor, text, style = rendered
                rest = max(0.0, self.lease_end_ms - at_ms) if self.holder else 0.0
                yield StoryLine(at_ms, actor, text, style, self.holder, rest, tuple(self.granted), event.index)

    def believes(self, client: str, at_ms: float) -> bool:
        return self.granted.get(client, 0.0) > at_ms

    def _at_ms(self, event: Event) -> float:
        return self._stamp_ms(event.mono_ns)

    def _stamp_ms(self, stamp_ns: int) -> float:
        return float(stamp_ns - (self.start_ns or 0)) / 1e6

    def _render(self, event: Event) -> tuple[str, str, str] | None:
        """Actor, text and style; None for an event without a line."""
        render = getattr(self, "_" + event.kind.replace("-", "_"), None)
        rendered: tuple[str, str, str] | None = render(event) if render else None
        return rendered

    def _acquire_invoke(self, event: Event) -> tuple[str, str, str] | None:
        return event.who, "asks for the lock", "dim"

    def _acquire_return(self, event: Event) -> tuple[str, str, str] | None:
        actor = event.who
        if event.outcome != "ok":
            return actor, f"does not get the lock ({event.outcome})", ""
        at_ms = self._at_ms(event)
        others = [other for other in self.granted if other != actor and self.believes(other, at_ms)]
        self.granted[actor] = self._stamp_ms(event.value) if event.value else math.inf
        self.holder, self.lease_end_ms = actor, at_ms + self.lease_ms
        token = f", token {event.token}" if event.token else ""
        beside = ""
        if others:
            crowd = " and ".join(others) if len(others) < 3 else f"{len(others)} others"
            beside = f" - and {crowd} still believe{'s' if len(others) == 1 else ''} in it"
        return actor, f"is granted the lock{token}{beside}", "bold red" if others else "green"

    def _answers(self, event: Event) -> tuple[str, str, str] | None:
        """What several servers answered; or what became of an extension by the watchdog."""
        answers = answers_of(event)
        if not answers.count:
            return self._watchdog_answered(event)
        what = {GRANT: "is answered", EXTENSION: "asks for a longer lease", RELEASE: "gives the lock back"}
        style = "yellow" if answers.silent or (answers.no and answers.asked != RELEASE) else "dim"
        return event.who, f"{what[answers.asked]}: {answers.sentence}", style

    def _watchdog_answered(self, event: Event) -> tuple[str, str, str] | None:
        actor = event.who
        if event.outcome == "refused":
            return actor, "cannot extend its lease any more: its watchdog was refused", "yellow"
        if event.outcome != "ok":
            return actor, "does not know whether its watchdog has extended its lease: no answer", "yellow"
        if actor == self.holder:
            self.lease_end_ms = self._at_ms(event) + self.lease_ms
        if self.announced.get(actor) == event.mono_ns:  # the lock has said so itself
            return None
        return actor, "extends its lease (watchdog)", "dim"

    def _renew_return(self, event: Event) -> tuple[str, str, str] | None:
        actor = event.who
        if event.outcome == "refused":
            return actor, "wants to extend its lease: refused", "yellow"
        if event.outcome != "ok":
            return actor, "wants to extend its lease: no answer", "yellow"
        if actor == self.holder:
            self.lease_end_ms = self._at_ms(event) + self.lease_ms
        return (actor, "extends its lease", "dim") if self.announced.get(actor) != event.mono_ns else None

    def _is_held(self, event: Event) -> tuple[str, str, str] | None:
        answer = {"ok": "yes", "refused": "no"}.get(str(event.outcome), "its lock cannot say")
        return event.who, f"asks whether it holds the lock: {answer}", "" if event.outcome == "ok" else "yellow"

    def _store_read(self, event: Event) -> tuple[str, str, str] | None:
        """A read stands where the store answered: what comes later is not in it, whenever its client hears of it."""
        client = str(event.name)
        self.answered_ns[client, event.op] = event.mono_ns
        if event.outcome != "ok":
            return client, f"is refused a read of {event.object}{self._refusal_reason(event)}", "yellow"
        return client, f"reads {event.object} = {event.value}", ""

    def _read_return(self, event: Event) -> tuple[str, str, str] | None:
        """The answer, if it is lost or comes later than the store gave it."""
        answered_ns = self.answered_ns.pop((event.who, event.op), None)
        if event.outcome == "unknown":
            return event.who, f"hears no answer to its read of {event.object}", "yellow"
        if answered_ns is not None and event.mono_ns - answered_ns < HEARD_AT_ONCE_NS:
            return None
        if event.outcome != "ok":
            return event.who, f"is refused a read of {event.object}", "yellow"
        heard = "reads" if answered_ns is None else "hears that it has read"
        return event.who, f"{heard} {event.object} = {event.value}", ""

    def _validity(self, event: Event) -> tuple[str, str, str] | None:
        actor = event.who
        if actor in self.granted:
            lost_ms = self._at_ms(event) if event.outcome == "refused" else math.inf
            self.granted[actor] = min(self._stamp_ms(event.value), lost_ms)
        if event.extra == CLOCK_STANDS:
            clock = "its clock stands" if event.value == FOREVER else "its clock stood meanwhile"
            return actor, f"still believes in its grant: {clock}", "dim"
        if event.outcome != "ok":
            return actor, "learns from its lock that its lease is lost", "yellow"
        self.announced[actor] = event.mono_ns
        if actor == self.holder:
            self.lease_end_ms = self._at_ms(event) + self.lease_ms
        return actor, "extends its lease", "dim"

    def _server_renewal(self, event: Event) -> tuple[str, str, str] | None:
        if event.extra:
            return "server", f"lengthens what {event.extra_name} holds, for a renewal of {event.actor}", "bold red"
        if event.flags & FLAG_MADE:
            return "server", f"makes a key for a renewal of {event.actor}", "yellow"
        return None

    def _store_write(self, event: Event) -> tuple[str, str, str] | None:
        token = f" with token {event.token}" if event.token else ""
        write = f"{event.object} = {event.value} from {event.name}{token}"
        if event.outcome == "ok":
            return "store", f"accepts {write}", ""
        return "store", f"refuses {write}{self._refusal_reason(event)}", "bold green"

    def _refusal_reason(self, event: Event) -> str:
        mode = self.store.removeprefix("table-")
        for name, (usual, lacking) in REFUSAL_REASONS.items():
            if mode.startswith(name):
                checked = event.token if name == "fence" else event.grant
                return f": {usual if checked else lacking}"
        return ""

    def _release_return(self, event: Event) -> tuple[str, str, str] | None:
        actor = event.who
        self.granted.pop(actor, None)
        if event.outcome == "ok":
            if self.holder == actor:
                self.holder = ""
            return actor, "releases the lock", ""
        if event.outcome == "refused":
            return actor, "wants to release the lock: refused, it no longer holds it", "yellow"
        return actor, "wants to release the lock: no answer", "yellow"

    def _fault_inject(self, event: Event) -> tuple[str, str, str] | None:
        actor, name = str(event.value_name or ""), event.name
        if name == "kill-client" or (name in STANDING_STILL and name not in PROVED_LATER):
            return None  # the proof, or the end of the process, has the line
        if name in DONE_TO_SERVER:
            return actor, f"{DONE_TO_SERVER[name][0]} ({name})", "bold yellow"
        if name not in STANDING_STILL:
            return actor, event.struck or f"{name} begins", "bold yellow"
        self._stand(actor, str(name))
        return actor, f"stands still ({name})", "bold yellow"

    def _fault_prove(self, event: Event) -> tuple[str, str, str] | None:
        actor, proved = str(event.value_name or ""), "proved" if event.outcome == "ok" else "NOT proved"
        if event.name not in STANDING_STILL or event.name in PROVED_LATER:
            return actor, f"{event.name}: {proved}", "yellow"
        self._stand(actor, str(event.name))
        return actor, f"stands still ({event.name}, {proved})", "bold yellow"

    def _fault_heal(self, event: Event) -> tuple[str, str, str] | None:
        actor = str(event.value_name or "")
        if event.name == "kill-client":
            return None
        if event.name in DONE_TO_SERVER:
            healed = DONE_TO_SERVER[str(event.name)][1]
            return (actor, healed, "bold yellow") if healed else None
        if event.name not in STANDING_STILL:
            return actor, f"{event.name} is over", "bold yellow"
        self.still -= set(actor.split(", "))
        return actor, "resumes, unaware that time has passed", "bold yellow"

    def _stand(self, actor: str, fault: str) -> None:
        if fault != "stall-worker":  # the client's watchdog goes on
            self.still |= set(actor.split(", "))

    def _rule(self, event: Event) -> tuple[str, str, str] | None:
        return "proxy", f"{event.name}: fires on {event.extra_name or ''}", "yellow"

    def _released(self, event: Event) -> tuple[str, str, str] | None:
        return "proxy", f"{event.name}: delivers what it held on {event.extra_name or ''}", "yellow"

    def _note(self, event: Event) -> tuple[str, str, str] | None:
        return event.who, str(event.name), "bold"

    def _phase(self, event: Event) -> tuple[str, str, str] | None:
        return "trial", f"from here on: {event.name}", "dim"

    def _actor_exit(self, event: Event) -> tuple[str, str, str] | None:
        self.granted.pop(str(event.name), None)
        self.still.add(str(event.name))  # its watchdog has ended with it
        return str(event.name), "ends", "bold yellow"


def server_of(lock: str) -> str:
    """The service that keeps the leases of a lock; redis for a lock that the table does not have."""
    return next((known.service for known in locks() if known.name == lock), "redis")


def resolve_targets(events: list[Event]) -> list[Event]:
    """Adds `value_name` and `extra_name` where a record's value or extra is the index of a name."""
    names = {event.index: event.text for event in events if event.index and event.text is not None}
    resolved = []
    for event in events:
        is_text = event.kind == "parameter" and event.flags & FLAG_TEXT
        if event.kind.startswith("fault-") or event.kind == "checkpoint" or is_text:
            event = structs.replace(event, value_name=names.get(event.value, ""))
        if event.kind in ("rule", "released", "server-renewal"):
            event = structs.replace(event, extra_name=names.get(event.extra, ""))
        resolved.append(event)
    return resolved


def gauge(line: StoryLine, lease_ms: float) -> str:
    """The rest of the lease at the server, as a bar and in seconds; empty without a lease."""
    if not line.holder or lease_ms <= 0:
        return ""
    filled = round(GAUGE * line.rest_ms / lease_ms)
    bar = "█" * filled + "░" * (GAUGE - filled)
    return f"{bar} {line.rest_ms / 1000:5.1f} s" if line.rest_ms else f"{bar} over"


class StoryTable:
    """Lines of a story as a table, with a colour for each actor."""

    def __init__(self, lease_ms: float) -> None:
        self.lease_ms = lease_ms
        self.table = Table(box=None, padding=(0, 1), show_edge=False, header_style="dim")
        self._colors: dict[str, str] = {}
        for title, justify in (("time", "right"), ("lease at the server", "left"), ("who", "left"), ("", "left")):
            self.table.add_column(title, justify=justify, no_wrap=title != "")  # type: ignore[arg-type]

    def add(self, line: StoryLine) -> None:
        colors = self._colors
        if line.actor not in colors:
            colors[line.actor] = "bold" if line.actor == "store" else COLORS[len(colors) % len(COLORS)]
        holder = Text(gauge(line, self.lease_ms), style=colors.get(line.holder, ""))
        self.table.add_row(
            f"{line.at_ms / 1000:.3f} s", holder, Text(line.actor, colors[line.actor]), Text(line.text, line.style)
        )

    def add_gap(self, text: str) -> None:
        self.table.add_row("", "", "", Text(text, "dim"))


def story_table(events: list[Event], limit: int = 60, is_shown: Callable[[Event], bool] | None = None) -> Table:
    """The story as a table. `is_shown` selects the events. Of a long story the table has the first `limit` lines, the
    notes, and a line with the number of the others."""
    renderer = StoryRenderer()
    left_out = {event.index for event in events if is_shown and not is_shown(event)}
    lines = [line for line in renderer.lines(resolve_targets(events)) if line.index not in left_out]
    table = StoryTable(renderer.lease_ms)
    for line in lines[:limit]:
        table.add(line)
    if len(lines) > limit:
        noted = {event.index for event in events if event.kind == "note"}
        rest = [line for line in lines[limit:] if line.index in noted]
        table.add_gap(f"... and {len(lines) - limit - len(rest)} more events (save the history with -o FILE)")
        for line in rest:
            table.add(line)
    return table.table


def excerpt_table(events: list[Event], records: list[int], around: int = 5) -> Table:
    """The lines around these records, `around` on each side, of a story that is too long to show."""
    renderer = StoryRenderer()
    lines = list(renderer.lines(resolve_targets(events)))
    table = StoryTable(renderer.lease_ms)
    centres = {bisect_left(lines, record, key=lambda line: line.index) for record in records}
    shown = sorted({near for at in centres for near in range(at - around, at + around + 1) if 0 <= near < len(lines)})
    next_line = 0
    for near in shown:
        if near > next_line:
            table.add_gap(f"... {near - next_line} events")
        table.add(lines[near])
        next_line = near + 1
    return table.table


def verdict_table(verdict: Mapping[str, PropertyVerdict], required: list[str]) -> Table:
    """One line for each property, with its status, and its first pieces of evidence below."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    for name, found in verdict.items():
        if name not in required and (found.status == "inconclusive" or not is_asked(name, required)):
            continue
        details = [piece.text for piece in found.evidence[:EVIDENCE_SHOWN]] or [found.reason or ""]
        if found.status == "holds" and found.fenced:
            details = [f"{found.fenced} stale access{'es' if found.fenced > 1 else ''} refused by the store"]
        if found.count > len(details):
            causes = len(found.evidence)
            details.append(f"... {found.count} violations in all" + (f", {causes} causes" if causes > 1 else ""))
        for line, detail in enumerate(details):
            status = Text(found.status, STATUS_STYLE[found.status]) if line == 0 else Text("")
            table.add_row(name.replace("_", " ") if line == 0 else "", status, detail)
    return table


def policy_sentence(verdict: Verdict) -> str:
    """The policies that a verdict was judged under, and the number of operations that each applied to."""
    policy = verdict.policy
    releases, acquires = verdict.failed_releases, verdict.unknown_acquires
    return (
        f"read: a failed release as {policy.release} ({releases} in this history), an acquire of unknown outcome as "
        f"{policy.acquire_timeout} ({acquires})"
    )


def policy_table(policies: list[PolicyVerdict]) -> Table:
    """One line for each pair of policies, one column for each property that is not inconclusive under all of them."""
    table = Table(box=None, padding=(0, 1), header_style="dim")
    judged = {name for each in policies for name, found in each.properties.items() if found.status != "inconclusive"}
    names = [name for name in policies[0].properties if name in judged]
    for title in ("failed release", "unknown acquire", *(name.replace("_", " ") for name in names), "exit"):
        table.add_column(title)
    for each in policies:
        statuses = [each.properties[name].status for name in names]
        table.add_row(
            each.policy.release,
            each.policy.acquire_timeout,
            *(Text(status, STATUS_STYLE[status]) for status in statuses),
            str(each.exit),
        )
    return table


def show_result(console: Console, result: Verdict | TrialResult, events: list[Event] | None) -> None:
    """Prints one trial: the story if there are events, the verdict of each property, and the sentence."""
    if events:
        console.print(story_table(events))
        console.print()
    if result.records:
        console.print(verdict_table(result.properties, result.required))
        console.print()
    style = {0: "bold green", 1: "bold red"}.get(result.exit, "bold yellow")
    again = played_again_words(result.played_again) if isinstance(result, TrialResult) else ""
    console.print(Text(result.sentence + again, style))
