"""Playing one scenario for one lock: the settings that follow from the user's wishes, and the result as one object."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from harness.driver.errors import Inconclusive, UsageError
from harness.driver.library import locks, zoo_locks
from harness.driver.lock_names import entry_of, is_brought, lock_words
from harness.driver.scenario import Scenario, scenarios
from harness.driver.services import check_lease, lease_at_least, real_time_reason
from harness.driver.trial import STORES, TIMES, TOKEN_STORES, Store, Time, Trial, TrialSettings, check

REQUIRED = ("mutual_exclusion", "integrity", "fencing", "liveness")  # as far as they apply
PROPERTIES = (*REQUIRED[:3], "ownership", "liveness", "capacity", "lease", "fairness", "cost")
RELEASE_POLICIES = ("not-happened", "released", "unknown")
ACQUIRE_POLICIES = ("not-happened", "unknown")
LEASE_LIMIT_MS = 24 * 24 * 3600 * 1000  # 24 days: beyond that a TTL in ms overflows 31 bits somewhere
SEED_LIMIT = 2**63 - 1
CLIENT_LIMIT = 128
PERMIT_LIMIT = 64
AS_ASKED = -1  # the capacity of a lock that has as many permits as are asked for
DURATION_LIMIT_MS = 3_600_000
RECORDS_PER_INCREMENT = 16


@dataclass(frozen=True)
class Wish:
    """What the user asked for; None: what is usual."""

    scenario: str
    lock: str
    store: str | None = None
    time: str = "virtual"
    seed: int = 1
    control: bool = False
    lease_ms: int | None = None
    clients: int | None = None
    duration_ms: int | None = None
    require: str | None = None
    permits: int | None = None
    fixed_lease: bool = False


def choose(kind: str, name: str, known: list[str]) -> str:
    """`name` if it is known; otherwise an error that names the nearest one."""
    if name in known:
        return name
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    raise UsageError(f"there is no {kind} called {name!r}: {hint}")


def lock_named(name: str) -> dict[str, Any]:
    """Its entry. "adapter:WORD" is what --adapter WORD means, "plugin:WORD" what --plugin WORD does; those of the zoo
    are found by their names only."""
    known = [lock["name"] for lock in locks()]
    is_known = is_brought(name) or name in (lock["name"] for lock in zoo_locks())
    return entry_of(name if is_known else choose("lock", name, known))


def check_on_redis(lock: dict[str, Any], what: str) -> None:
    """For what knows redis-servers only."""
    if lock["service"] != "redis":
        raise UsageError(f"{what} redis-servers, and {lock['name']} lives on {lock['service']}")


def usual_time(lock: dict[str, Any]) -> Time:
    """When nobody says which: virtual time, where the lock's servers can be given it."""
    return "real" if lock["real_time_only"] else "virtual"


def scenario_named(name: str) -> Scenario:
    return scenarios()[choose("scenario", name, list(scenarios()))]


def checked(wish: Wish, *, gives_tokens: bool = False) -> tuple[dict[str, Any], Store, Time]:
    """The lock, the store mode and the kind of time, when everything fits together that the user asked for.
    `gives_tokens`: somebody else does, if the lock does not."""
    lock = lock_named(wish.lock)
    store = cast(Store, choose("store mode", wish.store or "open", list(STORES)))
    time = cast(Time, choose("time", wish.time, list(TIMES)))
    check_range("--seed", wish.seed, 0, SEED_LIMIT)
    check_range("--lease-ms", wish.lease_ms, 1, LEASE_LIMIT_MS)
    check_lease(lock, wish.lease_ms)
    check_range("--clients", wish.clients, 1, CLIENT_LIMIT)
    check_range("--duration", wish.duration_ms, 1, DURATION_LIMIT_MS)
    check_range("--permits", wish.permits, 1, PERMIT_LIMIT)
    if wish.fixed_lease and not lock["renews"]:
        raise UsageError(f"--fixed-lease is for locks that renew their lease; {lock['name']} never does")
    if wish.fixed_lease and lock["service"] == "zookeeper":
        raise UsageError(f"--fixed-lease: {lock['name']} is held by a session, which its heartbeats keep")
    if wish.permits and lock["capacity"] != AS_ASKED:
        several = ", ".join(known["name"] for known in locks() if known["capacity"] == AS_ASKED)
        raise UsageError(f"--permits is for locks that have several ({several}); {lock['name']} has one")
    if wish.require:
        for name in wish.require.split(","):
            choose("property", name.strip().replace("-", "_"), list(PROPERTIES))
    if store in TOKEN_STORES and not lock["token"] and not gives_tokens:
        fenced = ", ".join(known["name"] for known in locks() if known["token"])
        raise UsageError(
            f"{lock['name']} gives no fencing token, so a {store} store would let none of its clients in: "
            f"use --store open, compare-owner or compare-and-set, or a lock with tokens ({fenced})"
        )
    return lock, store, time


