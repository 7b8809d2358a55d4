"""Clients that share a few processes as coroutines (harness/client_group): the checkers judge their histories, and each
of them can be paused alone."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import TaskState, library
from lockstorm.results.verdict import Verdict
from lockstorm.scenario.play import prepare_trial
from lockstorm.trial import client_groups
from lockstorm.trial.client import Client
from lockstorm.trial.client_groups import group_count, group_sizes, grouped
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial import Trial
from tests.helpers.support import lockstorm

WAITERS = 300
REAL_LEASE_MS = 10_000


@contextmanager
def many(lock: str, clients: int, lease_ms: int = REAL_LEASE_MS, **requests: Any) -> Iterator[Trial]:
    """A trial in real time, driven by hand, whose clients share processes."""
    _, settings = prepare_trial(TrialSettings(lock, "contention", time="real", lease_ms=lease_ms))
    settings = grouped(settings, lock_named(lock), clients, stored=True)
    with Trial(replace(settings, **requests)) as trial:
        yield trial


def judged(trial: Trial, clients: list[Client]) -> Verdict:
    for client in clients:
        client.start_increment()
    trial.finish(*clients)
    return trial.judge()


def status(verdict: Verdict, name: str) -> str:
    return verdict.properties[name].status


@pytest.mark.parametrize("lock", ["set-nx-px", "pubsub", "fair", "blpop", "set-nx-px-renew"])
def test_each_of_many_is_served_alone(lock: str) -> None:
    """By polling, by a subscription, in a queue, by a blocking pop, and with a watchdog for each holder."""
    with many(lock, WAITERS) as trial:
        clients = trial.clients(WAITERS)
        verdict = judged(trial, clients)
        assert len({client.pid for client in clients}) == client_groups.GROUPS_LEAST
        assert (verdict.exit, verdict.grants) == (0, WAITERS)
        assert status(verdict, "mutual_exclusion") == status(verdict, "integrity") == "holds"
        assert {event.actor for event in trial.story() if event.kind == "acquire-return"} == {
            f"client-{each + 1}" for each in range(WAITERS)
        }


def test_a_lock_without_exclusion_is_caught() -> None:
    with many("none", WAITERS) as trial:
        clients = trial.clients(WAITERS)
        for client in clients:
            client.start_increment(work_ms=50)
        trial.finish(*clients)
        verdict = trial.judge()
        assert status(verdict, "mutual_exclusion") == status(verdict, "integrity") == "violated"


def test_one_that_is_paused_stands_still_while_others_in_its_process_go_on() -> None:
    with many("set-nx-px", 8) as trial:
        paused, beside, *_ = trial.clients(8)
        assert paused.pid == beside.pid
        with trial.pause(paused):
            moves = library().scheduler_task_moves(trial.scheduler, paused.task)
            assert beside.increment().ok
            paused.start_increment()
            assert beside.increment().ok
            assert library().scheduler_task_moves(trial.scheduler, paused.task) == moves
            assert paused.state is TaskState.READY, "it has not begun"
        assert paused.finish().ok
        verdict = trial.judge()
        assert [(fault.name, fault.proved) for fault in verdict.faults] == [("pause-client", True)]


@pytest.mark.parametrize("lock", ["set-nx-px", "set-nx-px-renew"])
def test_the_holder_that_is_paused_loses_its_lease_and_does_not_notice(lock: str) -> None:
    """What a garbage collection does, to one of several in a process: its sleep does not end, and it renews nothing."""
    with many(lock, 4, lease_ms=1000) as trial:
        holder, other, *_ = trial.clients(4)
        holder.start_increment(work_ms=300)
        holder.run_to("after-acquire")
        holder.go_on()
        trial.advance(50)
        with trial.pause(holder):
            other.increment()  # once the lease has ended, and so has the holder's sleep
            assert holder.state is TaskState.RUNNING, "its step is not done"
        holder.finish()
        assert status(trial.judge(), "mutual_exclusion") == "violated"


def test_what_would_strike_the_others_is_refused() -> None:
    with many("set-nx-px", 4) as trial:
        client = trial.clients(4)[0]
        for fault in ("kill-client", "suspend-host"):
            with pytest.raises(UsageError, match="every client of group-of-client-1"):
                trial.inject(fault, client)


@pytest.mark.parametrize(("clients", "sizes"), [(1, [1]), (2, [1, 1]), (5, [3, 2]), (5001, [1667, 1667, 1667])])
def test_groups(clients: int, sizes: list[int]) -> None:
    assert group_sizes(clients) == sizes
    assert group_count(clients) == len(sizes)


def test_too_few_descriptors_are_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1024, 4096))
    settings = TrialSettings("set-nx-px")
    grouped(settings, lock_named("set-nx-px"), 3000, stored=True)
    with pytest.raises(UsageError, match=r"4,000 clients of set-nx-px need 4,256 .* at most 3,840 clients"):
        grouped(settings, lock_named("set-nx-px"), 4000, stored=True)
    with pytest.raises(UsageError, match="at most 1,920 clients"):
        grouped(settings, lock_named("pubsub"), 3000, stored=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("contention", "--lock", "set-nx-px", "--time", "virtual"), "in real time"),
        (("contention", "--lock", "pg-advisory"), "locks on Redis"),
        (("thundering-herd", "--lock", "etcd"), "on redis"),
        (("contention", "--lock", "set-nx-px", "--store", "table-open"), "is a table"),
        (("gc-pause", "--lock", "set-nx-px"), "is for contention"),
    ],
)
def test_what_many_clients_cannot_do(words: tuple[str, ...], message: str) -> None:
    done = lockstorm("run", *words, "--clients", "1000")
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("clients", ["0", "20001"])
def test_numbers_of_clients_have_limits(clients: str) -> None:
    done = lockstorm("run", "contention", "--lock", "set-nx-px", "--clients", clients)
    assert done.returncode == 2
    assert "from 1 to 20000" in done.stderr


@pytest.mark.slow("serves 300 waiters, one after the other", seconds=15)
@pytest.mark.parametrize("scenario", ["contention", "thundering-herd"])
def test_scenarios_with_many_clients(scenario: str) -> None:
    done = lockstorm("run", scenario, "--lock", "blpop", "--clients", str(WAITERS), "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Mutual exclusion holds" in done.stdout
    assert f"--time real --clients {WAITERS}" in done.stdout, "the command that repeats it"


@pytest.mark.slow("ten thousand clients", seconds=8)
def test_ten_thousand_clients() -> None:
    clients = 10_000
    records = 16 * clients  # each makes about 13
    with many("blpop", clients, lease_ms=80_000, history_records=records) as trial:
        verdict = judged(trial, trial.clients(clients))
        assert (verdict.exit, verdict.grants) == (0, clients)
