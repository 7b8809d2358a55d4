"""Compares a verdict with the definitions, and checks that its evidence shows the violation."""

from collections import Counter
from collections.abc import Iterator
from itertools import product

from tests.helpers import checker_oracle as oracle
from tests.helpers.checker_oracle import (
    ACQUIRE_POLICIES,
    PROPERTIES,
    READINGS,
    RELEASE_POLICIES,
    History,
    Json,
    Reading,
    is_access,
    is_grant,
)

EVIDENCE_KEPT = 8


def differences(found: Json, history: History, results: dict[Reading, Json] | None = None) -> Iterator[str]:
    """The differences between a verdict and the definitions. `results`: those of the definitions, if known already."""
    results = results or oracle.verdicts_by_reading(history)
    policies = [(each["policy"]["release"], each["policy"]["acquire_timeout"]) for each in found["policies"]]
    if policies != list(product(RELEASE_POLICIES, ACQUIRE_POLICIES)):
        yield f"policies: {policies}"
    partly = oracle.is_partly_read(history)
    for under in found["policies"]:
        policy = under["policy"]["release"], under["policy"]["acquire_timeout"]
        expected = oracle.under(results, *policy, partly)
        for name in PROPERTIES:
            judged = under["verdict"][name]["status"], under["verdict"][name]["count"]
            if judged != expected[name]:
                yield f"{name} under {policy}: check has {judged}, oracle {expected[name]}"
    for name, (_, violations) in results[READINGS[0]].items():
        for sort, count in Counter(sort for sort, _ in violations if sort).items():
            if found["verdict"][name]["sorts"][sort] != count:
                yield f"{name}: {found['verdict'][name][sort]} {sort}, oracle {count}"
        yield from evidence_faults(name, found["verdict"][name], history, violations)
    required = oracle.required(history)
    if found["required"] != required:
        yield f"required: {found['required']}, oracle {required}"
    statuses = {found["verdict"][name]["status"] for name in required}
    status = 1 if "violated" in statuses else 3 if "inconclusive" in statuses else 0
    if found["exit"] != status:
        yield f"exit {found['exit']}, oracle {status}"


def evidence_faults(name: str, verdict: Json, history: History, violations: list[oracle.Violation]) -> Iterator[str]:
    """What is wrong with the evidence: each cause must be counted, described, and shown by records."""
    pieces = verdict["evidence"]
    if (verdict["status"] == "violated") != bool(pieces) or (verdict["count"] > 0) != bool(pieces):
        yield f"{name} is {verdict['status']} with {len(pieces)} pieces of evidence"
    counted = sum(piece["count"] for piece in pieces)
    if counted > verdict["count"] or (len(pieces) < EVIDENCE_KEPT and counted < verdict["count"]):
        yield f"{name}: {counted} of {verdict['count']} violations in the evidence"
    by_index = {each.index: each for each in history}
    for piece in pieces:
        shown = [by_index[index] for index in piece["records"] if index in by_index]
        actors = {each.actor or "#0" for each in shown} | {each.name or "#0" for each in shown}
        if len(shown) != len(piece["records"]) or not shows(name, history, shown, {index for _, index in violations}):
            yield f"{name} is not shown by {piece['records']}: {piece['text']}"
        if not any(actor in piece["text"] for actor in actors):
            yield f"{name} names no actor: {piece['text']}"


def shows(name: str, history: History, shown: History, completed: set[int]) -> bool:
    """Whether these records are a violation: one of those that the definitions find, and what it takes to see it."""
    last, before = shown[-1], shown[:-1]
    if name == "integrity" and last.kind == "write-return" and len(shown) == 3:  # told of it when it was lost already
        return last.ok and last.actor == shown[0].name and shows(name, history, before, completed)
    if name == "integrity" and before and len(shown) == 2 and oracle.loses(history, last, before[0]):
        return before[0].index in completed
    if name == "liveness" and shown[0].kind == "acquire-invoke" and last.kind == "phase":
        return shown[0].index in completed
    if last.index not in completed:
        return False
    if name == "mutual_exclusion":
        holders = [each for each in before if is_grant(each) and each.name == last.name and each.actor != last.actor]
        return len(holders) == len(before) == min(oracle.permits(history, last.name, last.index), 3)
    if name == "integrity" and len(shown) == 4:
        late, early, write = before
        ranked = oracle.older(last, write) and (late.index, early.index) == (last.grant, write.grant)
        return ranked and oracle.exclusive_lock(history, last) == early.name == late.name
    if name == "fencing" and before and is_access(last):
        same = oracle.comparable(history, before[0]) == oracle.comparable(history, last)
        return is_access(before[0]) and before[0].token > last.token and same
    if name == "fencing" and before:
        return is_grant(before[0]) and before[0].name == last.name and before[0].token >= last.token
    return True
