"""The checkers against histories written by hand, and against definitions turned into Python as they stand.

A hand-written history is a file of tests/histories: its first line says what it shows and what the verdict must be, the
rest is a history as JSON Lines. The oracle below follows the sentences in the headers of checkers/*.c record by record,
without streaming and without a thought for speed; random small histories must get the same verdict from both.

    LOCKSTORM_ORACLE_HISTORIES=20000   how many random histories
    LOCKSTORM_ORACLE_FIRST=1234        the first one's seed (a failure names the seed)
"""

import json
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest

from harness.driver import paths

HISTORIES = sorted((paths.ROOT / "tests" / "histories").glob("*.jsonl"))
ORACLE_HISTORIES = int(os.environ.get("LOCKSTORM_ORACLE_HISTORIES", "1600"))
ORACLE_FIRST = int(os.environ.get("LOCKSTORM_ORACLE_FIRST", "0"))
BATCHES = 8
PROPERTIES = ("mutual_exclusion", "integrity", "fencing")
STALE_WRITES, LOST_UPDATES = "stale_writes", "lost_updates"
EVIDENCE_KEPT = 8

TRAIT_TOKEN, TRAIT_REENTRANT = 2, 4
FLAG_ATOMIC, FLAG_FENCED = 2, 4

Said = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """One record as the oracle sees it; names are strings."""

    index: int
    kind: str
    outcome: str = "unknown"
    object: str = ""
    flags: int = 0
    actor: str = ""
    name: str = ""
    mono_ns: int = 0
    op: int = 0
    grant: int = 0
    token: int = 0
    value: int = 0
    extra: int = 0

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    def line(self) -> Said:
        """Its JSON form: what differs from the default."""
        said = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "index"}
        return {"index": self.index} | {key: value for key, value in said.items() if value not in (0, "", "unknown")}


History = list[Record]


def check(path: Path, *words: str) -> tuple[int, Said]:
    done = subprocess.run([paths.program("check"), *words, str(path)], capture_output=True, text=True, timeout=60)
    assert done.stdout, (path, done.returncode, done.stderr)
    said: Said = json.loads(done.stdout)
    assert said["exit"] == done.returncode
    assert done.stderr == ""
    return done.returncode, said


def evidence_faults(said: Said, history: History, actors: set[str]) -> Iterator[str]:
    """What is wrong with the evidence of a verdict."""
    by_index = {each.index: each for each in history}
    for name, verdict in said["verdict"].items():
        pieces = verdict["evidence"]
        if (verdict["status"] == "violated") != bool(pieces) or (verdict["count"] > 0) != bool(pieces):
            yield f"{name} is {verdict['status']} with {len(pieces)} pieces of evidence"
        # One overwrite may lose several updates.
        least = verdict[STALE_WRITES] + (verdict[LOST_UPDATES] > 0) if name == "integrity" else verdict["count"]
        if not min(least, EVIDENCE_KEPT) <= len(pieces) <= min(verdict["count"], EVIDENCE_KEPT):
            yield f"{name} has {len(pieces)} pieces of evidence for {verdict['count']} violations"
        for piece in pieces:
            found = [by_index[index] for index in piece["records"] if index in by_index]
            if not found or [each.index for each in found] != piece["records"] or not shows(history, name, found):
                yield f"{name} is not shown by {piece['records']}: {found}"
            if not any(actor in piece["text"] for actor in actors):
                yield f"{name} names nobody: {piece['text']}"


# --- written by hand ---


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_history_written_by_hand(path: Path, tmp_path: Path) -> None:
    first, *rest = path.read_text().splitlines(keepends=True)
    about = json.loads(first)
    assert set(about) == {"about", "expect"}, f"the first line of {path.name}"
    expected = about["expect"]
    assert {*PROPERTIES, "exit"} <= set(expected), f"the first line of {path.name}"
    history = tmp_path / path.name
    history.write_text("".join(rest))
    status, said = check(history)

    for name in PROPERTIES:
        assert said["verdict"][name]["status"] == expected.pop(name), (name, about["about"], said)
    assert status == expected.pop("exit"), (about["about"], said)
    for key, value in expected.items():
        assert found(said, key) == value, (key, about["about"], said)

    records = [record_of(line) for line in through_binary(history, tmp_path)]
    assert list(evidence_faults(said, records, {each.actor for each in records} - {""})) == []
    assert summary(said) == judged(records), "the oracle judges it otherwise"


