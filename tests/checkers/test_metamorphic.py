"""Verdicts that must not change with the history: under other names, with an independent lock in between, with a
harmless client at the end, and without what follows the first violation that was reported.

Everything is asked of the checkers alone: what the definitions and the checkers have wrong in the same way shows here.
"""

from collections import Counter
from functools import cache
from typing import Any

import pytest

from tests.helpers import checker_oracle as oracle
from tests.helpers.changed_histories import (
    NamedHistory,
    cut,
    interleaved,
    later,
    renamed,
    smallest,
    with_client_at_the_end,
    without,
)
from tests.helpers.checker_oracle import PROPERTIES, Json
from tests.helpers.random_histories import RandomHistory

SEEDS = range(500, 1400)
FULL = 8  # causes that a verdict keeps
PLAIN = (("released", "not-happened"), ("not-happened", "not-happened"))  # policies with one reading
FIXED_NAMES = ("bound_ms", "order_ms", "faults_meant", "quiet", "storm")
JUDGED = tuple(name for name in PROPERTIES if name != "cost")


def random_history(seed: int) -> NamedHistory:
    generated = RandomHistory(seed)
    return NamedHistory(generated.names, generated.records)


@cache
def said_of(seed: int) -> Json:
    return random_history(seed).judged()


def counts(verdict: Json) -> dict[str, int]:
    """All violations, and those of each sort; what the store refused."""
    return {key: value for key, value in (verdict | verdict.get("sorts", {})).items() if isinstance(value, int)}


def shown(verdict: Json) -> list[tuple[int, list[int]]]:
    return [(piece["count"], piece["records"]) for piece in verdict["evidence"]]


def by_policy(said: Json, name: str) -> list[tuple[str, int]]:
    return [(each["verdict"][name]["status"], each["verdict"][name]["count"]) for each in said["policies"]]


# --- other names ---


@cache
def said_under_other_names(seed: int) -> Json:
    history = random_history(seed)
    new = {name: f"{place}-{name[::-1]}" for place, name in enumerate(history.names) if name not in FIXED_NAMES}
    return renamed(history, new).judged()


@pytest.mark.parametrize("name", PROPERTIES)
def test_names_do_not_matter(name: str) -> None:
    for seed in SEEDS:
        before, after = said_of(seed)["verdict"][name], said_under_other_names(seed)["verdict"][name]
        assert (after["status"], counts(after), shown(after)) == (before["status"], counts(before), shown(before)), seed
        assert after.get("measures") == before.get("measures"), seed
        assert by_policy(said_under_other_names(seed), name) == by_policy(said_of(seed), name), seed


# --- another time ---


@pytest.mark.parametrize("name", PROPERTIES)
def test_when_it_happened_does_not_matter(name: str) -> None:
    """Only how long it took."""
    for seed in SEEDS[::3]:
        history = random_history(seed)
        before, after = said_of(seed)["verdict"][name], said_later(seed)["verdict"][name]
        if all(each.mono_ns or each.kind == "torn" for each in history.records):
            assert (after["status"], counts(after), shown(after)) == (before["status"], counts(before), shown(before))


@cache
def said_later(seed: int) -> Json:
    return later(random_history(seed), 10**12).judged()


# --- another lock in between ---


@cache
def said_of_two(seed: int) -> tuple[Json, Json, Json, bool]:
    """Of both histories in one, and of each of them; whether an assumption fails without which nothing is judged."""
    one, other = random_history(seed), random_history(seed + 10_000)
    both = interleaved(one, other, seed)
    whole, first, second = (each.judged() for each in (both.whole, *both.parts))
    return whole, first, second, any(oracle.broken(each.records) for each in both.parts)


EARLY = "the history ended too early for those who were still waiting"


def expected_status(verdicts: list[Json]) -> set[str]:
    """What both together may be said to be: one violation is enough, and where one part has nothing to judge the other
    decides. Liveness waits for everybody."""
    statuses = {each["status"] for each in verdicts}
    if "violated" in statuses:
        return {"violated"}
    if len(statuses) == 2:
        return {"inconclusive"} if any(each.get("reason") == EARLY for each in verdicts) else {"holds", "inconclusive"}
    return statuses if statuses == {"holds"} else {"holds", "inconclusive"}