def settings_for(wish: Wish) -> tuple[Scenario, TrialSettings]:
    """Checks everything that can be checked before anything is started."""
    story = scenario_named(wish.scenario)
    lock, store, time = checked(wish, gives_tokens=story.gives_tokens)
    if story.unfit(lock):
        raise UsageError(f"{story.name} is no story about {lock['name']}: {story.unfit(lock)}")
    for option, chosen in (("clients", wish.clients), ("duration", wish.duration_ms)):
        if chosen and option not in story.options:
            where = ", ".join(name for name, each in scenarios().items() if option in each.options)
            raise UsageError(f"--{option} is for {where}; {story.name} has its own")
    if time not in story.times_on(lock):
        why = f": {real_time_reason(lock)}" if lock["real_time_only"] else ""
        raise UsageError(f"{story.name} can only be played in {story.times_on(lock)[0]} time with {lock['name']}{why}")
    settings = TrialSettings(
        lock=lock["name"],
        scenario=story.name,
        store=store,
        time=time,
        seed=wish.seed,
        control=wish.control,
        lease_ms=wish.lease_ms or lease_at_least(lock, _usual_lease_ms(story, time, wish.control)),
        counter=story.counter,
        nodes=lock["nodes"],
        replicas=lock["replicas"],
        permits=wish.permits or 1,
        fixed_lease=wish.fixed_lease,
        clients=wish.clients,
        duration_ms=wish.duration_ms,
        history_records=_room(wish),
    )
    asked = {"permits"} if wish.permits else set()
    return story, replace(settings, **{name: value for name, value in story.settings.items() if name not in asked})


def play(
    wish: Wish,
    *,
    save: Path | None = None,
    story_to: list[dict[str, Any]] | None = None,
    save_logs: Path | None = None,
) -> dict[str, Any]:
    """Runs a trial and returns its result as `run --json` prints it. `story_to` receives the history's records,
    `save_logs` what the trial's processes wrote.

    A trial that could not be run to its end is a result too: inconclusive, with the reason.
    """
    story, settings = settings_for(wish)
    if save and save.exists():
        raise UsageError(f"{save} exists already: choose another name for the history, or remove it")
    try:
        with Trial(settings) as trial, trial.logs_kept(save_logs):
            story.play(trial)
            verdict = trial.judge(wish.require)
            if story_to is not None:
                story_to += trial.story()
            if save:
                trial.save(save)
            versions = trial.versions()
            elapsed = trial.elapsed_ms
    except Inconclusive as reason:
        return result_of(settings, inconclusive(str(reason)), {}, {}, replay_command(wish))
    return result_of(settings, verdict, versions, elapsed, replay_command(wish))


def replay_command(wish: Wish) -> str:
    """The command that repeats the trial."""
    words = ["lockstorm", "run", wish.scenario, *lock_words(wish.lock), "--seed", str(wish.seed), "--time", wish.time]
    options = {
        "--store": wish.store,
        "--lease-ms": wish.lease_ms,
        "--clients": wish.clients,
        "--duration": f"{wish.duration_ms}ms" if wish.duration_ms else None,
        "--require": wish.require,
        "--permits": wish.permits,
    }
    return command_line(words, options, {"--control": wish.control, "--fixed-lease": wish.fixed_lease})


def command_line(words: Sequence[str], options: Mapping[str, object], flags: Mapping[str, bool]) -> str:
    """For a shell: those words, the options that have a value, the flags that are wanted."""
    said = [word for option, value in options.items() if value is not None for word in (option, str(value))]
    return shlex.join([*words, *said, *(flag for flag, wanted in flags.items() if wanted)])


def result_of(
    settings: TrialSettings, verdict: dict[str, Any], versions: dict[str, str], elapsed: dict[str, float], replay: str
) -> dict[str, Any]:
    """A trial's result as one object."""
    return {
        "lock": settings.lock,
        "scenario": settings.scenario,
        "control": settings.control,
        "store": settings.store,
        "time": settings.time,
        "seed": settings.seed,
        "lease_ms": settings.lease_ms,
        "verdict": verdict["verdict"],
        "sentence": verdict["sentence"],
        "required": verdict["required"],
        "policy": verdict["policy"],
        "faults": verdict["faults"],
        "records": verdict["records"],
        "grants": verdict["grants"],
        "replay": replay,
        "versions": versions,
        "elapsed_ms": {phase: round(value, 1) for phase, value in elapsed.items()},
        "exit": verdict["exit"],
    }


def inconclusive(reason: str) -> dict[str, Any]:
    """The verdict of a trial that could not be run to its end."""
    nothing = {"status": "inconclusive", "count": 0, "evidence": [], "reason": reason}
    return {
        "verdict": {name: dict(nothing) for name in PROPERTIES},
        "sentence": f"Inconclusive: {reason}",
        "required": list(REQUIRED[:3]),
        "policy": {"release": "released", "acquire_timeout": "not-happened"},
        "faults": [],
        "records": 0,
        "grants": 0,
        "exit": Inconclusive.exit_status,
    }


def judge_file(
    path: str,
    require: str | None,
    release_policy: str = "released",
    acquire_timeout: str = "not-happened",
    all_policies: bool = False,
) -> dict[str, Any]:
    """The verdict on a recorded history."""
    for name in (require or "").split(",") if require else []:
        choose("property", name.strip().replace("-", "_"), list(PROPERTIES))
    words = ["--all-policies"] if all_policies else []
    words += [f"--release-policy={release_policy}", f"--acquire-timeout={acquire_timeout}"]
    verdict = check(Path(path), require, *words)
    said = verdict.pop("parameters")
    return {
        "file": path,
        **{key: said[key] for key in ("lock", "scenario", "store", "time", "seed") if key in said},
        **verdict,
    }


def _usual_lease_ms(story: Scenario, time: Time, control: bool) -> int:
    if time == "virtual":
        return story.virtual_lease_ms
    return story.real_control_lease_ms if control else story.real_lease_ms


def _room(wish: Wish) -> int:
    """Records to reserve: a workload's, when everybody is let in at once and does nothing but increments."""
    clients, duration_ms = wish.clients or 4, wish.duration_ms or 2000
    return max(1 << 16, clients * duration_ms * RECORDS_PER_INCREMENT // 20)


def check_range(option: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise UsageError(f"{option} {value}: from {low} to {high}")
