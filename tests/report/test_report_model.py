"""The diagram of a history: each bar, arrow and mark against a history written for it."""

from typing import Any

import msgspec
import pytest
from msgspec import structs

from lockstorm.report.diagram import Arrow, Bar, Diagram, lanes_of
from lockstorm.report.history_model import diagram_of
from lockstorm.report.story import story_rows
from lockstorm.report.window import Gap, lines_of, shown_rows
from lockstorm.results.event import Event
from lockstorm.results.verdict import Verdict, VerdictPolicy
from tests.helpers.judging import judge
from tests.helpers.random_histories import RandomHistory
from tests.helpers.results import made_property, made_verdict
from tests.helpers.support import trial

MS = 1_000_000
RENEWS = 16
NOTHING = made_verdict({})
Line = dict[str, Any]


def written(*lines: Line) -> list[Event]:
    """A history of these lines, with indices from 1. `at`: the stamp of a line in ms."""
    events = [{"index": index, **line} for index, line in enumerate(lines, 1)]
    for event in events:
        event["mono_ns"] = event.pop("at", 0) * MS
    return msgspec.convert(events, list[Event])


def opened(actor: str, lease_ms: int = 0, permits: int = 1, traits: int = 1) -> Line:
    return {
        "kind": "lock-open",
        "actor": actor,
        "name": "account",
        "value": lease_ms,
        "token": permits,
        "extra": traits,
    }


def granted(actor: str, at: int = 0, **more: Any) -> Line:
    return {"kind": "acquire-return", "actor": actor, "name": "account", "outcome": "ok", "at": at, **more}


def releases(actor: str, at: int = 0) -> Line:
    return {"kind": "release-invoke", "actor": actor, "name": "account", "at": at}


def released(actor: str, outcome: str = "ok", at: int = 0) -> Line:
    return {"kind": "release-return", "actor": actor, "name": "account", "outcome": outcome, "at": at}


def bars(diagram: Diagram, kind: str) -> list[Bar]:
    return [bar for bar in diagram.bars if bar.kind == kind]


def texts(diagram: Diagram, bar: Bar) -> tuple[str, str]:
    """The texts of the rows where a bar begins and ends."""
    return diagram.rows[bar.first].text, diagram.rows[bar.last].text if bar.last >= 0 else ""


# --- belief ---


def test_belief_lasts_from_the_grant_to_the_release_that_is_sent() -> None:
    diagram = diagram_of(written(granted("A", token=7), releases("A"), released("A")), NOTHING)
    (belief,) = bars(diagram, "belief")
    assert texts(diagram, belief) == ("granted · token 7", "releases")
    assert belief.label == "token 7"


@pytest.mark.parametrize(("policy", "end"), [("released", "releases"), ("not-happened", "")])
def test_a_release_that_failed_ends_belief_as_the_verdict_reads_it(policy: str, end: str) -> None:
    history = written(granted("A"), releases("A"), released("A", "refused"))
    (belief,) = bars(diagram_of(history, made_verdict({}, policy=VerdictPolicy(policy, "not-happened"))), "belief")
    assert belief.last == (1 if end else -1)


def test_belief_ends_at_the_validity_that_the_lock_stated() -> None:
    history = written(
        granted("A", value=50 * MS), {"kind": "acquire-invoke", "actor": "B", "at": 50}, releases("A", at=60)
    )
    diagram = diagram_of(history, NOTHING)
    (belief,) = bars(diagram, "belief")
    assert texts(diagram, belief) == ("granted", "its validity is over")
    assert diagram.rows[belief.last].at_ns == 50 * MS
    assert diagram.rows[belief.last].record is None


def test_a_validity_that_was_extended_is_the_one_that_counts() -> None:
    longer = {"kind": "validity", "actor": "A", "name": "account", "outcome": "ok", "value": 90 * MS, "at": 40}
    history = written(granted("A", value=50 * MS), longer, releases("A", at=60))
    diagram = diagram_of(history, NOTHING)
    assert texts(diagram, bars(diagram, "belief")[0]) == ("granted", "releases")


@pytest.mark.parametrize("value", [0, 10 * MS, 90 * MS])
def test_belief_ends_when_the_lock_says_that_the_grant_is_lost(value: int) -> None:
    """Whatever the stamp that comes with it."""
    lost = {"kind": "validity", "actor": "A", "name": "account", "outcome": "refused", "value": value, "at": 40}
    history = written(granted("A", value=80 * MS), lost, {"kind": "acquire-invoke", "actor": "B", "at": 50})
    diagram = diagram_of(history, NOTHING)
    (belief,) = bars(diagram, "belief")
    assert 0 <= belief.last <= 2


