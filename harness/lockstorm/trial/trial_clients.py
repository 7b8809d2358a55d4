"""The clients of a trial: started, restarted, and missed when their processes end."""

import os
from pathlib import Path

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, LockstormError, Stalled, UsageError
from lockstorm.locks.adapter import library_environment
from lockstorm.locks.plugin import how_ended
from lockstorm.native.library import Kind, library
from lockstorm.process.process import inheritable
from lockstorm.results.lock_entry import HostedLibrary
from lockstorm.trial.client import Client
from lockstorm.trial.client_groups import group_sizes
from lockstorm.trial.nodes import AnyNodes
from lockstorm.trial.trial_context import TrialContext
from lockstorm.trial.trial_scheduler import TASKS_PER_CLIENT

OPEN_LIMIT_MS = 30_000  # only guards against hanging
NOT_OPENED = 3  # the exit status of a client whose server did not answer while the lock was opened
GAVE_UP = 4  # the exit status of a client that cannot host its adapter or plug-in (ENV_GAVE_UP)
MESSAGE_START = "client: "  # how a client's own messages begin
SUPERVISOR_START = "supervisor: "  # how those of the supervisor begin, which says why it follows a program no further

ADAPTER_ERROR = "the adapter answered unknown: "  # adapter_talk.c


class TrialClients:
    """All clients of a trial, dead ones too."""

    def __init__(self, trial: TrialContext, nodes: AnyNodes, store_socket: Path) -> None:
        self._trial, self._nodes, self._store_socket = trial, nodes, store_socket
        self._suspended: set[int] = set()  # workers of suspended hosts
        self.every: list[Client] = []

    @property
    def living(self) -> list[Client]:
        """Those that were not ended on purpose."""
        return [client for client in self.every if not client.ended]

    def start(self, count: int, resource: bytes) -> list[Client]:
        """Starts the next clients side by side; returns when each has opened its lock and waits for a step."""
        hosts = len({client.host for client in self.every})
        names = [f"client-{hosts + 1 + each}" for each in range(count)]
        if self._trial.settings.grouped_clients:
            return self._start(self._create_groups(names, resource))
        return self._start([[self._create(name, resource)] for name in names])

    def _create(self, name: str, resource: bytes) -> Client:
        """Takes two tasks of the scheduler, side by side: worker and watchdog."""
        worker = library().scheduler_add_task(self._trial.scheduler)
        watchdog = library().scheduler_add_task(self._trial.scheduler)
        if watchdog < 0:
            raise UsageError("more than 96 clients in one trial")
        return Client(self._trial, name, resource, worker)

    def _create_groups(self, names: list[str], resource: bytes) -> list[list[Client]]:
        """Clients that share a few processes (client_groups.py)."""
        groups, left = [], iter(names)
        for size in group_sizes(len(names)):
            first = library().scheduler_add_group(self._trial.scheduler, TASKS_PER_CLIENT * size)
            if first < 0:
                raise UsageError(f"more than {self._trial.settings.grouped_clients} clients in one trial")
            tasks = range(first, first + TASKS_PER_CLIENT * size, TASKS_PER_CLIENT)
            group = [Client(self._trial, next(left), resource, task) for task in tasks]
            for client in group:
                client.group = f"group-of-{group[0].name}"
            groups.append(group)
        return groups

    def _start(self, groups: list[list[Client]]) -> list[Client]:
        """`groups`: the clients of each process."""
        new = [client for group in groups for client in group]
        for client in new:
            library().scheduler_expect(self._trial.scheduler, client.task)
        for group in groups:
            self._start_process(group)
        self.every += new
        self._trial.scheduler.run(new)
        return new

    def _start_process(self, group: list[Client]) -> None:
        lib, scheduler, sandbox, lock = library(), self._trial.scheduler, self._trial.sandbox, self._trial.lock
        first, name = group[0], group[0].process_name
        turn, watchdog = (lib.scheduler_turn_fd(scheduler, task) for task in (first.task, first.task + 1))
        yields = lib.scheduler_yield_fd(scheduler)
        inherit = [inheritable(fd) for fd in dict.fromkeys((turn, watchdog, yields))]  # tasks of a group share one
        options: dict[str, object] = {"turn-fd": turn, "watchdog-fd": watchdog, "yield-fd": yields}
        program = "client" if lock.service == "redis" else "client-services"
        if first.group:
            program, actors = "client-group", sandbox.directory / f"{name}.actors"
            actors.write_text("".join(f"{client.identity}\n" for client in group))
            options["actors"] = actors
        if lock.adapter:
            sandbox.reap_by_environment()
            self._await_messages(lock.adapter)
        command = self._command(program, first, options)
        # What hosts the code of others starts afresh: that code would find the environment of the zygote in /proc.
        if lock.adapter or lock.plugin:
            environment = [f"{key}={value}" for key, value in library_environment().items()]
            process = sandbox.start(name, command, environment=environment, inherit=inherit)
        else:
            process = sandbox.start_program(name, command, inherit)
        for client in group:
            client.process = process
            for task in (client.task, client.task + 1):
                if not lib.scheduler_watch(scheduler, task, process.pid):
                    raise Inconclusive(f"{name} did not start: {sandbox.log_tail(name)}")

    def adapter_error(self) -> str:
        """What an adapter said last with an outcome that is unknown; empty: nothing."""
        logs = "".join(self._trial.sandbox.log_of(name) for name in dict.fromkeys(it.process_name for it in self.every))
        said = [line for line in logs.splitlines() if line.startswith(ADAPTER_ERROR)]
        return said[-1].removeprefix(ADAPTER_ERROR) if said else ""

    def _command(self, program: str, client: Client, more: dict[str, object]) -> list[str]:
        trial, recorder = self._trial, self._trial.recorder
        options = {
            "history": recorder.path,
            "page": trial.scheduler.page,
            "resource-hex": client.resource.hex(),
            "resource-id": recorder.text(os.fsdecode(client.resource)),
            "lease-ms": trial.lease_ms,
            "reply-limit-ms": trial.reply_limit_ms,
            "open-limit-ms": self._open_limit_ms,
            "permits": trial.settings.permits or 1,
            "store": trial.links.link(f"{client.host}>store", self._store_socket),
            "actor": client.identity,
            "task": client.task,
            "life": client.life - 1,
            **self._lock_option(),
            **more,
        }
        command = [paths.program(program), *(f"--{key}={value}" for key, value in options.items())]
        command += [f"--node={address}" for address in self._nodes.addresses(client)]
        command += ["--fixed-lease"] if trial.settings.fixed_lease else []
        command += ["--checks-validity"] if trial.settings.checks_validity else []
        return command

    @property
    def _open_limit_ms(self) -> int:
        """In real time a busy machine's servers may be slow to open a lock, and no verdict rests on how long that
        takes. Where something was broken before, they may never answer."""
        patient = self._trial.settings.time == "real" and not self._trial.recorder.is_disturbed
        return max(OPEN_LIMIT_MS if patient else 0, self._trial.reply_limit_ms)

    def _await_messages(self, library_program: HostedLibrary) -> None:
        """In virtual time what a library sends reaches a server when its turn is over, and never meanwhile."""
        if self._trial.settings.time == "real":
            return
        library().scheduler_set_unreliable(self._trial.scheduler)
        if library_program.tcp:
            library().scheduler_set_tcp(self._trial.scheduler)

    def _lock_option(self) -> dict[str, str]:
        """The option that names a client's lock: the path of an adapter or plug-in, or a lock of ours."""
        if self._trial.lock.adapter:
            is_virtual = self._trial.settings.time == "virtual"
            supervisor = {"supervisor": str(paths.program("supervisor"))} if is_virtual else {}
            return {"adapter": self._trial.lock.adapter.path, **supervisor}
        if self._trial.lock.plugin:
            return {"plugin": self._trial.lock.plugin.path}
        return {"lock": self._trial.settings.lock}

    def restart(self, client: Client) -> Client:
        """Starts the next life of a client that was killed: on the same host, with its clocks and links, under another
        name, and with nothing remembered."""
        if not client.ended or client.next_life or not client.process:
            raise UsageError(f"{client.name} was not killed, or lives again already")
        if client.task in self._suspended:
            raise UsageError(f"the host of {client.name} is suspended: nothing starts there")
        client.process.wait()
        for task in (client.task, client.task + 1):
            library().scheduler_reuse_task(self._trial.scheduler, task)
        new = Client(self._trial, client.host, client.resource, client.task, client.life + 1)
        client.next_life = new
        (new,) = self._start([[new]])
        return new

    def latest_on(self, task: int) -> Client:
        return next(client for client in reversed(self.every) if client.task == task)

    def process_ended(self, pid: int) -> None:
        """For a fault, which has ended a process. Returns when what others do because of that is done."""
        library().scheduler_forget_process(self._trial.scheduler, pid)
        for client in self.every:
            if client.process and not client.ended and client.pid == pid:
                client.ended = True
                status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
                value = status.si_status if status else 0
                self._trial.recorder.record(Kind.ACTOR_EXIT, name=client.identity, value=value)
        if self._trial.settings.time == "virtual":
            self._trial.scheduler.try_settle()

    def suspend(self, task: int, suspended: bool) -> int:
        """For a fault, which suspends or resumes a client's host: its monotonic clock stands, or goes on. A lock that
        goes by a validity measures it by that clock and believes longer. Its process is stopped at this moment:
        `harness/client/validity.c` makes the record. Returns the number of reasons for which the clock stands."""
        lib, scheduler, recorder = library(), self._trial.scheduler, self._trial.recorder
        client = self.latest_on(task)
        left = int(lib.scheduler_set_host_suspended(scheduler, task, suspended))
        (self._suspended.add if left > 0 else self._suspended.discard)(task)
        if not client.ended:
            host_ns = lib.scheduler_host_mono_ns(scheduler, task)
            lock_name = recorder.text(os.fsdecode(client.resource))
            page = lib.scheduler_page(scheduler)
            recorder.record_host_clock(page, task, client.identity, lock_name, host_ns, left > 0)
        return left

    def stop_between_records(self) -> None:
        """In real time clients may still run when the history is read: stops each where it writes no record."""
        one_of_each = {client.pid: client.task for client in self.every if client.process and not client.ended}
        for task in one_of_each.values():
            library().scheduler_stop_between_records(self._trial.scheduler, task)

    def explain_death(self, pid: int) -> LockstormError | None:
        """Why a client's process has ended unexpectedly; None if it is no client's."""
        for client in self.every:
            if client.process and client.pid == pid:
                return self._explain_end(client, client.process.wait())
        return None

    def _explain_end(self, client: Client, status: int) -> LockstormError:
        lock, sandbox = self._trial.settings.lock, self._trial.sandbox
        if status == GAVE_UP:  # its adapter may have written lines before and after the client's message
            lines = sandbox.logs()[client.process_name].splitlines()
            if reasons := [line.removeprefix(SUPERVISOR_START) for line in lines if line.startswith(SUPERVISOR_START)]:
                return Inconclusive(
                    f"{lock} cannot be followed in virtual time: {reasons[0]} (--time real plays it in real time)"
                )
            sentence = next(line for line in reversed(lines) if line.startswith(MESSAGE_START))
            return UsageError(f"{lock}: {sentence.removeprefix(MESSAGE_START)}")
        said = sandbox.log_tail(client.process_name)
        if self._trial.lock.plugin:
            who = f"{lock}: {client.name}, which hosts it, ended {how_ended(status)}"
            return Inconclusive(f"{who}: {said}" if said else who)
        reason = f"{client.process_name} ended (status {status}): {said}"
        # No verdict rests on how long an opening takes: a play with longer limits may have one.
        slow = status == NOT_OPENED and self._trial.settings.time == "real"
        return Stalled(reason) if slow else Inconclusive(reason)
