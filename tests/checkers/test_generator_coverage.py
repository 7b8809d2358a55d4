"""Whether the random histories vary all that the checkers read: a generator that leaves a field alone proves nothing of
it.

READ lists, by kind of record, the fields on which a verdict depends. It is measured: changing such a field of a record
changes some verdict, and changing any other field changes none. CASES says which cases of each field matter, and every
one of them has to occur.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

from tests.helpers import checker_oracle as oracle
from tests.helpers.checker_oracle import FOR_EVER, History, Json, OracleRecord, is_access, is_grant
from tests.helpers.daily import daily
from tests.helpers.judging import KINDS, judge
from tests.helpers.random_histories import RandomHistory

OPERATION = {"actor", "op"}
READ = {
    "parameter": {"name", "value"},
    "lock-open": {"name", "token", "value", "extra"},
    "acquire-invoke": {*OPERATION, "name", "value"},
    "acquire-return": {*OPERATION, "name", "outcome", "token", "value", "extra"},
    "renew-invoke": {*OPERATION, "name"},
    "renew-return": {*OPERATION, "name", "outcome"},
    "release-invoke": {*OPERATION, "name", "grant"},
    "release-return": {*OPERATION, "name", "outcome"},
    "read-invoke": {*OPERATION},
    "read-return": {*OPERATION},
    "write-invoke": {*OPERATION},
    "write-return": {*OPERATION, "object", "outcome"},
    "store-read": {"actor", "name", "object", "outcome", "token", "grant"},
    "store-write": {"actor", "name", "object", "outcome", "token", "grant", "op", "flags", "value", "extra"},
    "fault-inject": {"name", "value"},
    "fault-prove": {"name", "value", "outcome"},
    "actor-exit": {"name"},
    "validity": {"actor", "name", "outcome", "value", "extra"},
    "server-renewal": {*OPERATION, "name", "outcome", "grant", "flags", "value", "extra"},
    "phase": {"name"},
    "residue": {"name", "value"},
}
# The latest stamp of all is what time it is, so that of every record counts.
FIELDS = ("outcome", "object", "flags", "actor", "name", "mono_ns", "op", "grant", "token", "value", "extra")
KINDS_MADE = sorted(
    set(KINDS) - {"fault-heal", "note", "clock", "released", "rule", "checkpoint", "answers", "is-held"}
)
KINDS_DAILY = set(KINDS_MADE) - {"actor-exit", "fault-inject", "fault-prove", "residue", "validity"}
KEPT = 500  # histories: most fields are seen to matter, or not, in the same ones
QUIET_TRIES, LOUD_TRIES = 60, 6000  # of a field that is not read; at most, until one that is read is seen to matter


def another_value(rng: random.Random, generated: RandomHistory, record: OracleRecord, field: str) -> Any:
    some = rng.choice(generated.records)
    old = getattr(record, field)
    values = {
        "outcome": ("ok", "refused", "unknown"),
        "object": ("", "register", "counter", "set"),
        "flags": (0, 1, 2, 4, 6, oracle.MADE, oracle.MARKED, oracle.MARKED | oracle.PROLONGED),
        "actor": ("", *generated.names),
        "name": ("", *generated.names),
        "mono_ns": (0, some.mono_ns, record.mono_ns + 10**6, record.mono_ns + 10**9, max(0, record.mono_ns - 10**7)),
        "grant": (0, some.index, record.index + 1),
        "op": (0, record.op + 1, rng.randint(0, 9)),
    }
    numbers = (0, -1, 1, 2, 4, 8, 12, getattr(some, "value", 0), old, record.mono_ns, record.mono_ns + 10**7)
    return rng.choice([each for each in values.get(field, numbers) if each != old])


def judged(generated: RandomHistory, records: History) -> Json:
    """The verdict without its words."""
    said = judge(generated.names, records)
    del said["parameters"]
    for each in [said, *said["policies"]]:
        for verdict in each["verdict"].values():
            for piece in verdict.get("evidence", ()):
                del piece["text"]
    return said


@lru_cache(maxsize=KEPT)
def random_history(seed: int) -> RandomHistory:
    return RandomHistory(seed)


@lru_cache(maxsize=KEPT)
def judged_unchanged(seed: int) -> Json:
    generated = random_history(seed)
    return judged(generated, generated.records)


def matters(kind: str, field: str, tries: int) -> bool:
    """Whether changing this field of one record changes what is said of a random history."""
    rng = random.Random(f"{kind} {field}")
    seed = 0
    while tries > 0:
        seed += 1
        generated = random_history(seed)
        places = [place for place, each in enumerate(generated.records) if each.kind == kind]
        before = judged_unchanged(seed) if places else {}
        for place in rng.sample(places, min(3, len(places))):
            tries -= 1
            changed = list(generated.records)
            changed[place] = replace(changed[place], **{field: another_value(rng, generated, changed[place], field)})
            if judged(generated, changed) != before:
                return True
    return False


@pytest.mark.parametrize("kind", daily(KINDS_MADE, KINDS_DAILY, "most of its fields matter in few histories", 3))
@pytest.mark.lengthy("judges histories with each field of a record changed")
def test_what_the_checkers_read_is_listed(kind: str) -> None:
    listed = READ[kind] | {"mono_ns"}
    wrong = [
        field
        for field in FIELDS
        if matters(kind, field, LOUD_TRIES if field in listed else QUIET_TRIES) != (field in listed)
    ]
    assert wrong == []


# --- which cases of each field there are ---


def outcome_case(history: History, record: OracleRecord) -> str:
    return record.outcome


def object_case(history: History, record: OracleRecord) -> str:
    return record.object


def flags_case(history: History, record: OracleRecord) -> str:
    return {0: "plain", oracle.ATOMIC: "added", oracle.FENCED: "fenced", oracle.MADE: "made"}.get(record.flags, "")


def actor_case(history: History, record: OracleRecord) -> str:
    """Whether a client does this for the first time, or again."""
    same = any(each.kind == record.kind and each.actor == record.actor for each in oracle.before(history, record.index))
    return "again" if same else "first"


def name_case(history: History, record: OracleRecord) -> str:
    before = [each for each in oracle.before(history, record.index) if each.kind == record.kind]
    if record.name == "":
        return "none"
    return "same" if before and before[-1].name == record.name else "other" if before else "first"


def stamp_case(history: History, record: OracleRecord) -> str:
    now_ns = max((each.mono_ns for each in oracle.before(history, record.index)), default=0)
    return "earlier" if record.mono_ns < now_ns else "later" if record.mono_ns > now_ns else "same"


def op_case(history: History, record: OracleRecord) -> str:
    """Store records are numbered by the client that they serve."""
    client = record.name if is_access(record) else record.actor
    own = [each for each in oracle.before(history, record.index) if client in (each.actor, each.name) and each.op]
    newest = own[-1].op if own else 0
    return "none" if not record.op else "next" if record.op > newest else "same" if record.op == newest else "earlier"


def grant_case(history: History, record: OracleRecord) -> str:
    client = record.name if is_access(record) else record.actor
    grants = [each for each in oracle.before(history, record.index) if is_grant(each)]
    own = [each for each in grants if each.actor == client]
    named = next((each for each in grants if each.index == record.grant), None)
    if record.grant == 0:
        return "none"
    if named is None:
        return "no grant"
    if named.actor != client:
        return "another's"
    return "latest" if named == own[-1] else "earlier" if named.name == own[-1].name else "of another lock"


def token_case(history: History, record: OracleRecord) -> str:
    if record.kind == "lock-open":
        return str(record.token)
    alike = [each for each in oracle.before(history, record.index) if each.kind == record.kind or is_access(record)]
    alike = [each for each in alike if is_access(each) or each.name == record.name]
    tokens = [each.token for each in alike if each.token]
    if not record.token or not tokens:
        return "none" if not record.token else "first"
    if record.token < 0:
        return "below zero"
    return "newer" if record.token > max(tokens) else "same" if record.token in tokens else "older"


def value_case(history: History, record: OracleRecord) -> str:
    if record.kind in ("acquire-return", "validity"):
        if record.value in (0, FOR_EVER):
            return "for ever" if record.value else "zero"
        past, now = record.value < record.mono_ns, record.value == record.mono_ns
        return "past" if past else "now" if now else "future"
    if record.kind == "store-write":
        alike = (each for each in oracle.before(history, record.index) if each.kind == "store-write")
        again = any((each.object, each.value) == (record.object, record.value) for each in alike)
        return "again" if again else "new"
    return "negative" if record.value < 0 else "positive" if record.value else "zero"


def extra_case(history: History, record: OracleRecord) -> str:
    if record.kind == "lock-open":
        return str(record.extra)
    if record.kind == "server-renewal":
        return "another's key" if record.extra else "none"
    if record.kind in ("acquire-return", "validity"):
        return ("past" if record.extra < record.mono_ns else "now") if record.extra else "zero"
    same = oracle.accepted_writes(oracle.before(history, record.index), record.object or " ")
    newest = record.extra - len(same)
    return "blind" if record.extra < 0 else "outdated" if newest < 0 else "ahead" if newest else "newest"


CASE_OF: dict[str, Callable[[History, OracleRecord], str]] = {
    "outcome": outcome_case,
    "object": object_case,
    "flags": flags_case,
    "actor": actor_case,
    "name": name_case,
    "mono_ns": stamp_case,
    "op": op_case,
    "grant": grant_case,
    "token": token_case,
    "value": value_case,
    "extra": extra_case,
}
NAMES = {"first", "same", "other"}
CASES = {
    "outcome": {"ok", "refused", "unknown"},
    "actor": {"first", "again"},
    "name": NAMES,
    "object": {"register", "counter", "set"},
}
CASES_OF_KIND = {
    ("parameter", "value"): {"negative", "zero", "positive"},
    ("parameter", "name"): {"first", "other"},
    ("lock-open", "token"): {"-1", "0", "1", "2", "3"},
    ("lock-open", "value"): {"zero", "positive"},
    ("lock-open", "extra"): {str(each) for each in range(0, 32, 2)},
    ("acquire-invoke", "value"): {"negative", "zero", "positive"},
    ("acquire-return", "value"): {"zero", "past", "now", "future", "for ever"},
    ("acquire-return", "extra"): {"zero", "past", "now"},
    ("acquire-return", "token"): {"none", "first", "older", "same", "newer", "below zero"},
    ("release-invoke", "grant"): {"none", "no grant", "latest", "of another lock", "earlier"},
    ("store-read", "grant"): {"none", "no grant", "latest", "of another lock", "earlier", "another's"},
    ("store-write", "grant"): {"none", "no grant", "latest", "of another lock", "earlier", "another's"},
    ("store-read", "token"): {"none", "first", "older", "same", "newer", "below zero"},
    ("store-write", "token"): {"none", "first", "older", "same", "newer", "below zero"},
    ("store-write", "name"): {*NAMES, "none"},
    ("store-write", "object"): {"", "register", "counter", "set"},
    ("store-write", "flags"): {"plain", "added", "fenced"},
    ("store-write", "value"): {"new", "again"},
    ("store-write", "op"): {"none", "next", "same", "earlier"},
    ("store-write", "extra"): {"blind", "outdated", "newest", "ahead"},
    ("fault-inject", "value"): {"positive"},
    ("fault-prove", "value"): {"positive"},
    ("validity", "value"): {"zero", "past", "now", "future", "for ever"},
    ("validity", "extra"): {"zero", "past"},
    ("server-renewal", "outcome"): {"ok", "refused"},
    ("server-renewal", "op"): {"none", "same", "earlier"},
    ("server-renewal", "grant"): {"none", "latest"},
    ("server-renewal", "flags"): {"plain", "made"},
    ("server-renewal", "value"): {"negative", "zero", "positive"},
    ("server-renewal", "extra"): {"none", "another's key"},
    ("residue", "value"): {"negative", "zero", "positive"},
    ("residue", "name"): {"first", "other"},
}


def cases_of_number(kind: str, field: str) -> set[str]:
    """Of a stamp or of an operation's number: an answer has that of its invocation, if nothing is wrong."""
    if field == "mono_ns":
        return {"earlier", "same", "later"}
    return {"none", "same", "next"} if kind in oracle.RETURNS else {"none", "next", "earlier"}


SEEN_LEAST = 3  # times in HISTORIES histories
HISTORIES = 4000


@pytest.mark.slow("thousands of random histories", seconds=4)
def test_every_case_of_a_field_that_is_read_occurs() -> None:
    seen: Counter[tuple[str, str, str]] = Counter()
    for seed in range(HISTORIES):
        history = RandomHistory(seed).records
        for record in history:
            for field in READ.get(record.kind, ()):
                seen[record.kind, field, CASE_OF[field](history, record)] += 1
            if record.kind in READ:
                seen[record.kind, "mono_ns", stamp_case(history, record)] += 1
    missing: dict[str, dict[str, int]] = {}
    for kind, fields in READ.items():
        for field in fields | {"mono_ns"}:
            wanted = CASES_OF_KIND.get((kind, field)) or CASES.get(field) or cases_of_number(kind, field)
            few = {case: seen[kind, field, case] for case in wanted if seen[kind, field, case] < SEEN_LEAST}
            missing |= {f"{kind} {field}": few} if few else {}
    assert missing == {}
