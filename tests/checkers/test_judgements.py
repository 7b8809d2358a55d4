"""What a verdict says besides its statuses and counts: evidence, measures, reasons, and the sentence.

All of it is asked of the checkers in this process (tests/helpers/judging.py), so `make mutants` can ask it of every
mutant.
"""

import ctypes
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lockstorm.base import paths
from tests.helpers import checker_oracle as oracle
from tests.helpers.checker_oracle import ATOMIC, History, OracleRecord
from tests.helpers.comparing import differences
from tests.helpers.judging import KINDS, LAYOUT, OBJECTS, OUTCOMES, USUAL, Asked, image, judge, judged_text
from tests.helpers.random_histories import RandomHistory
from tests.helpers.timeline import Timeline


def test_an_unfit_history_is_told_which_assumption_fails() -> None:
    story = Timeline("A+ B+ A- B-")
    assert judge(story.names, story.records)["exit"] == 1
    for records, reason in doubtful_histories(story.records):
        said = judge(story.names, records)
        assert reason in said["unfit"], (reason, said["unfit"])
        assert {each["status"] for each in said["verdict"].values()} == {"inconclusive"}
        assert not any(each["evidence"] for each in said["verdict"].values())


def doubtful_histories(records: History) -> Iterator[tuple[History, str]]:
    def changed(place: int, **values: Any) -> History:
        copy = list(records)
        copy[place] = OracleRecord(**{**records[place].__dict__, **values})
        return copy

    yield changed(5, mono_ns=1), "A has a monotonic clock that went back"
    yield changed(5, op=9), "A was answered something else than it had asked for"
    yield changed(5, kind="write-return"), "A was answered something else than it had asked for"
    yield changed(1, kind="renew-invoke"), "A began an operation before the last one had come back"
    yield changed(4, grant=records[3].index), "A releases under a grant that it was never given"
    yield changed(4, grant=records[6].index), "A releases under a grant that it was never given"
    yield changed(4, name="cash"), "A releases under a grant of another lock"


PARAMETER_TEXT = 1  # HISTORY_FLAG_TEXT
NONE = "none of the faults was seen to take effect"
HURT = "the fault hurt was not seen to take effect"


@pytest.mark.parametrize(
    ("faults", "meant", "reason"),
    [
        ((), 0, ""),
        ((), -1, ""),
        ((), 1, NONE),
        ((), 2, NONE),
        (("inject",), 0, HURT),
        (("inject", "ok"), 1, ""),
        (("inject", "refused"), 0, NONE),
        (("inject", "unknown"), 0, HURT),
        (("inject", "ok", "refused"), 0, ""),  # what was seen once was seen
        (("inject", "ok", "unknown"), 0, ""),
        (("inject", "refused", "unknown"), 0, NONE),  # what was taken back once was taken back
        (("inject", "ok", "inject"), 0, HURT),  # a proof is of the last injection
        (("inject", "ok", "inject", "refused"), 0, ""),
        (("inject", "inject", "ok"), 0, HURT),
        (("ok",), 0, ""),  # of nothing
        (("ok", "inject"), 0, HURT),
    ],
)
def test_faults_are_proved(faults: tuple[str, ...], meant: int, reason: str) -> None:
    names = [*Timeline.names, "faults_meant"]
    records: History = []

    def add(kind: str, **values: Any) -> None:
        records.append(OracleRecord(1 + 2 * len(names) + len(records), kind, **values))

    add("parameter", name="faults_meant", value=meant)
    for each in faults:
        if each == "inject":
            add("fault-inject", name="hurt", value=1)
        else:
            add("fault-prove", name="hurt", value=1, outcome=each)
    add("fault-prove", name="hurt", value=3, outcome="ok")  # into another target, where nothing was injected
    add("acquire-return", actor="A", name="stock", outcome="ok")
    assert judge(names, records[:-1])["unfit"] == (reason or "nobody was granted the lock")
    said = judge(names, records)
    assert said.get("unfit", "") == reason
    assert said["faults"] == [{"name": "hurt", "target": "A", "proved": each} for each in proved(faults)]


def proved(faults: tuple[str, ...]) -> list[bool]:
    """Of each injection."""
    found: list[bool] = []
    for each in faults:
        if each == "inject":
            found.append(False)
        elif found:
            found[-1] |= each == "ok"
    return found


STORE = "store has a monotonic clock that went back"


@pytest.mark.parametrize(
    ("stamps", "reason"),
    [
        ((("store", 5), ("store", 5), ("store", 6)), ""),
        ((("store", 5), ("store", 4)), STORE),
        ((("store", 5), ("store", 0), ("store", 6)), ""),  # 0 is no stamp
        ((("store", 0), ("store", 5), ("store", 0), ("store", 4)), STORE),
        ((("store", 2), ("store", 1)), STORE),
        ((("", 5), ("", 4)), ""),  # nobody knows whether this is one store
        ((("store", 5), ("", 3), ("store", 4)), STORE),
        ((("store", 5), ("A", 3), ("store", 5)), ""),  # it need not have gone on
        ((("store", 5), ("A", 3), ("store", 6), ("A", 4)), ""),  # two stores, each with a clock of its own
        ((("store", 5), ("A", 3), ("store", 4)), STORE),
        ((("store", 5), ("A", 3), ("store", 6), ("A", 2)), "A has a monotonic clock that went back"),
    ],
)
def test_the_clock_of_a_store_goes_forward(stamps: tuple[tuple[str, int], ...], reason: str) -> None:
    records = Timeline("D+ D-").records
    first = records[-1].index + 1
    records += [
        OracleRecord(first + place, "store-read", actor=store, name="C", object="register", outcome="ok", mono_ns=stamp)
        for place, (store, stamp) in enumerate(stamps)
    ]
    assert judge(Timeline.names, records).get("unfit", "")[: len(reason) or None] == reason
    assert oracle.broken(records) == bool(reason)


