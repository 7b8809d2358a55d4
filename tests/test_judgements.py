"""What a verdict says besides its statuses and counts: evidence, measures, reasons, and the sentence.

All of it is asked of the checkers in this process (tests/judging.py), so `make mutants` can ask it of every mutant.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.judging import judge
from tests.oracle import History, Record
from tests.timeline import Timeline


def test_an_unfit_history_is_told_which_assumption_fails() -> None:
    story = Timeline("A+ B+ A- B-")
    assert judge(story.names, story.records)["exit"] == 1
    for records, reason in unfit(story.records):
        said = judge(story.names, records)
        assert reason in said["unfit"], (reason, said["unfit"])
        assert {each["status"] for each in said["verdict"].values()} == {"inconclusive"}
        assert not any(each["evidence"] for each in said["verdict"].values())


def unfit(records: History) -> Iterator[tuple[History, str]]:
    def changed(place: int, **values: Any) -> History:
        copy = list(records)
        copy[place] = Record(**{**records[place].__dict__, **values})
        return copy

    yield changed(5, mono_ns=1), "A has a monotonic clock that went back"
    yield changed(5, op=9), "A was answered something else than it had asked for"
    yield changed(5, kind="write-return"), "A was answered something else than it had asked for"
    yield changed(1, kind="renew-invoke"), "A began an operation before the last one had come back"
    yield changed(4, grant=records[3].index), "A releases under a grant that it was never given"
    yield changed(4, grant=records[6].index), "A releases under a grant that it was never given"


def test_causes_are_told_once() -> None:
    """Ten overlaps of the same two clients are one cause; a third client is another."""
    said = judge(Timeline.names, Timeline("A+ " + "B+ B- " * 10 + "C+ C- A-").records)
    verdict = said["verdict"]["mutual_exclusion"]
    assert verdict["count"] == 11
    assert [piece["count"] for piece in verdict["evidence"]] == [10, 1]
    text = "B was granted the lock (at 4.000 ms) while A (granted at 2.000 ms) had not released it and still believed"
    assert verdict["evidence"][0]["text"] == f"{text} in it"


def test_what_is_told_and_not_judged() -> None:
    said = judge(Timeline.names, Timeline("A? B? C? @100 C! C- B! B- A! A- B+ B-").records)["verdict"]
    fairness, cost = said["fairness"]["measures"], said["cost"]["measures"]
    assert (fairness["overtakings"], fairness["overtaken_most"]) == (3, 2)
    assert fairness["longest_wait_ms"] == 105
    assert fairness["jain_index"] == pytest.approx(16 / (3 * 6))
    assert (cost["operations_per_grant"], cost["attempts_per_grant"], cost["refused_per_grant"]) == (2, 1, 0)
    said = judge(Timeline.names, Timeline("{lease=30} A+/20 A= A- B+x B+x Br @30 B+/35 B- B+~").records)["verdict"]
    cost = said["cost"]["measures"]
    assert said["lease"]["measures"] == {"least_validity_left_ms": 4}
    assert cost == {
        "operations_per_grant": 4,
        "attempts_per_grant": 2.5,
        "refused_per_grant": 1,
        "unknown_per_grant": 0.5,
        "renewals_per_grant": 0.5,
        "accesses_per_grant": 0.5,
    }
    said = judge(Timeline.names, Timeline("A? B+ B- C+ C- B+ B-").records)["verdict"]["fairness"]["measures"]
    assert (said["overtakings"], said["overtaken_most"], said["longest_wait_ms"]) == (3, 3, 1)
    said = judge(Timeline.names, Timeline("C+ A? B? B! B- A!x").records)["verdict"]["fairness"]["measures"]
    assert (said["overtakings"], said["overtaken_most"]) == (1, 1)
    said = judge(Timeline.names, Timeline("{tokens reentrant} A+1 Ar A+2 A- Br Aw Bw A-").records)["verdict"]
    assert said["fencing"]["measures"] == {"tokens_changed_on_reentry": 1}
    assert said["integrity"]["measures"] == {"stale_read_modify_writes": 1}


def test_many_clients_and_locks_are_kept_apart() -> None:
    """More than any table begins with, and names far from the beginning."""
    names = [f"client-{number}" for number in range(700)] + ["stock", "cash"]
    records: History = []

    def add(kind: str, **values: Any) -> None:
        records.append(Record(1 + 2 * len(names) + len(records), kind, **values))

    for number, client in enumerate(names[:-2]):
        lock = names[700 + number % 2]
        for kind, outcome in (("acquire", "ok"), ("release", "ok")):
            add(f"{kind}-invoke", actor=client, name=lock)
            add(f"{kind}-return", actor=client, name=lock, outcome=outcome)
    said = judge(names, records)
    assert (said["grants"], said["verdict"]["mutual_exclusion"]["status"]) == (700, "holds")
    held = [each for each in records if "release" not in each.kind or each.actor not in ("client-5", "client-600")]
    held = [Record(**{**each.__dict__, "index": records[0].index + place}) for place, each in enumerate(held)]
    said = judge(names, held)
    shown = [piece["text"] for piece in said["verdict"]["mutual_exclusion"]["evidence"]]
    assert said["verdict"]["mutual_exclusion"]["count"] == 347 + 49
    assert shown[0].startswith("client-7 was granted the lock") and "while client-5 (granted" in shown[0]


SENTENCES = {
    "A+ A- B+ B-": "Mutual exclusion holds, integrity inconclusive",
    "A+ B+ Ar": "Mutual exclusion violated, integrity holds",
    "{tokens} A+1 Ar B+2 Br Bw B- Awx": (
        "Mutual exclusion violated, integrity holds (1 stale write fenced), fencing holds"
    ),
    "{tokens} A+1 B+2 Br Ar Ar Bw Awx Awx": (
        "Mutual exclusion violated, integrity holds (2 stale writes fenced), fencing violated (2 stale accesses)"
    ),
    "quiet A+ Ar A- B+ A- B-": (
        "Mutual exclusion holds, integrity holds, liveness holds; besides, ownership violated (1 foreign release)"
    ),
    "{lease=30} @50 A+/20 Ar Aw A- B+/90 A- B-": (
        "Mutual exclusion holds, integrity holds; besides, ownership violated (1 foreign release), "
        "lease violated (1 spent grant, 1 late write)"
    ),
}


@pytest.mark.parametrize("timeline", SENTENCES)
def test_the_sentence_that_is_judged(timeline: str) -> None:
    assert judge(Timeline.names, Timeline(timeline).records)["sentence"] == SENTENCES[timeline]