@pytest.mark.parametrize("name", JUDGED)
def test_a_lock_does_not_change_the_verdict_on_another_one(name: str) -> None:
    """The violations of two independent locks are those of the one and those of the other."""
    seen: Counter[tuple[str, str]] = Counter()
    for seed in SEEDS:
        whole, *parts, broken = said_of_two(seed)
        both, one, other = (said["verdict"][name] for said in (whole, *parts))
        if broken:
            assert both["status"] == "inconclusive" and whole["unfit"], seed
            continue
        assert both["status"] in expected_status([one, other]), seed
        assert +Counter(counts(both)) == Counter(counts(one)) + Counter(counts(other)), seed
        if max(len(one["evidence"]) + len(other["evidence"]), len(both["evidence"])) < FULL:
            assert sorted(shown(both)) == sorted(shown(one) + shown(other)), seed
        seen[one["status"], other["status"]] += 1
    assert min(seen["holds", "holds"], seen["violated", "holds"], seen["holds", "violated"]) >= 2, seen


@pytest.mark.parametrize("name", JUDGED)
def test_a_lock_does_not_change_another_one_under_any_reading(name: str) -> None:
    """Where a policy allows several readings, the least count of all of them is told: those do not add up."""
    for seed in SEEDS:
        whole, *parts, broken = said_of_two(seed)
        for policy in range(0 if broken else len(whole["policies"])):
            if tuple(whole["policies"][policy]["policy"].values()) in PLAIN:
                both, one, other = (by_policy(said, name)[policy] for said in (whole, *parts))
                assert both[1] == one[1] + other[1], (seed, policy)


# --- a harmless client at the end ---


@cache
def said_with_another_client(seed: int) -> Json:
    return with_client_at_the_end(random_history(seed)).judged()


@pytest.mark.parametrize("name", JUDGED)
def test_a_harmless_client_changes_no_verdict(name: str) -> None:
    """But there may be something to judge now: somebody was granted a lock, was served in the quiet phase, released."""
    for seed in SEEDS:
        before, after = said_of(seed)["verdict"][name], said_with_another_client(seed)["verdict"][name]
        assert counts(after) == counts(before), seed
        if before["status"] == "inconclusive":
            assert after["status"] in ("inconclusive", "holds"), seed
        else:
            assert after["status"] == before["status"], seed


# --- nothing behind the violation ---


def is_of_the_end(name: str, piece: Json) -> bool:
    """A stuck waiter, or one that was passed and never answered, is one who waits when the history ends: with another
    end there may be none."""
    of_liveness = name == "liveness" and piece["text"].startswith("stuck waiter")
    return of_liveness or (name == "fairness" and piece["text"].endswith("to the end"))


@pytest.mark.parametrize("name", JUDGED)
def test_what_follows_a_violation_is_not_needed_to_see_it(name: str) -> None:
    tried = 0
    for seed in SEEDS:
        evidence: list[Any] = said_of(seed)["verdict"][name]["evidence"]
        if not evidence or is_of_the_end(name, evidence[0]):
            continue
        first = evidence[0]
        verdict = cut(random_history(seed), max(first["records"])).judged()["verdict"][name]
        assert verdict["status"] == "violated", (seed, first)
        assert [piece["text"] for piece in verdict["evidence"]][:1] == [first["text"]], seed
        assert verdict["evidence"][0]["records"] == first["records"], seed
        tried += 1
    assert tried >= 15


# --- small histories ---


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("mutual_exclusion", ["acquire-return", "acquire-return"]),
        ("fencing", ["lock-open", "acquire-return"]),  # no token
        ("ownership", ["acquire-return", "renew-invoke", "renew-return"]),  # by one that was never granted it
    ],
)
def test_a_history_is_made_small(name: str, kinds: list[str]) -> None:
    """Down to the records without which it is no violation; the indices that they name go with them."""

    def violated(history: NamedHistory) -> bool:
        return bool(history.judged()["verdict"][name]["status"] == "violated")

    small = [smallest(random_history(seed), violated) for seed in SEEDS[:60] if violated(random_history(seed))]
    assert small and all(map(violated, small))
    assert kinds in [[each.kind for each in history.records] for history in small]
    for history in small:
        assert not any(violated(without(history, place)) for place in range(len(history.records)))
