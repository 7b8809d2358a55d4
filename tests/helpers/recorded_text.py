"""What a verdict says besides statuses and counts, from docs/verdicts.md: measures, what was refused, which faults took
effect, reasons, and the sentence. Like checker_oracle.py, without streaming and without regard to speed.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose

from tests.helpers import checker_oracle as oracle
from tests.helpers.checker_oracle import (
    ADVISORY,
    ATOMIC,
    PROPERTIES,
    READINGS,
    History,
    Json,
    OracleRecord,
    Reading,
    is_access,
    is_grant,
)

NAMED = READINGS[0]  # the reading of the default policy
SORTS = {
    "integrity": ("stale write", "lost update", "duplicated operation"),
    "fencing": ("missing token", "repeated token", "falling token", "stale access", "wrongful refusal"),
    "ownership": ("foreign release", "foreign renewal", "broken hold", "foreign extension", "empty renewal"),
    "liveness": ("stuck waiter", "lost wake-up", "unserved", "residue"),
    "capacity": ("surplus grant", "unowned release"),
    "lease": (
        *("spent grant", "late write", "late renewal", "hollow renewal", "premature grant", "broken validity"),
        "long renewal",
    ),
}


def plural(noun: str) -> str:
    return noun + ("es" if noun.endswith("s") else "s")


# --- measures ---


def outdated_writes(history: History) -> int:
    """Accepted writes computed from a version that was not the newest; one delivered again counts with the first."""
    found = 0
    for write in oracle.accepted_writes(history):
        same = [each for each in oracle.accepted_writes(history, write.object) if each.index < write.index]
        newest = max((each.op for each in oracle.earlier_by(history, write)), default=0)
        repeats = write.op != 0 and write.op == newest
        found += not write.flags & ATOMIC and 0 <= write.extra < len(same) and not repeats
    return found


def changed_tokens(history: History, reading: Reading) -> int:
    """The number of re-entries with another token than the grant before."""
    held = [(each, oracle.reenters(history, reading, each)) for each in oracle.token_grants(history)]
    return sum(bool(mine) and mine[-1].token != grant.token for grant, mine in held)


def validity_left_ms(history: History) -> list[float]:
    stated = [each for each in history if is_grant(each) and each.value]
    return [max(0, each.value - each.mono_ns) / 1e6 for each in stated]


def waits_ms(history: History) -> Iterator[float]:
    """Of every acquire that was answered."""
    for answer in history:
        if answer.kind == "acquire-return":
            waiting = oracle.waiters(history, answer.name, answer.index)
            yield from ((answer.mono_ns - each.mono_ns) / 1e6 for each in waiting if each.actor == answer.actor)


def jain_index(history: History) -> float:
    asked = {each.actor for each in history if each.kind == "acquire-invoke"}
    grants = [sum(is_grant(each) and each.actor == client for each in history) for client in asked]
    squares = len(grants) * sum(each**2 for each in grants)
    return sum(grants) ** 2 / squares if squares else 0


def fairness_measures(history: History) -> Json:
    passed = [each.index for _, late in oracle.overtaken_waiters(history) for each in late]
    return {
        "overtakings": len(passed),
        "overtaken_most": max(Counter(passed).values(), default=0),
        "longest_wait_ms": max([0.0, *waits_ms(history)]),
        "jain_index": jain_index(history),
    }


def cost_measures(history: History) -> Json:
    kinds = Counter(each.kind for each in history)
    answers = [each for each in history if each.kind == "acquire-return"]
    counts = {
        "operations": kinds["acquire-invoke"] + kinds["renew-invoke"] + kinds["release-invoke"],
        "attempts": kinds["acquire-invoke"],
        "refused": sum(each.outcome == "refused" for each in answers),
        "unknown": sum(each.unknown for each in answers),
        "renewals": kinds["renew-invoke"],
        "accesses": kinds["store-read"] + kinds["store-write"],
    }
    grants = sum(map(is_grant, history))
    return {f"{name}_per_grant": count / grants for name, count in counts.items()} if grants else {}


def measures(history: History) -> dict[str, Json]:
    if oracle.broken(history):
        return {}
    found = {
        "integrity": {"stale_read_modify_writes": outdated_writes(history)},
        "fencing": {"tokens_changed_on_reentry": changed_tokens(history, NAMED)},
        "fairness": fairness_measures(history),
        "cost": cost_measures(history),
    }
    if any(each.kind == "phase" for each in history):
        longest_ns = max((free_ns for _, free_ns in oracle.unnoticed(history, NAMED)), default=0)
        found["liveness"] = {"longest_unnoticed_ms": longest_ns / 1e6}
    left = validity_left_ms(history)
    return found | ({"lease": {"least_validity_left_ms": min(left)}} if left else {})


def refused_accesses(history: History) -> dict[str, int]:
    """What the store refused, but not wrongfully: integrity counts writes, fencing reads and writes."""
    if oracle.broken(history):
        return {}
    wrongful = oracle.wrongful_refusals(history, NAMED)
    refused = [each for each in history if is_access(each) and each.outcome == "refused" and each not in wrongful]
    writes = sum(each.kind == "store-write" and bool(each.object) for each in refused)
    return {"integrity": writes, "fencing": len(refused)}


# --- whether it applies, and why nothing is said ---


def applies(history: History) -> dict[str, bool]:
    """Whether the question arises at all."""
    opened = [each for each in history if each.kind == "lock-open"]
    renewed = any(each.kind == "renew-return" and each.ok for each in history)
    return {
        "mutual_exclusion": True,
        "integrity": oracle.is_integrity_asked(history),
        "fencing": oracle.has_tokens(history),
        "ownership": oracle.answered_ok(history),
        "liveness": "liveness" in oracle.required(history),
        "capacity": oracle.has_semaphore(history),
        "lease": renewed or bool(validity_left_ms(history)),
        "fairness": any(each.extra & oracle.FAIR for each in opened),
        "cost": False,
    }


def doubt(history: History) -> str:
    """Why nothing can be said to hold, although the history can be judged."""
    torn = sum(each.kind == "torn" for each in history)
    faults = injections(history)
    unproved = [fault for fault, outcomes in faults if not outcomes & {"ok", "refused"}]
    if torn:
        return f"{torn} records are torn"
    if unproved:
        return f"the fault {unproved[0].name} was not seen to take effect"
    if oracle.unproved(history):
        return "none of the faults was seen to take effect"
    return "" if any(map(is_grant, history)) else "nobody was granted the lock"


def injections(history: History) -> list[tuple[OracleRecord, set[str]]]:
    """Each injection of a fault, with the outcomes of its proofs: those up to the next one like it."""
    found: list[tuple[OracleRecord, set[str]]] = []
    for each in history:
        if each.kind == "fault-inject":
            found.append((each, set()))
        mine = [outcomes for fault, outcomes in found if oracle.same_fault(fault, each)]
        if each.kind == "fault-prove" and mine:
            mine[-1].add(each.outcome)
    return found


def inconclusive_reasons(history: History) -> dict[str, str]:
    """Why a property is inconclusive, when the history itself is not in doubt."""
    waiting = bool(oracle.stuck(history, NAMED)[1])
    asked = applies(history)
    return {
        "mutual_exclusion": "only one client asked for the lock"
        if any(map(oracle.is_grant, history))
        else "nobody was granted the lock",
        "integrity": "the store accepted no write"
        if any(oracle.is_access(each) and each.object for each in history)
        else "nobody used the store",
        "fencing": "nobody was granted a token" if asked["fencing"] else "the lock gives no fencing token",
        "ownership": "no release and no renewal of a lock with one permit came back ok",
        "liveness": "there was no quiet phase in which everybody should have been served"
        if not asked["liveness"]
        else "the history ended too early for those who were still waiting"
        if waiting
        else "nobody was granted the lock in the quiet phase"
        if oracle.answered_in_quiet(history)
        else "nobody wanted the lock in the quiet phase",
        "capacity": "nobody was granted a permit" if asked["capacity"] else "no lock has more than one permit",
        "lease": "there is no lease, no stated validity and no renewal",
        "fairness": "a fault may have kept a waiter out of its queue"
        if asked["fairness"]
        else "the lock promises no order",
        "cost": "costs are told, not judged",
    }


# --- the sentence ---


def property_text(name: str, verdict: Json) -> str:
    """ "integrity violated (1 stale write, 9 lost updates)" """
    parts = []
    for sort in SORTS.get(name, ()):
        count = verdict["sorts"][sort.replace(" ", "_").replace("-", "_")]
        parts += [f"{count} {sort if count == 1 else plural(sort)}"] if count else []
    stopped = verdict.get("fenced", 0)
    if not parts and name == "integrity" and stopped:
        parts = [f"{stopped} stale write{'' if stopped == 1 else 's'} fenced"]
    text = f"{name.replace('_', ' ')} {verdict['status']}"
    return f"{text} ({', '.join(parts)})" if parts else text


def expected_sentence(asked: dict[str, bool], verdict: Json) -> str:
    counting = [name for name in PROPERTIES if name not in ADVISORY and asked[name]]
    others = [
        name
        for name in PROPERTIES
        if name not in counting and name in ADVISORY and verdict[name]["status"] == "violated"
    ]
    text = ", ".join(property_text(name, verdict[name]) for name in counting)
    if others:
        text += "; besides, " + ", ".join(property_text(name, verdict[name]) for name in others)
    return text[:1].upper() + text[1:]


# --- the whole ---


def totals(names: list[str], history: History) -> Json:
    """The numbers and lists beside the verdict. The names take two records each, the first one is a note."""
    name = {1 + 2 * place: each for place, each in enumerate(names)}
    answers = [each for each in history if each.kind == "acquire-return"]
    faults = [
        {"name": fault.name, "target": name.get(fault.value, f"#{fault.value}"), "proved": "ok" in outcomes}
        for fault, outcomes in injections(history)
    ]
    return {
        "records": 1 + 2 * len(names) + sum(each.kind != "torn" for each in history),
        "torn": sum(each.kind == "torn" for each in history),
        "dropped": 0,
        "grants": sum(map(is_grant, answers)),
        "failed_releases": sum(each.kind == "release-return" and not each.ok for each in history),
        "unknown_acquires": sum(each.unknown for each in answers),
        "faults": faults,
        "parameters": {each.name: each.value for each in history if each.kind == "parameter"},
        "policy": {"release": "released", "acquire_timeout": "not-happened"},
    }


@dataclass(frozen=True)
class ExpectedText:
    """What a verdict must say of a history besides statuses, counts and evidence."""

    totals: Json
    measures: dict[str, Json]
    fenced: dict[str, int]
    applies: dict[str, bool]
    reasons: dict[str, str]
    broken: bool
    doubt: str

    @classmethod
    def of(cls, names: list[str], history: History) -> "ExpectedText":
        return cls(
            totals(names, history),
            measures(history),
            refused_accesses(history),
            applies(history),
            inconclusive_reasons(history),
            oracle.broken(history),
            doubt(history),
        )

    def differences(self, said: Json) -> Iterator[str]:
        """Where a verdict says something else."""
        expected = self.totals | {"sentence": expected_sentence(self.applies, said["verdict"])}
        for key, value in expected.items():
            if said[key] != value:
                yield f"{key}: check says {said[key]}, oracle {value}"
        unfit = said.get("unfit", "")
        if not unfit if self.broken else unfit != self.doubt:
            yield f"unfit: {unfit}, oracle {self.doubt}"
        for name, verdict in said["verdict"].items():
            if not same_measures(verdict.get("measures", {}), self.measures.get(name, {})):
                yield f"{name}: measures {verdict.get('measures')}, oracle {self.measures.get(name)}"
            if verdict.get("fenced", 0) != self.fenced.get(name, 0):
                yield f"{name}: fenced {verdict.get('fenced')}, oracle {self.fenced.get(name)}"
            reason = (unfit or self.reasons[name]) if verdict["status"] == "inconclusive" else None
            if verdict.get("reason") != reason:
                yield f"{name}: reason {verdict.get('reason')}, oracle {reason}"


def same_measures(found: Json, expected: Json) -> bool:
    """In the same order; whole numbers are written as such."""
    return list(found) == list(expected) and all(
        isclose(value, expected[name], rel_tol=1e-12) and isinstance(value, int) == (expected[name] == int(value))
        for name, value in found.items()
    )