def record_of(line: Said) -> Record:
    known = {each.name for each in fields(Record)}
    return Record(**{key: value for key, value in line.items() if key in known})


def found(said: Said, key: str) -> Any:
    """A count by the name that a first line gives it: "overlaps", "stale_writes", "fenced", "torn", …"""
    verdict = said["verdict"]
    named = {
        "overlaps": verdict["mutual_exclusion"]["count"],
        STALE_WRITES: verdict["integrity"][STALE_WRITES],
        LOST_UPDATES: verdict["integrity"][LOST_UPDATES],
        "fenced": verdict["integrity"].get("fenced", 0),
        "token_faults": verdict["fencing"]["count"],
    }
    return named[key] if key in named else said[key]


def through_binary(history: Path, tmp_path: Path) -> list[Said]:
    """The lines of a history with every index written out."""
    if not history.stat().st_size:
        return []
    tool, binary = paths.program("history"), tmp_path / "binary"
    subprocess.run([tool, "from-json", str(history), str(binary)], check=True, timeout=60)
    done = subprocess.run([tool, "to-json", str(binary)], check=True, capture_output=True, text=True, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()[1:]]


def test_each_property_is_shown_good_and_bad() -> None:
    expected = [json.loads(path.read_text().splitlines()[0])["expect"] for path in HISTORIES]
    assert len(expected) >= 40
    for name in PROPERTIES:
        for status in ("holds", "violated", "inconclusive"):
            assert sum(each[name] == status for each in expected) >= 8, (name, status)


def test_requiring_one_property_leaves_the_others_out(tmp_path: Path) -> None:
    """Mutual exclusion is violated, the fence holds the damage off: the exit status follows what was asked for."""
    source = paths.ROOT / "tests" / "histories" / "fenced-stale-write.jsonl"
    history = tmp_path / "history.jsonl"
    history.write_text(source.read_text().split("\n", 1)[1])
    assert check(history)[0] == 1
    assert check(history, "--require", "integrity,fencing")[0] == 0
    assert check(history, "--require", "mutual-exclusion")[0] == 1
    assert check(history, "--require=mutual_exclusion,integrity")[0] == 1
    assert check(history, "--require", "integrity")[1]["required"] == ["integrity"]


# --- the oracle: definitions, nothing else ---


def traits(history: History, lock: str) -> int:
    return max((each.extra for each in history if each.kind == "lock-open" and each.name == lock), default=0)


def permits(history: History, lock: str) -> int:
    return max((each.token for each in history if each.kind == "lock-open" and each.name == lock), default=0) or 1


def is_grant(record: Record) -> bool:
    return record.kind == "acquire-return" and record.ok


def hold(history: History, actor: str, lock: str, at: Record, lapses: bool = True) -> list[Record]:
    """The grants of a belief that stands just before a record; more than one only where the lock is re-entrant, and
    then it ends with as many releases. A belief whose stamp is past at any grant of the lock is over for good."""
    held: list[Record] = []
    released = 0
    reentrant = traits(history, lock) & TRAIT_REENTRANT
    for each in history:
        if each.index >= at.index:
            break
        if lapses and is_grant(each) and each.name == lock:
            held = alive(held, each)
        if is_grant(each) and (each.actor, each.name) == (actor, lock):
            held = [*held, each] if reentrant else [each]
            released = released if len(held) > 1 else 0
        elif each.kind == "release-invoke" and (each.actor, each.name) == (actor, lock):
            released += 1
            held = held if released < len(held) else []
        elif each.kind == "actor-exit" and each.name == actor:
            held = []
    return alive(held, at) if lapses else held


def alive(held: list[Record], at: Record) -> list[Record]:
    """Nothing, when the lock itself has stopped believing: what it said last counts."""
    return [] if held and 0 < latest(held).value <= at.mono_ns else held


def latest(held: list[Record]) -> Record:
    return max(held, key=lambda each: each.index)


def overlaps(history: History) -> int:
    """Grants that found the room full."""
    count = 0
    for grant in filter(is_grant, history):
        if hold(history, grant.actor, grant.name, grant):
            continue  # no new belief begins
        others = {each.actor for each in history if is_grant(each)} - {grant.actor}
        holders = [other for other in others if hold(history, other, grant.name, grant)]
        count += len(holders) >= permits(history, grant.name)
    return count


