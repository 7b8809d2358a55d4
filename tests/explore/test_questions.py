"""Questions about what servers heard and what clients left behind: locks with one mistake each are told apart from
their right twins."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.results.event import Event
from lockstorm.search.replay import replay_schedule
from lockstorm.search.replay_real import replay_real
from lockstorm.search.schedule_file import ScheduleFile, parse_schedule_file
from lockstorm.search.search_plan import SearchRequest, plan_search
from tests.helpers.daily import daily
from tests.helpers.planted_plugins import one_mistake, plant
from tests.helpers.searching import search_json
from tests.helpers.support import lockstorm

CALM_FAULTS = (
    "pause-client,pause-client-before-send,kill-client,lose-reply,drop-request,hold-request,duplicate-request,"
    "error-reply,crash-server"
)


def search(lock: str, faults: str, require: str, **requests: Any) -> dict[str, Any]:
    """A search in one process whose clients work for a lease and a half, so that watchdogs renew."""
    usual = {"workers": 1, "work_ms": 1500, "schedules": 1500}
    plan = plan_search(SearchRequest(lock, faults=faults, require=require, **{**usual, **requests}))
    result = search_json(plan)
    assert result["verdict"], result["sentence"]
    return result


def evidence_of(result: dict[str, Any], name: str) -> str:
    assert result["exit"] == 1, result["sentence"]
    return " ".join(str(each["text"]) for each in result["verdict"][name]["evidence"])


@pytest.mark.parametrize(
    "mistake,faults,require,said",
    daily(
        [
            ("BLIND_PEXPIRE", "pause-client", "ownership", "lengthened what client-"),
            ("UNSTOPPED", "none", "lease", "sent after the release"),
            ("BLIND_SET", "hold-request", "lease", "made the lock's key again"),
            ("DEAF", "pause-client", "lease", "no server that heard of it had a key of its own"),
        ],
        [("DEAF", "pause-client", "lease", "no server that heard of it had a key of its own")],
        "one more mistake in a renewal",
        3,
    ),
)
def test_a_mistake_in_a_renewal_is_found(tmp_path: Path, mistake: str, faults: str, require: str, said: str) -> None:
    extends = mistake == "DEAF"
    file = one_mistake(tmp_path, "watched", mistake)
    result = search(f"plugin:{file}", faults, require, extends=extends, fixed_lease=extends)
    assert said in evidence_of(result, require)
    twin = search(f"plugin:{one_mistake(tmp_path, 'watched')}", faults, require, extends=extends, fixed_lease=extends)
    assert twin["exit"] == 0, twin["sentence"]
    assert twin["verdict"][require]["schedules"]["holds"] > 100


@pytest.mark.parametrize(("lock", "mistake"), [("push", "SILENT"), ("queue", "SLOW")])
def test_a_free_lock_that_nobody_notices_in_time_is_found(tmp_path: Path, lock: str, mistake: str) -> None:
    """Without a fault nobody has to wait for the end of a lease: a message, or the next poll, says that it is free."""
    requests = {"schedules": 200, "lease_ms": 10_000, "work_ms": 900}
    wrong = search(f"plugin:{one_mistake(tmp_path, lock, mistake)}", "none", "liveness", **requests)
    assert "lost wake-up" in evidence_of(wrong, "liveness")
    twin = search(f"plugin:{one_mistake(tmp_path, lock)}", "none", "liveness", **requests)
    assert twin["exit"] == 0, twin["sentence"]
    assert twin["verdict"]["liveness"]["schedules"]["holds"] == 200


def test_the_bound_of_a_search_is_what_its_pattern_promises_and_its_faults_may_add() -> None:
    def bound_ms(lock: str, faults: str) -> int:
        return plan_search(SearchRequest(lock, faults=faults, require="liveness", lease_ms=1000)).of_lock.bound_ms

    assert bound_ms("pubsub", "none") == 100
    assert bound_ms("pubsub", "pause-client") == bound_ms("pubsub", "kill-client,drop-message") == 100 + 1000 + 1000
    assert bound_ms("blpop", "pause-client") == bound_ms("pubsub", "pause-client") + 1000, "a pop that has just begun"
    assert bound_ms("pubsub", "clock-jump=2,pause-client") == bound_ms("pubsub", "pause-client") + 2 * 3000
    chosen = plan_search(SearchRequest("pubsub", faults="none", require="liveness", bound_ms=40))
    assert (chosen.of_lock.bound_ms, chosen.key["bound_ms"]) == (40, 40)


def test_a_story_tells_what_the_server_did(tmp_path: Path) -> None:
    result = search(f"plugin:{one_mistake(tmp_path, 'watched', 'BLIND_PEXPIRE')}", "pause-client", "ownership")
    (tmp_path / "found").write_text(result["found"]["file"])
    told = lockstorm("replay", str(tmp_path / "found")).stdout
    assert re.search(r"server +lengthens what client-\d holds, for a renewal of client-\d", told), told


@pytest.mark.parametrize("require", daily(["ownership", "lease"], ["lease"], "one more property of the same lock", 3))
def test_a_right_watchdog_stands_all_faults(tmp_path: Path, require: str) -> None:
    result = search(f"plugin:{one_mistake(tmp_path, 'watched')}", CALM_FAULTS, require, schedules=1000)
    counts = result["verdict"][require]["schedules"]
    assert (result["exit"], counts["violated"]) == (0, 0), result["sentence"]


def test_ownership_is_counted_shown_and_shrunk_to_where_it_is_required() -> None:
    """Two pauses: the late holder deletes what another one holds."""
    wrong = search("set-nx-blind-del", "pause-client=2", "ownership", schedules=1000)
    assert "was told ok, though the lock had gone to client-" in evidence_of(wrong, "ownership")
    verdict = wrong["verdict"]["ownership"]
    assert (verdict["status"], verdict["count"], verdict["schedules"]["violated"]) == ("violated", 1, 1)
    smallest = replay_schedule(parse_schedule_file(wrong["found"]["file"], "found"), "found")
    assert smallest.properties["ownership"].status == "violated"
    assert any("ownership" in group["violates"] for group in wrong["groups"])
    right = search("set-nx-px", "pause-client=2", "ownership", schedules=1000)
    verdict = right["verdict"]["ownership"]
    assert (right["exit"], verdict["status"], verdict["count"]) == (0, "holds", 0), right["sentence"]
    assert verdict["schedules"]["holds"] > 100 and right["sentence"].startswith("0 violations in 1,000 schedules")


# --- a client that keeps to its validity ---


def keeping(file: str, faults: str, **requests: Any) -> dict[str, Any]:
    usual = {"require": "integrity", "checks_validity": True, "work_ms": 20, "schedules": 1500}
    return search(f"plugin:{file}", faults, **{**usual, **requests})


def test_a_client_that_checks_its_validity_stands_a_pause_before_the_check(tmp_path: Path) -> None:
    """The example states a validity. A pause after which the client looks at its clock does no harm."""
    file = plant(tmp_path)
    kept = keeping(file, "pause-client")
    assert kept["exit"] == 0, kept["sentence"]
    assert kept["verdict"]["integrity"]["schedules"]["holds"] == 1500
    assert kept["injected"]["pause-client"] > 1000
    assert kept["verdict"]["mutual_exclusion"]["status"] == "holds"
    assert keeping(file, "pause-client", checks_validity=False)["exit"] == 1


def test_a_pause_after_the_check_makes_its_write_late(tmp_path: Path) -> None:
    """Nothing but the resource can stop a write that was right when it was sent."""
    late = keeping(plant(tmp_path), "pause-client-before-send")
    assert late["exit"] == 1, late["sentence"]
    assert "\nchecks_validity 1\n" in late["found"]["file"]
    assert parse_schedule_file(late["found"]["file"], "found").checks_validity == 1
    assert " --checks-validity" in late["replay"]
    struck = replay_schedule(parse_schedule_file(late["found"]["file"], "found"), "found")
    assert struck.properties["integrity"].status == "violated"


@pytest.mark.parametrize(
    ("line", "checkpoint", "checks", "status"),
    [
        ("before client-1 7: pause-client-before-send client-1 3000", "before-write", 1, "violated"),
        ("before client-1 4: pause-client client-1 3000", "before-read", 0, "violated"),
        ("before client-1 4: pause-client client-1 3000", "before-read", 1, "holds"),
    ],
)
@pytest.mark.waits
def test_real_processes_check_their_validity_too(
    line: str, checkpoint: str, checks: int, status: str, tmp_path: Path
) -> None:
    found = parse_schedule_file(keeping(plant(tmp_path), "pause-client-before-send")["found"]["file"], "found")
    played = replay_real(replace(found, lines=(line,), checks_validity=checks), "found")
    assert (played.struck_at, played.properties["integrity"].status) == (checkpoint, status)


@pytest.mark.slow("one search more", seconds=5)
def test_an_announcement_moves_the_end_of_a_validity() -> None:
    """The watchdog of redlock-renew announces; the client's work is longer than its first validity."""
    held = search("redlock-renew", "pause-client", "integrity,lease", checks_validity=True, clients=2, schedules=300)
    assert held["exit"] == 0, held["sentence"]
    assert held["verdict"]["lease"]["schedules"]["holds"] == 300
    held = search("redlock-renew", "none", "integrity", checks_validity=True, clients=2, schedules=100)
    assert held["exit"] == 0
    assert held["verdict"]["integrity"]["schedules"]["holds"] == 100
    written = search("redlock-renew", "none", "integrity", clients=2, schedules=100)
    assert written["steps"] == held["steps"]  # it wrote as often as a client that does not check


