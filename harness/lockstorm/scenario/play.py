"""Plays one scenario with one lock: derives the trial's settings from the request, and returns its result."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from msgspec import structs

from lockstorm.attach.gateway import attach_words
from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.option_fields import check_ranges, choose, option_words
from lockstorm.locks.adapter import searched_only_reason
from lockstorm.locks.lock_names import AS_ASKED, lock_named, lock_words
from lockstorm.native.judgement import judge_history
from lockstorm.native.library import locks
from lockstorm.results.event import Event
from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.properties import PROPERTIES, REQUIRED
from lockstorm.results.verdict import (
    ChangedByTrial,
    DeploymentResult,
    PropertyVerdict,
    TrialResult,
    Verdict,
    VerdictPolicy,
)
from lockstorm.scenario.baseline import baseline_words, compared_lock, recorded_baseline
from lockstorm.scenario.scenario import REAL_CONTROL_LEASE_MS, REAL_LEASE_MS, Scenario, scenarios
from lockstorm.servers.deployment import Deployment, deployment_named
from lockstorm.servers.ensemble_settings import lease_bounds, silence_of_leader_ms
from lockstorm.servers.lacking_commands import lacking_commands
from lockstorm.servers.services import check_lease, is_table, lease_at_least, real_time_reason
from lockstorm.trial.client_groups import grouped, many_lease_ms
from lockstorm.trial.settings import (
    ATTACHED_OPTIONS,
    CLIENT_LIMIT,
    STORES,
    TIMES,
    TOKEN_STORES,
    VIRTUAL_LEASE_MS,
    Store,
    Time,
    TrialSettings,
    at_pace,
    deployed,
)
from lockstorm.trial.stall_sentinel import play_unstalled
from lockstorm.trial.trial import Trial

RECORDS_PER_INCREMENT = 16
RECORDS_MOST = 1 << 22  # of many clients, who wait for each other if the lock is one
PATIENCES_IN_LEASE = 2
TABLES = {"postgres": "postgresql"}  # service -> its table in [deployment], where the name differs


def usual_time(lock: LockEntry, clients: int = 0) -> Time:
    """The default kind of time: virtual, unless the lock's servers know only real time, or so many clients share
    processes."""
    return "real" if lock.real_time_only or clients > CLIENT_LIMIT else "virtual"


def scenario_named(name: str) -> Scenario:
    return scenarios()[choose("scenario", name, list(scenarios()))]


def check_settings(request: TrialSettings, *, gives_tokens: bool = False) -> tuple[LockEntry, Store, Time]:
    """The lock, the store mode and the kind of time of a request. Raises UsageError if its settings are contradictory.
    `gives_tokens`: the scenario supplies fencing tokens, even if the lock does not."""
    lock = lock_named(request.lock)
    if reason := searched_only_reason(lock):
        raise UsageError(f"{lock.name}: {reason}")
    store = cast(Store, choose("store mode", request.store or "open", list(STORES)))
    time = cast(Time, choose("time", request.time, list(TIMES)))
    check_ranges(request)
    check_lease(lock, request.lease_ms)
    if request.fixed_lease and not lock.renews:
        raise UsageError(f"--fixed-lease is for locks that renew their lease; {lock.name} never does")
    if request.fixed_lease and lock.service == "zookeeper":
        raise UsageError(f"--fixed-lease: {lock.name} is held by a session, which its heartbeats keep")
    for flag, given in (("--server", request.server), ("--without", request.without)):
        if given and lock.service != "redis":
            raise UsageError(f"{flag} is for locks on Redis, and {lock.name} lives on {lock.service}")
    if request.server:
        paths.redis_server(request.server)
    lacking_commands(request.without, request.server)
    if request.config and lock.service != "redis" and Path(request.config).suffix != ".toml":
        raise UsageError(
            f"--config {request.config} is for locks on Redis, and {lock.name} lives on {lock.service}: name a policy "
            f"(.toml) with a table [deployment.{TABLES.get(lock.service, lock.service)}]"
        )
    if request.permits and lock.capacity != AS_ASKED:
        several = ", ".join(known.name for known in locks() if known.capacity == AS_ASKED)
        raise UsageError(f"--permits is for locks that have several ({several}); {lock.name} has one")
    if request.require:
        for name in request.require.split(","):
            choose("property", name.strip().replace("-", "_"), list(PROPERTIES))
    if store in TOKEN_STORES and not lock.token and not gives_tokens:
        fenced = ", ".join(known.name for known in locks() if known.token)
        raise UsageError(
            f"{lock.name} gives no fencing token, so a {store} store would let none of its clients in: "
            f"use --store open, compare-owner or compare-and-set, or a lock with tokens ({fenced})"
        )
    return lock, store, time


def prepare_trial(request: TrialSettings, scenario: Scenario | None = None) -> tuple[Scenario, TrialSettings]:
    """The scenario and the complete settings of a request, checked. Starts no process. `scenario`: one that is not
    among those of the project."""
    scenario = scenario or scenario_named(request.scenario)
    lock, store, time = check_settings(request, gives_tokens=scenario.gives_tokens)
    deployment = deployment_of(request)
    if reason := scenario.inapplicable_reason(lock, topologies=deployment.topologies if deployment else ()):
        raise UsageError(f"{scenario.name} does not apply to {lock.name}: {reason}")
    for option, chosen in (("clients", request.clients), ("duration", request.duration_ms)):
        if chosen and option not in scenario.options:
            where = ", ".join(name for name, each in scenarios().items() if option in each.options)
            raise UsageError(f"--{option} is for {where}; {scenario.name} has its own")
    many = (request.clients or 0) > CLIENT_LIMIT and not request.control  # a control has few clients
    if many:
        _check_many(request, time, store)
    elif time not in scenario.times_on(lock):
        why = f": {real_time_reason(lock)}" if lock.real_time_only else ""
        raise UsageError(
            f"{scenario.name} can only be played in {scenario.times_on(lock)[0]} time with {lock.name}{why}"
        )
    settings = replace(
        request,
        lock=lock.name,
        scenario=scenario.name,
        store=store,
        time=time,
        lease_ms=lease_on(
            deployment, lock, request.lease_ms, _usual_lease_ms(scenario, time, request.control, deployment, lock)
        ),
        counter=scenario.counter,
        nodes=lock.nodes,
        replicas=lock.replicas,
        permits=request.permits or 1,
        deployment=deployment,
        history_records=_history_records(request),
    )
    kept = {"permits"} if request.permits else set()
    settings = replace(settings, **{name: value for name, value in scenario.settings.items() if name not in kept})
    if many and request.clients:
        settings = grouped(settings, lock, request.clients, stored=True)
        settings = replace(settings, lease_ms=request.lease_ms or many_lease_ms(request.clients))
    return scenario, deployed(settings, lock.service)


def _check_many(request: TrialSettings, time: Time, store: Store) -> None:
    """Raises UsageError for what does not go with clients that share processes."""
    what = f"--clients {request.clients}: more than {CLIENT_LIMIT} share processes, and this is played"
    if time != "real":
        raise UsageError(f"{what} in real time: --time real, or at most {CLIENT_LIMIT} clients")
    if request.attached or request.config:
        raise UsageError(f"{what} on servers that lockstorm starts and configures")
    if is_table(store):
        raise UsageError(f"{what} with the resource in memory: {store} is a table")


def deployment_of(request: TrialSettings) -> Deployment | None:
    return request.deployment or (deployment_named(request.config) if request.config else None)


def lease_on(deployment: Deployment | None, lock: LockEntry, chosen_ms: int | None, usual_ms: int) -> int:
    """The lease of a trial: the chosen one, or else the usual one as far as the team's servers grant it. Raises
    UsageError for a chosen one that they would change."""
    if not deployment:
        return chosen_ms or lease_at_least(lock, usual_ms)
    bounds = lease_bounds(lock.service, deployment.given(lock.service))
    if chosen_ms and bounds.fit(chosen_ms) != chosen_ms:
        raise UsageError(f"a lease of {chosen_ms} ms: {lock.service} grants {bounds.words}")
    return chosen_ms or lease_at_least(lock, bounds.fit(usual_ms))


def prepare_by_hand(request: TrialSettings) -> TrialSettings:
    """The complete settings of a trial that a test plays step by step, checked. Starts no process. The fields that no
    user of the command can choose stay as they are, except those that are the lock's."""
    lock, store, time = check_settings(request)
    if lock.real_time_only and time == "virtual":
        raise UsageError(f"{lock.name} can only be played in real time: {real_time_reason(lock)}")
    deployment = deployment_of(request)
    usual_ms = REAL_CONTROL_LEASE_MS if request.control else REAL_LEASE_MS
    settings = replace(
        request,
        lock=lock.name,
        store=store,
        time=time,
        lease_ms=lease_on(deployment, lock, request.lease_ms, VIRTUAL_LEASE_MS if time == "virtual" else usual_ms),
        nodes=lock.nodes,
        replicas=max(lock.replicas, request.replicas),
        permits=request.permits or 1,
        deployment=deployment,
    )
    return deployed(settings, lock.service)


