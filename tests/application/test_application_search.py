"""Searches of small services, wrong and right: what is found, why, and that the same seed finds it again."""

import json
import re
from pathlib import Path

import pytest

from lockstorm.servers.services import missing
from tests.application.described import COUNTED, CREDITS, NIGHTLY, TICKER, VALUE, WORKERS, described, searched
from tests.helpers.support import lockstorm

pytestmark = pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")

NIGHT = CREDITS.partition("[[check]]")[0] + NIGHTLY
CAUSES = {
    "none": ("unprotected-write", "they have no lock in common"),
    "early": ("unlock-before-commit", "released redis user:1:lock before it committed the transaction"),
}


@pytest.mark.lengthy("searches some tens of schedules of a service")
@pytest.mark.parametrize("mode", CAUSES)
def test_a_lost_update_is_found_with_its_cause(tmp_path: Path, mode: str) -> None:
    rule, words = CAUSES[mode]
    result = searched(described(tmp_path, CREDITS, mode), schedules=100)
    assert result.exit == 1 and result.found and result.found.violates == ["check"]
    assert [each.rule for each in result.warnings] == [rule], "single requests show it already"
    assert "'select remaining from users where id = 1' is" in result.sentence and words in result.sentence
    assert {each.promise for each in result.found.evidence} == {"check", rule}
    told = [line.what for line in result.found.story]
    assert sum("writes postgres users id=1: UPDATE users SET remaining" in line for line in told) >= 2
    assert any("commits its transaction" in line for line in told)


@pytest.mark.lengthy("searches some tens of schedules of a service")
def test_answers_that_contradict_each_other_are_found_where_the_data_are_right(tmp_path: Path) -> None:
    data_only = searched(described(tmp_path, CREDITS, "after"), schedules=60)
    assert data_only.exit == 0, "it subtracts in one statement: nothing is lost"
    result = searched(described(tmp_path, CREDITS + COUNTED, "after"), schedules=60)
    assert result.exit == 1 and result.found and result.found.violates == ["check"]
    same = re.search(r"was answered (\d), and request \d \(consume\) was answered (\d): no order", result.sentence)
    assert same and same[1] == same[2], result.sentence


@pytest.mark.lengthy("searches some tens of schedules of a service")
def test_answers_of_its_right_twin_are_not_accused(tmp_path: Path) -> None:
    """Faults leave requests of unknown outcome, which may take effect late."""
    result = searched(described(tmp_path, CREDITS + COUNTED, "returning"), schedules=60, faults="usual")
    assert result.exit == 0, result.sentence
    assert sum(result.injected.values()) > 5


@pytest.mark.lengthy("searches some tens of schedules of a service")
def test_a_value_that_an_instance_remembers_is_an_answer_of_the_past(tmp_path: Path) -> None:
    text = CREDITS.partition("[[request]]")[0] + VALUE
    wrong = searched(described(tmp_path, text, "cached"), schedules=60)
    assert wrong.exit == 1 and "no order explains this of a register that begins with 10" in wrong.sentence
    right = searched(described(tmp_path, text, "late"), schedules=40, faults="usual")
    assert right.exit == 0, right.sentence


@pytest.mark.lengthy("searches some schedules of a service")
def test_a_batch_job_that_takes_no_lock_is_found(tmp_path: Path) -> None:
    result = searched(described(tmp_path, NIGHT, "row"), schedules=60)
    assert result.exit == 1 and result.found and result.found.violates == ["check"]
    assert [each.rule for each in result.warnings] == ["unprotected-write"]
    assert "request 3 (nightly) on instance 3" in result.warnings[0].sentence, "its messages are known as its own"
    assert any(line.what == "request nightly" for line in result.found.story)


@pytest.mark.lengthy("searches some tens of schedules of a service twice")
def test_a_right_batch_job_that_is_killed_may_have_ended_its_work(tmp_path: Path) -> None:
    file = described(tmp_path, NIGHT, "row", ('"wrong"', '"right"'), ("times = 1", "times = 2"))
    one, other = (
        searched(file, schedules=50, faults="kill-client=2,pause-client=1", keep_going=True, seed=5) for _ in range(2)
    )
    assert one.exit == 0, one.sentence
    assert one.injected["kill-client"] > 3 and one.injected["pause-client"] > 0
    assert one.history_sha256 == other.history_sha256


