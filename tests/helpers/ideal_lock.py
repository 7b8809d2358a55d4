"""A right lock library, simulated with its server, clients, threads and faults; and the same with one mistake.

`RandomWorkload(seed, mistake)` plays a random workload and writes the events down as tests/promises/README.md says.
Times are in ms. Messages take no time unless a fault makes them late. Each of MISTAKES changes one thing.
"""

import heapq
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

TIMEOUT_MS = 3000  # after which the library gives a command up that has no answer
POLL_MS = 500  # after which a waiter asks again if it knows no better
SERVES_READERS, FOREVER = "read", 10**12

# Mistake -> promises; at least one of them has to be seen to be broken.
MISTAKES: dict[str, tuple[str, ...]] = {
    "an inner release stops the watchdog": ("renewal", "mutual_exclusion"),
    "the watchdog goes on after the last release": ("renewal",),
    "the second try takes the lease for seconds": ("lease-too-long",),
    "an inner release sets twice the default lease": ("lease-too-long",),
    "an inner release sets a tenth of the default lease": ("lease-too-short", "renewal"),
    "a given lease sets no end": ("lease-endless",),
    "a lease without an end ends at once": ("lease-too-short",),
    "an inner release gives all back": ("mutual_exclusion", "ownership", "lease-too-short", "renewal"),
    "a release asks for no owner": ("ownership",),
    "anybody's hold is its own": ("ownership",),
    "a renewal prolongs nothing": ("lease-too-short",),
    "readers do not keep writers out": ("mutual_exclusion",),
    "there is one permit more": ("mutual_exclusion",),
    "all threads are one owner": ("mutual_exclusion", "ownership"),
    "a try waits": ("wait",),
    "a timed wait ends late": ("wait",),
    "a cancelled acquire keeps its late grant": ("cancel",),
    "a timed wait keeps its late grant": ("refusal",),
    "its own key is taken for another's": ("refusal",),
    "a token is drawn before the grant": ("token",),
    "a token is drawn twice": ("token",),
    "validity counts from the answer of a late grant": ("validity",),
    "a spent grant is handed over": ("validity",),
    "a failed release forgets whose the lock is": ("release",),
    "the loss of a lock is not told": ("loss",),
    "the first renewal is told as a loss": ("loss",),
    "a waiter asks only once": ("liveness",),
    "a release is never answered": ("answer",),
    "a place stays in the queue": ("residue",),
    "a release keeps the key": ("residue", "renewal", "liveness", "lease-endless", "ownership"),
}


@dataclass
class Box:
    """What a task waits for: filled once."""

    value: object = None
    filled: bool = False
    wakes: list[Callable[[], None]] = field(default_factory=list)

    def fill(self, value: object) -> None:
        if not self.filled:
            self.value, self.filled = value, True
            for wake in self.wakes:
                wake()


Wait = tuple[float, Box | None]  # until when, or until a box is filled
Code = Generator[Wait, None, None]


@dataclass
class SimClient:
    number: int
    still_until: float = 0
    gone: bool = False

    @property
    def name(self) -> str:
        return "ABCDEFGH"[self.number]