def play(
    request: TrialSettings,
    *,
    save: Path | None = None,
    story_to: list[Event] | None = None,
    save_logs: Path | None = None,
    scenario: Scenario | None = None,
) -> TrialResult:
    """Runs a trial and returns its result as `run --json` prints it. `story_to` receives the history's records; the
    directory `save_logs` receives the output of the trial's processes.

    A trial that cannot be completed also has a result: inconclusive, with the reason. One during which the machine
    stood still is played again, a few times at most.
    """
    chosen, settings = prepare_trial(request, scenario)
    settings = replace(settings, command=command_to_record(request), compared_with=compared_lock(settings))
    if save and save.exists():
        raise UsageError(f"{save} exists already: choose another name for the history, or remove it")

    def play_once(pace: int) -> TrialResult:
        paced = at_pace(settings, pace, lease_is_chosen=bool(request.lease_ms))
        with Trial(paced) as trial, trial.logs_kept(save_logs):
            verdict = played_and_judged(trial, chosen, request.require, story_to, save)
            return trial_result(paced, verdict, trial.versions(), trial.elapsed_ms, trial_command(request))

    try:
        result, played_again = play_unstalled(play_once)
    except Inconclusive as reason:
        result = trial_result(settings, inconclusive(str(reason)), {}, {}, trial_command(request))
        played_again = reason.played_again
    return structs.replace(result, played_again=played_again)