def is_access(record: Record) -> bool:
    return record.kind in ("store-read", "store-write")


def accepted_writes(history: History) -> list[Record]:
    return [each for each in history if each.kind == "store-write" and each.ok and each.object]


def older(one: Record, other: Record) -> bool:
    """Grants are ordered by token, then by their index."""
    if one.token and other.token and one.token != other.token:
        return one.token < other.token
    return one.grant < other.grant


def stale_writes(history: History) -> int:
    writes = [each for each in accepted_writes(history) if each.grant]
    return sum(any(early.index < late.index and older(late, early) for early in writes) for late in writes)


def lost_updates(history: History) -> int:
    """An update is lost when a later write was computed from a version before it, and its writer was told that it was
    accepted."""
    count = 0
    for update in accepted_writes(history):
        same = [each for each in accepted_writes(history) if each.object == update.object]
        version = 1 + sum(each.index < update.index for each in same)
        overwritten = any(
            each.index > update.index and not each.flags & FLAG_ATOMIC and 0 <= each.extra < version
            for each in same
            if each not in same[version : version + 1] or not delivered_again(update, each)
        )
        count += overwritten and told(history, update)
    return count


def token_grants(history: History) -> list[Record]:
    return [each for each in history if is_grant(each) and (each.token or traits(history, each.name) & TRAIT_TOKEN)]


def asked_at(history: History, grant: Record) -> int:
    """The index at which the acquire of a grant was invoked."""
    at = grant.index
    for each in history:
        if each.index < grant.index and (each.actor, each.name) == (grant.actor, grant.name):
            if each.kind == "acquire-invoke":
                at = each.index
            elif each.kind == "acquire-return":
                at = grant.index
    return at


def token_faults(history: History) -> int:
    count = 0
    for grant in token_grants(history):
        before = [each for each in token_grants(history) if each.name == grant.name and each.index < grant.index]
        known = [each.token for each in before if each.index < asked_at(history, grant)]
        mine = hold(history, grant.actor, grant.name, grant, lapses=False)
        reentry = mine and traits(history, grant.name) & TRAIT_REENTRANT and latest(mine).token == grant.token
        if grant.token == 0:
            count += 1
        elif reentry:
            count += any(token > grant.token for token in known)
        else:
            count += any(each.token == grant.token for each in before) or any(t > grant.token for t in known)
    return count


def stale_accesses(history: History) -> int:
    accesses = [each for each in history if is_access(each) and each.ok and each.token]
    return sum(any(e.index < late.index and e.token > late.token for e in accesses) for late in accesses)


def delivered_again(write: Record, after: Record) -> bool:
    """Whether the write right after another is the same one, which the network repeated."""
    return write.op != 0 and (write.name, write.op) == (after.name, after.op)


def told(history: History, write: Record) -> bool:
    """Whether the writer of an accepted write was told of it; strangers are, as far as anybody knows."""
    return not write.op or any(
        each.kind == "write-return"
        and each.ok
        and (each.actor, each.op, each.object) == (write.name, write.op, write.object)
        for each in history
    )


def shows(history: History, name: str, shown: list[Record]) -> bool:
    """Whether these records, taken by themselves, are a violation."""
    *before, last = shown
    if name == "mutual_exclusion":
        holders = {each.actor for each in before if each in hold(history, each.actor, last.name, last)}
        return is_grant(last) and last.actor not in holders and len(holders) == min(permits(history, last.name), 3)
    if len(shown) == 4:
        late_grant, early_grant, early, late = shown
        indices = (late_grant.index, early_grant.index, early.index)
        return older(late, early) and indices == (late.grant, early.grant, min(early.index, late.index))
    if name == "integrity":
        update = before[0]
        same = [each for each in accepted_writes(history) if each.object == update.object]
        return told(history, update) and update in same and last in same and 0 <= last.extra <= same.index(update)
    if not before:
        return is_grant(last) and last.token == 0
    earlier = before[0]
    if is_grant(last):
        known = earlier.index < asked_at(history, last) and earlier.token > last.token
        return is_grant(earlier) and earlier.name == last.name and (known or earlier.token == last.token)
    return is_access(earlier) and is_access(last) and earlier.token > last.token