class Events:
    """Simulated time."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now: float = 0
        self.heap: list[tuple[float, int, Callable[[], None]]] = []
        self.number = 0
        self.in_flight = 0
        self.lines: list[str] = []

    def at(self, when: float, act: Callable[[], None]) -> None:
        self.number += 1
        heapq.heappush(self.heap, (when, self.number, act))

    def tell(self, *words: object) -> None:
        self.lines.append(" ".join([f"{self.now:g}", *(str(each) for each in words if each != "")]))

    def start(self, client: SimClient, code: Code) -> None:
        self.resume(client, code, [0], 0)

    def resume(self, client: SimClient, code: Code, epoch: list[int], mine: int) -> None:
        if client.gone or epoch[0] != mine:
            return
        if client.still_until > self.now:
            self.at(client.still_until, lambda: self.resume(client, code, epoch, mine))
            return
        epoch[0] += 1
        later = epoch[0]
        try:
            until, box = next(code)
        except StopIteration:
            return
        wake = lambda: self.resume(client, code, epoch, later)  # noqa: E731
        if until < FOREVER:
            self.at(max(until, self.now), wake)
        if box and box.filled:
            self.at(self.now, wake)
        elif box:
            box.wakes.append(lambda: self.at(self.now, wake))


Owner = tuple[int, int, int]  # client, thread, lock object


@dataclass
class Entry:
    """What one owner has of a resource at the server."""

    counts: dict[str, int] = field(default_factory=dict)
    until: float = FOREVER


class SimServer:
    """One resource. Each owner's entry has its own end; the key lives as long as the longest."""

    def __init__(self, events: Events, facts: "SimFacts", mistake: str) -> None:
        self.events, self.facts, self.mistake = events, facts, mistake
        self.entries: dict[Owner, Entry] = {}
        self.token = 0
        self.waiters: list[Box] = []
        self.queue: list[str] = []

    def live(self) -> dict[Owner, Entry]:
        now = self.events.now
        self.entries = {owner: entry for owner, entry in self.entries.items() if entry.until > now}
        return self.entries

    def notify(self) -> None:
        waiters, self.waiters = self.waiters, []
        for each in waiters:
            each.fill(None)

    def remaining(self) -> str:
        live = self.live()
        if not live:
            return "none"
        until = max(entry.until for entry in live.values())
        return "endless" if until >= FOREVER else f"{until - self.events.now:.0f}"

    def excluded(self, owner: Owner, mode: str) -> bool:
        live = self.live()
        others = [entry for each, entry in live.items() if each != owner]
        if mode == "permit":
            more = 1 if self.mistake == "there is one permit more" else 0
            held = sum(sum(entry.counts.values()) for entry in live.values())
            return held >= self.facts.permits + more
        if self.mistake == "readers do not keep writers out" and mode == "write":
            others = [entry for entry in others if "read" not in entry.counts]
        if mode == "read":
            others = [entry for entry in others if "write" in entry.counts]
        mine = live.get(owner)
        return bool(others) or (mine is not None and not self.facts.may_enter(mine.counts, mode))

    def acquire(self, owner: Owner, mode: str, lease: float) -> int:
        """The token of the grant, 0: not granted."""
        if self.excluded(owner, mode):
            return 0
        until = self.events.now + lease if lease < FOREVER else FOREVER
        if self.mistake == "a given lease sets no end":
            until = FOREVER
        if self.mistake == "a lease without an end ends at once" and lease >= FOREVER:
            until = self.events.now
        entry = self.entries.setdefault(owner, Entry(until=until))
        entry.until = until if self.facts.sets_lease else max(until, entry.until)
        entry.counts[mode] = entry.counts.get(mode, 0) + 1
        if not (self.mistake == "a token is drawn twice" and self.token % 2):
            self.token += 1
        return self.token

    def release(self, owner: Owner, mode: str) -> bool:
        live = self.live()
        if self.mistake == "a release asks for no owner" and live and owner not in live:
            owner = next(iter(live))
            mode = next(iter(live[owner].counts))
        entry = live.get(owner)
        if entry is None or not entry.counts.get(mode):
            return False
        if self.mistake == "a release keeps the key":
            return True
        entry.counts[mode] -= 1
        if not entry.counts[mode] or self.mistake == "an inner release gives all back":
            del entry.counts[mode]
        if self.mistake == "an inner release sets twice the default lease":
            entry.until = self.events.now + 2 * self.facts.default
        if self.mistake == "an inner release sets a tenth of the default lease":
            entry.until = self.events.now + self.facts.default / 10
        if not entry.counts:
            del self.entries[owner]
        self.notify()
        return True

    def renew(self, owner: Owner, lease: float) -> bool:
        entry = self.live().get(owner)
        if entry:
            entry.until = self.events.now + lease
        return entry is not None

    def holds(self, owner: Owner) -> bool:
        return bool(self.live()) if self.mistake == "anybody's hold is its own" else owner in self.live()