def test_clients_without_a_name_may_be_many() -> None:
    """Records without a name may be of several clients: overlapping operations and clocks prove nothing."""
    records = Timeline("A? A? A!").records
    assert "unfit" in judge(Timeline.names, records)
    unnamed = [replace(each, actor="") for each in records]
    unnamed[1] = replace(unnamed[1], mono_ns=1)
    for changed in (unnamed, [replace(each, mono_ns=0) for each in unnamed]):
        said = judge(Timeline.names, changed)
        assert "unfit" not in said and list(differences(said, changed)) == []


def test_a_stamp_of_0_is_none() -> None:
    """An unknown stamp is no step back in time; a later smaller stamp is one."""
    for stamps, fit in (((5, 0, 6), True), ((5, 0, 4), False), ((0, 5, 0), True)):
        records = Timeline("A+ A<").records
        changed = [replace(each, mono_ns=stamp) for each, stamp in zip(records, stamps, strict=True)]
        assert ("unfit" not in judge(Timeline.names, changed)) == fit
        assert oracle.broken(changed) != fit


@pytest.mark.parametrize("what", ["forward", "itself", "behind the end", "an invocation", "refused", "torn", "a text"])
def test_a_grant_index_that_names_no_grant_is_none(what: str) -> None:
    """B's newer write is followed by A's, which names something else than A's grant: nobody knows under which lock."""
    records = Timeline("{tokens} A+1 B+2 C+x Bwb Awb A- C+3 C-").records
    place = [place for place, each in enumerate(records) if each.kind == "store-write"][-1]
    grants = [place for place, each in enumerate(records) if each.kind == "acquire-return"]
    named = {
        "forward": records[grants[-1]].index,
        "itself": records[place].index,
        "behind the end": 2**32 - 1,
        "an invocation": records[grants[0] - 1].index,
        "refused": records[grants[2]].index,
        "torn": records[grants[0]].index,
        "a text": 1,
    }
    assert judge(Timeline.names, records)["verdict"]["integrity"]["sorts"]["stale_write"] == 1
    assert judge(Timeline.names, records)["verdict"]["fencing"]["sorts"]["stale_access"] == 1
    changed = list(records)
    changed[place] = replace(records[place], grant=named[what])
    if what == "torn":
        changed[grants[0]] = OracleRecord(records[grants[0]].index, "torn")
    said = judge(Timeline.names, changed)
    assert (
        said["verdict"]["integrity"]["sorts"]["stale_write"] == said["verdict"]["fencing"]["sorts"]["stale_access"] == 0
    )
    assert list(differences(said, changed)) == []


def test_a_late_access_belongs_to_the_lock_of_the_grant_that_it_names() -> None:
    """A was granted another lock since, and B names A's grant: the grant says which lock it is, not who names it."""
    records = Timeline("A+ A.cash+ B+ Bwb Awl").records
    assert judge(Timeline.names, records)["verdict"]["integrity"]["sorts"]["stale_write"] == 1
    changed = [*records[:-1], replace(records[-1], name="C")]
    said = judge(Timeline.names, changed)
    assert said["verdict"]["integrity"]["sorts"]["stale_write"] == 1
    assert list(differences(said, changed)) == []


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
    said = judge(Timeline.names, Timeline("A? B+ B- C+ A*").records)["verdict"]["fairness"]["measures"]
    assert (said["overtakings"], said["overtaken_most"]) == (2, 2)
    said = judge(Timeline.names, Timeline("{tokens reentrant} A+1 Ar A+2 A- Br Aw Bw A-").records)["verdict"]
    assert said["fencing"]["measures"] == {"tokens_changed_on_reentry": 1}
    assert said["integrity"]["measures"] == {"stale_read_modify_writes": 1}


def test_many_clients_and_locks_are_kept_apart() -> None:
    """More than any table has room for at first, and names with large numbers."""
    names = [f"client-{number}" for number in range(700)] + ["stock", "cash"]
    records: History = []

    def add(kind: str, **values: Any) -> None:
        records.append(OracleRecord(1 + 2 * len(names) + len(records), kind, **values))

    for number, client in enumerate(names[:-2]):
        lock = names[700 + number % 2]
        for kind, outcome in (("acquire", "ok"), ("release", "ok")):
            add(f"{kind}-invoke", actor=client, name=lock)
            add(f"{kind}-return", actor=client, name=lock, outcome=outcome)
    said = judge(names, records)
    assert (said["grants"], said["verdict"]["mutual_exclusion"]["status"]) == (700, "holds")
    held = [each for each in records if "release" not in each.kind or each.actor not in ("client-5", "client-600")]
    held = [OracleRecord(**{**each.__dict__, "index": records[0].index + place}) for place, each in enumerate(held)]
    said = judge(names, held)
    shown = [piece["text"] for piece in said["verdict"]["mutual_exclusion"]["evidence"]]
    assert said["verdict"]["mutual_exclusion"]["count"] == 347 + 49
    assert shown[0].startswith("client-7 was granted the lock") and "while client-5 (granted" in shown[0]


