"""The proxy of a trial: every link leads through it, and its rules drop, delay or change messages."""

from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.base.errors import Unanswered, UsageError
from lockstorm.base.hang_limit import CONNECTION_LIMIT_S
from lockstorm.process.line_client import LineClient, Refusal
from lockstorm.process.process import Process, Sandbox, check_socket_path, flag_words

START_NAP_S = 0.0003  # about what it takes from its zygote


LINKS = "links"  # the directory of the sockets that clients connect to


class Proxy:
    """Started by the constructor, which returns when it answers."""

    def __init__(self, sandbox: Sandbox, history: Path, page: Path, actor: int) -> None:
        self.control = sandbox.directory / "proxy.sock"
        check_socket_path(self.control)
        self._directory = sandbox.directory / LINKS
        self._directory.mkdir(mode=0o700)
        self._names: list[str] = []
        self._rules: list[str] = []
        words = {"history": history, "page": page, "actor": actor, "control": self.control}
        command = [paths.program("proxy"), *flag_words(words)]
        self.process: Process = sandbox.start_program("proxy", command)
        self._client = LineClient(self.control)
        ping, failures = (lambda: self._client.request("PING")), (OSError,)
        sandbox.await_start(
            "the proxy", "proxy", self.process, ping, failures, nap_s=START_NAP_S, look_s=CONNECTION_LIMIT_S
        )

    def ask(self, *words: str | int | bytes) -> Any:
        """Sends one command to its control socket; faults/proxy/README.md lists them."""
        try:
            return self._client.request(*words)
        except Refusal as error:
            raise UsageError(f"the proxy: {error}") from None
        except OSError as error:
            raise Unanswered(f"the proxy does not answer: {error}") from None

    def link(
        self, name: str, target: Path | str, *, listen: str | None = None, option: str = "", file: str = ""
    ) -> str:
        """Makes a link and returns the address on which it listens: `listen`, or a socket of its own, which is called
        `file` and has a directory of its own if a file is given. `option`: PLAIN for a protocol other than RESP,
        STEPPED and PLAIN-STEPPED for clients that take turns in virtual time, TIMED for those that do not say for how
        long a server is to wait (faults/proxy/README.md)."""
        self._names.append(name)
        at = listen or str(place_in(self._directory, len(self._names), file))
        reply = self.ask("LINK", "ADD", name, at, str(target), *([option] if option else []))
        return reply.decode() if isinstance(reply, bytes) else str(reply)

    def lead(self, pattern: str, target: Path | str) -> int:
        """Makes the links that match lead to another target, and closes their connections. The number of links."""
        return int(self.ask("LINK", "TARGET", pattern, str(target)))

    def rule(self, name: str, pattern: str, direction: str, *words: str | int | bytes) -> None:
        """Adds a rule: direction to-server, to-client or both, then the action and what it matches."""
        self.ask("RULE", "ADD", name, pattern, direction, *words)
        self._rules.append(name)

    def release(self, name: str, first: int | None = None) -> int:
        """Releases the messages that a rule holds: the first ones, or all."""
        return int(self.ask("RULE", "RELEASE", name, *([first] if first else [])))

    def remove(self, name: str) -> None:
        self.ask("RULE", "REMOVE", name)

    def fired(self, name: str) -> int:
        """How often a rule has fired, also after it was removed."""
        reply = self.ask("RULE", "STAT", name)
        statistics = dict(zip(reply[::2], reply[1::2], strict=True))
        return int(statistics[b"fired"])

    def carried(self) -> dict[str, int]:
        """The bytes that went to the server on each link."""
        links = [dict(zip(link[::2], link[1::2], strict=True)) for link in self.ask("LINK", "LIST")]
        return {link[b"name"].decode(): int(link[b"bytes-to-server"]) for link in links}

    def idle_rules(self) -> list[str]:
        return [name for name in self._rules if self.fired(name) == 0]

    def close(self) -> None:
        self._client.close()


def place_in(directory: Path, number: int, file: str) -> Path:
    if not file:
        return directory / str(number)
    (directory / str(number)).mkdir(mode=0o700)
    return directory / str(number) / file
