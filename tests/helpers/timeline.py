"""Histories in one line: what happened, word by word, for cases that are written by hand (tests/timelines/*.txt).

Clients are capital letters, one lock is called stock; `A.cash+` is about another. Every word takes a millisecond, but
`@40` lets the next stand at 40 ms.

    A?  A!  A+    asks for the lock; is granted it; both. `A!7/30`: with token 7, valid until 30 ms; `A!x` refused,
                  `A!~` unknown; `A!^12`: not granted before 12 ms. `A?5`: waits for 5 ms at most
    A<  A>  A-    releases; is answered ok; both. `A>x` refused, `A>~` unknown
    A(  A)  A=    renews; is answered ok; both. `A)x`, `A)~`
    A/30          the lock announces a validity until 30 ms; `A/30x` refused: the lock is lost;
                  `A/30d`: the driver has recorded it
    Ah            a server hears a renewal that A sends now, and lengthens A's key. `Ahx`: it has no key of A's;
                  `AhB`: it lengthens B's; `Ahm`: it makes a key of A's; `Ahe`: A's has no end,
                  `Ahs`: no mark of A's; `Ah<`, `Ahm<`: A had sent it before its latest
                  operation
    Ar            reads the register
    Aw            writes what it computed from the version it read last. `Aw~`: its outcome stays unknown to the writer,
                  `Aw,`: the answer is not there yet, `Aw.`: there it is, `Awx`: refused, the token is too old,
                  `Awb`: not computed from anything; `Awl`: only the store's record, under the grant before the latest;
                  `Awt7`: with token 7 and no grant, not computed from anything
    Aa            lets the store add to the counter; `Aa2`: and the network delivers it twice
    A*            its process ends
    quiet  storm  a phase begins;  bound=5  is the parameter bound_ms, order=5 order_ms;  keys=2  are left behind
    torn          a record that is not whole
    hurt=A  hurt+A  a fault, and its proof
    {lease=30 permits=2 tokens reentrant fair renews}   the traits of the lock, before anything else;
                  `unnumbered`: no operation has a number, so a client may ask for two things at once
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.helpers.checker_oracle import (
    ATOMIC,
    FAIR,
    FENCED,
    MADE,
    MARKED,
    PROLONGED,
    REENTRANT,
    RENEWS,
    TOKEN,
    History,
    OracleRecord,
)

MS = 10**6
WORD = re.compile(r"([A-Z])(?:\.([a-z]+))?([?!+<>()=/hrwa*-])(.*)")
TRAITS = {"tokens": TOKEN, "reentrant": REENTRANT, "fair": FAIR, "renews": RENEWS, "lease": 1}
OUTCOMES = {"": "ok", "x": "refused", "~": "unknown"}
NAMES = [*"ABCDEF", "stock", "cash", "quiet", "storm", "bound_ms", "order_ms", "keys", "hurt", "store"]


@dataclass
class Side:
    op: int = 0
    grants: list[OracleRecord] = field(default_factory=list)  # all it was given
    held: list[OracleRecord] = field(default_factory=list)
    base: int = -1
    stored: OracleRecord | None = None


class Timeline:
    names = NAMES

    def __init__(self, text: str) -> None:
        self.records: History = []
        self.sides = {name: Side() for name in "ABCDEF"}
        self.versions = {"register": 0, "counter": 0}
        self.now_ms = 0
        opened, _, words = text.strip().rpartition("}")
        self.clients = sorted(set(re.findall(r"[A-F](?=[.?!+<>()=/hrwa*-])", words)))
        if opened:
            self.open(opened.strip("{ ").split())
        for word in words.split():
            self.tell(word)
        if "unnumbered" in opened:
            self.records = [replace(each, op=0) for each in self.records]

    def add(self, kind: str, **values: Any) -> OracleRecord:
        self.now_ms += 1
        record = OracleRecord(1 + 2 * len(NAMES) + len(self.records), kind, mono_ns=self.now_ms * MS, **values)
        self.records.append(record)
        return record

    def open(self, said: list[str]) -> None:
        settings = dict(each.partition("=")[::2] for each in said)
        traits = sum(TRAITS[each] for each in settings if each not in ("permits", "unnumbered"))
        for client in self.clients:
            for lock in ("stock", "cash"):
                lease = int(settings.get("lease", 0))
                permits = int(settings.get("permits", 1))
                self.add("lock-open", actor=client, name=lock, extra=traits, value=lease, token=permits)
        self.now_ms = 0

    def tell(self, word: str) -> None:
        key, _, value = word.partition("=")
        if word.startswith("@"):
            self.now_ms = int(word[1:]) - 1
        elif word in ("quiet", "storm"):
            self.add("phase", name=word)
        elif word == "torn":
            self.records.append(OracleRecord(1 + 2 * len(NAMES) + len(self.records), "torn"))
        elif word.startswith("hurt"):
            self.add("fault-prove" if word[4] == "+" else "fault-inject", name="hurt", outcome="ok", value=ord(word[5]))
        elif key in ("bound", "order"):
            self.add("parameter", name=f"{key}_ms", value=int(value))
        elif key == "keys":
            self.add("residue", name="keys", value=int(value))
        else:
            found = WORD.fullmatch(word)
            assert found, f"what is {word!r}?"
            client, lock, verb, rest = found.groups()
            self.act(client, lock or "stock", verb, rest)

    def act(self, client: str, lock: str, verb: str, rest: str) -> None:
        if verb == "?":
            self.ask(client, "acquire", lock, value=int(rest or -1))
        elif verb == "!":
            self.granted(client, lock, rest)
        elif verb == "+":
            self.ask(client, "acquire", lock, value=-1)
            self.granted(client, lock, rest)
        elif verb in "<-":
            held = [each for each in self.sides[client].held if each.name == lock]
            self.ask(client, "release", lock, grant=held[-1].index if held else 0)
        elif verb in "(=":
            self.ask(client, "renew", lock)
        if verb in ">-":
            self.answer(client, "release", lock, rest)
            mine = [each for each in self.sides[client].held if each.name == lock]
            self.sides[client].held = [each for each in self.sides[client].held if each not in mine[-1:]]
        elif verb in ")=":
            self.answer(client, "renew", lock, rest)
        elif verb == "/":
            outcome = "refused" if rest.endswith("x") else "ok"
            driver = int(rest.endswith("d"))
            self.add(
                "validity", actor=client, name=lock, value=int(rest.strip("xd")) * MS, outcome=outcome, extra=driver
            )
        elif verb == "h":
            self.hear(client, lock, rest)
        elif verb in "rwa":
            self.use(client, verb, rest)
        elif verb == "*":
            self.add("actor-exit", name=client)
            self.sides[client] = Side(grants=self.sides[client].grants)

    def ask(self, client: str, what: str, lock: str, **values: Any) -> None:
        self.sides[client].op += 1
        self.add(f"{what}-invoke", actor=client, name=lock, op=self.sides[client].op, **values)

    def answer(self, client: str, what: str, lock: str, rest: str, **values: Any) -> OracleRecord:
        outcome = OUTCOMES[rest]
        return self.add(f"{what}-return", actor=client, name=lock, op=self.sides[client].op, outcome=outcome, **values)

    def granted(self, client: str, lock: str, rest: str) -> None:
        found = re.fullmatch(r"(-?\d*)(?:/(\d+))?(?:\^(\d+))?([x~]?)", rest)
        assert found, f"what is {client}!{rest}?"
        token, until, since, outcome = found.groups()
        side = self.sides[client]
        stamps = {"value": int(until or 0) * MS, "extra": int(since or 0) * MS}
        grant = self.answer(client, "acquire", lock, outcome, token=int(token or 0), **stamps)
        if grant.ok:
            side.grants.append(grant)
            side.held.append(grant)

    def hear(self, client: str, lock: str, rest: str) -> None:
        side, earlier, rest = self.sides[client], rest.endswith("<"), rest.strip("<")
        long = re.fullmatch(r"(s?)([lo])(\d+)", rest)  # a key that it prolonged, or one that lived as long before
        what = long[1] if long else rest
        flags = (MADE if what == "m" else 0) + (MARKED if what != "s" else 0)
        value = {"": 30, "m": 30, "s": 30, "e": -1}.get(what, 0)
        held = [each for each in (side.grants if earlier else side.held) if each.name == lock]
        self.add(
            "server-renewal",
            actor=client,
            name=lock,
            outcome="refused" if what == "x" else "ok",
            op=side.op - earlier,
            grant=held[-1].index if held else 0,
            value=int(long[3]) if long else value,
            flags=flags + (PROLONGED if long and long[2] == "l" else 0),
            extra=1 + 2 * NAMES.index(what) if what in [*"ABCDEF"] else 0,
        )

    def use(self, client: str, verb: str, rest: str) -> None:
        side = self.sides[client]
        name = "counter" if verb == "a" else "register"
        kind = "read" if verb == "r" else "write"
        if rest == ".":
            assert side.stored
            self.add("write-return", actor=client, object=name, op=side.stored.op, outcome="ok")
            return
        grant = side.grants[-2 if rest == "l" else -1] if side.grants else None
        token = grant.token if grant else 0
        if rest.startswith("t"):
            grant, token, rest = None, int(rest[1:]), "b"
        side.op += rest != "l"
        access: dict[str, Any] = {
            "object": name,
            "op": side.op,
            "grant": grant.index if grant else 0,
            "token": token,
        }
        if rest != "l":
            self.add(f"{kind}-invoke", actor=client, **access)
        refused = rest == "x"
        stored = self.add(
            f"store-{kind}",
            actor="store",
            name=client,
            outcome="refused" if refused else "ok",
            flags=(ATOMIC if verb == "a" else 0) | (FENCED if refused else 0),
            extra=self.versions[name] if verb in "ra" else -1 if rest == "b" else side.base,
            **access,
        )
        side.stored = stored
        if kind == "read":
            side.base = self.versions[name]
        elif not refused:
            self.versions[name] += 1
            side.base = self.versions[name]
        if rest not in (",", "l"):
            outcome = "refused" if refused else "unknown" if rest == "~" else "ok"
            self.add(f"{kind}-return", actor=client, outcome=outcome, **{**access, "grant": 0, "token": 0})
        if rest == "2":
            again = replace(stored, index=1 + 2 * len(NAMES) + len(self.records))
            self.records.append(replace(again, mono_ns=self.now_ms * MS))
            self.versions[name] += 1


@dataclass(frozen=True)
class TimelineCase:
    """A line of a file: the expected verdict on its property, by policy, and what happened."""

    property: str
    place: str
    verdicts: dict[tuple[str, str], tuple[str, int | None]]
    about: str
    timeline: str


STATUSES = {"good": "holds", "bad": "violated", "open": "inconclusive"}
POLICIES = {
    "": ("released", "not-happened"),
    "not-happened": ("not-happened", "not-happened"),
    "unknown": ("unknown", "not-happened"),
    "acquire-unknown": ("released", "unknown"),
    "both-unknown": ("unknown", "unknown"),
}


def verdict(text: str) -> tuple[tuple[str, str], tuple[str, int | None]]:
    """ "bad 2", "unknown: open" """
    policy, _, said = text.rpartition(":")
    status, _, count = said.strip().partition(" ")
    return POLICIES[policy.strip()], (STATUSES[status], int(count) if count else None)


def cases(directory: Path) -> list[TimelineCase]:
    """The lines `verdict; verdict | about | timeline` of a directory's files, each named after its property."""
    found = []
    for path in sorted(directory.glob("*.txt")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                verdicts, about, timeline = (part.strip() for part in line.split("|"))
                said = dict(verdict(each) for each in verdicts.split(";"))
                found.append(TimelineCase(path.stem, f"{path.name}:{number}", said, about, timeline))
    return found