def unproved(history: History) -> bool:
    """Some injection was not seen to take effect before the same fault was injected again."""
    injections = [each for each in history if each.kind == "fault-inject"]
    for injection in injections:
        proofs = [each for each in history if each.kind == "fault-prove" and each.ok and each.index > injection.index]
        again = [each for each in injections if each.index > injection.index and same_fault(each, injection)]
        end = again[0].index if again else 10**9
        if not any(same_fault(each, injection) and each.index < end for each in proofs):
            return True
    return False


def same_fault(one: Record, other: Record) -> bool:
    return (one.name, one.value) == (other.name, other.value)


def judged(history: History) -> Said:
    """What `check` must say, in the form of summary()."""
    grants = sum(map(is_grant, history))
    torn = sum(each.kind == "torn" for each in history)
    unfit = torn or not grants or unproved(history)
    stored = [each for each in history if is_access(each) and each.object]
    counts = {
        "mutual_exclusion": overlaps(history),
        "integrity": stale_writes(history) + lost_updates(history),
        "fencing": token_faults(history) + stale_accesses(history),
    }
    seen = {"mutual_exclusion": grants, "integrity": len(stored), "fencing": len(token_grants(history))}
    with_tokens = any(
        each.extra & TRAIT_TOKEN if each.kind == "lock-open" else each.token
        for each in history
        if each.kind in ("lock-open", "acquire-return") or is_access(each)
    )
    status = {
        name: "violated" if counts[name] else "holds" if seen[name] and not unfit else "inconclusive"
        for name in PROPERTIES
    }
    required = [name for name in PROPERTIES if name != "fencing" or with_tokens]
    found = {status[name] for name in required}
    return {
        "status": status,
        "count": counts,
        STALE_WRITES: stale_writes(history),
        LOST_UPDATES: lost_updates(history),
        "fenced": {
            "integrity": sum(each.kind == "store-write" and each.outcome == "refused" for each in stored),
            "fencing": sum(is_access(each) and each.outcome == "refused" for each in history),
        },
        "required": required,
        "grants": grants,
        "torn": torn,
        "exit": 1 if "violated" in found else 3 if "inconclusive" in found else 0,
    }


def summary(said: Said) -> Said:
    verdict = said["verdict"]
    return {
        "status": {name: verdict[name]["status"] for name in PROPERTIES},
        "count": {name: verdict[name]["count"] for name in PROPERTIES},
        STALE_WRITES: verdict["integrity"][STALE_WRITES],
        LOST_UPDATES: verdict["integrity"][LOST_UPDATES],
        "fenced": {name: verdict[name].get("fenced", 0) for name in ("integrity", "fencing")},
        "required": said["required"],
        "grants": said["grants"],
        "torn": said["torn"],
        "exit": said["exit"],
    }


# --- random histories ---

OBJECTS = ("register", "counter")
FAULTS = ("pause-client", "clock-step")


@dataclass
class Client:
    name: str
    op: int = 0
    asked: list[str] = field(default_factory=list)
    held: list[Record] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    writing: list[Record] = field(default_factory=list)


