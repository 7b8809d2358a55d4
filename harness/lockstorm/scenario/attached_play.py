"""Trials on servers that lockstorm did not start: the scenarios that break no server, and faults of the team."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from lockstorm.attach.gateway import Gateway
from lockstorm.attach.run_names import MADE_THERE, counted
from lockstorm.attach.server_access import ServerSurvey
from lockstorm.attach.team_fault import TeamFault
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.locks.lock_names import lock_named
from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.attached_faults import team_fault_scenario, work_under
from lockstorm.scenario.play import play, prepare_trial
from lockstorm.scenario.scenario import Scenario, scenarios
from lockstorm.servers.services import lease_at_least
from lockstorm.trial.attached_nodes import check_attachable, check_service
from lockstorm.trial.fault import Fault
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial import Trial

KNOWN = (
    "contention",
    "gc-pause",
    "gc-pause-read",
    "pause-after-check",
    "pause-after-validity-check",
    "pause-before-write-check",
    "pause-after-write-check",
    "partition-holder",
    "packet-delay",
    "connection-closed",
    "crash-holder",
    "lost-credits",
    "double-processing",
)
CRASH_LEASE_MS = 1_000
LOSSY_CLIENTS, LOSSY_LEASE_MS = 3, 5_000
LATE_MS, JITTER_MS = 2, 10
SILENCE_MS = 400


def _play_lossy_links(trial: Trial) -> None:
    clients = trial.clients(trial.settings.clients or LOSSY_CLIENTS)

    def disturb() -> None:
        if trial.control:
            return
        words = ("delay", LATE_MS, "JITTER", JITTER_MS)
        with trial.rule("late", f"client-*>{trial.nodes_pattern}", "both", *words):
            for client in clients:
                with trial.fault("lose-reply", client, servers=trial.nodes_pattern) as fault:
                    _await_effect(trial, fault)

    work_under(trial, clients, disturb)


def _await_effect(trial: Trial, fault: Fault) -> None:
    """A client that waits for another one's lease to end may send nothing for as long as that."""
    proxy = trial.links.proxy
    assert proxy
    rule = fault.report.split()[1]  # "rule NAME on LINKS"
    until_ns = trial.mono_ns + (trial.lease_ms + trial.bound_ms) * 1_000_000
    while not proxy.fired(rule) and trial.mono_ns < until_ns:
        trial.advance(SILENCE_MS)


LOSSY_LINKS = Scenario(
    "lossy-links",
    kind="network",
    summary="Clients increment all the time; every message is a little late, and of each client one answer is lost.",
    source="redisson#1966, redis-py retries: what a network does every day",
    control="no message is late or lost",
    play=_play_lossy_links,
    real_lease_ms=LOSSY_LEASE_MS,
    times=("real",),
    options=("clients",),
)


def attached_scenarios() -> dict[str, Scenario]:
    found = {name: scenarios()[name] for name in KNOWN}
    found["crash-holder"] = replace(found["crash-holder"], times=("real",), real_lease_ms=CRASH_LEASE_MS)
    return {**found, LOSSY_LINKS.name: LOSSY_LINKS}


def applicable_scenarios(lock: LockEntry, names: tuple[str, ...]) -> list[Scenario]:
    """The scenarios that the user named, or all that apply to the lock. Raises UsageError for one that does not."""
    known = attached_scenarios()
    for name in names:
        if name in scenarios() and name not in known:
            raise UsageError(
                f"{name} breaks a server or needs one of its own, so attach cannot play it: there are "
                f"{', '.join(known)}; a fault of a server is a command of yours (attach --fault)"
            )
    if not names:
        return [each for each in known.values() if not each.inapplicable_reason(lock)]
    chosen = [known[choose("scenario", name, list(known))] for name in dict.fromkeys(names)]
    for each in chosen:
        if reason := each.inapplicable_reason(lock):
            raise UsageError(f"{each.name} does not apply to {lock.name}: {reason}")
    return chosen


