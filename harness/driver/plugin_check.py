"""Whether a plug-in does what a lock has to do, and what it says of itself: small trials without any story, in its own
kind of time, and what is wrong in words that its author can use (`lockstorm plugin check`)."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.driver.client import Client
from harness.driver.errors import Inconclusive, UsageError
from harness.driver.explore import ExploreWish, explore, plan
from harness.driver.library import Outcome
from harness.driver.play import usual_time
from harness.driver.services import check_installed, lease_at_least
from harness.driver.trial import Trial, TrialSettings

LONG_LEASE_MS = 10_000  # which no check outlasts
SHORT_LEASE_MS = 1000  # of those that do
WAIT_MS = 2000
PROMPT_MS = 500  # one try, on a busy machine, where time is real
SCHEDULES = 64
AS_ASKED = -1


class Wrong(Exception):
    """A check has found something."""


@dataclass(frozen=True)
class Bench:
    """What a check has: the plug-in's entry, and trials with its lock."""

    entry: dict[str, Any]

    @contextlib.contextmanager
    def trial(self, lease_ms: int = LONG_LEASE_MS) -> Iterator[Trial]:
        entry = self.entry
        settings = TrialSettings(
            lock=entry["name"],
            time=usual_time(entry),
            lease_ms=lease_at_least(entry, lease_ms),
            nodes=entry["nodes"],
            replicas=entry["replicas"],
        )
        with Trial(settings) as trial:
            yield trial


def must(outcome: Outcome, wanted: Outcome, words: str) -> None:
    if outcome is not wanted:
        raise Wrong(f"it answered {outcome.name.lower()}: {words}")


def granted(client: Client) -> int:
    """Its token."""
    result = client.acquire(0)
    must(result.outcome, Outcome.OK, "the lock was free, so it has to be granted")
    return result.token


# --- the checks ---


def keeps_to_its_environment(bench: Bench) -> None:
    """time, chance, messages and threads come from its environment"""
    elsewhere = bench.entry["plugin"]["elsewhere"]
    if elsewhere:
        raise Wrong("; ".join(elsewhere) + ". So it can only be played in real time, and not be explored")


def grants(bench: Bench) -> None:
    """a free lock is granted, and released"""
    with bench.trial() as trial:
        (one,) = trial.clients(1)
        first = granted(one)
        must(one.release().outcome, Outcome.OK, "it had the lock, so it can release it")
        second = 0 if bench.entry["once"] else granted(one)
    if bench.entry["token"] and (first < 1 or (second <= first and not bench.entry["once"])):
        raise Wrong(f"its traits say LOCK_TRAIT_TOKEN, and its grants had the tokens {first} and {second}: they rise")


def excludes(bench: Bench) -> None:
    """a lock that is taken is refused to others, at once if they do not wait"""
    with bench.trial() as trial:
        one, two = trial.clients(2)
        granted(one)
        began_ns = trial.mono_ns
        outcome = two.acquire(0).outcome
        took_ms = (trial.mono_ns - began_ns) / 1e6
    if outcome is Outcome.OK:
        raise Wrong("two clients hold the lock at once: is its key made of lock->options.resource?")
    must(outcome, Outcome.REFUSED, "somebody else has the lock, and one try, with wait_ms 0, is refused")
    if took_ms > PROMPT_MS:
        raise Wrong(f"it took {took_ms:.0f} ms to refuse: wait_ms 0 is one try, without waiting")


def waits_for_so_long(bench: Bench) -> None:
    """who waits for a time is refused after it"""
    with bench.trial() as trial:
        one, two = trial.clients(2)
        granted(one)
        began_ns = trial.mono_ns
        outcome = two.acquire(WAIT_MS).outcome
        took_ms = (trial.mono_ns - began_ns) / 1e6
    must(outcome, Outcome.REFUSED, f"the lock was taken for longer than it waited ({WAIT_MS} ms)")
    if took_ms > WAIT_MS + PROMPT_MS or (took_ms < WAIT_MS / 2 and bench.entry["waits"] != "not"):
        raise Wrong(f"it refused after {took_ms:.0f} ms, and was to wait for {WAIT_MS} ms")


def is_served(bench: Bench) -> None:
    """who waits without a limit is granted the lock when it is released"""
    with bench.trial() as trial:
        one, two = trial.clients(2)
        granted(one)
        two.start_acquire(-1)
        trial.advance(WAIT_MS)
        must(one.release().outcome, Outcome.OK, "it had the lock, so it can release it")
        trial.finish(two)
        must(two.result().outcome, Outcome.OK, "the lock was released while it waited for it")


