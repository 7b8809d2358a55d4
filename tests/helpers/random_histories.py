"""Small random histories of a lock that is sometimes correct, made from a seed: clients that do one thing at a time,
and a server and a store that may answer wrongly, fail, forget and be late."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from tests.helpers.checker_oracle import (
    ATOMIC,
    FAIR,
    FENCED,
    FOR_EVER,
    LEASE,
    MADE,
    MARKED,
    OPERATIONS,
    PROLONGED,
    REENTRANT,
    RENEWS,
    TOKEN,
    History,
    Json,
    OracleRecord,
    is_access,
    is_grant,
)

OBJECTS = ("register", "counter", "set")
FAULTS = ("pause-client", "clock-step")
MS = 10**6
OUTCOMES = ("refused", "ok", "unknown")


@dataclass
class SimulatedClient:
    name: str
    op: int = 0
    asked: OracleRecord | None = None  # the operation in flight
    stored: OracleRecord | None = None  # what the store made of it
    held: list[OracleRecord] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    mono_ns: int = 0
    gone: bool = False
    haunted: bool = False  # its watchdog is never stopped


@dataclass
class SimulatedLock:
    """What a lock says of itself, and the newest token that it gave."""

    traits: int
    permits: int
    lease_ms: int
    stated: bool  # it announces until when its holder may believe
    newest: int = 0

    @classmethod
    def drawn(cls, rng: random.Random) -> "SimulatedLock":
        traits = rng.choice((0, 0, TOKEN, TOKEN, TOKEN)) | rng.choice((0, 0, REENTRANT))
        traits |= rng.choice((0, 0, FAIR)) | rng.choice((0, 0, RENEWS))
        lease_ms = rng.choice((0, 0, 10, 30))
        traits |= LEASE if lease_ms else 0
        return cls(traits, rng.choice((-1, 0, 1, 1, 1, 2, 3)), lease_ms, lease_ms > 0 and rng.random() < 0.6)

    def keeps_each(self) -> bool:
        """Whether a client may hold several of its grants at once."""
        return bool(self.traits & REENTRANT) or self.permits > 1


class RandomHistory:
    """One history; `records` in order."""

    def __init__(self, seed: int) -> None:
        self.random = rng = random.Random(seed)
        self.attempts = random.Random(~seed)  # of its own, so that old seeds give the old histories
        self.lengths = random.Random(f"lengths {seed}")  # as well
        self.clients = [SimulatedClient(name) for name in "ABCD"[: rng.randint(2, 4)]]
        self.locks = ["stock", "cash", "till"][: rng.choice((1, 1, 1, 2, 2, 3))]
        self.names = [*(client.name for client in self.clients), *self.locks, *FAULTS]
        self.names += [
            "storm",
            "quiet",
            "bound_ms",
            "order_ms",
            "faults_meant",
            "keys",
            "jobs",
            "store",
            "table",
            "driver",
        ]
        self.records: History = []
        self.next = 1 + 2 * len(self.names)
        first = SimulatedLock.drawn(rng)
        alike = self.chance(0.5)
        self.lock = {name: replace(first) if alike else SimulatedLock.drawn(rng) for name in self.locks}
        self.store = "table" if self.chance(0.1) else "store"
        self.jitter = rng.choice((0, 0, 2))
        self.careful = rng.choice((0.0, 0.5, 0.9, 1.0))
        self.honest = rng.choice((0.6, 0.9, 1.0))
        self.sound = rng.choice((0.5, 0.9, 1.0))
        self.reliable = rng.choice((0.6, 0.9, 1.0))
        self.fences = self.chance(0.3)
        self.patient = self.chance(0.5)
        self.neglected = rng.choice(self.clients) if self.chance(0.4) else None
        self.brisk = self.chance(0.6 if first.traits & FAIR else 0.1)  # uses only the lock, not the store
        self.mono_ns = rng.choice((0, 10**9))
        self.version = dict.fromkeys(OBJECTS, 0)
        self.late: list[OracleRecord] = []
        self.suspended: list[tuple[SimulatedClient, str]] = []
        self.generate()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def add(self, kind: str, client: SimulatedClient | None = None, **values: Any) -> OracleRecord:
        """Appends a record. Stamps rise for each client, and for all clients up to the jitter."""
        self.mono_ns += self.random.choice((0, 1, 1, 2, 3, 8)) * MS
        stamp = self.mono_ns + self.random.randint(0, self.jitter) * MS
        if client:
            stamp = client.mono_ns = max(client.mono_ns, stamp)
            values["actor"] = client.name
        else:
            stamp = self.mono_ns
        record = OracleRecord(self.next, kind, mono_ns=stamp, **values)
        self.records.append(record)
        self.next += 1
        return record

    # --- the order of events ---

    def generate(self) -> None:
        self.parameters()
        if self.chance(0.9):
            self.open()
        length = 45 if self.brisk else self.random.choice((3, 10, 20, 30, 45))
        calm = 0 if self.chance(0.4) else self.random.randrange(2 * length)
        struck = self.random.randrange(length) if self.chance(0.08) else -1
        for step in range(length):
            if step == calm:
                self.phase()
            if step == struck:
                self.fault()
            self.step(self.random.choice(self.clients))
        if self.chance(0.15):
            for name in ("keys", "jobs")[: self.random.randint(1, 2)]:
                self.add("residue", name=name, value=self.random.choice((-1, 0, 0, 2)))
        if self.chance(0.1):
            self.tear()
        elif self.chance(0.08):
            self.spoil()
        if self.chance(0.05):
            self.records = [replace(each, op=0) for each in self.records]

    def parameters(self) -> None:
        if self.chance(0.15):
            self.add("parameter", name="bound_ms", value=self.random.choice((-1, 0, 3, 10)))
        if self.chance(0.03):
            self.add("parameter", name="faults_meant", value=self.random.choice((0, 1, 2)))
        if self.chance(0.2):
            self.add("parameter", name="order_ms", value=self.random.choice((0, 2, 8)))

    def phase(self) -> None:
        for _ in range(self.random.choice((1, 1, 1, 2))):
            self.add("phase", name=self.random.choice(("quiet", "quiet", "quiet", "storm")))

    def open(self) -> None:
        for client in self.clients:
            for lock in self.locks:
                self.open_lock(client, lock)

    def open_lock(self, client: SimulatedClient, name: str) -> None:
        lock = self.lock[name]
        self.add("lock-open", client, name=name, value=lock.lease_ms, extra=lock.traits, token=lock.permits)

    def step(self, client: SimulatedClient) -> None:
        if self.chance(0.06):
            return self.aside(client)
        if self.chance(0.06):
            return self.heard(client)
        if client.haunted and self.chance(0.3):
            return self.validity(client)
        if client.gone:
            client.gone = not self.chance(0.2)
            return None
        if client.asked:
            return self.answer(client)
        steps: list[Callable[[SimulatedClient], None]] = [self.acquire] * (2 if client.held else 6)
        if client.held:
            steps += [self.release] * 4 + [self.renew] * 2
        elif self.chance(0.2):
            steps += [self.release, self.renew] * 2
        if not self.brisk:
            steps += [self.read] * 2 + [self.write] * (5 if client.held else 2)
        return self.random.choice(steps)(client)

    def ask(self, client: SimulatedClient, kind: str, **values: Any) -> None:
        client.op += 1
        client.stored = None
        client.asked = self.add(kind, client, op=client.op, **values)

    def aside(self, client: SimulatedClient) -> None:
        """Adds a record that is no operation."""
        kinds = [self.exit, self.validity, self.validity, self.noise, self.again, self.stray, self.reopen]
        self.random.choice(kinds)(client)

    # --- invocations ---

    def acquire(self, client: SimulatedClient) -> None:
        self.ask(
            client, "acquire-invoke", name=self.random.choice(self.locks), value=self.random.choice((-1, -1, 0, 20))
        )

    def under(self, client: SimulatedClient) -> tuple[str, int]:
        """A lock, and the grant under which the client uses it."""
        if client.held:
            return client.held[-1].name, client.held[-1].index
        return self.random.choice(self.locks), 0

    def release(self, client: SimulatedClient) -> None:
        name, grant = self.under(client)
        self.ask(client, "release-invoke", name=name, grant=grant)

    def renew(self, client: SimulatedClient) -> None:
        name, grant = self.under(client)
        self.ask(client, "renew-invoke", name=name, grant=grant)

    def read(self, client: SimulatedClient) -> None:
        self.ask(client, "read-invoke", object=self.random.choice(OBJECTS))

    def write(self, client: SimulatedClient) -> None:
        name = self.random.choice(OBJECTS)
        self.ask(client, "write-invoke", object=name, value=self.random.randint(0, 5 if name == "set" else 99))

    # --- answers ---

    def answer(self, client: SimulatedClient) -> None:
        asked = client.asked
        assert asked
        if asked.kind in ("read-invoke", "write-invoke") and not client.stored and self.chance(0.9):
            client.stored = self.access(client, asked)
        elif asked.kind == "acquire-invoke":
            self.granted(client, asked)
        else:
            self.answered(client, asked)

    def answered(self, client: SimulatedClient, asked: OracleRecord) -> None:
        outcome = "ok" if self.chance(self.reliable) else self.random.choice(("refused", "unknown"))
        if client.stored and outcome == "ok":
            outcome = client.stored.outcome
        elif asked.object and not client.stored:
            outcome = "unknown"
            self.late += [asked] * self.chance(0.5)
        client.asked = None
        if asked.kind == "release-invoke" and client.held:
            client.held.pop()
            client.haunted = self.lock[asked.name].stated and self.chance(0.2)
        self.add(
            asked.kind.replace("invoke", "return"),
            client,
            name=asked.name,
            object=asked.object,
            op=asked.op,
            grant=asked.grant,
            outcome=outcome,
        )

    def believers(self, lock: str) -> int:
        held = (each for client in self.clients for each in client.held if each.name == lock)
        return len({each.actor for each in held if not 0 < each.value <= self.mono_ns})

    def granted(self, client: SimulatedClient, asked: OracleRecord) -> None:
        name, lock = asked.name, self.lock[asked.name]
        if client is self.neglected and self.chance(0.8):
            return
        outcome = "ok" if self.chance(self.reliable) else self.random.choice(("refused", "unknown"))
        if self.believers(name) >= max(1, lock.permits) and self.chance(self.careful):
            if self.patient or self.chance(0.5):
                return
            outcome = "refused"
        until = self.mono_ns + self.random.randint(1, 25) * MS if lock.stated and self.chance(0.9) else 0
        if lock.stated and self.chance(0.06):
            until = self.random.choice((self.mono_ns, self.mono_ns - 2 * MS, FOR_EVER))
        token = self.token(client, name) if lock.traits & TOKEN else 0
        client.asked = None
        stated = lock.lease_ms and self.attempts.random() < 0.3
        since = max(0, self.mono_ns - self.attempts.randint(0, 9) * MS) if stated else 0
        stamps = {"value": until, "extra": since}
        answer = self.add("acquire-return", client, name=name, op=asked.op, outcome=outcome, token=token, **stamps)
        if is_grant(answer):
            client.held = client.held if lock.keeps_each() else [each for each in client.held if each.name != name]
            client.held.append(answer)

    def token(self, client: SimulatedClient, name: str) -> int:
        lock = self.lock[name]
        mine = [each.token for each in client.held if each.name == name]
        if lock.traits & REENTRANT and mine and self.chance(0.8):
            return mine[-1]
        if self.chance(self.honest):
            lock.newest += self.random.randint(1, 2)
            return lock.newest
        return lock.newest + self.random.randint(-3, 2)

    def access(self, client: SimulatedClient, asked: OracleRecord) -> OracleRecord:
        """Adds the store's record of an access: under the newest grant, an older one of the client, or none."""
        named = self.named_grant(client)
        grant = next((each for each in self.records if each.index == named and is_grant(each)), None)
        token = grant.token if grant else self.random.choice((0, 0, self.random.randint(-2, 5)))
        newest = max((each.token for each in self.records if is_access(each) and each.ok), default=0)
        refused = self.fences and token < newest and self.chance(0.8)
        write = asked.kind == "write-invoke"
        atomic = write and self.chance({"register": 0.0, "counter": 0.2, "set": 0.8}[asked.object])
        stored = self.add(
            "store-write" if write else "store-read",
            actor=self.store,
            name=client.name,
            object=asked.object,
            op=asked.op,
            grant=named,
            token=token,
            outcome="refused" if refused else "unknown" if self.chance(0.02) else "ok",
            flags=(FENCED if refused else 0) | (ATOMIC if atomic else 0),
            value=asked.value,
            extra=self.base(client, asked.object) if write and not atomic else self.version[asked.object],
        )
        if write:
            self.version[asked.object] += stored.ok
        elif stored.ok:
            client.seen[asked.object] = stored.extra
        return stored

    def named_grant(self, client: SimulatedClient) -> int:
        """The newest grant, an older one of the client or of another one, none, or an index that is no grant."""
        grants = [each for each in self.records if is_grant(each)]
        mine = [each for each in grants if each.actor == client.name]
        if self.chance(0.05):
            return self.random.choice((0, 1, self.next, self.next + 3, self.random.randrange(self.next)))
        if grants and self.chance(0.04):
            return self.random.choice(grants).index
        if len(client.held) > 1 and self.chance(0.3):
            return self.random.choice(client.held).index
        return client.held[-1].index if client.held else self.random.choice(mine).index if mine else 0

    def base(self, client: SimulatedClient, name: str) -> int:
        """The version that a write is computed from."""
        if self.chance(self.sound):
            return self.version[name]
        choices = (-1, client.seen.get(name, -1), self.random.randint(0, self.version[name] + 1), 0)
        return self.random.choice(choices)

    # --- other records ---

    def exit(self, client: SimulatedClient) -> None:
        if self.chance(0.4):
            self.add("actor-exit", actor="driver", name=client.name, value=9)
            client.asked = client.stored = None
            client.held.clear()
            client.seen.clear()
            client.gone = True
            client.op = 0 if self.chance(0.5) else client.op

    def validity(self, client: SimulatedClient) -> None:
        lock, _ = self.under(client)
        if self.lock[lock].stated or self.chance(0.1):
            until = self.random.choice((self.mono_ns + self.random.randint(-5, 25) * MS, self.mono_ns, 0, FOR_EVER))
            outcome = self.random.choice(OUTCOMES) if self.chance(0.2) else OUTCOMES[until > self.mono_ns]
            self.add("validity", client, name=lock, value=until, outcome=outcome)
            if self.chance(0.15):  # its host is suspended; the driver records what the client believes meanwhile
                self.add("validity", client, name=lock, value=FOR_EVER, outcome="ok", extra=1)
                self.suspended.append((client, lock))
        elif self.suspended and self.chance(0.5):
            client, lock = self.suspended.pop()
            until = self.mono_ns + self.random.randint(1, 25) * MS
            self.add("validity", client, name=lock, value=until, outcome="ok", extra=1)

    def reopen(self, client: SimulatedClient) -> None:
        """A lock is opened once more, and perhaps describes itself in another way; or a phase begins."""
        name = self.random.choice(self.locks)
        if self.chance(0.3):
            self.lock[name] = replace(SimulatedLock.drawn(self.random), newest=self.lock[name].newest)
        if self.chance(0.5):
            self.open_lock(client, name)
        if self.chance(0.4):
            self.parameters()
        if self.chance(0.1):
            self.phase()

    def heard(self, client: SimulatedClient) -> None:
        """A server hears of a renewal, at once or late."""
        lock, grant = self.under(client)
        self.add(
            "server-renewal",
            client,
            name=lock,
            outcome=self.random.choice(("ok", "ok", "refused")),
            op=max(0, client.op - self.random.choice((0, 0, 0, 1))),
            grant=grant if self.chance(0.8) else 0,
            value=self.random.choice((0, 0, self.lengths.choice((20, 1002, 1003)), -1)),
            flags=self.random.choice((MARKED, MARKED, 0, MADE)) | self.lengths.choice((0, 0, PROLONGED)),
            extra=0 if self.chance(0.8) else 1 + 2 * self.random.randrange(len(self.names)),
        )

    def noise(self, client: SimulatedClient) -> None:
        kinds = ("note", "clock", "fault-heal", "released")
        kind = self.random.choice(("checkpoint", "rule") if self.chance(0.1) else kinds)
        self.add(kind, actor="driver", name=self.random.choice(self.names), value=7)

    def stray(self, client: SimulatedClient) -> None:
        """An answer without an invocation, or without a number."""
        if self.chance(0.3) and not client.asked:
            kind = self.random.choice(("acquire-return", "acquire-return", "renew-return", "release-return"))
            outcome, name = self.random.choice(("ok", "ok", "refused", "unknown")), self.random.choice(self.locks)
            token = self.token(client, name) if self.lock[name].traits & TOKEN and kind == "acquire-return" else 0
            self.add(kind, client, name=name, op=self.random.choice((0, client.op)), outcome=outcome, token=token)

    def again(self, client: SimulatedClient) -> None:
        """A write reaches the store again, or late, or from a client that records nothing."""
        if self.late and self.chance(0.5):
            asked = self.late.pop()
            owner = next(each for each in self.clients if each.name == asked.actor)
            if asked.kind == "write-invoke":
                self.access(owner, asked)
            return
        writes = [each for each in self.records if each.kind == "store-write" and each.ok]
        if writes and self.chance(0.7):
            write = self.random.choice(writes[-4:])
            fields = {key: value for key, value in write.__dict__.items() if key not in ("index", "mono_ns", "kind")}
            self.add("store-write", **fields)
            self.version[write.object] += 1
        else:
            name = self.random.choice(OBJECTS)
            token = self.random.choice((0, 0, self.random.randint(-2, 5)))
            base = self.base(client, name)
            outcome, name = ("unknown", "") if self.chance(0.1) else ("ok", name)
            self.add("store-write", actor=self.store, outcome=outcome, object=name, extra=base, token=token)
            self.version[name] = self.version.get(name, 0) + 1

    def fault(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.choice(("fault-inject", "fault-prove", "fault-prove"))
            outcome = self.random.choice(("ok", "ok", "unknown", "refused"))
            name = self.random.choice(FAULTS)
            self.add(kind, actor="driver", name=name, outcome=outcome, value=self.random.choice((1, 3)))

    def tear(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            if self.records:
                place = self.random.randrange(len(self.records))
                self.records[place] = OracleRecord(self.records[place].index, "torn")

    def spoil(self) -> None:
        """Makes the history invalid: a clock that goes back, an invalid grant, operations out of order or about
        another lock."""
        whole = [place for place, each in enumerate(self.records) if each.kind in OPERATIONS]
        if len(whole) < 2:
            return
        place, other = sorted(self.random.sample(whole, 2))
        one, two = self.records[place], self.records[other]
        way = self.random.randrange(5)
        if way == 0:
            self.records[other] = replace(two, mono_ns=self.random.randint(1, max(1, two.mono_ns)))
        elif way == 1:
            self.records[other] = replace(two, grant=one.index)
        elif way == 2:
            self.records[place], self.records[other] = replace(two, index=one.index), replace(one, index=two.index)
        elif way == 3 and two.name:
            self.records[other] = replace(two, name=self.random.choice(self.locks))
        else:
            self.records[other] = replace(two, op=self.random.randint(0, 9))

    def text(self) -> str:
        """The history as JSON Lines."""
        names: list[Json] = [{"kind": "text", "text": name} for name in self.names]
        lines: list[Json] = [{"history": "lockstorm", "version": 1}, {"kind": "note"}, *names]
        lines += [record.line() for record in self.records]
        return "".join(json.dumps(line) + "\n" for line in lines)


class ManyWriters:
    """Many writers, whose updates of one register overlap: acknowledged or not, overwritten in any order."""

    names: ClassVar[list[str]] = [*"ABCDEFGH", "stock", "store"]

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.records: History = []
        self.asked = dict.fromkeys(self.names[:8], 0)  # its operation in flight, 0: none
        self.done = dict.fromkeys(self.names[:8], 0)
        self.version = 0
        self.add("acquire-return", actor="A", name="stock", outcome="ok")
        for _ in range(self.random.choice((20, 40))):
            self.step(self.random.choice(self.names[:8]))

    def add(self, kind: str, **values: Any) -> None:
        index = 1 + 2 * len(self.names) + len(self.records)
        self.records.append(OracleRecord(index, kind, **values))

    def step(self, client: str) -> None:
        if self.asked[client] and self.random.random() < 0.4:
            outcome = self.random.choice(("ok", "ok", "ok", "unknown"))
            self.add("write-return", object="register", actor=client, op=self.asked[client], outcome=outcome)
            self.asked[client] = 0
            return
        self.done[client] += 1
        self.asked[client] = self.done[client]
        base = self.random.choice((-1, -1, self.version, self.version, self.random.randint(0, self.version)))
        written = {"name": client, "op": self.done[client], "object": "register", "extra": base}
        self.add("store-write", actor="store", outcome="ok", **written)
        self.version += 1
