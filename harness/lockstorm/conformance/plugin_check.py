"""Checks whether a plug-in behaves as a lock and as its traits claim (`lockstorm plugin check`). Each check plays a
small trial in the plug-in's kind of time. The message of a failure tells the author what to correct."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.conformance.check_result import DoneCheck, PluginChecks
from lockstorm.native.library import Outcome
from lockstorm.results.lock_entry import LockEntry
from lockstorm.scenario.play import usual_time
from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.servers.services import check_installed, lease_at_least
from lockstorm.trial.client import Client
from lockstorm.trial.settings import TrialSettings, lease_late_in
from lockstorm.trial.stall_sentinel import play_unstalled
from lockstorm.trial.trial import Trial

LONG_LEASE_MS = 10_000  # for checks during which the lease must not end
SHORT_LEASE_MS = 1000  # for checks that wait for the end of the lease
WAIT_MS = 2000
PROMPT_MS = 500  # limit of one try in real time, even on a busy machine
SCHEDULES = 64


class CheckFailed(Exception):
    """A check has found a mistake in the plug-in. Its message is for the author."""


@dataclass(frozen=True)
class PluginBench:
    """The input of a check: the plug-in's entry, and trials with its lock."""

    entry: LockEntry

    @contextlib.contextmanager
    def trial(self, lease_ms: int = LONG_LEASE_MS) -> Iterator[Trial]:
        entry = self.entry
        settings = TrialSettings(
            lock=entry.name,
            time=usual_time(entry),
            lease_ms=lease_at_least(entry, lease_ms),
            nodes=entry.nodes,
            replicas=entry.replicas,
        )
        with Trial(settings) as trial:
            yield trial
            trial.must_not_stall()


def must(outcome: Outcome, expected: Outcome, reason: str) -> None:
    if outcome is not expected:
        raise CheckFailed(f"it answered {outcome.name.lower()}: {reason}")


def granted(client: Client) -> int:
    """Acquires the free lock and returns the token."""
    result = client.acquire(0)
    must(result.outcome, Outcome.OK, "the lock was free, so it has to be granted")
    return result.token


def refusal(bench: PluginBench, wait_ms: int) -> tuple[Outcome, float]:
    """The outcome for a client that waits so long for a lock that another client holds, and after how many ms."""
    with bench.trial() as trial:
        one, two = trial.clients(2)
        granted(one)
        began_ns = trial.mono_ns
        return two.acquire(wait_ms).outcome, (trial.mono_ns - began_ns) / 1e6


# --- the checks ---


def keeps_to_its_environment(bench: PluginBench) -> None:
    """time, chance, messages and threads come from its environment"""
    elsewhere = bench.entry.shared_object.elsewhere
    if elsewhere:
        raise CheckFailed("; ".join(elsewhere) + ". So it can only be played in real time, and not be explored")


def grants(bench: PluginBench) -> None:
    """a free lock is granted, and released"""
    with bench.trial() as trial:
        (one,) = trial.clients(1)
        first = granted(one)
        must(one.release().outcome, Outcome.OK, "it had the lock, so it can release it")
        second = 0 if bench.entry.once else granted(one)
    if bench.entry.token and (first < 1 or (second <= first and not bench.entry.once)):
        raise CheckFailed(
            f"its traits say LOCK_TRAIT_TOKEN, and its grants had the tokens {first} and {second}: each has to be "
            "larger than the one before, and than 0"
        )


def excludes(bench: PluginBench) -> None:
    """a lock that is taken is refused to others, at once if they do not wait"""
    outcome, took_ms = refusal(bench, 0)
    if outcome is Outcome.OK:
        raise CheckFailed("two clients hold the lock at once: is its key made of lock->options.resource?")
    must(outcome, Outcome.REFUSED, "another client has the lock, and one try, with wait_ms 0, is refused")
    if took_ms > PROMPT_MS:
        raise CheckFailed(f"it took {took_ms:.0f} ms to refuse: wait_ms 0 is one try, without waiting")


def waits_for_so_long(bench: PluginBench) -> None:
    """a client that waits for a limited time is refused after it"""
    outcome, took_ms = refusal(bench, WAIT_MS)
    must(outcome, Outcome.REFUSED, f"the lock was taken for longer than it waited ({WAIT_MS} ms)")
    if took_ms > WAIT_MS + PROMPT_MS or (took_ms < WAIT_MS / 2 and bench.entry.waits != "not"):
        raise CheckFailed(f"it refused after {took_ms:.0f} ms, and had to wait for {WAIT_MS} ms")


def is_served(bench: PluginBench) -> None:
    """a client that waits without a limit is granted the lock when it is released"""
    with bench.trial() as trial:
        one, two = trial.clients(2)
        granted(one)
        two.start_acquire(-1)
        trial.advance(WAIT_MS)
        must(one.release().outcome, Outcome.OK, "it had the lock, so it can release it")
        trial.finish(two)
        must(two.result().outcome, Outcome.OK, "the lock was released while it waited for it")


def releases_its_own(bench: PluginBench) -> None:
    """only the holder can release"""
    with bench.trial() as trial:
        one, two, three = trial.clients(3)
        granted(one)
        two.acquire(0)
        outcome = two.release().outcome
        if three.acquire(0).outcome is Outcome.OK:
            raise CheckFailed(
                "a client that was refused the lock released it all the same: a release has to compare the owner first"
            )
    if outcome is Outcome.OK:
        raise CheckFailed(
            "it answered ok to the release of a lock that another client holds, which changed nothing: refused"
        )


