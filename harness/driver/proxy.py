"""The proxy of a trial: every link leads through it, and rules say what happens to what passes."""

import contextlib
import time
from pathlib import Path
from typing import Any

from harness.driver import paths
from harness.driver.errors import Inconclusive, UsageError
from harness.driver.line import Line, Refusal
from harness.driver.links import LINKS, place_in
from harness.driver.process import Nursery, Process

START_LIMIT_S = 10.0


class Proxy:
    """Started by the constructor, which returns when it answers."""

    def __init__(self, nursery: Nursery, history: Path, stage: Path, actor: int, seed: int) -> None:
        self.control = nursery.directory / "proxy.sock"
        self._directory = nursery.directory / LINKS
        self._directory.mkdir(mode=0o700)
        self._names: list[str] = []
        self._rules: list[str] = []
        words = {"history": history, "stage": stage, "actor": actor, "seed": seed, "control": self.control}
        command = [paths.program("proxy"), *(word for key, value in words.items() for word in (f"--{key}", str(value)))]
        self.process: Process = nursery.start("proxy", command)
        self._line = Line(self.control)
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            with contextlib.suppress(OSError):
                self._line.ask("PING")
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Inconclusive(f"the proxy did not start: {nursery.log_tail('proxy')}")
            time.sleep(0.001)

    def ask(self, *words: str | int | bytes) -> Any:
        """One command of its control port; faults/README.md lists them."""
        try:
            return self._line.ask(*words)
        except Refusal as error:
            raise UsageError(f"the proxy: {error}") from None

    def link(
        self, name: str, target: Path | str, *, listen: str | None = None, option: str = "", file: str = ""
    ) -> str:
        """Makes a link and returns the address on which it listens: a socket of its own unless `listen` says where; if
        its `file` must have a certain name, in a directory of its own.
        `option`: PLAIN for what is not RESP, STEPPED for whoever takes turns in virtual time."""
        self._names.append(name)
        at = listen or str(place_in(self._directory, len(self._names), file))
        reply = self.ask("LINK", "ADD", name, at, str(target), *([option] if option else []))
        return reply.decode() if isinstance(reply, bytes) else str(reply)

    def lead(self, pattern: str, target: Path | str) -> int:
        """Links that match lead elsewhere from now on; their connections are closed. How many links."""
        return int(self.ask("LINK", "TARGET", pattern, str(target)))

    def rule(self, name: str, pattern: str, direction: str, *words: str | int | bytes) -> None:
        """Adds a rule: direction to-server, to-client or both, then the action and what it matches."""
        self.ask("RULE", "ADD", name, pattern, direction, *words)
        self._rules.append(name)

    def release(self, name: str, first: int | None = None) -> int:
        """Lets go what a rule holds."""
        return int(self.ask("RULE", "RELEASE", name, *([first] if first else [])))

    def remove(self, name: str) -> None:
        self.ask("RULE", "REMOVE", name)

    def fired(self, name: str) -> int:
        """How often a rule has fired, also when it was removed."""
        reply = self.ask("RULE", "STAT", name)
        said = dict(zip(reply[::2], reply[1::2], strict=True))
        return int(said[b"fired"])

    def idle_rules(self) -> list[str]:
        """The rules that never matched anything."""
        return [name for name in self._rules if self.fired(name) == 0]

    def close(self) -> None:
        self._line.close()