def judged_timeline(timeline: str, asked: Asked = USUAL, dropped: int = 0) -> Any:
    story = Timeline(timeline)
    return judge(story.names, story.records, asked, dropped)


@pytest.mark.parametrize(
    ("promise", "name", "verdict"),
    [
        ("tokens", "fencing", "nobody was granted a token"),
        ("permits=2", "capacity", "nobody was granted a permit"),
        ("fair", "fairness", None),
    ],
)
def test_what_one_of_two_locks_promises(promise: str, name: str, verdict: str | None) -> None:
    """The property applies, although the lock that was opened last, and granted, promises nothing."""
    records = Timeline(f"{{{promise}}} A.cash+ A.cash-").records
    plain = [
        replace(each, extra=0, token=1) if (each.kind, each.name) == ("lock-open", "cash") else each for each in records
    ]
    said = judge(Timeline.names, plain)["verdict"][name]
    assert (said["status"], said.get("reason")) == ("inconclusive" if verdict else "holds", verdict)


@pytest.mark.parametrize(("permits", "status"), [(2, "holds"), (1, "violated"), (0, "holds"), (-1, "holds")])
def test_what_a_lock_says_last_counts(permits: int, status: str) -> None:
    """B and C open the lock with fewer permits than A did, or with none given."""
    records = Timeline("{permits=2} A+ B+ C?0 C!x").records
    opened = [
        replace(each, token=permits) if each.kind == "lock-open" and each.actor in "BC" else each for each in records
    ]
    assert judge(Timeline.names, opened)["verdict"]["mutual_exclusion"]["status"] == status


def test_a_write_that_comes_after_its_client_has_ended_is_told_to_nobody() -> None:
    """The answer to it is for another process of that name."""
    for ended, lost in ((False, 1), (True, 0)):
        records = Timeline("D+ D-").records

        def add(kind: str, records: History = records, **values: Any) -> None:
            records.append(OracleRecord(records[-1].index + 1, kind, **values))

        if ended:
            add("actor-exit", name="A")
        add("store-write", actor="store", name="A", op=5, object="register", outcome="ok", extra=0)
        add("store-write", actor="store", name="B", op=0, object="register", outcome="ok", extra=0)
        add("write-return", actor="A", op=5, object="register", outcome="ok")
        said = judge(Timeline.names, records)
        assert said["verdict"]["integrity"]["sorts"]["lost_update"] == lost
        assert list(differences(said, records)) == []


def test_records_that_found_no_room_are_told() -> None:
    """A violation that was seen stays; all else is inconclusive."""
    said = judged_timeline("A+ B+ B- A-", dropped=3)
    assert (said["dropped"], said["unfit"], said["exit"]) == (3, "3 records found no room", 1)
    assert said["verdict"]["mutual_exclusion"]["status"] == "violated"
    assert said["verdict"]["integrity"]["reason"] == "3 records found no room"


