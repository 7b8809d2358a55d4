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
    MADE,
    OPERATIONS,
    REENTRANT,
    RENEWS,
    TOKEN,
    History,
    Json,
    OracleRecord,
    is_access,
    is_grant,
)

OBJECTS = ("register", "counter")
FAULTS = ("pause-client", "clock-step")
MS = 10**6
OUTCOMES = ("refused", "ok")


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


class RandomHistory:
    """One history; `records` in order."""

    def __init__(self, seed: int) -> None:
        self.random = rng = random.Random(seed)
        self.clients = [SimulatedClient(name) for name in "ABCD"[: rng.randint(2, 4)]]
        self.locks = ["stock", "cash"][: rng.choice((1, 1, 1, 2))]
        self.names = [*(client.name for client in self.clients), *self.locks, *FAULTS]
        self.names += ["storm", "quiet", "bound_ms", "keys", "store", "driver"]
        self.records: History = []
        self.next = 1 + 2 * len(self.names)
        self.traits = rng.choice((0, 0, TOKEN, TOKEN, TOKEN)) | rng.choice((0, 0, REENTRANT))
        self.traits |= rng.choice((0, 0, FAIR)) | rng.choice((0, 0, RENEWS))
        self.permits = rng.choice((0, 1, 1, 1, 2, 3))
        self.lease_ms = rng.choice((0, 0, 10, 30))
        self.stated = self.lease_ms > 0 and self.chance(0.6)
        self.jitter = rng.choice((0, 0, 2))
        self.careful = rng.choice((0.0, 0.5, 0.9, 1.0))
        self.honest = rng.choice((0.6, 0.9, 1.0))
        self.sound = rng.choice((0.5, 0.9, 1.0))
        self.reliable = rng.choice((0.6, 0.9, 1.0))
        self.fences = self.chance(0.3)
        self.patient = self.chance(0.5)
        self.neglected = rng.choice(self.clients) if self.chance(0.4) else None
        self.brisk = self.chance(0.6 if self.traits & FAIR else 0.1)  # uses only the lock, not the store
        self.mono_ns = rng.choice((0, 10**9))
        self.newest = dict.fromkeys(self.locks, 0)
        self.version = dict.fromkeys(OBJECTS, 0)
        self.late: list[OracleRecord] = []
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
        if self.chance(0.15):
            self.add("parameter", name="bound_ms", value=self.random.choice((0, 3, 10)))
        if self.chance(0.9):
            self.open()
        length = 45 if self.brisk else self.random.choice((3, 10, 20, 30, 45))
        calm = self.random.randrange(2 * length)
        if self.chance(0.4):
            calm = 0
        for step in range(length):
            if step == calm:
                self.add("phase", name=self.random.choice(("quiet", "quiet", "quiet", "storm")))
            self.step(self.random.choice(self.clients))
        if self.chance(0.08):
            self.fault()
        if self.chance(0.15):
            self.add("residue", name="keys", value=self.random.choice((0, 0, 2)))
        if self.chance(0.1):
            self.tear()
        elif self.chance(0.08):
            self.spoil()

    def open(self) -> None:
        for client in self.clients:
            for lock in self.locks:
                self.add("lock-open", client, name=lock, value=self.lease_ms, extra=self.traits, token=self.permits)

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
        kinds = [self.exit, self.validity, self.validity, self.noise, self.again, self.stray]
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
        self.ask(client, "write-invoke", object=self.random.choice(OBJECTS), value=self.random.randint(0, 99))

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
            client.haunted = self.stated and self.chance(0.2)
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
        lock = asked.name
        if client is self.neglected and self.chance(0.8):
            return
        outcome = "ok" if self.chance(self.reliable) else self.random.choice(("refused", "unknown"))
        if self.believers(lock) >= max(1, self.permits) and self.chance(self.careful):
            if self.patient or self.chance(0.5):
                return
            outcome = "refused"
        until = self.mono_ns + self.random.randint(1, 25) * MS if self.stated and self.chance(0.9) else 0
        if self.stated and self.chance(0.03):
            until = self.mono_ns
        token = self.token(client, lock) if self.traits & TOKEN else 0
        client.asked = None
        answer = self.add("acquire-return", client, name=lock, op=asked.op, outcome=outcome, token=token, value=until)
        if is_grant(answer):
            client.held = (
                client.held if self.traits & REENTRANT else [each for each in client.held if each.name != lock]
            )
            client.held.append(answer)

    def token(self, client: SimulatedClient, lock: str) -> int:
        mine = [each.token for each in client.held if each.name == lock]
        if self.traits & REENTRANT and mine and self.chance(0.8):
            return mine[-1]
        if self.chance(self.honest):
            self.newest[lock] += self.random.randint(1, 2)
            return self.newest[lock]
        return max(0, self.newest[lock] + self.random.randint(-3, 2))

    def access(self, client: SimulatedClient, asked: OracleRecord) -> OracleRecord:
        """Adds the store's record of an access: under the newest grant, an older one of the client, or none."""
        grants = [each for each in self.records if is_grant(each) and each.actor == client.name]
        grant = client.held[-1] if client.held else self.random.choice(grants) if grants else None
        if self.chance(0.05):
            grant = None
        token = grant.token if grant else self.random.choice((0, 0, self.random.randint(1, 5)))
        newest = max((each.token for each in self.records if is_access(each) and each.ok), default=0)
        refused = self.fences and token < newest and self.chance(0.8)
        write = asked.kind == "write-invoke"
        atomic = write and asked.object == "counter" and self.chance(0.2)
        stored = self.add(
            "store-write" if write else "store-read",
            actor="store",
            name=client.name,
            object=asked.object,
            op=asked.op,
            grant=grant.index if grant else 0,
            token=token,
            outcome="refused" if refused else "ok",
            flags=(FENCED if refused else 0) | (ATOMIC if atomic else 0),
            value=asked.value,
            extra=self.base(client, asked.object) if write and not atomic else self.version[asked.object],
        )
        if write:
            self.version[asked.object] += stored.ok
        elif stored.ok:
            client.seen[asked.object] = stored.extra
        return stored

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
        if self.stated or self.chance(0.1):
            lock, _ = self.under(client)
            until = self.random.choice((self.mono_ns + self.random.randint(-5, 25) * MS, self.mono_ns, 0, FOR_EVER))
            valid = self.chance(0.5) if self.chance(0.2) else until > self.mono_ns
            host_clock = int(valid and self.chance(0.1))
            self.add("validity", client, name=lock, value=until, outcome=OUTCOMES[valid], extra=host_clock)

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
            value=self.random.choice((0, 0, 20, -1)),
            flags=self.random.choice((0, 0, 0, MADE)),
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
            outcome = self.random.choice(("ok", "ok", "refused", "unknown"))
            token = self.token(client, self.locks[0]) if self.traits & TOKEN and kind == "acquire-return" else 0
            self.add(
                kind, client, name=self.locks[0], op=self.random.choice((0, client.op)), outcome=outcome, token=token
            )

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
            self.add("store-write", actor="store", outcome="ok", object=name, extra=self.base(client, name))
            self.version[name] += 1

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
        """Makes the history invalid: a clock that goes back, a grant that is none, or operations out of order."""
        whole = [place for place, each in enumerate(self.records) if each.kind in OPERATIONS]
        if len(whole) < 2:
            return
        place, other = sorted(self.random.sample(whole, 2))
        one, two = self.records[place], self.records[other]
        way = self.random.randrange(4)
        if way == 0:
            self.records[other] = replace(two, mono_ns=self.random.randint(1, max(1, two.mono_ns)))
        elif way == 1:
            self.records[other] = replace(two, grant=one.index)
        elif way == 2:
            self.records[place], self.records[other] = replace(two, index=one.index), replace(one, index=two.index)
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