@dataclass(frozen=True)
class SimFacts:
    owner: str
    modes: tuple[str, ...]
    permits: int
    default: int
    divisor: int
    reenters: bool
    write_reads: bool
    tokens: bool
    validity: bool
    sets_lease: bool  # re-entry sets the lease; otherwise it only prolongs
    leases: tuple[str, ...]

    @staticmethod
    def drawn(rng: random.Random) -> "SimFacts":
        owner = rng.choice(("thread", "object", "thread-object"))
        modes = rng.choice((("exclusive",), ("exclusive",), ("read", "write"), ("permit",)))
        reenters = modes != ("permit",) and rng.random() < 0.6
        leases = rng.choice((("given",), ("given", "renewed"), ("renewed",), ("given", "endless"), ("default",)))
        return SimFacts(
            owner,
            modes,
            rng.choice((1, 2)),
            rng.choice((3000, 9000, 30000)),
            rng.choice((2, 3)),
            reenters,
            reenters and "write" in modes,
            modes != ("permit",) and rng.random() < 0.5,
            rng.random() < 0.4,
            rng.random() < 0.5,
            leases,
        )

    def may_enter(self, counts: dict[str, int], mode: str) -> bool:
        if mode == "read" and "read" not in counts:
            return self.write_reads
        if mode == "write" and "write" not in counts:
            return False
        return self.reenters

    def line(self) -> str:
        flags = {"reenters": self.reenters, "write-reads": self.write_reads, "tokens": self.tokens}
        flags |= {"validity": self.validity, "key": True}
        named = f"owner={self.owner} permits={self.permits} default={self.default} divisor={self.divisor} loss=renewal"
        return " ".join(["facts", named, *(name for name, is_so in flags.items() if is_so)])


class Network:
    """Between clients and server. A fault is drawn for each message."""

    def __init__(self, events: Events, fault_rate: float) -> None:
        self.events, self.fault_rate = events, fault_rate
        self.faults_left = events.rng.choice((1, 1, 2, 1000))

    def send(self, client: SimClient, command: Callable[[], object]) -> Box:
        events, rng = self.events, self.events.rng
        reply = Box()
        request_ms = reply_ms = 0.0
        again_ms = None
        is_lost = ""
        if self.faults_left and rng.random() < self.fault_rate:
            self.faults_left -= 1
            delay = rng.choice((1, 50, 700, 2000, 2000, 2500, 5000, 12000, 40000))
            kind = rng.choice(("late", "late reply", "lost", "lost reply", "double"))
            if kind == "late":
                request_ms = delay
                events.tell("late", client.name, f"until={events.now + delay:g}")
            elif kind == "late reply":
                reply_ms = delay
                events.tell("late", client.name, f"until={events.now + delay:g}", "reply")
            elif kind == "double":
                again_ms = delay
                events.tell("double", client.name, f"until={events.now + delay:g}")
            else:
                is_lost = kind
                events.tell("lost", client.name, "reply" if kind == "lost reply" else "")
        if again_ms is not None:
            self.deliver(again_ms, lambda: command())
        if is_lost != "lost":
            self.deliver(request_ms, lambda: self.execute(client, command, reply, reply_ms, bool(is_lost)))
        return reply

    def deliver(self, delay: float, act: Callable[[], object]) -> None:
        self.events.in_flight += 1

        def arrive() -> None:
            self.events.in_flight -= 1
            act()

        self.events.at(self.events.now + delay, arrive)

    def execute(
        self, client: SimClient, command: Callable[[], object], reply: Box, reply_ms: float, is_lost: bool
    ) -> None:
        self.events.tell("executed", client.name)
        value = command()
        if not is_lost:
            self.deliver(reply_ms, lambda: reply.fill(value))


@dataclass
class SimCall:
    """An acquire under way."""

    cancelled: Box = field(default_factory=Box)
    is_over: bool = False