# --- a queue that promises an order ---


def in_order(lock: str, **requests: Any) -> dict[str, Any]:
    return search(lock, "none", "fairness", **{"work_ms": None, "schedules": 600, **requests})


@pytest.mark.parametrize("work_ms", daily([None, 900], [None], "the same mistakes with more work", 3))
@pytest.mark.parametrize("mistake", ["TAKES_HEAD", "TAKES_TWO", "STAYS"])
def test_a_waiter_that_gives_up_more_than_its_own_place_is_found(tmp_path: Path, mistake: str, work_ms: int) -> None:
    wrong = in_order(f"plugin:{one_mistake(tmp_path, 'queue', mistake)}", work_ms=work_ms)
    assert "out of turn while client-" in evidence_of(wrong, "fairness")
    twin = in_order(f"plugin:{one_mistake(tmp_path, 'queue')}", work_ms=work_ms)
    assert twin["exit"] == 0, twin["sentence"]
    assert twin["verdict"]["fairness"]["schedules"] == {"holds": 600, "violated": 0, "inconclusive": 0, "broken": 0}


@pytest.mark.parametrize(
    "requests",
    daily(
        [
            {"wait_ms": 100, "work_ms": 50},
            {"clients": 4, "turns": 3, "work_ms": 60, "wait_ms": 100},
            {"strategy": "pct"},
        ],
        [{"wait_ms": 100, "work_ms": 50}],
        "a right queue in other searches",
        3,
    ),
)
@pytest.mark.parametrize(
    "schedules",
    [200, pytest.param(2000, marks=pytest.mark.slow("plays 4,000 schedules", seconds=40))],
)
def test_a_queue_that_keeps_its_order_is_not_accused(tmp_path: Path, requests: dict[str, Any], schedules: int) -> None:
    """Polls, ends of waits and releases fall on the same moment: answers overtake each other on their way."""
    for lock in ("fair", f"plugin:{one_mistake(tmp_path, 'queue')}"):
        kept = in_order(lock, schedules=schedules, **requests)
        assert kept["exit"] == 0, kept["sentence"]
        assert kept["verdict"]["fairness"]["schedules"]["holds"] == schedules


