"""A history as a space-time diagram: lanes, rows, bars, arrows. A pure function of the records and their verdict.

The diagram has only what the history records, and these bars, which are *computed* from the records and named so:

- *believed hold*: belief as docs/verdicts.md defines it, under the verdict's own policy for failed releases;
- *lease at the server*: one lease long, from a grant and from every renewal that the client recorded; shorter if the
  lock was released, the server lost its keys, or another client was granted a lock with room for one. A watchdog
  renews without a record: its lock's bar then ends one lease after its process stopped, the latest end possible.

Each event has a row, in the order of the records; the rest of the report refers to rows, never to stamps.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import structs

from lockstorm.native.library import FLAG_TEXT, FOREVER
from lockstorm.report.answers import EXTENSION, AnswerSelection
from lockstorm.report.diagram import Arrow, Bar, Diagram, Row, host_of, lanes_of, lock_lane, numbered_evidence
from lockstorm.report.labels import phrase
from lockstorm.report.story_words import STANDING_STILL, StoryWords
from lockstorm.results.event import Event
from lockstorm.results.properties import RELEASE_POLICIES
from lockstorm.results.verdict import PropertyVerdict, Verdict

TRAIT_REENTRANT, TRAIT_RENEWS = 4, 16  # harness/locks/common/lock.h, in lock-open's `extra`
NS_PER_MS = 1_000_000
KINDS_WITHOUT_ROW = ("text", "text-more", "parameter", "clock")
# What a rule of these faults does to a message, and the message's direction. Any other rule is drawn as fired.
DISPOSITIONS = {
    "delay-message": ("held", "to-client"),
    "delay-write": ("held", "to-server"),
    "drop-message": ("lost", "to-client"),
    "drop-request": ("lost", "to-server"),
    "duplicate-request": ("twice", "to-server"),
    "failover": ("lost", "to-client"),
    "hold-request": ("held", "to-server"),
    "kill-subscriber": ("lost", "to-client"),
    "lose-reply": ("lost", "to-client"),
    "partition": ("lost", "both"),
}


def diagram_of(events: list[Event], verdict: Verdict) -> Diagram:
    """The diagram of a whole history. `verdict`: the result of `check` or of a trial."""
    return trace(events, verdict.policy.release).finish(verdict.properties)


def trace(events: list[Event], release_policy: str = RELEASE_POLICIES[0]) -> "Tracer":
    events = resolve_targets(events)
    tracer = Tracer(events, release_policy)
    for event in filter(AnswerSelection().is_shown, events):
        tracer.add(event)
    return tracer


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


@dataclass
class Hold:
    """A client's belief that it holds a lock. `depth`: how many times it has acquired a re-entrant lock."""

    bar: Bar
    until_ns: int
    depth: int = 1


@dataclass
class Lease:
    """A lease that runs at the server."""

    bar: Bar
    end_ns: int


@dataclass(frozen=True)
class StoreAccess:
    """An access that a store has recorded: the rows of its invocation and of the record, and the store's lane."""

    sent: int
    row: int
    lane: int