def test_a_validity_prolonged_after_its_end_resumes_belief_unless_the_lock_was_granted_since() -> None:
    late = {"kind": "validity", "actor": "A", "name": "account", "outcome": "ok", "value": 90 * MS, "at": 60}
    diagram = diagram_of(written(granted("A", value=50 * MS), late, releases("A", at=70)), NOTHING)
    assert [texts(diagram, bar) for bar in bars(diagram, "belief")] == [("granted", "releases")]
    with_another = written(granted("A", value=50 * MS), granted("B", at=55), late, releases("A", at=70))
    diagram = diagram_of(with_another, NOTHING)
    assert texts(diagram, bars(diagram, "belief")[0]) == ("granted", "its validity is over")


@pytest.mark.parametrize(("traits", "end"), [(1, 2), (1 | 4, 4)], ids=["plain", "re-entrant"])
def test_a_hold_that_was_entered_again_ends_with_the_last_release_of_a_re_entrant_lock(traits: int, end: int) -> None:
    history = written(
        opened("A", traits=traits), granted("A"), granted("A"), releases("A"), released("A"), releases("A")
    )
    (belief,) = bars(diagram_of(history, NOTHING), "belief")
    assert (belief.first, belief.last) == (0, end)


@pytest.mark.parametrize("batch", range(2))
def test_overlaps_are_drawn_where_the_verdict_has_violations(batch: int) -> None:
    """On random histories: the beliefs that begin while no permit is free are exactly the violations."""
    violated = 0
    for seed in range(batch, 600, 2):
        story = RandomHistory(seed)
        verdict = judge(story.names, story.records)
        judged = verdict["verdict"]["mutual_exclusion"]
        if judged["status"] == "inconclusive":
            continue
        events = msgspec.convert([record.line() for record in story.records], list[Event])
        diagram = diagram_of(events, msgspec.convert(verdict, Verdict))
        begun = {(bar.first, bar.lane) for bar in bars(diagram, "overlap")}
        crowded = [
            at for at, row in enumerate(diagram.rows) if row.kind == "acquire-return" and (at, row.lane) in begun
        ]
        assert len(crowded) == judged["count"], f"RandomHistory({seed})"
        violated += judged["status"] == "violated"
    assert violated > 50


def test_belief_ends_with_the_process_and_its_successor_stands_in_the_same_lane() -> None:
    ends = {"kind": "actor-exit", "actor": "driver", "name": "A", "value": 9}
    diagram = diagram_of(written(opened("A"), granted("A"), ends, opened("A.2"), granted("A.2")), NOTHING)
    first, second = bars(diagram, "belief")
    assert texts(diagram, first) == ("granted", "A is killed")
    assert (first.lane, second.lane) == (0, 0)
    (gone,) = bars(diagram, "gone")
    assert texts(diagram, gone) == ("A is killed", "starts as A.2")


@pytest.mark.parametrize(("permits", "crowded"), [(1, 2), (2, 0)])
def test_an_overlap_is_more_beliefs_than_permits(permits: int, crowded: int) -> None:
    history = written(
        opened("A", permits=permits), opened("B", permits=permits), granted("A"), granted("B"), releases("A")
    )
    diagram = diagram_of(history, NOTHING)
    overlaps = bars(diagram, "overlap")
    assert len(overlaps) == crowded
    assert all(texts(diagram, bar) == ("granted", "releases") for bar in overlaps)


# --- the lease ---


def test_a_lease_runs_out_after_its_last_millisecond() -> None:
    at_the_end = {"kind": "acquire-invoke", "actor": "B", "at": 100}
    later = {"kind": "acquire-invoke", "actor": "B", "at": 101}
    diagram = diagram_of(written(opened("A", 100), granted("A"), at_the_end, later), NOTHING)
    (lease,) = bars(diagram, "lease")
    assert texts(diagram, lease) == ("granted", "lease of A has run out")
    assert [row.text for row in diagram.rows] == [
        "granted",
        "asks for the lock",
        "lease of A has run out",
        "asks for the lock",
    ]