@pytest.mark.slow("thousands of schedules; the zoo plays its scenario every day", seconds=8)
def test_a_published_bug_of_a_queue_is_found() -> None:
    """redisson#5019: a waiter that gave up kept its place, and with it the turn of its next request."""
    wrong = in_order("redisson-5019")
    assert "out of turn" in evidence_of(wrong, "fairness")
    assert "\nin_order 1\n" in wrong["found"]["file"]
    replayed = replay_schedule(parse_schedule_file(wrong["found"]["file"], "found"), "found")
    assert replayed.properties["fairness"].status == "violated"
    assert "fairness" in replayed.required


def test_order_is_recorded_only_where_fairness_is_required() -> None:
    """All other histories stay as they were, byte for byte."""
    plan = plan_search(SearchRequest("fair", faults="none", schedules=1))
    assert (plan.of_lock.in_order, plan.of_lock.turns) == (0, 1)
    for require in ("fairness", "mutual_exclusion"):
        plan = plan_search(SearchRequest("fair", faults="none", require=require, turns=2, schedules=1, workers=1))
        events: list[Event] = []
        file = ScheduleFile(**vars(plan.context), number=1, violates=(), lines=())
        replay_schedule(file, "the usual course", events)
        recorded = {each.name for each in events if each.kind == "parameter"}
        assert ("order_ms" in recorded) == (require == "fairness")
        assert ("\nin_order" in file.text) == (require == "fairness")


