"""What can go wrong, by the exit status that it leads to."""


class LockstormError(Exception):
    """Anything that ends a command with a message instead of a trace back."""

    exit_status = 2


class UsageError(LockstormError):
    """The user asked for something that does not exist or does not fit together."""


class Inconclusive(LockstormError):
    """The trial could not be run to its end, so nothing was learned: a server that did not start, a fault that did
    not take effect, a client that died or never came back."""

    exit_status = 3


class NotInstalled(Inconclusive):
    """What this lock lives on is not there."""


class Unanswered(Inconclusive):
    """Nobody knows what is still on its way."""

    def __init__(self) -> None:
        super().__init__("a server, or the proxy, does not answer")