def releases_its_own(bench: Bench) -> None:
    """only the holder can release"""
    with bench.trial() as trial:
        one, two, three = trial.clients(3)
        granted(one)
        two.acquire(0)
        outcome = two.release().outcome
        if three.acquire(0).outcome is Outcome.OK:
            raise Wrong("who was refused the lock released it all the same: a release has to compare the owner first")
    if outcome is Outcome.OK:
        raise Wrong("it said ok to the release of a lock that another holds, which changed nothing: refused")


def tells_whose(bench: Bench) -> None:
    """is_held, where there is one, says whose the lock is"""
    with bench.trial() as trial:
        one, two = trial.clients(2)
        granted(one)
        mine, theirs = one.is_held().outcome, two.is_held().outcome
    if mine is Outcome.REFUSED:
        raise Wrong("it said refused to the holder")
    if theirs is Outcome.OK:
        raise Wrong("it said ok to a client that does not hold the lock: is it this one's?")


def renews(bench: Bench) -> None:
    """a renewal makes the lease longer"""
    with bench.trial(SHORT_LEASE_MS) as trial:
        one, two = trial.clients(2)
        granted(one)
        trial.advance(trial.lease_ms * 0.6)
        must(one.renew().outcome, Outcome.OK, "it holds the lock, so it can renew it")
        trial.advance(trial.lease_ms * 0.6)
        must(two.acquire(0).outcome, Outcome.REFUSED, "it was renewed, and free when its first lease was over")


def expires(bench: Bench) -> None:
    """the lock of a holder that is dead comes free after its lease"""
    with bench.trial(SHORT_LEASE_MS) as trial:
        one, two = trial.clients(2)
        granted(one)
        trial.kill(one)
        outcome = two.acquire(10 * trial.lease_ms).outcome
    must(outcome, Outcome.OK, "its holder was killed ten leases ago, and its traits say LOCK_TRAIT_LEASE")


def keeps(bench: Bench) -> None:
    """a lease that it renews by itself does not run out while its client runs"""
    with bench.trial(SHORT_LEASE_MS) as trial:
        one, two = trial.clients(2)
        granted(one)
        trial.advance(trial.lease_ms * 2.5)
        outcome = two.acquire(0).outcome
    must(outcome, Outcome.REFUSED, "its traits say LOCK_TRAIT_RENEWS, and after two leases and a half it was free")


def survives_silence(bench: Bench) -> None:
    """without an answer of its servers it says unknown"""
    with bench.trial() as trial:
        (one,) = trial.clients(1)
        with trial.fault("partition", one, servers=trial.nodes_pattern):
            outcome = one.acquire(0).outcome
    if outcome is Outcome.OK:
        raise Wrong("its servers were cut off, and it was granted the lock: who granted it?")
    must(outcome, Outcome.UNKNOWN, "its servers were cut off, so nobody knows whether they carried it out")


def can_be_explored(bench: Bench) -> None:
    """its clients share nothing, and in any order of their steps one at a time holds it"""
    wish = ExploreWish(bench.entry["name"], faults="none", schedules=SCHEDULES, jobs=1)
    result = explore(plan(wish), lambda _: None)
    if result["exit"] == 1:
        raise Wrong(f"nothing went wrong around it, and yet: {result['sentence']}")


Check = Callable[[Bench], None]


def checks_for(entry: dict[str, Any]) -> list[Check]:
    """Those that what it says of itself asks for."""
    if entry["once"]:
        return [keeps_to_its_environment, grants]
    claimed: list[tuple[bool, Check]] = [
        (entry["renewable"] and entry["lease"], renews),
        (entry["lease"], expires),
        (entry["renews"], keeps),
        (entry["service"] == "redis" and not entry["real_time_only"], can_be_explored),
    ]
    always = [keeps_to_its_environment, grants, excludes, waits_for_so_long, is_served, releases_its_own, tells_whose]
    return [*always, survives_silence, *(check for is_claimed, check in claimed if is_claimed)]


def check_plugin(entry: dict[str, Any], tell: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Does every check, tells of each, and gives them all."""
    check_installed(entry, "open", pooled=False)
    done: list[dict[str, Any]] = []
    for check in checks_for(entry):
        done.append(one_check(Bench(entry), check))
        tell(done[-1])
    hosted = entry["plugin"]
    return {
        "plugin": hosted["path"],
        "lock": hosted["name"],
        "build": hosted["version"],
        "checks": done,
        "ok": all(each["ok"] for each in done),
    }


def one_check(bench: Bench, check: Check) -> dict[str, Any]:
    name = (check.__doc__ or "").strip()
    try:
        check(bench)
    except (Wrong, Inconclusive, UsageError) as wrong:
        return {"name": name, "ok": False, "wrong": str(wrong).removeprefix(f"{bench.entry['name']}: ")}
    return {"name": name, "ok": True, "wrong": ""}