class SimLibrary:
    """The library in one client."""

    def __init__(self, client: SimClient, network: Network, servers: list[SimServer], facts: SimFacts) -> None:
        self.client, self.network, self.servers, self.facts = client, network, servers, facts
        self.events = network.events
        self.mistake = servers[0].mistake
        self.watched: dict[tuple[Owner, int], int] = {}  # renewed holds of an owner
        self.watchdogs: dict[tuple[Owner, int], int] = {}  # the number of the one at work
        self.watchdogs_started = 0
        self.forgotten = set[tuple[Owner, int]]()

    def owner(self, thread: int, lock: int) -> Owner:
        if self.mistake == "all threads are one owner":
            thread = lock = 0
        by = self.facts.owner
        return (self.client.number, 0 if by == "object" else thread, 0 if by == "thread" else lock)

    def command(self, act: Callable[[], object]) -> Generator[Wait, None, object]:
        """Its answer; None if it comes too late."""
        box = self.network.send(self.client, act)
        deadline = self.events.now + TIMEOUT_MS
        while not box.filled and self.events.now < deadline:
            yield deadline, box
        return box.value if box.filled else None

    # --- acquire ---

    def acquire(
        self, call: SimCall, owner: Owner, resource: int, mode: str, wait: str, lease: str
    ) -> Generator[Wait, None, str]:
        """The text of the answer."""
        server = self.servers[resource]
        begun = self.events.now
        deadline = begun + (0 if wait == "try" else float(wait[5:]) if wait.startswith("wait=") else FOREVER)
        if self.mistake == "a try waits" and wait == "try":
            deadline += 40
        drawn = server.token + 1
        tries = 0
        while True:
            tries += 1
            lease_ms = self.lease_ms(lease) * (1000 if tries > 1 and "takes the lease" in self.mistake else 1)
            sent = self.events.now
            wake = Box()
            box = self.network.send(self.client, self.try_command(server, owner, mode, lease_ms, wake))
            until = min(deadline if deadline > sent else FOREVER, sent + TIMEOUT_MS)
            while not (box.filled or call.cancelled.filled) and self.events.now < until:
                yield until, first_of(box, call.cancelled)
            if not box.filled:
                if call.cancelled.filled or (self.events.now < sent + TIMEOUT_MS and deadline <= self.events.now):
                    return self.give_up(call, box, server, owner, mode, lease_ms)
                if self.mistake == "its own key is taken for another's":
                    again = yield from self.command(self.try_command(server, owner, mode, lease_ms, Box()))
                    return "refused" if again == 0 else "unknown"
                return "unknown"
            if box.value:
                token = drawn if self.mistake == "a token is drawn before the grant" else box.value
                return self.granted(owner, resource, server, mode, sent, lease, lease_ms, str(token))
            late = 400 if self.mistake == "a timed wait ends late" and wait.startswith("wait=") else 0
            if self.events.now >= deadline + late:
                self.leave_queue(server, wait)
                return "refused"
            again_at = FOREVER if self.mistake == "a waiter asks only once" else self.events.now + POLL_MS
            yield min(again_at, deadline + late), first_of(wake, call.cancelled)
            if call.cancelled.filled:
                return "refused cancelled"

    def try_command(
        self, server: SimServer, owner: Owner, mode: str, lease_ms: float, wake: Box
    ) -> Callable[[], object]:
        def act() -> object:
            token = server.acquire(owner, mode, lease_ms)
            if not token and self.mistake != "a waiter asks only once":
                server.waiters.append(wake)
            return token

        return act

    def lease_ms(self, lease: str) -> float:
        if lease == "endless":
            return FOREVER
        return float(lease[6:]) if lease.startswith("given=") else float(self.facts.default)

    def give_up(self, call: SimCall, box: Box, server: SimServer, owner: Owner, mode: str, lease_ms: float) -> str:
        """The wait is over while a command is under way: what it is granted later is given back then."""
        is_cancelled = call.cancelled.filled
        forgets = "a cancelled acquire keeps" if is_cancelled else "a timed wait keeps"
        if not self.mistake.startswith(forgets):
            self.events.start(self.client, self.give_back(box, server, owner, mode))
        elif is_cancelled:
            self.events.start(self.client, self.watch_late(box, server, owner))
        outcome = self.events.rng.choice(("refused", "unknown")) if is_cancelled else "refused"
        return outcome + (" cancelled" if is_cancelled else "")

    def give_back(self, box: Box, server: SimServer, owner: Owner, mode: str) -> Code:
        yield FOREVER, box
        if box.value:
            yield from self.command(lambda: server.release(owner, mode))

    def watch_late(self, box: Box, server: SimServer, owner: Owner) -> Code:
        yield FOREVER, box
        while box.value and server.holds(owner):
            yield self.events.now + self.facts.default / self.facts.divisor, None
            yield from self.command(lambda: server.renew(owner, self.facts.default))

    def leave_queue(self, server: SimServer, wait: str) -> None:
        if self.mistake == "a place stays in the queue" and wait != "try":
            server.queue.append(f"queue:{self.client.name}")

    def granted(
        self,
        owner: Owner,
        resource: int,
        server: SimServer,
        mode: str,
        sent: float,
        lease: str,
        lease_ms: float,
        token: str,
    ) -> str:
        events = self.events
        answer = "ok" + (f" token={token}" if self.facts.tokens else "")
        valid = (events.now if "validity counts from the answer" in self.mistake else sent) + lease_ms
        if "validity counts from the answer" in self.mistake:
            valid += lease_ms / 4
        if self.facts.validity and lease_ms < FOREVER:
            if valid <= events.now and self.mistake != "a spent grant is handed over":
                self.network.send(self.client, lambda: server.release(owner, mode))
                return "unknown"
            answer += f" valid={valid:g}"
        if lease == "renewed":
            key = (owner, resource)
            self.watched[key] = self.watched.get(key, 0) + 1
            if key not in self.watchdogs:
                self.watchdogs_started += 1
                self.watchdogs[key] = self.watchdogs_started
                events.start(self.client, self.watchdog(key, self.watchdogs_started, server, owner))
        return answer

    def watchdog(self, key: tuple[Owner, int], number: int, server: SimServer, owner: Owner) -> Code:
        goes_on = self.mistake == "the watchdog goes on after the last release"
        while True:
            yield self.events.now + self.facts.default / self.facts.divisor, None
            if self.watchdogs.get(key) != number and not goes_on:
                return
            answer = yield from self.command(self.renewal(server, owner))
            is_first = self.mistake == "the first renewal is told as a loss" and answer is True
            if (answer is False or is_first) and self.watchdogs.get(key) == number:
                self.stop_watchdog(key)
                self.tell_loss(key)
                return

    def tell_loss(self, key: tuple[Owner, int]) -> None:
        (_, thread, lock), resource = key
        who = self.client.name + (f".{thread}" if thread > 1 else "")
        if self.mistake != "the loss of a lock is not told":
            self.events.tell(who, "notice", f"lock={lock or 1}", f"resource={resource}")

    def stop_watchdog(self, key: tuple[Owner, int]) -> None:
        self.watchdogs.pop(key, None)
        self.watched.pop(key, None)

    def renewal(self, server: SimServer, owner: Owner) -> Callable[[], object]:
        def act() -> object:
            if self.mistake == "the watchdog goes on after the last release" and not server.holds(owner):
                server.entries[owner] = Entry({"exclusive": 1}, self.events.now + self.facts.default)
                return True
            return server.renew(owner, self.facts.default)

        return act

    # --- the other calls ---

    def release(
        self, owner: Owner, resource: int, mode: str, lease: str, is_over: bool = False
    ) -> Generator[Wait, None, str]:
        """The text of the answer. `is_over`: with a context that has ended, so that nothing is sent."""
        key = (owner, resource)
        if key in self.forgotten:
            return "refused"
        if lease == "renewed" and self.watched.get(key):
            self.watched[key] -= 1
            if not self.watched[key] or self.mistake == "an inner release stops the watchdog":
                self.stop_watchdog(key)
        server = self.servers[resource]
        value = None if is_over else (yield from self.command(lambda: server.release(owner, mode)))
        if value is None and self.mistake == "a failed release forgets whose the lock is":
            self.forgotten.add(key)
        if value and not lease and not server.holds(owner):
            self.stop_watchdog(key)  # another thread has given it back
        if is_over:
            return "unknown cancelled"
        if value is not None and self.mistake == "a release is never answered":
            yield FOREVER, Box()
        return outcome_of(value)

    def renew(self, owner: Owner, resource: int, lease_ms: float) -> Generator[Wait, None, str]:
        server = self.servers[resource]
        act = (
            server.holds
            if self.mistake == "a renewal prolongs nothing"
            else lambda owner: server.renew(owner, lease_ms)
        )
        return outcome_of((yield from self.command(lambda: act(owner))))

    def is_held(self, owner: Owner, resource: int) -> Generator[Wait, None, str]:
        server = self.servers[resource]
        return outcome_of((yield from self.command(lambda: server.holds(owner))))


