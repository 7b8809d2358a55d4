"""The errors of a command, by the exit status that they lead to."""

import contextlib
from collections.abc import Iterator


class LockstormError(Exception):
    """An error that ends a command with a message instead of a traceback."""

    exit_status = 2


class UsageError(LockstormError):
    """The user asked for something that does not exist, or for options that contradict each other."""


class Inconclusive(LockstormError):
    """The trial did not reach its end, so nothing was learned: a server did not start, a fault did not take effect, a
    client died or did not answer."""

    exit_status = 3
    played_again = 0  # how often the trial was played again, because the machine stood still each time


class Stalled(Inconclusive):
    """In real time, the machine did not run the trial's processes for so long that a verdict would be about the machine
    and not about the lock."""


class NotInstalled(Inconclusive):
    """The server or library that a lock needs is not installed."""


class Unanswered(Inconclusive):
    """A server or the proxy does not answer, so messages may still be in flight."""

    def __init__(self, message: str) -> None:
        super().__init__(message or "a server, or the proxy, does not answer")


@contextlib.contextmanager
def at_place(where: object) -> Iterator[None]:
    """A UsageError of the block begins with the place that is wrong."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