def played_and_judged(
    trial: Trial, scenario: Scenario, require: str | None, story_to: list[Event] | None, save: Path | None
) -> Verdict:
    """The verdict of a trial that this plays. A scenario that cannot go on because nobody gets a library's lock, though
    nothing is broken, is no reason to know nothing: liveness is violated."""
    stopped: Inconclusive | None = None
    try:
        scenario.play(trial)
    except Inconclusive as reason:
        stopped = reason
    why = trial.asks_in_vain()
    if stopped and not why:
        raise stopped
    verdict = trial.judge(require, story_to, save)
    return structs.replace(verdict, sentence=f"Nobody can get the lock ({why}): {verdict.sentence}") if why else verdict


def trial_command(settings: TrialSettings) -> str:
    """The command that repeats the trial, from its settings as the user requested them."""
    if gateway := settings.attached:
        words = attach_words(gateway.address, gateway.files, settings.scenario, str(gateway.faults), yes=gateway.yes)
        return attached_command(words, settings)
    return shlex.join(["lockstorm", "run", settings.scenario, *lock_words(settings.lock), *option_words(settings)])


def command_to_record(request: TrialSettings) -> str:
    """The same for the trial's history; empty if recorded_command finds it there without that."""
    kept = {name: getattr(request, name) for name in ("seed", "time", "store", "control")}
    command = trial_command(request)
    is_plain = not request.attached and command == trial_command(TrialSettings(request.lock, request.scenario, **kept))
    return "" if is_plain else command


def recorded_command(parameters: Mapping[str, str | int]) -> str:
    """The command that repeats the trial of a history, from the history's parameters; empty if they do not say it."""
    if command := parameters.get("command"):
        return str(command)
    if parameters.get("scenario") not in scenarios() or not {"lock", "seed", "time"} <= parameters.keys():
        return ""
    store = str(parameters.get("store", "open"))
    return trial_command(
        TrialSettings(
            str(parameters["lock"]),
            str(parameters["scenario"]),
            seed=int(parameters["seed"]),
            time=str(parameters["time"]),
            store=None if store == "open" else store,
            control=bool(parameters.get("control")),
        )
    )