def test_a_lease_ends_with_the_release_but_not_with_one_that_was_refused() -> None:
    ends = [released("A", "refused"), released("A", "ok")]
    diagram = diagram_of(written(opened("A", 100), granted("A"), releases("A"), *ends), NOTHING)
    assert texts(diagram, bars(diagram, "lease")[0]) == ("granted", "released")


def test_a_foreign_release_ends_the_lease_of_the_holder() -> None:
    late = [releases("A", at=150), released("A", at=150)]
    history = written(opened("A", 100), granted("A"), granted("B", at=120), *late, granted("C", at=160))
    first, hit, third = bars(diagram_of(history, NOTHING), "lease")
    assert (first.ended, hit.ended, third.ended) == ("it ran out", "released by A", "")


def test_another_grant_shows_that_the_lease_was_over() -> None:
    diagram = diagram_of(written(opened("A", 100), granted("A"), granted("B", at=10)), NOTHING)
    first, second = bars(diagram, "lease")
    assert (first.last, second.first) == (1, 1)
    assert first.ended == "B was granted the lock"


def test_leases_of_a_semaphore_stand_beside_each_other() -> None:
    diagram = diagram_of(written(opened("A", 100, permits=2), granted("A"), granted("B", at=10)), NOTHING)
    assert [(lease.track, lease.last) for lease in bars(diagram, "lease")] == [(0, -1), (1, -1)]


def test_a_renewal_lengthens_the_lease() -> None:
    renewed = {"kind": "renew-return", "actor": "A", "name": "account", "outcome": "ok", "at": 80}
    diagram = diagram_of(written(opened("A", 100), granted("A"), renewed, releases("A", at=170)), NOTHING)
    assert bars(diagram, "lease")[0].last == -1


def test_an_unseen_watchdog_renews_until_its_process_stands_still() -> None:
    stops = [{"kind": "text", "index": 90, "text": "A"}, {"kind": "fault-inject", "name": "pause-client", "value": 90}]
    history = written(opened("A", 100, traits=RENEWS), granted("A"), *stops, {"kind": "phase", "name": "late"})
    stamps = (0, 0, 0, 500, 601)
    history = [structs.replace(event, mono_ns=at * MS) for event, at in zip(history, stamps, strict=True)]
    diagram = diagram_of(history, NOTHING)
    (lease,) = bars(diagram, "lease")
    assert diagram.rows[lease.last].at_ns == 600 * MS


def test_of_a_lock_without_a_lease_no_lease_is_drawn() -> None:
    diagram = diagram_of(written(opened("A"), granted("A"), releases("A"), released("A")), NOTHING)
    assert not bars(diagram, "lease") and not diagram.has_lease
    assert [lane.kind for lane in diagram.lanes] == ["client"]


# --- messages ---


def access(kind: str, actor: str, op: int = 1, **more: Any) -> Line:
    return {"kind": kind, "actor": actor, "op": op, "object": "counter", "outcome": "ok", **more}


def test_an_access_is_a_request_and_its_answer() -> None:
    history = written(
        access("write-invoke", "A"), access("store-write", "store", name="A"), access("write-return", "A"), granted("A")
    )
    assert diagram_of(history, NOTHING).arrows == [Arrow(0, 1, 0, 1, "delivered"), Arrow(1, 0, 1, 2, "delivered")]


def test_an_answer_that_was_lost_is_not_drawn() -> None:
    lost = access("write-return", "A", outcome="unknown")
    history = written(access("write-invoke", "A"), access("store-write", "store", name="A"), lost)
    assert [arrow.state for arrow in diagram_of(history, NOTHING).arrows] == ["delivered"]


def test_a_request_that_came_twice_is_drawn_twice() -> None:
    twice = [access("store-write", "store", name="A")] * 2
    arrows = diagram_of(written(access("write-invoke", "A"), *twice), NOTHING).arrows
    assert arrows == [Arrow(0, 1, 0, 1, "delivered"), Arrow(0, 1, 0, 2, "twice")]


def test_a_request_that_the_store_has_no_record_of_goes_nowhere() -> None:
    other = access("store-read", "store", op=9, name="B")
    arrows = diagram_of(written(access("write-invoke", "A"), other), NOTHING).arrows
    assert arrows == [Arrow(0, 1, 0, 0, "unheard")]


