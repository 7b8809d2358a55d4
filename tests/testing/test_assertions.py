"""What a test can assert of a verdict."""

import pytest
from msgspec import structs

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.results.verdict import Evidence
from lockstorm.scenario.play import inconclusive
from lockstorm.search.campaign import Campaign
from lockstorm.search.search_lines import PropertyCount
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.search.search_result import SearchedProperty, search_result

REASON = "no client has a token"
PLAN = plan_search(SearchRequest("none", schedules=1))
COUNTS = PropertyCount()
VIOLATED = [Evidence("two at once", 1, []), Evidence("again", 1, [])]
VERDICT = structs.replace(
    search_result(PLAN, Campaign(key=PLAN.key, shards=1), failed="a test"),
    properties={
        "mutual_exclusion": SearchedProperty(status="violated", count=2, evidence=VIOLATED, schedules=COUNTS),
        "integrity": SearchedProperty(status="holds", count=0, evidence=[], schedules=COUNTS),
        "fencing": SearchedProperty(status="inconclusive", count=0, evidence=[], reason=REASON, schedules=COUNTS),
    },
    sentence="Mutual exclusion violated, integrity holds",
    required=["mutual_exclusion", "integrity"],
    replay="lockstorm explore --lock none",
    exit=1,
)
LINES = [
    "Mutual exclusion violated, integrity holds",
    "mutual exclusion: two at once",
    "mutual exclusion: again",
    "integrity: holds",
]


def failure(*names: str, of: str = "assert_holds") -> list[str]:
    with pytest.raises(AssertionError) as raised:
        getattr(VERDICT, of)(*names)
    *lines, again = str(raised.value).splitlines()
    assert again.startswith("again: ") and again.endswith("lockstorm explore --lock none")
    return lines


def test_they_can_be_chained() -> None:
    assert VERDICT.assert_holds("integrity").assert_violated("mutual-exclusion").assert_violated() is VERDICT


def test_a_failure_has_the_sentence_and_the_evidence() -> None:
    assert failure() == LINES
    assert failure("mutual_exclusion") == LINES[:3]
    assert failure("mutual-exclusion", "integrity", of="assert_violated") == LINES
    assert failure("integrity", of="assert_violated") == [LINES[0], LINES[3]]


def test_what_was_not_judged_passes_neither() -> None:
    for judge in (VERDICT.assert_holds, VERDICT.assert_violated):
        with pytest.raises(Inconclusive, match=f"^fencing could not be judged: {REASON}$"):
            judge("fencing")
    with pytest.raises(Inconclusive):
        VERDICT.assert_holds("integrity", "fencing")
    with pytest.raises(Inconclusive, match="a server died"):
        inconclusive("a server died").assert_violated()
    with pytest.raises(Inconclusive, match="a server died"):
        inconclusive("a server died").assert_holds()


def test_what_is_known_decides_before_what_is_not() -> None:
    assert failure("fencing", "mutual-exclusion")[1:] == [f"fencing: inconclusive: {REASON}", *LINES[1:3]]
    assert failure("integrity", "fencing", of="assert_violated") == [
        LINES[0],
        LINES[3],
        f"fencing: inconclusive: {REASON}",
    ]


def test_an_unknown_property() -> None:
    with pytest.raises(UsageError, match=r"no property called 'livness': there are mutual_exclusion, integrity, fenc"):
        VERDICT.assert_holds("livness")
