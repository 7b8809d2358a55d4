"""The driver's side of the gateway (gateway_main.py): starts it, tells it what to undo, and ends it. The lines between
the two: a request a line, and its answer. Decision 0103."""

import contextlib
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Literal, Self

import msgspec

from lockstorm.attach.run_names import PREFIX, describe_traces, directory_of, resource_of
from lockstorm.attach.server_access import ServerSurvey
from lockstorm.attach.server_address import SENTINEL_PASSWORD, ServerAddress, TlsFiles
from lockstorm.attach.transport import Login
from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, LockstormError, UsageError

NO_FILES = TlsFiles()
Request = Literal[
    "survey",
    "lease-range",
    "remains",
    "begin-trial",  # comes before the first client of a trial; removes what an earlier trial has left
    "begin-fault",  # from now on the gateway would heal the fault, if the driver cannot
    "end-fault",
    "begin-command",  # of the team: its process group must not outlive the driver
    "end-command",
]


class Begin(msgspec.Struct, frozen=True):
    """The first line. `variables`: for the team's own commands."""

    url: str
    login: Login
    run: str
    variables: dict[str, str]


class GatewayRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every other line of the driver."""

    do: Request
    fault: str = ""
    heal: str = ""
    limit_s: float = 0.0
    group: int = 0


class GatewayAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Each answer has the fields of its request; the last one says what was cleaned up."""

    error: str = ""
    socket: str = ""
    survey: ServerSurvey | None = None
    lease_range_ms: tuple[int, int] = (0, 0)
    remains: dict[str, int] = {}
    removed: int = 0
    healed: dict[str, str] = {}
    failures: dict[str, int] = {}


class Gateway:
    """`with Gateway(address) as gateway:` starts it and connects once; raises UsageError if that fails.

    `run`: the beginning of the lock's name, which is in the names of all keys of this run. `variables`: the password,
    by the name of its variable, for the team's own commands. It is taken out of the driver's environment, so that no
    client and no adapter inherits it.
    """

    def __init__(
        self, address: ServerAddress, files: TlsFiles = NO_FILES, faults: Path | None = None, *, yes: bool = False
    ) -> None:
        files.check(address)
        self.yes = yes  # the user has allowed a database that is not empty
        self.files = files
        self.address = address
        self.faults = faults  # the file of the team's faults
        self.run = f"{PREFIX}{os.urandom(6).hex()}:"
        self.resource = resource_of(address, self.run)
        names = (*address.password_variables, SENTINEL_PASSWORD)
        self.variables = {name: value for name in names if (value := os.environ.pop(name, ""))}
        variable = next((name for name in address.password_variables if name in self.variables), "")
        self._login = Login(
            password=self.variables.get(variable, ""),
            sentinel_password=self.variables.get(SENTINEL_PASSWORD, ""),
            variable=variable or address.password_variable,
            **asdict(files),
        )
        self.socket = Path()  # where clients connect, as if it were the server's
        self._process: subprocess.Popen[str] | None = None
        self.healed: dict[str, str] = {}
        self.failures: dict[str, int] = {}  # why connections of clients were refused -> how many
        self.removed = 0

    def __enter__(self) -> Self:
        command = [sys.executable, "-P", "-m", "lockstorm.attach.gateway_main"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": paths.python_path()},
            start_new_session=True,  # Ctrl-C ends the driver first, which ends it
        )
        begin = Begin(self.address.url, self._login, self.run, self.variables)
        try:
            self.socket = Path(self.ask(begin).socket)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        answer = self._end()
        if answer.error and isinstance(error, LockstormError | None):
            raise Inconclusive("; ".join([*([str(error)] if error else []), answer.error]))
        if answer.error:  # an interrupt stays one
            print(f"lockstorm: {answer.error}", file=sys.stderr)
        self.removed += answer.removed
        self.healed, self.failures = answer.healed, answer.failures

    @property
    def _has_ended(self) -> str:
        return f"the gateway has ended: {describe_traces(self.address, self.run)} may be left"

    def address_for_client(self, address: str) -> str:
        """What a client is told, whose link has this address: on ZooKeeper its paths begin with the run's own node."""
        return address + (directory_of(self.address, self.run) if self.address.service == "zookeeper" else "")

    def survey(self) -> ServerSurvey:
        """What is at the servers. Raises UsageError if a lock cannot work on them."""
        survey = self.ask(GatewayRequest("survey")).survey
        assert survey
        return survey

    def lease_range_ms(self) -> tuple[int, int]:
        """The shortest and the longest lease that the servers grant. Touches them: it asks for leases."""
        return self.ask(GatewayRequest("lease-range")).lease_range_ms

    def remains(self) -> dict[bytes, int]:
        """What clients of this run have there: name -> ms until it expires; below 0: never. Raises Inconclusive."""
        try:
            found = self.ask(GatewayRequest("remains")).remains
        except UsageError as reason:
            raise Inconclusive(str(reason)) from None
        return {os.fsencode(name): left_ms for name, left_ms in found.items()}

    def begin_trial(self) -> None:
        """Clients may be let through from now on. Removes what earlier trials have left at the servers."""
        self.removed += self.ask(GatewayRequest("begin-trial")).removed

    def ask(self, request: Begin | GatewayRequest) -> GatewayAnswer:
        assert self._process and self._process.stdin and self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(request).decode() + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise Inconclusive(self._has_ended)
        answer = msgspec.json.decode(line, type=GatewayAnswer)
        if answer.error:
            raise UsageError(answer.error)
        return answer

    def _end(self) -> GatewayAnswer:
        """Ends its input; what it has cleaned up."""
        assert self._process and self._process.stdin and self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        said = self._process.stdout.read()
        self._process.stdout.close()
        self._process.wait()
        self._process = None
        lines = said.splitlines()
        return msgspec.json.decode(lines[-1], type=GatewayAnswer) if lines else GatewayAnswer(error=self._has_ended)


def attach_words(address: ServerAddress, files: TlsFiles, scenario: str, faults: str = "", *, yes: bool) -> list[str]:
    """The words of a command line that play a scenario, or a fault of this file, at an address. `yes`: the user has
    allowed a database that is not empty; a command that is only copied must not."""
    kind, _, fault = scenario.partition(":")
    chosen = ["--fault", fault, "--faults", faults] if fault else ["--scenario", kind]
    return [address.url, *files.options, *chosen, *(["--yes"] if yes else [])]