class Tracer:
    """Builds the diagram from the records of a history, in their order."""

    def __init__(self, events: list[Event], release_policy: str) -> None:
        self.lanes = lanes_of(events)
        self.rows: list[Row] = []
        self.bars: list[Bar] = []
        self.arrows: list[Arrow] = []
        self.clock_moved = False
        self._start_ns = int(events[0].mono_ns) if events else 0
        self._place = {lane.name: number for number, lane in enumerate(self.lanes)}
        self._several = len({event.name for event in events if event.kind == "lock-open"}) > 1
        self._never = failed_releases(events) if release_policy == "not-happened" else set()
        self._lease_ns: dict[str, int] = {}
        self._renews: dict[str, bool] = {}
        self._reentrant: dict[str, bool] = {}
        self._permits: dict[str, int] = {}
        self._holds: dict[tuple[str, str], Hold] = {}  # (lock, client)
        self._lapsed: dict[tuple[str, str], Hold] = {}  # their validity is over, and the lock was not granted since
        self._leases: dict[tuple[str, str], Lease] = {}
        self._releasing: set[tuple[str, str]] = set()  # their release was sent while their lease ran
        self._open: dict[tuple[str, str], Bar] = {}  # (kind, owner) -> a wait, a fault, an overlap
        self._sent: dict[tuple[str, int], int] = {}  # (client, op) -> row of its invocation
        self._accesses: dict[tuple[str, int], StoreAccess] = {}  # (client, op)
        self._fired: dict[tuple[str, str], int] = {}  # (rule, link) -> row
        self._held: dict[str, list[tuple[int, int]]] = {}  # link -> first and last row of each time it held messages
        self._still: set[str] = set()
        self._granted: tuple[str, str] = "", ""  # (lock, client) of the latest grant
        self._words = StoryWords(events)

    # --- events ---

    def add(self, event: Event) -> None:
        kind = event.kind
        if kind in KINDS_WITHOUT_ROW or (kind == "note" and not event.name):
            return
        self._pass_time(event)
        if kind == "residue" and not event.value:
            return
        if kind == "lock-open" and self._open_lock(event):
            return
        lane = self._lane_of(event)
        text, tone = phrase(event)
        if self._several and kind.startswith(("acquire", "release", "renew")):
            text += f" ({event.name or '?'})"
        row = Row(self._now(event), lane, text, tone, kind, event)
        self.rows.append(row)
        step = getattr(self, "_" + kind.replace("-", "_"), None)
        if step:
            step(event, len(self.rows) - 1, lane)
        if told := self._words.told(event, self._other_believers(event)):
            self._tell(row, told)

    def _other_believers(self, event: Event) -> list[str]:
        """Besides the client of this record, if there are more than the lock has permits for."""
        others = [client for lock, client in self._holds if lock == event.name and client != event.actor]
        return others if len(others) >= self._permits.get(str(event.name), 1) else []

    def _tell(self, row: Row, told: tuple[str, str, str]) -> None:
        row.who, row.story, row.style = told
        if lease := self._leases.get(self._granted):
            row.holder, row.lease_ns = self._granted[1], self._lease_ns[self._granted[0]]
            row.rest_ns = max(0, lease.end_ns - row.at_ns)

    def finish(self, verdict: Mapping[str, PropertyVerdict]) -> Diagram:
        for (client, _), row in self._sent.items():
            self._arrow_unheard(client, row)
        evidence = numbered_evidence(verdict, self.rows)
        has_lease = any(self._lease_ns.values())
        return Diagram(self.lanes, self.rows, self.bars, self.arrows, evidence, has_lease, self.clock_moved)

    def _now(self, event: Event) -> int:
        return int(event.mono_ns) - self._start_ns

    def _stamp(self, value: int) -> int:
        """A record's stamp as ns since the start; FOREVER if it has none."""
        return value - self._start_ns if 0 < value < FOREVER else FOREVER

    def _pass_time(self, event: Event) -> None:
        """Adds rows for the beliefs and leases that end by themselves before this record."""
        now = self._now(event)
        for (lock, client), lease in list(self._leases.items()):
            if self._renews.get(lock) and client not in self._still:
                lease.end_ns = max(lease.end_ns, now + self._lease_ns[lock])
        ends = [(hold.until_ns, key, True) for key, hold in self._holds.items() if hold.until_ns <= now]
        ends += [(lease.end_ns, key, False) for key, lease in self._leases.items() if lease.end_ns < now]
        for at_ns, key, is_belief in sorted(ends):
            if is_belief:
                self._computed(at_ns, self._host(key[1]), "its validity is over", "belief-over")
                self._lapsed[key] = self._holds[key]
                self._end_hold(key, len(self.rows) - 1, "the validity that the lock stated was over")
            else:
                row = self._computed(at_ns, self._lock_place(key[0]), f"lease of {key[1]} has run out", "lease-over")
                free = "the lock is free" if self._permits.get(key[0], 1) == 1 else "a permit is free"
                unaware = f", {key[1]} does not know" if key in self._holds else ""
                self._granted = key
                self._tell(row, (self._words.server, f"{key[1]}'s lease has run out: {free}{unaware}", "bold yellow"))
                self._end_lease(key, len(self.rows) - 1, "it ran out")

    def _computed(self, at_ns: int, lane: int, text: str, kind: str) -> Row:
        self.rows.append(Row(at_ns, lane, text, "warn", kind))
        return self.rows[-1]

    # --- lanes ---

    def _host(self, client: str) -> int:
        """The lane of a client; a restarted one (`client-1.2`) shares the lane of its predecessor."""
        return self._place.get(client, self._place.get(host_of(client), -1))

    def _lock_place(self, lock: str) -> int:
        return self._place.get(lock_lane(lock), -1)

    def _lane_of(self, event: Event) -> int:
        kind = event.kind
        if kind.startswith("fault-"):
            target = str(event.value_name or "").split(", ")[0]
            return self._place.get(target, self._place.get(target.partition(">")[2], self._host(target)))
        if kind == "checkpoint":
            return self._host(str(event.value_name or ""))
        if kind == "actor-exit":
            return self._host(str(event.name))
        if kind in ("rule", "released"):
            return self._place.get(str(event.extra_name or "").partition(">")[2], -1)
        if kind in ("phase", "residue"):
            return -1
        return self._host(str(event.actor or ""))

    # --- the lock ---

    def _open_lock(self, event: Event) -> bool:
        """Keeps the traits of the lock. True if the record needs no row: only a restarted client has one."""
        lock = str(event.name)
        self._lease_ns[lock] = event.value * NS_PER_MS
        self._renews[lock] = bool(event.extra & TRAIT_RENEWS)
        self._reentrant[lock] = bool(event.extra & TRAIT_REENTRANT)
        if event.token > 0:
            self._permits[lock] = event.token
        client = str(event.actor)
        return host_of(client) == client or host_of(client) not in self._place

    def _lock_open(self, event: Event, row: int, lane: int) -> None:
        self._end_bar("gone", self.lanes[lane].name, row)

    def _acquire_invoke(self, event: Event, row: int, lane: int) -> None:
        self._begin_bar("wait", str(event.actor), Bar("wait", lane, row))

    def _acquire_return(self, event: Event, row: int, lane: int) -> None:
        client, lock = str(event.actor), str(event.name)
        self._end_bar("wait", client, row)
        if event.outcome != "ok":
            return
        until_ns = self._stamp(event.value)
        key = lock, client
        self._lapsed = {lapsed: hold for lapsed, hold in self._lapsed.items() if lapsed[0] != lock}
        if key in self._holds:
            self._holds[key].depth += self._reentrant.get(lock, False)
            self._holds[key].until_ns = until_ns
        else:
            label = f"token {event.token}" if event.token else ""
            self._holds[key] = Hold(self._add_bar(Bar("belief", lane, row, label=label)), until_ns)
            self._overlap(lock, row)
        self._grant_lease(key, event, row)

    def _grant_lease(self, key: tuple[str, str], event: Event, row: int) -> None:
        lock, client = self._granted = key
        if self._permits.get(lock, 1) == 1:
            for other in [other for other in self._leases if other[0] == lock and other != key]:
                self._end_lease(other, row, f"{client} was granted the lock")
        if not self._lease_ns.get(lock):
            return
        end_ns = self._now(event) + self._lease_ns[lock]
        if key in self._leases:
            self._leases[key].end_ns = max(self._leases[key].end_ns, end_ns)
            return
        bar = self._add_bar(Bar("lease", self._lock_place(lock), row, label=client))
        self._leases[key] = Lease(bar, end_ns)

    def _extend(self, event: Event) -> None:
        key = str(event.name), str(event.actor)
        if key in self._leases:
            self._leases[key].end_ns = self._now(event) + self._lease_ns[key[0]]

    def _renew_return(self, event: Event, row: int, lane: int) -> None:
        if event.outcome == "ok":
            self._extend(event)

    def _answers(self, event: Event, row: int, lane: int) -> None:
        """A watchdog has renewed."""
        if event.outcome == "ok" and event.extra == EXTENSION and not event.value:
            self._extend(event)

    def _validity(self, event: Event, row: int, lane: int) -> None:
        key = str(event.name), str(event.actor)
        until_ns = min(self._stamp(event.value), self._now(event) if event.outcome == "refused" else FOREVER)
        if key in self._lapsed and until_ns > self._now(event):
            self._resume(key, row)
        if key in self._holds:
            self._holds[key].until_ns = until_ns
        if event.outcome == "ok" and not event.extra:
            self._extend(event)

    def _release_invoke(self, event: Event, row: int, lane: int) -> None:
        key = str(event.name), str(event.actor)
        self._lapsed.pop(key, None)
        if key in self._leases:
            self._releasing.add(key)
        if key not in self._holds or event.index in self._never:
            return
        self._holds[key].depth -= 1
        if self._holds[key].depth == 0:
            self._end_hold(key, row, "its release was sent")

    def _release_return(self, event: Event, row: int, lane: int) -> None:
        key = str(event.name), str(event.actor)
        is_own = key in self._releasing  # although the next grant may be recorded before this answer
        self._releasing.discard(key)
        if event.outcome != "ok" or key in self._holds:
            return
        released = [key]
        if not is_own and self._permits.get(key[0], 1) == 1:  # it released another client's
            released = [other for other in self._leases if other[0] == key[0]]
        for each in released:
            self._end_lease(each, row, f"released by {key[1]}")

    def _end_hold(self, key: tuple[str, str], row: int, why: str) -> None:
        hold = self._holds.pop(key)
        hold.bar.last, hold.bar.ended = row, why
        self._overlap(key[0], row)

    def _resume(self, key: tuple[str, str], row: int) -> None:
        """Extends a validity that was over while the lock was not granted again: by definition belief has not ended."""
        hold = self._holds[key] = self._lapsed.pop(key)
        hold.bar.last, hold.bar.ended = -1, ""
        self._overlap(key[0], row)

    def _end_lease(self, key: tuple[str, str], row: int, why: str) -> None:
        lease = self._leases.pop(key, None)
        if lease:
            lease.bar.last, lease.bar.ended = row, why

    def _overlap(self, lock: str, row: int) -> None:
        """Marks every belief of a lock while there are more beliefs than permits."""
        holding = [client for name, client in self._holds if name == lock]
        overlapping = holding if len(holding) > self._permits.get(lock, 1) else []
        for what, client in [key for key in self._open if key[0] == f"overlap {lock}" and key[1] not in overlapping]:
            self._end_bar(what, client, row)
        for client in overlapping:
            belief = self._holds[lock, client].bar
            bar = Bar("overlap", belief.lane, row, track=belief.track)
            if (f"overlap {lock}", client) not in self._open:
                self._begin_bar(f"overlap {lock}", client, bar)

    # --- the resource ---

    def _read_invoke(self, event: Event, row: int, lane: int) -> None:
        key = str(event.actor), event.op
        self._sent[key] = row
        self._accesses.pop(key, None)

    _write_invoke = _read_invoke

    def _store_write(self, event: Event, row: int, lane: int) -> None:
        key = client, _ = str(event.name), event.op
        again = self._accesses.get(key)
        sent = again.sent if again else self._sent.pop(key, None)
        if sent is None:
            return
        link = f"{host_of(client)}>{event.actor}"
        state = "twice" if again else self._held_between(link, sent, row)
        self.arrows.append(Arrow(self._host(client), lane, sent, row, state))
        self._accesses[key] = StoreAccess(sent, row, lane)

    _store_read = _store_write

    def _write_return(self, event: Event, row: int, lane: int) -> None:
        key = str(event.actor), event.op
        access = self._accesses.get(key)
        if access and event.outcome != "unknown":
            self.arrows.append(Arrow(access.lane, lane, access.row, row, "delivered"))

    _read_return = _write_return

    def _arrow_unheard(self, client: str, row: int) -> None:
        """Draws a request that the store has no record of."""
        stores = [number for number, lane in enumerate(self.lanes) if lane.kind == "store"]
        if len(stores) == 1:
            self.arrows.append(Arrow(self._host(client), stores[0], row, row, "unheard"))

    def _held_between(self, link: str, first: int, last: int) -> str:
        held = any(first <= fired and released <= last for fired, released in self._held.get(link, []))
        return "held" if held else "delivered"

    # --- faults ---

    def _fault_inject(self, event: Event, row: int, lane: int) -> None:
        name = str(event.name)
        for target in str(event.value_name or "").split(", "):
            lane = self._place.get(target, self._place.get(target.partition(">")[2], self._host(target)))
            if lane < 0 or name == "kill-client":  # the end of the process has a bar already
                continue
            self._begin_bar(f"fault {name}", target, Bar("fault", lane, row, label=name))
            if name in STANDING_STILL and name != "stall-worker":  # the client's watchdog goes on
                self._still.add(target)
            if name.startswith("clock-") and self.lanes[lane].kind == "node":
                self.clock_moved = True

    def _fault_prove(self, event: Event, row: int, lane: int) -> None:
        if event.name == "flush" and event.outcome == "ok":
            nodes = [each for each in self.lanes if each.kind == "node"]
            for key in list(self._leases) if len(nodes) == 1 else []:
                self._end_lease(key, row, "the server lost its keys")

    def _fault_heal(self, event: Event, row: int, lane: int) -> None:
        for target in str(event.value_name or "").split(", "):
            self._end_bar(f"fault {event.name}", target, row)
            self._still.discard(target)

    def _actor_exit(self, event: Event, row: int, lane: int) -> None:
        client = str(event.name)
        self._still.add(client)
        self._end_bar("wait", client, row)
        self._lapsed = {lapsed: hold for lapsed, hold in self._lapsed.items() if lapsed[1] != client}
        for key in [key for key in self._holds if key[1] == client]:
            self._end_hold(key, row, "its process ended")
        if lane >= 0:
            self._begin_bar("gone", self.lanes[lane].name, Bar("gone", lane, row))

    def _rule(self, event: Event, row: int, lane: int) -> None:
        name, link = str(event.name), str(event.extra_name or "")
        self._fired[name, link] = row
        near, _, far = link.partition(">")
        if near not in self._place or far not in self._place:
            return
        state, way = DISPOSITIONS.get(re.sub(r"-\d+$", "", name), ("fired", "both"))
        ends = (self._place[far], self._place[near]) if way == "to-client" else (self._place[near], self._place[far])
        self.arrows.append(Arrow(*ends, row, row, state, way))

    def _released(self, event: Event, row: int, lane: int) -> None:
        name, link = str(event.name), str(event.extra_name or "")
        if (name, link) in self._fired:
            self._held.setdefault(link, []).append((self._fired[name, link], row))

    # --- bars ---

    def _add_bar(self, bar: Bar) -> Bar:
        beside = {hold.bar.track for hold in self._holds.values() if hold.bar.lane == bar.lane}
        if bar.kind == "lease":
            beside = {lease.bar.track for lease in self._leases.values() if lease.bar.lane == bar.lane}
        bar.track = next(track for track in range(len(beside) + 1) if track not in beside)
        self.bars.append(bar)
        return bar

    def _begin_bar(self, kind: str, owner: str, bar: Bar) -> None:
        self.bars.append(bar)
        self._open[kind, owner] = bar

    def _end_bar(self, kind: str, owner: str, row: int) -> None:
        bar = self._open.pop((kind, owner), None)
        if bar:
            bar.last = row


def failed_releases(events: list[Event]) -> set[int]:
    """The indices of releases that were refused, of unknown outcome, or never answered."""
    failed: set[int] = set()
    asked: dict[str, int] = {}
    for event in events:
        actor = str(event.actor)
        if event.kind == "release-invoke":
            asked[actor] = event.index
            failed.add(event.index)
        if event.kind == "release-return" and event.outcome == "ok":
            failed.discard(asked.get(actor, -1))
    return failed