def test_a_damaged_record_is_no_history() -> None:
    """Whatever is before and after it, and in whichever reading it is met first."""
    slots = image(Timeline.names, Timeline("A+ A-~ B+ B-").records)
    for place in (0, len(slots) // 64 - 3, len(slots) // 64 - 1):
        damaged = slots[: 64 * place] + b"\1\2\3\4" + slots[64 * place + 4 :]
        assert judged_text(damaged) == judged_text(damaged, Asked("not-happened")) == b""
    assert judged_text(slots)


def test_an_empty_history_is_told() -> None:
    assert judge([], [])["unfit"] == "nobody was granted the lock"  # the image has a note
    assert json.loads(judged_text(b""))["unfit"] == "the history is empty"


def test_what_is_required_decides() -> None:
    timeline = "{tokens permits=2} A+1 A+2 B+3 B- A- A- C-"
    for required, status in (
        (("mutual_exclusion",), 0),
        (("capacity",), 1),
        (("integrity",), 3),
        (("integrity", "capacity"), 1),
        (("mutual_exclusion", "integrity"), 3),
        (("mutual_exclusion", "fencing"), 0),
    ):
        said = judged_timeline(timeline, Asked(required=required))
        assert (said["required"], said["exit"]) == (list(required), status)
        assert {each["exit"] for each in said["policies"]} == {status}
    assert judged_timeline(timeline, Asked(required=("capacity",)))["sentence"] == (
        "Mutual exclusion holds, fencing holds, capacity violated (1 surplus grant, 1 unowned release)"
    )
    assert judged_timeline("A+ B?0 B!x B- A-", Asked(required=("lease",)))["sentence"] == (
        "Mutual exclusion holds, integrity inconclusive, lease inconclusive; besides, ownership violated "
        "(1 foreign release)"
    )


SIDE_BY_SIDE = "A+ B+ C?0 C!x Ar Br Aw Bw"  # B overwrites the update of A


@pytest.mark.parametrize(
    ("timeline", "required", "status"),
    [
        (f"{{permits=2}} {SIDE_BY_SIDE} A- B-", ("mutual_exclusion", "capacity"), 0),
        (f"{{permits=2}} {SIDE_BY_SIDE} C+ A- B- C-", ("mutual_exclusion", "capacity"), 1),
        (f"{{permits=1}} {SIDE_BY_SIDE} A- B-", ("mutual_exclusion", "integrity"), 1),
        ("{permits=2} A+ B+ C?0 C!x Aa Ba A- B-", ("mutual_exclusion", "integrity", "capacity"), 0),
        ("{permits=2} A+ B+ Aa2 A- B-", ("mutual_exclusion", "integrity", "capacity"), 1),
    ],
)
def test_holders_of_a_semaphore_may_overwrite_each_other(timeline: str, required: tuple[str, ...], status: int) -> None:
    said = judged_timeline(timeline)
    assert (tuple(said["required"]), said["exit"]) == (required, status)


def test_integrity_is_judged_of_a_semaphore_if_it_is_asked_for() -> None:
    timeline = f"{{permits=2}} {SIDE_BY_SIDE} A- B-"
    assert judged_timeline(timeline)["sentence"] == "Mutual exclusion holds, capacity holds"
    said = judged_timeline(timeline, Asked(required=("integrity",)))
    assert (said["required"], said["exit"]) == (["integrity"], 1)


def test_beside_a_mutex_integrity_is_required() -> None:
    """A semaphore and a lock with one permit in one history: the latter's data may be what was damaged."""
    story = Timeline("{permits=2} A+ B+ A.cash+ Ar Aw A.cash- A- B-")
    records = [
        replace(each, token=1) if (each.kind, each.name) == ("lock-open", "cash") else each for each in story.records
    ]
    assert judge(story.names, records)["required"] == ["mutual_exclusion", "integrity", "capacity"]


def test_what_depends_on_the_policy_is_inconclusive() -> None:
    for timeline, name, release, acquire in (
        ("A+ A-~ B+ B-", "mutual_exclusion", "unknown", "not-happened"),
        ("{lease=30} quiet @8 B? C+~ @45 B! B-", "liveness", "not-happened", "unknown"),
    ):
        said = judged_timeline(timeline, Asked(release, acquire))
        assert said["policy"] == {"release": release, "acquire_timeout": acquire}
        verdict = said["verdict"][name]
        assert (verdict["status"], verdict["count"], verdict["evidence"]) == ("inconclusive", 0, [])
        assert verdict["reason"] == "it depends on whether operations whose outcome is not known took effect"
        assert name in said["required"]


def test_what_is_the_same_in_every_reading_is_told_with_the_least() -> None:
    """Of two violations, one is there in every reading, and that one is shown."""
    said = judged_timeline("A+ A-~ B+ C+", Asked("unknown", "not-happened"))["verdict"]["mutual_exclusion"]
    assert (said["status"], said["count"], len(said["evidence"])) == ("violated", 1, 1)
    assert said["evidence"][0]["text"].startswith("C was granted the lock (at 8.000 ms) while B")


def test_of_readings_with_as_many_violations_the_first_is_shown() -> None:
    """C meets B in every reading; if A's release did not happen, it meets A first."""
    for release, holder in (("not-happened", "A"), ("released", "B"), ("unknown", "B")):
        said = judged_timeline("A+ B+ A-~ C+", Asked(release))["verdict"]["mutual_exclusion"]
        assert (said["status"], said["count"]) == ("violated", 2)
        assert f"C was granted the lock (at 8.000 ms) while {holder}" in said["evidence"][1]["text"]


def test_nobody_is_lost_when_tables_grow() -> None:
    """Hundreds of clients take all permits of two locks each, then all release them: each had what it releases."""
    clients, locks = [f"client-{number}" for number in range(700)], [f"lock-{number}" for number in range(100)]
    names = [*locks, *clients, "late"]
    records: History = []

    def add(kind: str, **values: Any) -> None:
        records.append(OracleRecord(1 + 2 * len(names) + len(records), kind, **values))

    for lock in locks:
        add("lock-open", actor=clients[0], name=lock, token=14)
    taken = [(client, locks[(place * step + step) % 100]) for step in (1, 7) for place, client in enumerate(clients)]
    for client, lock in taken:
        add("acquire-return", actor=client, name=lock, outcome="ok")
    for lock in locks:
        add("acquire-return", actor="late", name=lock, outcome="refused")
    for client, lock in taken:
        add("release-invoke", actor=client, name=lock)
        add("release-return", actor=client, name=lock, outcome="ok")
    verdict = judge(names, records)["verdict"]
    assert (verdict["capacity"]["status"], verdict["mutual_exclusion"]["status"]) == ("holds", "holds")


def test_clients_whose_names_nobody_defined_are_kept_apart() -> None:
    """Around the number from which clients are found in a hash table instead of an array."""
    slots = image([], [])
    for actor in (1023, 1024, 1025, 1024, 1023):
        for kind in ("acquire-return", "release-invoke"):
            slots += LAYOUT.pack(0, KINDS[kind], OUTCOMES["ok"], 0, 0, actor, 7, 0, 0, 0, 0, 0, 0, 0)
    slots += LAYOUT.pack(0, KINDS["acquire-return"], OUTCOMES["ok"], 0, 0, 1024, 7, 0, 0, 0, 0, 0, 0, 0)
    slots += LAYOUT.pack(0, KINDS["acquire-return"], OUTCOMES["ok"], 0, 0, 1025, 7, 0, 0, 0, 0, 0, 0, 0)
    verdict = json.loads(judged_text(slots))["verdict"]["mutual_exclusion"]
    assert [piece["text"].split(" while ")[0] for piece in verdict["evidence"]] == [
        "#1025 was granted the lock (at 0 s)"
    ]


def test_eight_causes_are_kept() -> None:
    """The ninth is only counted; what is kept goes on being counted."""
    names = [*"ABCDEFGHIJ", "stock"]
    records: History = []

    def add(kind: str, **values: Any) -> None:
        records.append(OracleRecord(1 + 2 * len(names) + len(records), kind, **values))

    for client in (*names[:-1], "B", "J"):
        add("actor-exit", name=client)
        add("acquire-return", actor=client, name="stock", outcome="ok")
    verdict = judge(names, records)["verdict"]["mutual_exclusion"]
    assert verdict["count"] == 11
    assert [piece["text"][0] for piece in verdict["evidence"]] == [*"BCDEFGHI"]
    assert [piece["count"] for piece in verdict["evidence"]] == [2, *[1] * 7]


def test_names_are_escaped_and_cut() -> None:
    """As much as fits, with space for one more escape."""
    for name, said in (
        ("a ~b", "a ~b"),
        ("\x1f\x7f\n", "\\x1f\\x7f\\x0a"),
        ("é", "\\xc3\\xa9"),
        ("\x1b" * 14 + "abcdef", "\\x1b" * 14 + "abc"),
    ):
        records = Timeline("A+ B+").records
        changed = [replace(each, actor=name) if each.actor == "B" else each for each in records]
        names = [name if each == "B" else each for each in Timeline.names]
        text = judge(names, changed)["verdict"]["mutual_exclusion"]["evidence"][0]["text"]
        assert text.startswith(f"{said} was granted the lock")


def test_more_faults_and_parameters_than_a_table_begins_with() -> None:
    names = [f"fault-{number}" for number in range(20)] + ["A", "stock"]
    first = 1 + 2 * len(names)
    records = [OracleRecord(first + place, "fault-inject", name=name) for place, name in enumerate(names[:20])]
    proofs = [(name, "refused" if place % 3 == 0 else "ok") for place, name in enumerate(names[:20])]
    for name, outcome in proofs:
        records.append(OracleRecord(first + len(records), "fault-prove", name=name, outcome=outcome))
        records.append(OracleRecord(first + len(records), "parameter", name=name, value=len(records)))
    said = judge(names, records)
    assert [(each["name"], each["proved"]) for each in said["faults"]] == [(name, how == "ok") for name, how in proofs]
    assert said["parameters"] == {name: 21 + 2 * place for place, name in enumerate(names[:20])}
    assert said["unfit"] == "nobody was granted the lock"


def test_a_parameter_is_a_number_or_a_text() -> None:
    for flags, value in ((0, 1), (PARAMETER_TEXT, "A")):
        parameter = OracleRecord(5, "parameter", name="stock", value=1, flags=flags)
        assert judge(["A", "stock"], [parameter])["parameters"] == {"stock": value}


# --- to the moment ---


def test_times_are_told_from_the_first_record_on() -> None:
    """Also after a torn record."""
    for timeline, granted_ms in (("@10 A+ B+", 13), ("@10 A+ torn B+", 13)):
        slots = image(Timeline.names, Timeline(timeline).records)
        note = LAYOUT.pack(0, KINDS["note"], 0, 0, 0, 0, 0, 3 * 10**6, 0, 0, 0, 0, 0, 0)
        for first in (note, note + bytes(64)):  # the first record alone, before one that is torn
            verdict = json.loads(judged_text(first + slots[64:]))["verdict"]["mutual_exclusion"]
            assert f"(at {granted_ms - 3}.000 ms)" in verdict["evidence"][0]["text"]


def test_a_nanosecond_of_validity_is_some() -> None:
    for left_ns, status in ((1, "holds"), (0, "violated"), (-1, "violated")):
        records = Timeline("A+/20 A-").records
        records[1] = replace(records[1], value=records[1].mono_ns + left_ns)
        lease = judge(Timeline.names, records)["verdict"]["lease"]
        assert (lease["status"], lease["measures"]["least_validity_left_ms"]) == (status, max(0, left_ns) / 1e6)


NEVER_MS = 2**63 - 1


@pytest.mark.parametrize(
    ("lease_ms", "status"), [(30, "violated"), (0, "inconclusive"), (-30, "inconclusive"), (NEVER_MS, "inconclusive")]
)
def test_a_lease_that_no_lock_has_never_ends(lease_ms: int, status: str) -> None:
    """B is stuck when A's lease is over; with no lease, or an endless one, it never is."""
    records = Timeline("{lease=30} quiet A+ B? @100 A(").records
    opened = [replace(each, value=lease_ms) if each.kind == "lock-open" else each for each in records]
    assert judge(Timeline.names, opened)["verdict"]["liveness"]["status"] == status


@pytest.mark.parametrize(
    ("bound_ms", "status"), [(5, "violated"), (0, "violated"), (-1, "violated"), (NEVER_MS, "inconclusive")]
)
def test_a_bound_below_zero_says_nothing(bound_ms: int, status: str) -> None:
    """B waits for a free lock: it is stuck if it waits for longer than the bound, or without a bound at all."""
    records = Timeline("bound=5 quiet A+ A- B? @100 A(").records
    bounded = [replace(each, value=bound_ms) if each.kind == "parameter" else each for each in records]
    assert judge(Timeline.names, bounded)["verdict"]["liveness"]["status"] == status


def test_hundreds_of_failed_releases_are_read_as_either() -> None:
    """By the reading, each leaves its client believing or not: the next grant finds one believer more, or none."""
    names = [*(f"client-{number}" for number in range(200)), "stock"]
    records: History = []

    def add(kind: str, **values: Any) -> None:
        records.append(OracleRecord(1 + 2 * len(names) + len(records), kind, name="stock", **values))

    for client in reversed(names[:-1]):
        add("acquire-return", actor=client, outcome="ok")
        add("release-invoke", actor=client)
    for client in names[:-1]:
        add("release-return", actor=client, outcome="unknown")
    for release, count in (("released", 0), ("not-happened", 199)):
        said = judge(names, records, Asked(release))
        assert said["failed_releases"] == 200
        assert said["verdict"]["mutual_exclusion"]["count"] == count


# --- long histories: what is kept, and for how long ---

NAMES = ["A", "B", "C", "D", "stock", "store"]
FIRST = 1 + 2 * len(NAMES)


def stored(*writes: tuple[str, int, int], name: str = "register", flags: int = 0) -> History:
    """Accepted writes: the writer, the number of its operation (0: the writer records nothing, and the write counts as
    acknowledged), and the version that it was computed from."""
    return [
        OracleRecord(
            FIRST + place,
            "store-write",
            actor="store",
            name=client,
            op=op,
            outcome="ok",
            object=name,
            extra=base,
            flags=flags,
        )
        for place, (client, op, base) in enumerate(writes)
    ]


@pytest.mark.parametrize(
    ("additions", "duplicated"),
    [
        ([("A", 1, 7), ("B", 1, 7)], 1),  # the same piece of work by somebody else
        ([("A", 1, 7), ("A", 2, 7), ("B", 1, 7)], 2),
        ([("A", 1, 7), ("A", 1, 7)], 0),  # delivered again: a set does not mind
        ([("A", 1, 7), ("B", 1, 7), ("A", 1, 7)], 2),  # of these the last is B's work done again
        ([("A", 0, 7), ("A", 0, 7)], 1),  # strangers have no numbers
        ([("A", 1, 7), ("B", 1, 8), ("B", 2, 9)], 0),
        ([("A", 1, 0), *(("B", each, each) for each in range(1, 64)), ("C", 1, 0)], 1),  # the 64th back
        ([("A", 1, 0), *(("B", each, each) for each in range(1, 65)), ("C", 1, 0)], 0),  # nobody remembers
    ],
)
def test_work_that_is_done_again_is_known_for_64_additions(
    additions: list[tuple[str, int, int]], duplicated: int
) -> None:
    records = [
        replace(record, value=value)
        for record, (_, _, value) in zip(
            stored(*((client, op, -1) for client, op, _ in additions), name="set", flags=ATOMIC), additions, strict=True
        )
    ]
    said = judge(NAMES, records)
    assert said["verdict"]["integrity"]["sorts"]["duplicated_operation"] == duplicated
    assert list(differences(said, records)) == []


@pytest.mark.parametrize(
    ("operations", "duplicated"),
    [
        ((1, 2, 66, 65), 0),  # a step of 64: what came before it is out of the window, and 65 is new
        ((1, 2, 65, 2), 1),  # 63 behind
        ((1, 2, 66, 2), 0),  # 64 behind: nobody remembers
        ((1, 2, 67, 2), 0),
        ((5, 3, 3), 1),  # it came late, and then again
        ((5, 3, 4, 3), 1),
        ((1, 2, 3, 1, 2, 3), 3),
        ((1, 64, 1), 1),
        ((0, 0), 0),  # strangers have no numbers
        ((1, 0, 0), 0),
    ],
)
def test_additions_are_known_again_for_64_operations(operations: tuple[int, ...], duplicated: int) -> None:
    records = stored(*(("A", op, -1) for op in operations), name="counter", flags=ATOMIC)
    said = judge(NAMES, records)
    assert said["verdict"]["integrity"]["sorts"]["duplicated_operation"] == duplicated
    assert list(differences(said, records)) == []


@pytest.mark.parametrize(
    ("order", "shown_lost"),
    [
        ("aBA", 1),  # A's own is not told yet
        ("aAtA", None),  # nothing but its own
        ("BatA", 0),  # A's own is the newest that was answered
        ("atBA", 2),
        ("BCatA", 1),
        ("BaCtA", 2),  # C's is newer than A's, though A was told later
        ("BaCDtA", 3),
        ("aBCtA", 2),
        ("batuA", 0),  # B's is older, and was told of later
        ("bCatuA", 1),  # so is C's, which is newer than B's
    ],
)
def test_the_newest_update_that_is_lost_is_shown(order: str, shown_lost: int | None) -> None:
    """a: A's first, blind; A: it again, computed from version 0; t: it is acknowledged; b, u: B's, likewise. All other
    writers record nothing."""
    records: History = []
    for place, what in enumerate(order):
        write = stored((what.upper(), int(what in "abA"), 0 if what == "A" else -1))[0]
        told = OracleRecord(0, "write-return", actor="AB"[what == "u"], op=1, object="register", outcome="ok")
        records.append(replace(told if what in "tu" else write, index=FIRST + place))
    verdict = judge(NAMES, records)["verdict"]["integrity"]
    lost = [piece["records"] for piece in verdict["evidence"]]
    again = FIRST + len(order) - 1
    assert lost == ([] if shown_lost is None else [[FIRST + shown_lost, again]])
    assert list(differences(judge(NAMES, records), records)) == []


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 255])
def test_what_is_no_object_of_the_store_is_not_looked_at(number: int) -> None:
    """0 is no object, and there are three. A's write is older than B's, and B's loses it."""
    used = number in OBJECTS.values() and number != 0
    slots = image(NAMES, [])
    ok, stock, store = OUTCOMES["ok"], 1 + 2 * NAMES.index("stock"), 1 + 2 * NAMES.index("store")
    for client in (1, 3):
        slots += LAYOUT.pack(0, KINDS["acquire-return"], ok, 0, 0, client, stock, 0, 0, 0, 0, 0, 0, 0)
    for kind, client, grant in (("store-read", 1, 0), ("store-write", 3, FIRST + 1), ("store-write", 1, FIRST)):
        slots += LAYOUT.pack(0, KINDS[kind], ok, number, 0, store, client, 0, 0, 0, grant, 0, 0, 0)
    slots += LAYOUT.pack(0, KINDS["write-return"], ok, number, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
    verdict = json.loads(judged_text(slots))["verdict"]["integrity"]
    assert (verdict["sorts"]["stale_write"], verdict["sorts"]["lost_update"]) == ((1, 1) if used else (0, 0))
    assert verdict.get("reason") == (None if used else "nobody used the store")
    only_read = slots[: 64 * (FIRST + 3)] + LAYOUT.pack(0, KINDS["store-read"], ok, *[0] * 11)
    reason = "the store accepted no write" if used else "nobody used the store"
    assert json.loads(judged_text(only_read))["verdict"]["integrity"]["reason"] == reason


@pytest.mark.parametrize(
    ("order", "lost"),
    [
        ("isBr", 1),  # in time: A is told of what B has overwritten
        ("irsBr", 0),  # it came when A had been answered: a second answer is not about it
        ("irIsRBr", 0),  # it came when A had begun something else
        ("isIBRr", 0),  # A began something else before it was told
        ("isrB", 1),
        ("irsB", 0),
        ("isuBr", 0),  # the first answer counts
        ("sBx", 0),  # an answer to something else
        ("isrrB", 1),  # and one that comes twice
        ("issrb", 0),  # what is delivered again is no further update
        ("nsrB", 0),  # an answer to an operation that came after a newer one
        ("RsrB", 0),  # it came when A had been answered a later operation
        ("esrB", 0),  # it came when A had ended
        ("eqsrB", 1),  # and had been heard of again since
    ],
)
def test_who_is_told_of_an_update(order: str, lost: int) -> None:
    """A invokes a write (i), the store accepts it (s), A is answered ok (r) or unknown (u); I, R: its next operation;
    x: an answer to another; n: an operation with a larger number; e: A ends; q: an answer without a number. B, which
    records nothing, overwrites all (B), or what came after the first (b)."""
    steps = {
        "i": OracleRecord(0, "write-invoke", actor="A", op=1, object="register"),
        "s": stored(("A", 1, -1))[0],
        "r": OracleRecord(0, "write-return", actor="A", op=1, object="register", outcome="ok"),
        "I": OracleRecord(0, "read-invoke", actor="A", op=2, object="register"),
        "R": OracleRecord(0, "read-return", actor="A", op=2, object="register", outcome="ok"),
        "n": stored(("A", 7, -1))[0],
        "e": OracleRecord(0, "actor-exit", name="A"),
        "q": OracleRecord(0, "read-return", actor="A", object="register", outcome="ok"),
        "B": stored(("B", 0, 0))[0],
        "b": stored(("B", 0, 1))[0],
        "u": OracleRecord(0, "write-return", actor="A", op=1, object="register"),
        "x": OracleRecord(0, "write-return", actor="A", op=7, object="register", outcome="ok"),
    }
    records = [replace(steps[each], index=FIRST + place) for place, each in enumerate(order)]
    said = judge(NAMES, records)
    assert said["verdict"]["integrity"]["sorts"]["lost_update"] == lost
    assert list(differences(said, records)) == []


def lost_updates(writes: list[tuple[str, int, int]]) -> int:
    """Like `stored`, for so many writes that an OracleRecord of each would take long."""
    number = {name: 1 + 2 * place for place, name in enumerate(NAMES)}
    kind, ok, register = KINDS["store-write"], OUTCOMES["ok"], OBJECTS["register"]
    slots = b"".join(
        LAYOUT.pack(0, kind, ok, register, 0, number["store"], number[client], 0, 0, op, 0, 0, 0, base)
        for client, op, base in writes
    )
    lost: int = json.loads(judged_text(image(NAMES, []) + slots))["verdict"]["integrity"]["sorts"]["lost_update"]
    return lost


RUNS_MOST = 1 << 16  # of versions that cannot be lost any more; then the lower half is forgotten


@pytest.mark.parametrize(("pairs", "lost"), [(RUNS_MOST, RUNS_MOST), (RUNS_MOST + 1, RUNS_MOST // 2 + 1)])
def test_too_many_runs_are_forgotten_from_below(pairs: int, lost: int) -> None:
    """A's updates are acknowledged and B's are not, in turns; then C overwrites them all. B's last may yet be
    acknowledged, so n pairs make n - 1 runs. With the lower half, A's 32,768 updates in between are not counted."""
    writes = [write for op in range(1, pairs + 1) for write in (("A", 0, -1), ("B", op, -1))]
    assert lost_updates([*writes, ("C", 0, 0)]) == lost


def test_what_was_forgotten_is_lost_by_nobody() -> None:
    """As above, and C's write repeats the first of all updates, which does not lose itself."""
    writes = [write for op in range(1, RUNS_MOST + 2) for write in (("A", 0, -1), ("B", op, -1))]
    assert lost_updates([("C", 1, -1), *writes, ("C", 1, 0)]) == RUNS_MOST // 2 + 1


@pytest.mark.parametrize("order", ["BBBB", "BCCB"])
def test_runs_that_touch_are_one(order: str) -> None:
    """140,000 updates that are never acknowledged are one run, so nothing is dropped: A's update before them is found
    to be lost. In BCCB, of each two in flight the later one is known first not to be acknowledged."""
    count = Counter[str]()
    writes = [("A", 0, -1)]
    for place in range(140_000):
        client = order[place % len(order)]
        count[client] += 1
        writes.append((client, count[client], -1))
    assert lost_updates([*writes, ("C", 0, 0)]) == 1


# --- memory ---


def test_judging_gives_back_what_it_took() -> None:
    """Every block that was allocated is freed, whatever the history."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Allocated
    images = [image(each.names, each.records) for each in (RandomHistory(seed) for seed in range(40))]
    images += [image(Timeline.names, Timeline(each).records) for each in EVIDENCE]
    images += [image(Timeline.names, Timeline("bound=5 hurt=A hurt+A A+ A-~").records)] * 20
    left = []
    for _ in range(4):  # a table that Python grows is larger after one of them, what is not freed after each
        before = libc.mallinfo2().in_use_bytes
        for each in images:
            judged_text(each, Asked("unknown", "unknown"))
        left.append(libc.mallinfo2().in_use_bytes - before)
    assert min(left) < len(images) * 16


class Allocated(ctypes.Structure):
    """struct mallinfo2: what the C library's allocator has handed out."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "free",
            "small",
            "maps",
            "maps_bytes",
            "most",
            "small_bytes",
            "in_use_bytes",
            "idle",
            "top",
        )
    )


@dataclass(frozen=True)
class Piece:
    """One piece of evidence: its count, the records that show it, and its text."""

    count: int
    records: list[str]
    text: str


def evidence() -> dict[str, dict[str, list[Piece]]]:
    """By timeline and property, as tests/evidence.txt has it."""
    found: dict[str, dict[str, list[Piece]]] = {}
    pieces: dict[str, list[Piece]] = {}
    for line in (paths.ROOT / "tests" / "evidence.txt").read_text().splitlines():
        if line.startswith(" "):
            head, records, text = (part.strip() for part in line.split(" | "))
            name, count = head.split()
            pieces.setdefault(name, []).append(Piece(int(count), records.split(", "), text))
        elif line and not line.startswith("#"):
            pieces = found.setdefault(line, {})
    return found


EVIDENCE = evidence()


@pytest.mark.parametrize("timeline", EVIDENCE)
def test_the_evidence_is_the_smallest_that_shows_it(timeline: str) -> None:
    story = Timeline(timeline)
    verdict = judge(story.names, story.records)["verdict"]
    by_index = {each.index: each for each in story.records}
    assert EVIDENCE[timeline], "a timeline that nothing is said of"
    for name, pieces in EVIDENCE[timeline].items():
        found = [
            Piece(piece["count"], [shown(by_index[index]) for index in piece["records"]], piece["text"])
            for piece in verdict[name]["evidence"]
        ]
        assert found == pieces, name


def shown(record: OracleRecord) -> str:
    return f"{record.kind} {record.actor or record.name}@{record.mono_ns // 10**6}"


@pytest.mark.parametrize(("another", "violated"), [(0, 0), (3, 1), (2**32 - 1, 1), (2**32, 0), (-1, 0)])
def test_a_renewal_lengthens_a_key_of_a_client_that_has_a_name(another: int, violated: int) -> None:
    """Names are numbers of 32 bits."""
    records = Timeline("A+ Ah").records
    changed = [replace(each, extra=another) if each.kind == "server-renewal" else each for each in records]
    said = judge(Timeline.names, changed)
    assert said["verdict"]["ownership"]["sorts"]["foreign_extension"] == violated
    assert list(differences(said, changed)) == []


@pytest.mark.parametrize(
    ("timeline", "counts"),
    [
        ("{tokens} A+1 Ar A- B+4 Bwb B- C+4", (0, 1, 0)),
        ("{tokens} A+4 B+1 Bwb Awb", (1, 0, 0)),
        ("{tokens} A+4 Ar B+1 Bwb", (1, 0, 1)),
        ("{tokens} A+ B+1 Bw", (0, 0, 0)),  # what is missing is not compared
        ("C+ Cr Awt1 Bwt4 Awt1", (0, 0, 1)),
    ],
)
def test_a_token_below_zero_is_one(timeline: str, counts: tuple[int, int, int]) -> None:
    """Tokens are compared with each other, and not with 0, which means no token."""
    for less in (0, 2, 7):  # 1 and 4 on both sides of 0, or below it
        records = [
            replace(each, token=each.token - less) if each.token and each.kind != "lock-open" else each
            for each in Timeline(timeline).records
        ]
        said = judge(Timeline.names, records)
        fencing = said["verdict"]["fencing"]
        found = fencing["sorts"]["falling_token"], fencing["sorts"]["repeated_token"], fencing["sorts"]["stale_access"]
        assert (found, list(differences(said, records))) == (counts, [])


SENTENCES = {
    "A+ A- B+ B-": "Mutual exclusion holds, integrity inconclusive",
    "A+ B+ Ar": "Mutual exclusion violated, integrity inconclusive",
    "{tokens} A+1 Ar B+2 Br Bw B- Awx": (
        "Mutual exclusion violated, integrity holds (1 stale write fenced), fencing holds"
    ),
    "{tokens} A+1 B+2 Br Ar Ar Bw Awx Awx": (
        "Mutual exclusion violated, integrity holds (2 stale writes fenced), fencing violated (2 stale accesses)"
    ),
    "{tokens} A+7 Ar Aw A- B+1 Brx Bwx B-": (
        "Mutual exclusion holds, integrity holds, fencing violated (1 falling token, 2 wrongful refusals)"
    ),
    "quiet A+ Ar Aw A- B+ A- B-": (
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