def test_a_late_write_crosses_what_happened_meanwhile() -> None:
    """A recorded trial: the network holds client-1's write while client-2 holds the lock and writes."""
    with trial("set-nx-px", lease_ms=1000) as running:
        one, two = running.clients(2)
        one.acquire()
        with running.fault("delay-write", one):
            one.start_increment()
            assert two.acquire().ok
            two.write(6)
        one.finish()
        verdict = running.judge()
        diagram = diagram_of(running.story(), verdict)
    (late,) = [arrow for arrow in diagram.arrows if arrow.state == "held" and arrow.last > arrow.first]
    assert diagram.lanes[late.source].name == "client-1"
    assert diagram.rows[late.last].kind == "store-write"
    between = [row.text for row in diagram.rows[late.first : late.last]]
    assert "accepts 6 of client-2" in between
    fired = [arrow for arrow in diagram.arrows if arrow.label == "to-server"]
    assert [(diagram.lanes[each.source].name, each.state) for each in fired] == [("client-1", "held")]


def test_a_rule_of_no_fault_is_drawn_as_fired() -> None:
    link = {"kind": "text", "index": 90, "text": "A>redis-1"}
    rule = {"kind": "rule", "actor": "proxy", "name": "mine", "extra": 90}
    diagram = diagram_of(written(opened("A"), link, rule), NOTHING)
    assert [(arrow.state, arrow.label) for arrow in diagram.arrows] == [("fired", "both")]


# --- evidence, lanes, windows ---


def test_evidence_is_numbered_in_the_order_in_which_it_shows() -> None:
    history = written(granted("A"), granted("B"), access("store-write", "store", name="A"))
    pieces = {
        "integrity": made_property("violated", ("stale", [3])),
        "mutual_exclusion": made_property("violated", ("both", [1, 2])),
        "ownership": made_property("holds"),
    }
    diagram = diagram_of(history, made_verdict(pieces))
    assert [(each.number, each.property, each.rows) for each in diagram.evidence] == [
        (1, "mutual exclusion", (0, 1)),
        (2, "integrity", (2,)),
    ]
    assert [row.evidence for row in diagram.rows] == [[1], [1], [2]]


def test_lanes_stand_in_a_readers_order() -> None:
    actors = ["client-10", "client-2", "client-2.2"]
    history = written(*[opened(actor, 100) for actor in actors], access("store-read", "store", name="client-2"))
    names = [lane.name for lane in lanes_of(history)]
    assert names == ["client-2", "client-10", "lock account", "store"]


def long_diagram(evidence: tuple[int, ...]) -> Diagram:
    history = written(*[{"kind": "acquire-invoke", "actor": "A", "at": each} for each in range(5000)])
    pieces = [("here", list(evidence))] if evidence else []
    return diagram_of(history, made_verdict({"integrity": made_property("violated", *pieces)}))


def test_a_window_surrounds_what_went_wrong_and_the_edges() -> None:
    shown = shown_rows(long_diagram((2000, 4000)), limit=100)
    assert {0, 1, 1998, 1999, 2000, 3998, 3999, 4000, 4999} <= set(shown)
    assert 80 <= len(shown) <= 112


def test_a_window_without_anything_wrong_is_the_beginning() -> None:
    shown = shown_rows(long_diagram(()), limit=100)
    assert shown == [*range(100), *range(4994, 5000)]


def test_a_window_around_a_record_that_was_asked_for() -> None:
    shown = shown_rows(long_diagram((2000,)), limit=100, around=3001)
    assert set(range(2951, 3049)) <= set(shown) and 2000 not in shown


def test_every_row_is_shown_or_in_a_gap() -> None:
    lines = lines_of([0, 1, 5], total=9)
    assert lines == [0, 1, Gap(2, 4), 5, Gap(6, 8)]
    assert lines_of([], total=3) == [Gap(0, 2)]
    assert lines_of([0, 1, 2], total=3) == [0, 1, 2]


def test_a_release_answered_after_the_next_grant_ends_its_own_lease_only() -> None:
    one, two = granted("A"), granted("B", 20)
    diagram = diagram_of(
        written(opened("A", 1000), opened("B", 1000), one, releases("A", 10), two, released("A", at=30)), NOTHING
    )
    assert [(bar.label, bar.ended) for bar in bars(diagram, "lease")] == [("A", "B was granted the lock"), ("B", "")]


def test_only_a_grant_beyond_the_permits_is_told_beside_other_holders() -> None:
    events = written(opened("A", permits=2), granted("A"), granted("B"), granted("C"))
    assert [row.story for row in story_rows(events)] == [
        "is granted the lock",
        "is granted the lock",
        "is granted the lock - and A and B still believe in it",
    ]