@pytest.mark.parametrize(
    ("lock", "faults", "reason"),
    [("pubsub", "none", "promise an order; pubsub does not"), ("fair", "pause-client", "needs --faults none")],
)
def test_fairness_is_refused_where_it_would_stay_open(lock: str, faults: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        plan_search(SearchRequest(lock, faults=faults, require="fairness"))


# --- what a refused acquire leaves ---


@pytest.mark.parametrize(
    "lock,mistake,faults,said",
    daily(
        [
            ("list", "PLACE_KEPT", "none", "entries"),
            ("list", "SCRIPTS_REMOVED", "none", "entries"),
            ("pair", "UNANSWERED_KEPT", "lose-reply", "entries"),
            ("channel", "SUBSCRIPTION_KEPT", "none", "subscriptions"),
        ],
        [("list", "PLACE_KEPT", "none", "entries"), ("list", "SCRIPTS_REMOVED", "none", "entries")],
        "one more mistake of a refused acquire",
        3,
    ),
)
def test_what_a_refused_acquire_leaves_is_found(
    tmp_path: Path, lock: str, mistake: str, faults: str, said: str
) -> None:
    """Clients wait for a shorter time than another works, so some of them give up."""
    requests: dict[str, Any] = {"work_ms": 300, "wait_ms": 100, "schedules": 800}
    found = search(f"plugin:{one_mistake(tmp_path, lock, mistake)}", faults, "liveness", **requests)
    assert f"of {said} of client-" in evidence_of(found, "liveness")
    requests["schedules"] = 2400  # few count: most clients give up beside a free lock, which measures nothing
    twin = search(f"plugin:{one_mistake(tmp_path, lock)}", CALM_FAULTS, "liveness", **requests)
    assert twin["exit"] == 0, twin["sentence"]
    assert twin["verdict"]["liveness"]["schedules"]["holds"] > 20


@pytest.mark.slow("compares two searches in full", seconds=6)
def test_what_servers_are_asked_depends_on_nothing_but_the_seed(tmp_path: Path) -> None:
    """Also the records of renewals and of what is left, in one process and in two."""
    file = one_mistake(tmp_path, "list", "PLACE_KEPT")
    for lock, faults in ((f"plugin:{file}", "none"), ("redlock-renew", CALM_FAULTS), ("fair", CALM_FAULTS)):
        requests: dict[str, Any] = {"schedules": 60, "keep_going": True, "wait_ms": 100, "seed": 7}
        one = search(lock, faults, "ownership,lease,liveness", **requests)
        two = search(lock, faults, "ownership,lease,liveness", **{**requests, "workers": 2})
        assert one["history_sha256"] == two["history_sha256"]
        assert one["verdict"] == two["verdict"]