@pytest.mark.lengthy("searches some tens of schedules of a service")
@pytest.mark.parametrize("mode", ["late", "row"])
def test_its_right_twin_is_neither_warned_of_nor_accused(tmp_path: Path, mode: str) -> None:
    result = searched(described(tmp_path, CREDITS, mode), schedules=60)
    assert result.exit == 0 and result.warnings == []
    assert "met every check in 60 schedules" in result.sentence
    for name, verdict in result.properties.items():
        assert (verdict.status, verdict.count) == ("holds", 0), name


@pytest.mark.lengthy("searches some tens of schedules of a service twice")
def test_the_same_seed_has_the_same_histories_with_all_faults(tmp_path: Path) -> None:
    file = described(tmp_path, CREDITS, "late")
    one, other = (searched(file, schedules=40, faults="usual", keep_going=True) for _ in range(2))
    assert one.history_sha256 == other.history_sha256
    assert sum(one.injected.values()) > 5


@pytest.mark.lengthy("searches some tens of schedules of a service")
def test_a_request_without_an_answer_makes_what_is_right_a_range(tmp_path: Path) -> None:
    """An instance that is killed may have subtracted, or not."""
    file = described(tmp_path, CREDITS, "row")
    result = searched(file, schedules=25, faults="kill-client=1", keep_going=True)
    assert result.injected["kill-client"] > 1 and result.exit == 0


@pytest.mark.lengthy("searches some tens of schedules of a service, and replays one")
def test_what_is_found_is_saved_replayed_and_drawn(tmp_path: Path) -> None:
    file, saved, page = described(tmp_path, CREDITS, "none"), tmp_path / "found.schedule", tmp_path / "found.html"
    found = lockstorm("explore", "--app", str(file), "--schedules", "60", "--faults", "none", "-o", str(saved))
    assert found.returncode == 1, found.stderr
    text = saved.read_text()
    assert f"app {file}\n" in text and "\nviolates check\nworkload\ninstance-" in text and "client-" not in text
    again = lockstorm("replay", str(saved), "--json")
    replayed = json.loads(again.stdout)
    assert again.returncode == 1 and replayed["violates"] == ["check"]
    assert {"access-read", "access-write", "transaction-committed"} <= {each["kind"] for each in replayed["accesses"]}
    saved.write_text(text.replace("instance-", "client-"))
    before = lockstorm("replay", str(saved), "--json")
    assert json.loads(before.stdout)["accesses"] == replayed["accesses"], "a file of before is read, too"
    assert lockstorm("report", str(saved), "-o", str(page)).returncode == 0
    assert 'class="transaction"' in page.read_text() and "users id=1" in page.read_text()


@pytest.mark.lengthy("searches some tens of schedules of a service")
def test_a_job_of_a_queue_is_done_twice_or_once(tmp_path: Path) -> None:
    """What a server is told is a request, too; the workers of the instances take it by their own timers."""
    once = ("empty = true", 'equals = "job.ok"')
    total = """local n = 0 for _, v in ipairs(redis.call(\\"HVALS\\", \\"done\\")) do n = n + v end return n"""
    checks = ("HVALS done", f"EVAL '{total}' 0")
    wrong = searched(described(tmp_path, WORKERS, "look", once, checks), schedules=60)
    assert wrong.exit == 1 and wrong.found and "job: " in wrong.sentence
    right = searched(described(tmp_path, WORKERS, "pop", once, checks), schedules=40)
    assert right.exit == 0, right.sentence


@pytest.mark.lengthy("searches some tens of schedules of a service")
def test_what_a_service_does_by_its_timers_belongs_to_a_schedule_that_lasts(tmp_path: Path) -> None:
    wrong = searched(described(tmp_path, TICKER, "each"), schedules=5)
    assert wrong.exit == 1 and "is 2, and 1 = at most 1 was right" in wrong.sentence
    right = searched(described(tmp_path, TICKER, "one"), schedules=10)
    assert right.exit == 0, right.sentence
    assert right.steps > 10 * 10, "messages of timers are steps of the schedule"


@pytest.mark.lengthy("searches some schedules of a service, each with new instances")
def test_a_service_that_depends_on_earlier_schedules_is_started_anew_for_each(tmp_path: Path) -> None:
    """What its memory has kept from an earlier schedule is no violation. From then on there is nothing to keep."""
    result = searched(described(tmp_path, TICKER, "later"), schedules=8)
    assert result.exit == 3 and result.unrepeated == 1 and result.found is None, result.sentence
    assert "did not violate it again with programs that were started for it alone" in result.sentence
    assert result.sessions and result.sessions > 5
