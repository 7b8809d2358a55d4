"""A workload on servers that lockstorm did not start, while the team's own commands break them."""

from collections.abc import Callable
from typing import get_args

from lockstorm.attach.gateway import Gateway, GatewayRequest
from lockstorm.attach.shell_command import Done, run_shell
from lockstorm.attach.team_fault import TeamFault
from lockstorm.base.errors import Inconclusive
from lockstorm.native.library import Kind, Outcome
from lockstorm.results.lock_entry import Service
from lockstorm.scenario.scenario import Scenario
from lockstorm.trial.client import Client
from lockstorm.trial.trial import Trial

PREFIX = "fault:"  # how the names of these scenarios begin
CLIENTS, WORK_MS = 3, 20
LEASE_MS = 5_000
BEFORE_MS = 1_000  # of work before the fault, and after it
NAP_MS = 200  # between two attempts to prove it


def team_fault_scenario(fault: TeamFault, gateway: Gateway) -> Scenario:
    """Clients increment all the time, and the fault is injected, proved and healed meanwhile."""
    return Scenario(
        PREFIX + fault.name,
        summary="Clients increment a counter under the lock while commands of the team break the servers.",
        source="the team's attach.toml",
        control="nothing is broken",
        play=lambda trial: _play(trial, TeamFaultRun(trial, fault, gateway)),
        real_lease_ms=LEASE_MS,
        times=("real",),
        services=get_args(Service),
        options=("clients",),
    )


class TeamFaultRun:
    """One fault in one trial; clients go on with their steps while its commands run."""

    def __init__(self, trial: Trial, fault: TeamFault, gateway: Gateway) -> None:
        self._trial, self._fault, self._gateway = trial, fault, gateway
        self._limit_s = fault.limit_ms / 1000
        self._begun = False

    def play(self) -> None:
        try:
            self._inject()
            self._pass(self._fault.lasts_ms / 1000)
            self._heal()
        except BaseException:
            self._heal_after_failure()
            raise

    def _inject(self) -> None:
        """Injects and proves it. Raises Inconclusive, with what the command printed, if that fails, and if the proof
        succeeds already before: then it proves nothing."""
        fault = self._fault
        if self._run(fault.prove, self._limit_s).ok:
            raise Inconclusive(
                f"prove of the fault {fault.name} succeeds before inject, so it cannot tell whether the fault took "
                "effect: it has to fail until then"
            )
        self._trial.recorder.is_disturbed = self._begun = True
        if fault.heal:
            self._gateway.ask(GatewayRequest("begin-fault", fault.name, fault.heal, self._limit_s))
        done = self._run(fault.inject, self._limit_s)
        self._note(Kind.FAULT_INJECT, done.ok)
        if not done.ok:
            raise Inconclusive(f"inject of the fault {fault.name} {done.explained(self._limit_s)}")
        self._prove()

    def _prove(self) -> None:
        """Asks again and again: a failover takes a while."""
        until_ns = self._trial.mono_ns + self._fault.limit_ms * 1_000_000
        while True:
            left_s = (until_ns - self._trial.mono_ns) / 1e9
            done = self._run(self._fault.prove, max(left_s, NAP_MS / 1000))
            if done.ok or self._trial.mono_ns >= until_ns:
                break
            self._pass(NAP_MS / 1000)
        self._note(Kind.FAULT_PROVE, done.ok)
        if not done.ok:
            why = done.explained(self._limit_s)
            raise Inconclusive(f"the fault {self._fault.name} was not proved within {self._limit_s:g} s: prove {why}")

    def _heal(self) -> None:
        fault = self._fault
        if fault.heal:
            done = self._run(fault.heal, self._limit_s)
            self._note(Kind.FAULT_HEAL, done.ok)
            if not done.ok:
                raise Inconclusive(f"heal of the fault {fault.name} {done.explained(self._limit_s)}")
            self._gateway.ask(GatewayRequest("end-fault", fault.name))
        else:
            self._note(Kind.FAULT_HEAL, True)

    def _heal_after_failure(self) -> None:
        """The trial has failed: the next one must find healthy servers. If this fails too, the gateway heals at the
        end of the command."""
        self._gateway.ask(GatewayRequest("end-command"))
        if self._begun and self._fault.heal and run_shell(self._fault.heal, self._limit_s, self._gateway.variables).ok:
            self._gateway.ask(GatewayRequest("end-fault", self._fault.name))

    def _run(self, command: str, limit_s: float) -> Done:
        gateway = self._gateway

        def started(group: int) -> None:
            gateway.ask(GatewayRequest("begin-command", group=group))

        done = run_shell(command, limit_s, gateway.variables, self._pass, started)
        gateway.ask(GatewayRequest("end-command"))
        return done

    def _pass(self, seconds: float) -> None:
        self._trial.run([], self._trial.mono_ns + int(seconds * 1e9))

    def _note(self, kind: Kind, done: bool) -> None:
        recorder = self._trial.recorder
        names = {"name": recorder.text(self._fault.name), "value": recorder.text(self._gateway.address.shown)}
        recorder.record(kind, outcome=Outcome.OK if done else Outcome.UNKNOWN, **names)


def _play(trial: Trial, fault: TeamFaultRun) -> None:
    clients = trial.clients(trial.settings.clients or CLIENTS)
    work_under(trial, clients, lambda: None if trial.control else fault.play())


def work_under(trial: Trial, clients: list[Client], disturb: Callable[[], object]) -> None:
    """Each client is served once; then they work without a pause while something is disturbed; then nothing is, and
    each has to be served once more."""
    trial.begin_quiet()
    for client in clients:
        client.start_increment(work_ms=WORK_MS)
    trial.finish(*clients)
    trial.recorder.phase("storm")
    for client in clients:
        client.start_workload(0, WORK_MS, WORK_MS)
    trial.advance(BEFORE_MS)
    disturb()
    trial.begin_quiet()
    trial.advance(BEFORE_MS)
    for client in clients:
        client.wind_down()
    trial.run(clients, trial.mono_ns + (trial.lease_ms + trial.bound_ms) * 1_000_000)
    trial.clock.note()