class Story:
    """A small history of a lock that is sometimes right, made from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.clients = [Client(name) for name in "ABCD"[: self.random.randint(2, 4)]]
        self.locks = ["stock", "cash"][: self.random.choice((1, 1, 1, 2))]
        self.names = [*(client.name for client in self.clients), *self.locks, *FAULTS]
        self.records: History = []
        self.next = 1 + 2 * len(self.names)
        self.tokens = self.random.choice((0, 0, TRAIT_TOKEN, TRAIT_TOKEN, TRAIT_TOKEN))
        self.reentrant = self.random.choice((0, 0, 0, TRAIT_REENTRANT))
        self.permits = self.random.choice((0, 1, 1, 2, 3))
        self.leases = self.random.random() < 0.4
        self.jitter = 0 if self.reentrant else self.random.choice((0, 0, 4))
        self.careful = self.random.choice((0.0, 0.0, 0.7, 1.0))
        self.honest = self.random.choice((0.6, 0.9, 1.0))
        self.sound = self.random.choice((0.5, 0.9, 1.0))
        self.fences = self.random.random() < 0.3
        self.mono_ns = self.random.choice((0, 10**9))
        self.newest = dict.fromkeys(self.locks, 0)
        self.version = dict.fromkeys(OBJECTS, 0)
        self.tell()

    def add(self, kind: str, **values: Any) -> Record:
        """Stamps go up, or nearly so, where leases depend on them, and mean nothing where none does."""
        self.mono_ns += self.random.randint(0, 3)
        stamp = self.mono_ns + self.random.randint(0, self.jitter) if self.leases else self.random.randint(0, 9)
        record = Record(self.next, kind, mono_ns=stamp, **values)
        self.records.append(record)
        self.next += 1
        return record

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def tell(self) -> None:
        if self.chance(0.9):
            for client in self.clients:
                for lock in self.locks:
                    open_traits = self.tokens | self.reentrant
                    self.add("lock-open", actor=client.name, name=lock, extra=open_traits, token=self.permits)
        steps: list[Any] = [self.acquire] * 4 + [self.granted] * 7 + [self.release] * 4
        steps += [self.read] * 2 + [self.write] * 5 + [self.told] * 3 + [self.exit, self.noise]
        for _ in range(self.random.choice((3, 10, 20, 30, 45, 60))):
            self.random.choice(steps)(self.random.choice(self.clients))
        if self.chance(0.08):
            self.fault()
        if self.chance(0.1):
            self.tear()

    def acquire(self, client: Client) -> None:
        lock = self.random.choice(self.locks)
        if lock not in client.asked or self.chance(0.05):
            client.asked.append(lock)
            self.add("acquire-invoke", actor=client.name, name=lock, value=-1)

    def believers(self, lock: str) -> int:
        held = (each for client in self.clients for each in client.held if each.name == lock)
        return len({each.actor for each in held if not 0 < each.value <= self.mono_ns})

    def granted(self, client: Client) -> None:
        if not client.asked and not self.chance(0.05):
            return
        lock = client.asked.pop() if client.asked else self.random.choice(self.locks)
        if self.believers(lock) >= max(1, self.permits) and self.chance(self.careful):
            client.asked.append(lock)
            return
        outcome = self.random.choices(("ok", "refused", "unknown"), (8, 1, 1))[0]
        until = self.mono_ns + self.random.randint(1, 25) if self.leases and self.chance(0.9) else 0
        token = self.token(client, lock) if self.tokens else 0
        grant = self.add("acquire-return", actor=client.name, name=lock, outcome=outcome, token=token, value=until)
        if grant.ok:
            client.held.append(grant)

    def token(self, client: Client, lock: str) -> int:
        mine = [each.token for each in client.held if each.name == lock]
        if self.reentrant and mine and self.chance(0.8):
            return mine[-1]
        if self.chance(self.honest):
            self.newest[lock] += self.random.randint(1, 2)
            return self.newest[lock]
        return max(0, self.newest[lock] + self.random.randint(-3, 2))

    def release(self, client: Client) -> None:
        grant = client.held.pop() if client.held else None
        if grant or self.chance(0.05):
            lock = grant.name if grant else self.random.choice(self.locks)
            index = grant.index if grant else 0
            self.add("release-invoke", actor=client.name, name=lock, grant=index)
            if self.chance(0.7):
                outcome = self.random.choice(("ok", "refused", "unknown"))
                self.add("release-return", actor=client.name, name=lock, grant=index, outcome=outcome)

    def access(self, client: Client, kind: str, **values: Any) -> Record:
        """By the newest grant, by an older one that the client forgot about, or by none."""
        grants = [each for each in self.records if is_grant(each) and each.actor == client.name]
        grant = client.held[-1] if client.held else self.random.choice(grants) if grants else None
        if self.chance(0.05):
            grant = None
        client.op += 1
        values |= {"op": client.op, "grant": grant.index if grant else 0, "token": grant.token if grant else 0}
        if not grant and self.chance(0.3):
            values["token"] = self.random.randint(1, 5)
        newest = max((each.token for each in self.records if is_access(each) and each.ok), default=0)
        refused = self.fences and values["token"] < newest and self.chance(0.8)
        outcome = {"outcome": "refused", "flags": FLAG_FENCED} if refused else {"outcome": "ok"}
        return self.add(kind, actor="store", name=client.name, **{**values, **outcome})

    def read(self, client: Client) -> None:
        name = self.random.choice(OBJECTS)
        if self.access(client, "store-read", object=name, extra=self.version[name]).ok:
            client.seen[name] = self.version[name]

    def base(self, client: Client, name: str) -> int:
        """The version that a write is computed from."""
        if self.chance(self.sound):
            return self.version[name]
        choices = (-1, client.seen.get(name, -1), self.random.randint(0, self.version[name] + 1), 0)
        return self.random.choice(choices)

    def write(self, client: Client) -> None:
        name = self.random.choice(OBJECTS)
        atomic = name == "counter" and self.chance(0.2)
        self.add("write-invoke", actor=client.name, object=name, op=client.op + 1)
        if self.chance(0.05):
            client.op += 1
            return  # lost on its way
        if self.chance(0.05):  # by somebody who is not of this trial
            self.add("store-write", outcome="ok", object=name, extra=self.base(client, name))
            self.version[name] += 1
            return
        base = self.version[name] if atomic else self.base(client, name)
        record = self.access(client, "store-write", object=name, extra=base, value=self.random.randint(0, 99))
        if atomic and record.ok:
            self.records[-1] = record = Record(**{**record.__dict__, "flags": FLAG_ATOMIC})
        client.writing.append(record)
        self.version[name] += record.ok
        if self.chance(0.6):
            self.told(client)

    def told(self, client: Client) -> None:
        if not client.writing or self.chance(0.1):
            return
        record = client.writing.pop(self.random.randrange(len(client.writing)))
        outcome = record.outcome if self.chance(0.8) else "unknown"
        self.add("write-return", actor=client.name, object=record.object, op=record.op, outcome=outcome)

    def exit(self, client: Client) -> None:
        if self.chance(0.4):
            self.add("actor-exit", actor="driver", name=client.name, value=9)
            client.asked.clear()
            client.held.clear()
            if self.chance(0.5):
                client.writing.clear()

    def noise(self, client: Client) -> None:
        kinds = ("note", "checkpoint", "clock", "renew-invoke", "renew-return", "fault-heal", "read-return")
        self.add(self.random.choice(kinds), actor=client.name, name=self.random.choice(self.names), value=7)

    def fault(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.choice(("fault-inject", "fault-prove", "fault-prove"))
            outcome = self.random.choice(("ok", "ok", "unknown"))
            name = self.random.choice(FAULTS)
            self.add(kind, actor="driver", name=name, outcome=outcome, value=self.random.choice((1, 3)))

    def tear(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randrange(len(self.records)) if self.records else -1
            if place >= 0:
                self.records[place] = Record(self.records[place].index, "torn")

    def text(self) -> str:
        names: list[Said] = [{"kind": "text", "text": name} for name in self.names]
        lines = [{"history": "lockstorm", "version": 1}, {"kind": "note"}, *names]
        for record in self.records:
            line = record.line()
            if line.get("actor") in ("store", "driver"):
                del line["actor"]
            lines.append(line)
        return "".join(json.dumps(line) + "\n" for line in lines)


def differences(seed: int, path: Path) -> str:
    """What is wrong with the verdict on one random history; empty if nothing is."""
    story = Story(seed)
    path.write_text(story.text())
    said = check(path)[1]
    found, expected = summary(said), judged(story.records)
    wrong = [f"{key}: check says {found[key]}, oracle {expected[key]}" for key in found if found[key] != expected[key]]
    wrong += evidence_faults(said, story.records, {*(client.name for client in story.clients), "#0"})
    return "; ".join(wrong)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_checkers_say_what_the_definitions_say(batch: int, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    for seed in range(ORACLE_FIRST + batch, ORACLE_FIRST + ORACLE_HISTORIES, BATCHES):
        wrong = differences(seed, path)
        assert not wrong, f"LOCKSTORM_ORACLE_FIRST={seed} LOCKSTORM_ORACLE_HISTORIES=1: {wrong}\n{path.read_text()}"


def test_random_histories_reach_every_verdict() -> None:
    """A generator that never makes a history violated, or never one that holds, would prove nothing."""
    reached: dict[tuple[str, str], int] = {}
    for seed in range(400):
        expected = judged(Story(seed).records)
        for name, status in expected["status"].items():
            reached[name, status] = reached.get((name, status), 0) + 1
        for name in (STALE_WRITES, LOST_UPDATES):
            reached[name, "violated"] = reached.get((name, "violated"), 0) + bool(expected[name])
    assert len(reached) == 11
    assert min(reached.values()) >= 20, reached