@dataclass
class AttachedServers:
    """Servers behind a gateway: what is there, and trials on them."""

    gateway: Gateway
    survey: ServerSurvey | None = None
    _lease_range_ms: tuple[int, int] | None = None  # not asked for yet

    def look(self) -> ServerSurvey:
        self.survey = self.gateway.survey()
        return self.survey

    @property
    def place(self) -> str:
        """Where the lock's keys will be, as a part of a sentence."""
        assert self.survey
        survey, service = self.survey, self.gateway.address.service
        if survey.slot is not None:
            return f"the master of slot {survey.slot}"
        if service == "zookeeper":
            return f"the node {survey.database or '/'}"
        return "the keyspace" if service == "etcd" else f"database {survey.database}"

    def check_touchable(self, way_out: str = "add --yes to go on") -> None:
        """Raises UsageError if there are keys that are not ours."""
        survey, where = self.survey, self.gateway.address
        if survey and survey.keys:
            place = "the cluster" if where.kind == "cluster" else self.place
            made, instead = MADE_THERE[where.service]
            raise UsageError(
                f"{place} of {where.shown} is not empty: it has {counted(where.service, survey.keys)}. attach makes "
                f"only {made} at the end: {way_out}, or name an empty {instead}"
            )

    def _with_lease(self, scenario: Scenario, settings: TrialSettings) -> TrialSettings:
        """With a lease that the servers grant. Raises UsageError if the user has chosen one that they do not."""
        if not self._lease_range_ms:
            self._lease_range_ms = self.gateway.lease_range_ms()
        shortest_ms, longest_ms = self._lease_range_ms
        lease_ms = prepare_trial(settings, scenario)[1].lease_ms or 0
        if shortest_ms <= lease_ms <= longest_ms:
            return settings
        if settings.lease_ms:
            raise UsageError(
                f"a lease of {lease_ms} ms: {self.gateway.address.shown} grants leases from {shortest_ms} to "
                f"{longest_ms} ms only: choose one of these"
            )
        nearest_ms = lease_at_least(lock_named(settings.lock), shortest_ms) if lease_ms < shortest_ms else longest_ms
        return replace(settings, lease_ms=nearest_ms)

    def settings_for(self, request: TrialSettings, scenario: Scenario) -> TrialSettings:
        """Those of a trial here. Raises UsageError for one that needs servers of its own."""
        check_service(self.gateway.address, lock_named(request.lock))
        return replace(request, scenario=scenario.name, resource=self.gateway.resource, attached=self.gateway)

    def play(
        self, scenario: Scenario, settings: TrialSettings, save: Path | None = None, save_logs: Path | None = None
    ) -> TrialResult:
        settings = self._with_lease(scenario, settings)
        return play(settings, save=save, save_logs=save_logs, scenario=scenario)


@dataclass
class AttachedRun:
    """The trials that a user has asked for, checked; then their results."""

    servers: AttachedServers
    lock: LockEntry
    faults: list[TeamFault]
    trials: list[tuple[Scenario, TrialSettings]]
    results: list[TrialResult] = field(default_factory=list)

    @property
    def exit(self) -> int:
        """1 if a trial found a violation, else 3 if one is inconclusive, else 0."""
        found = {result.exit for result in self.results}
        return next((status for status in (1, 3, 2) if status in found), 0)

    def play_next(self, save: Path | None = None) -> TrialResult:
        self.results.append(self.servers.play(*self.trials[len(self.results)], save))
        return self.results[-1]


def plan_attached(
    gateway: Gateway, request: TrialSettings, scenario_names: tuple[str, ...], faults: list[TeamFault]
) -> AttachedRun:
    """Checks the request; starts nothing. Without a name of a scenario or a fault: all scenarios that apply."""
    lock, servers = lock_named(request.lock), AttachedServers(gateway)
    check_service(gateway.address, lock)
    chosen = applicable_scenarios(lock, scenario_names) if scenario_names or not faults else []
    chosen += [team_fault_scenario(each, gateway) for each in faults]
    settable = {option for each in chosen for option in each.options}
    trials = []
    for each in chosen:
        others = settable - set(each.options)  # an option of these is meant for other scenarios
        request_of = replace(
            request,
            clients=None if "clients" in others else request.clients,
            duration_ms=None if "duration" in others else request.duration_ms,
        )
        settings = servers.settings_for(request_of, each)
        check_attachable(prepare_trial(settings, each)[1], lock)
        trials.append((each, settings))
    return AttachedRun(servers, lock, faults, trials)