def outcome_of(value: object) -> str:
    return "unknown" if value is None else "ok" if value else "refused"


def first_of(*boxes: Box) -> Box:
    both = Box()
    for each in boxes:
        if each.filled:
            both.fill(None)
        each.wakes.append(lambda: both.fill(None))
    return both


@dataclass
class SimHold:
    lock: int
    mode: str
    lease: str


class RandomWorkload:
    """A workload that is drawn from `seed`, as text; `mistake`: one of MISTAKES, "" is the right library."""

    def __init__(self, seed: int, mistake: str = "") -> None:
        self.rng = random.Random(seed)
        self.facts = SimFacts.drawn(self.rng)
        self.events = Events(self.rng)
        calm = self.rng.random() < 0.4
        self.network = Network(self.events, 0.0 if calm else self.rng.choice((0.02, 0.1, 0.3)))
        self.servers = [SimServer(self.events, self.facts, mistake) for _ in range(self.rng.choice((1, 1, 2)))]
        self.clients = [SimClient(number) for number in range(self.rng.choice((2, 2, 3)))]
        self.running = 0
        for client in self.clients:
            library = SimLibrary(client, self.network, self.servers, self.facts)
            for thread in range(1, self.rng.choice((2, 2, 3))):
                self.running += 1
                self.events.start(client, self.thread(library, thread))
            if not calm and self.rng.random() < 0.2:
                self.events.at(self.rng.uniform(0, 2) * self.facts.default // 1, self.strike(client))
        self.run(self.facts.default * 12)
        self.text = "\n".join([f"kept: seed {seed} {mistake}".strip(), self.facts.line(), *self.events.lines, ""])

    def strike(self, client: SimClient) -> Callable[[], None]:
        def act() -> None:
            if self.rng.random() < 0.4:
                client.gone = True
                self.events.tell("gone", client.name)
            else:
                client.still_until = self.events.now + self.rng.choice((0.1, 0.3, 0.6, 1.5)) * self.facts.default // 1
                self.events.tell("still", client.name, f"until={client.still_until:g}")

        return act

    def run(self, limit_ms: float) -> None:
        events = self.events
        while events.heap and events.heap[0][0] <= limit_ms:
            if events.heap[0][0] > events.now:
                self.quiet()
                if self.over():
                    break
            events.now, _, act = heapq.heappop(events.heap)
            act()
        if self.running and not self.over():
            events.now = limit_ms
            self.quiet()
        events.tell("end")
        for number, server in enumerate(self.servers):
            for name in [*("key" for _ in server.live()), *server.queue]:
                events.tell("left", name, f"resource={number}")

    def over(self) -> bool:
        return self.running == 0 and self.events.in_flight == 0 and self.rng.random() < 0.3

    def quiet(self) -> None:
        if self.rng.random() < 0.5:
            for number, server in enumerate(self.servers):
                self.events.tell("lease", server.remaining(), f"resource={number}")
        if self.events.in_flight == 0:
            self.events.tell("idle")

    # --- what threads do ---

    def thread(self, library: SimLibrary, number: int) -> Code:
        holds: list[SimHold] = []
        resource = self.rng.randrange(len(self.servers))
        if self.rng.random() < 0.5:
            yield self.rng.choice((0, 5, 700)), None
        for _ in range(self.rng.randrange(2, 8)):
            draw = self.rng.random()
            if draw < 0.4 or not holds:
                yield from self.do_acquire(library, number, resource, holds)
            elif draw < 0.6:
                yield from self.do_release(library, number, resource, holds)
            elif draw < 0.8:
                yield from self.do_other(library, number, resource, holds)
            if self.rng.random() < 0.6:
                work = self.rng.choice(
                    (1, 0.1 * self.facts.default, 0.5 * self.facts.default, 1.4 * self.facts.default)
                )
                yield self.events.now + work // 1, None
        while holds:
            yield from self.do_release(library, number, resource, holds)
        self.running -= 1

    def who(self, library: SimLibrary, thread: int) -> str:
        return library.client.name if thread == 1 else f"{library.client.name}.{thread}"

    def do_acquire(self, library: SimLibrary, thread: int, resource: int, holds: list[SimHold]) -> Code:
        who = self.who(library, thread)
        lock = self.rng.choice((1, 2))
        mode, lease = self.rng.choice(self.facts.modes), self.rng.choice(self.facts.leases)
        waits = ["try", "wait=300", f"wait={self.facts.default}"]
        if holds:  # with more, a thread would wait for itself
            waits = ["try"]
        if lease == "given":
            lease = f"given={self.rng.choice((1000, self.facts.default, 2 * self.facts.default))}"
        wait = self.rng.choice([*waits, "forever"] if not holds else waits)
        self.events.tell(who, "acquire", mode, wait, lease, f"lock={lock}", f"resource={resource}")
        call = SimCall()
        if wait != "try" and self.rng.random() < 0.2:
            self.events.start(library.client, self.cancel(library, thread, call))
        owner = library.owner(thread, lock)
        answer = yield from library.acquire(call, owner, resource, mode, wait, lease)
        call.is_over = True
        self.events.tell(who, answer)
        if answer.startswith("ok") or (answer == "unknown" and self.rng.random() < 0.5):
            holds.append(SimHold(lock, mode, lease if answer.startswith("ok") else ""))

    def cancel(self, library: SimLibrary, thread: int, call: SimCall) -> Code:
        yield self.events.now + self.rng.choice((1, 60, 1000)), None
        if call.is_over:
            return
        self.events.tell(f"{library.client.name}.9{thread}", "cancel", self.who(library, thread))
        call.cancelled.fill(None)
        self.events.tell(f"{library.client.name}.9{thread}", "ok")

    def do_release(self, library: SimLibrary, thread: int, resource: int, holds: list[SimHold]) -> Code:
        """A release that failed is asked once more, or not."""
        who, hold = self.who(library, thread), holds.pop()
        owner = library.owner(thread, hold.lock)
        for is_over, how in ((True, "over") if self.rng.random() < 0.1 else (False, ""), (False, "again")):
            self.events.tell(who, "release", hold.mode, f"lock={hold.lock}", f"resource={resource}", how)
            answer = yield from library.release(owner, resource, hold.mode, hold.lease, is_over)
            self.events.tell(who, answer)
            if not answer.startswith("unknown") or self.rng.random() < 0.3:
                break

    def do_other(self, library: SimLibrary, thread: int, resource: int, holds: list[SimHold]) -> Code:
        who, hold = self.who(library, thread), self.rng.choice(holds)
        lock = self.rng.choice((1, 2, hold.lock))
        owner = library.owner(thread, lock)
        place = f"{hold.mode} lock={lock} resource={resource}"
        kind = self.rng.choice(("is_held", "release", "renew"))
        if kind == "release" and lock != hold.lock and self.facts.owner != "thread":
            self.events.tell(who, "release", place)
            answer = yield from library.release(owner, resource, hold.mode, "")
            if answer == "ok":  # another thread's, of the same object
                holds[:] = [each for each in holds if each.lock != lock]
        elif kind == "renew" and hold.lease.startswith("given"):
            lease = self.rng.choice((1000, self.facts.default))
            self.events.tell(who, "renew", f"given={lease}", place)
            answer = yield from library.renew(owner, resource, lease)
        else:
            self.events.tell(who, "is_held", place)
            answer = yield from library.is_held(owner, resource)
        self.events.tell(who, answer)