def attached_command(words: list[str], settings: TrialSettings) -> str:
    """The command that plays a trial on servers that are there already. `words`: what names them and the scenario."""
    own = [*lock_words(settings.lock), *option_words(settings, *ATTACHED_OPTIONS)]
    return shlex.join(["lockstorm", "attach", *words, *own])


def trial_result(
    settings: TrialSettings, verdict: Verdict, versions: dict[str, str], elapsed: dict[str, float], replay: str
) -> TrialResult:
    played = ("lock", "scenario", "control", "store", "time", "seed", "lease_ms")
    judged = ("properties", "sentence", "required", "policy", "faults", "records", "grants", "exit", "elsewhere")
    return TrialResult(
        **{name: getattr(settings, name) for name in played},
        **{name: getattr(verdict, name) for name in judged},
        replay=replay,
        versions=versions,
        elapsed_ms={phase: round(value, 1) for phase, value in elapsed.items()},
        deployment=deployment_result(settings),
        baseline=baseline_words(settings, verdict),
    )


def deployment_result(settings: TrialSettings) -> DeploymentResult | None:
    """How the servers of a trial were deployed, if a deployment says that."""
    deployment = settings.deployment
    if not deployment:
        return None
    service = lock_named(settings.lock).service
    changed = [
        ChangedByTrial(each.setting.line, each.setting.place, each.why)
        for each in deployment.changed
        if each.service == service
    ]
    return DeploymentResult([each.line for each in deployment.of(service)], changed, settings.replicas)


def inconclusive(reason: str) -> Verdict:
    return Verdict(
        properties={name: PropertyVerdict("inconclusive", 0, [], reason=reason) for name in PROPERTIES},
        sentence=f"Inconclusive: {reason}",
        required=list(REQUIRED),
        policy=VerdictPolicy("released", "not-happened"),
        faults=[],
        records=0,
        torn=0,
        dropped=0,
        grants=0,
        failed_releases=0,
        unknown_acquires=0,
        exit=Inconclusive.exit_status,
    )


def judge_file(
    path: str,
    require: str | None,
    release_policy: str = "released",
    acquire_timeout: str = "not-happened",
    all_policies: bool = False,
) -> Verdict:
    for name in (require or "").split(",") if require else []:
        choose("property", name.strip().replace("-", "_"), list(PROPERTIES))
    options = ["--all-policies"] if all_policies else []
    options += [f"--release-policy={release_policy}", f"--acquire-timeout={acquire_timeout}"]
    verdict = judge_history(Path(path), require, *options)
    parameters = verdict.parameters or {}
    recorded = {key: parameters[key] for key in ("lock", "scenario", "store", "time", "seed") if key in parameters}
    baseline = None if verdict.policies else recorded_baseline(parameters, verdict)
    return structs.replace(verdict, file=path, parameters=None, baseline=baseline, **recorded)


def _usual_lease_ms(
    scenario: Scenario, time: Time, control: bool, deployment: Deployment | None, lock: LockEntry
) -> int:
    """In an election the lease outlasts the time for which a deployment waits for a silent master."""
    if time == "virtual":
        return scenario.virtual_lease_ms
    patience_ms = deployment.elections.patience_ms(scenario.topology) if deployment else None
    if deployment and scenario.settings.get("nodes", 1) > 1:
        patience_ms = silence_of_leader_ms(lock.service, deployment.given(lock.service))
    lease_ms = scenario.real_control_lease_ms if control else scenario.real_lease_ms
    return lease_ms + PATIENCES_IN_LEASE * (patience_ms or 0)


def _history_records(request: TrialSettings) -> int:
    """Number of records to reserve: enough for a workload in which all clients increment all the time, without waiting
    for each other."""
    clients, duration_ms = request.clients or 4, request.duration_ms or 2000
    needed = clients * duration_ms * RECORDS_PER_INCREMENT // 20
    return max(1 << 16, min(needed, RECORDS_MOST) if clients > CLIENT_LIMIT else needed)
