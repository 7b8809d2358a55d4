"""Clients that keep to the validity of their grants (--checks-validity): they look at their clock before each write."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from lockstorm.native.library import Outcome
from lockstorm.scenario.play import trial_command
from lockstorm.storm.storm import run_storm
from lockstorm.storm.storm_plan import StormRequest, plan_storm, storm_replay_command
from lockstorm.storm.storm_schedule import Schedule, StormEvent
from lockstorm.trial.client import Client
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial import Trial
from tests.helpers.planted_plugins import one_mistake
from tests.helpers.support import trial

IN_1_S = "env_mono_ns(lock->env) + 1000 * ENV_NS_PER_MS"
OVER = "the validity that the lock stated is over"


def stating(directory: Path, granted: str, told: str = "0") -> str:
    return f"plugin:{one_mistake(directory, 'stating', f'GRANTED={granted}', f'TOLD={told}', 'ANSWER=OUTCOME_OK')}"


def writes_of(running: Trial, client: Client) -> int:
    return sum(event.kind == "write-invoke" and event.actor == client.name for event in running.story())


@pytest.mark.parametrize("verb", ["write", "add"])
def test_a_write_at_the_end_of_the_validity_is_not_made(verb: str, tmp_path: Path) -> None:
    """The last ns before the end is still valid. A write that is not made leaves no record."""
    with trial(stating(tmp_path, IN_1_S), checks_validity=True) as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        running.run([], running.mono_ns + 1_000_000_000 - 1)
        assert getattr(one, verb)(1).ok
        running.run([], running.mono_ns + 1)
        late = getattr(one, verb)(2)
        assert (late.outcome, late.error) == (Outcome.REFUSED, OVER)
        assert writes_of(running, one) == 1
        assert one.read().value == 1, "reads are not checked"


@pytest.mark.parametrize(
    ("granted", "told", "is_written"),
    [
        ("0", None, True),  # states none
        (IN_1_S, None, False),
        (IN_1_S, "env_mono_ns(lock->env) + INT64_C(3000) * ENV_NS_PER_MS", True),
        (IN_1_S, "INT64_MAX", True),
        ("0", "env_mono_ns(lock->env)", False),  # lost
        ("0", "0", False),
    ],
)
def test_what_was_announced_last_counts(granted: str, told: str | None, is_written: bool, tmp_path: Path) -> None:
    with trial(stating(tmp_path, granted, told or "0"), checks_validity=True) as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        if told:
            assert one.renew().ok
        running.advance(2000)
        assert one.write(1).ok is is_written
        one.release()
        assert one.acquire().ok
        assert one.write(1).ok, "the next grant has a validity of its own"


def test_without_the_option_no_client_looks(tmp_path: Path) -> None:
    with trial(stating(tmp_path, IN_1_S)) as running:
        (one,) = running.clients(1)
        one.acquire()
        running.advance(2000)
        assert one.write(1).ok


def test_the_clock_is_that_of_the_clients_host(tmp_path: Path) -> None:
    """A monotonic clock stands while its host is suspended: the client looks, and sees nothing."""
    with trial(stating(tmp_path, IN_1_S), checks_validity=True) as running:
        (one,) = running.clients(1)
        one.acquire()
        with running.fault("suspend-host", one):
            running.advance(2000)
        assert one.write(1).ok


def test_an_increment_ends_without_its_write_and_releases(tmp_path: Path) -> None:
    with trial("redlock", checks_validity=True) as running:
        one, two = running.clients(2)
        one.start_increment(work_ms=2 * running.lease_ms)
        running.finish(one)
        assert one.result().outcome is Outcome.REFUSED
        assert writes_of(running, one) == 0
        assert two.increment().ok
        verdict = running.judge()
        assert {verdict.properties[name].status for name in ("mutual_exclusion", "integrity")} == {"holds"}


def test_the_command_that_repeats_a_trial_has_the_option() -> None:
    request = TrialSettings("redlock", "gc-pause", checks_validity=True)
    assert trial_command(request).endswith(" --checks-validity")
    assert storm_replay_command(StormRequest(request, "pause-client"), 1).endswith(" --checks-validity")


# --- storms ---


def pauses(passage: int) -> Schedule:
    """A pause of two leases every three, of each client in turn: at once, or where it passes a checkpoint."""
    events = tuple(
        StormEvent(3000 * each + 1007, "pause-client", f"client-{each % 3 + 1}", {}, 2000, passage)
        for each in range(20)
    )
    return Schedule(1, 60_000, 1000, 2000, 3, ("pause-client",), events)


def stormed(directory: Path, passage: int, **options: Any) -> dict[str, str]:
    """What each property of a storm over redlock is."""
    file = directory / f"{passage}.json"
    if not file.exists():
        pauses(passage).save(file)
    request = StormRequest(TrialSettings("redlock", "storm", **options), schedule=file)
    result = run_storm(plan_storm(request))
    assert result.of_storm.faults[0].proved >= 15, result.of_storm.faults
    return {name: found.status for name, found in result.properties.items()}


def test_a_storm_of_pauses_before_the_check_does_no_harm(tmp_path: Path) -> None:
    """A client is paused at once only where time passes: in its work, or while it waits."""
    assert stormed(tmp_path, 0)["integrity"] == "violated"
    kept = stormed(tmp_path, 0, checks_validity=True)
    assert (kept["integrity"], kept["mutual_exclusion"], kept["liveness"]) == ("holds", "holds", "holds")


def test_a_storm_can_pause_a_client_after_its_check(tmp_path: Path) -> None:
    late = [stormed(tmp_path, passage, checks_validity=True)["integrity"] for passage in (4, 5)]
    assert "violated" in late, late


def test_the_trials_of_a_storm_have_the_setting(tmp_path: Path) -> None:
    request = StormRequest(TrialSettings("redlock", "storm", checks_validity=True), "pause-client")
    assert plan_storm(request).settings.checks_validity
    other = dataclasses.replace(request, request=TrialSettings("redlock", "storm"))
    assert not plan_storm(other).settings.checks_validity