def is_held_asks_servers(bench: PluginBench) -> None:
    """is_held, if there is one, is ok for the holder only"""
    with bench.trial() as trial:
        one, two = trial.clients(2)
        granted(one)
        mine, theirs = one.is_held().outcome, two.is_held().outcome
    if mine is Outcome.REFUSED:
        raise CheckFailed("it answered refused to the holder")
    if theirs is Outcome.OK:
        raise CheckFailed("it answered ok to a client that does not hold the lock: does it compare the owner?")


def renews(bench: PluginBench) -> None:
    """a renewal makes the lease longer"""
    with bench.trial(SHORT_LEASE_MS) as trial:
        one, two = trial.clients(2)
        granted(one)
        trial.advance(trial.lease_ms * 0.6)
        must(one.renew().outcome, Outcome.OK, "it holds the lock, so it can renew it")
        trial.advance(trial.lease_ms * 0.6)
        must(two.acquire(0).outcome, Outcome.REFUSED, "it was renewed, and free when its first lease was over")


def renews_its_own(bench: PluginBench) -> None:
    """only the holder can renew"""
    with bench.trial(SHORT_LEASE_MS) as trial:
        one, two, three = trial.clients(3)
        granted(one)
        two.acquire(0)
        trial.kill(one)  # a watchdog of its own would renew the lease as well
        trial.advance(trial.lease_ms * 0.6)
        outcome = two.renew().outcome
        trial.advance(trial.lease_ms * 0.6 + lease_late_in(trial.settings, trial.lock))
        if three.acquire(0).outcome is Outcome.REFUSED:
            raise CheckFailed(
                "a client that was refused the lock made the holder's lease longer: a renewal has to compare the owner "
                "first"
            )
    if outcome is Outcome.OK:
        raise CheckFailed("it answered ok to the renewal of a lock that another client holds: refused")


def expires(bench: PluginBench) -> None:
    """the lock of a holder that is dead comes free after its lease"""
    with bench.trial(SHORT_LEASE_MS) as trial:
        one, two = trial.clients(2)
        granted(one)
        trial.kill(one)
        outcome = two.acquire(10 * trial.lease_ms).outcome
    must(outcome, Outcome.OK, "its holder was killed ten leases ago, and its traits say LOCK_TRAIT_LEASE")


def keeps(bench: PluginBench) -> None:
    """a lease that it renews by itself does not run out while its client runs"""
    with bench.trial(SHORT_LEASE_MS) as trial:
        one, two = trial.clients(2)
        granted(one)
        trial.advance(trial.lease_ms * 2.5)
        outcome = two.acquire(0).outcome
    must(outcome, Outcome.REFUSED, "its traits say LOCK_TRAIT_RENEWS, and after two leases and a half it was free")


def survives_silence(bench: PluginBench) -> None:
    """without an answer of its servers it says unknown"""
    with bench.trial() as trial:
        (one,) = trial.clients(1)
        with trial.fault("partition", one, servers=trial.nodes_pattern):
            outcome = one.acquire(0).outcome
    if outcome is Outcome.OK:
        raise CheckFailed("its servers were cut off, and it was granted the lock: which server granted it?")
    must(outcome, Outcome.UNKNOWN, "its servers were cut off, so it is unknown whether they carried it out")


def can_be_explored(bench: PluginBench) -> None:
    """its clients share nothing, and in any order of their steps one at a time holds it"""
    request = SearchRequest(bench.entry.name, faults="none", schedules=SCHEDULES, workers=1)
    result = search_schedules(plan_search(request), lambda _: None)
    if result.exit == 1:
        raise CheckFailed(f"without any fault: {result.sentence}")


Check = Callable[[PluginBench], None]


def checks_for(entry: LockEntry) -> list[Check]:
    if entry.once:
        return [keeps_to_its_environment, grants]
    claimed: list[tuple[bool, Check]] = [
        (entry.renewable and entry.lease, renews),
        (entry.renewable and entry.lease, renews_its_own),
        (entry.lease, expires),
        (entry.renews, keeps),
        (entry.service == "redis" and not entry.real_time_only, can_be_explored),
    ]
    always = [
        keeps_to_its_environment,
        grants,
        excludes,
        waits_for_so_long,
        is_served,
        releases_its_own,
        is_held_asks_servers,
    ]
    return [*always, survives_silence, *(check for is_claimed, check in claimed if is_claimed)]


def check_plugin(
    entry: LockEntry, report: Callable[[DoneCheck], object], begun: Callable[[str], object]
) -> PluginChecks:
    """Performs every check, calls `begun` with its name, and `report` with its result."""
    check_installed(entry, "open", pooled=False)
    done: list[DoneCheck] = []
    for check in checks_for(entry):
        begun((check.__doc__ or "").strip())
        done.append(one_check(PluginBench(entry), check))
        report(done[-1])
    hosted = entry.shared_object
    return PluginChecks(
        plugin=hosted.path,
        lock=hosted.name,
        build=hosted.version,
        checks=done,
        ok=all(each.ok for each in done),
    )


def one_check(bench: PluginBench, check: Check) -> DoneCheck:
    name = (check.__doc__ or "").strip()
    try:
        play_unstalled(lambda _: check(bench))
    except (CheckFailed, Inconclusive, UsageError) as wrong:
        return DoneCheck(name, False, str(wrong).removeprefix(f"{bench.entry.name}: "))
    return DoneCheck(name, True, "")
