"""Commands in words, and which of them a fault of a schedule strikes."""

import re

import msgspec

LONGEST_WORD = 40  # letters
RANDOM = re.compile(r"([0-9a-f]{8})[0-9a-f]{12,}")  # the hash of a script, an owner's name: its beginning is shown


class StruckCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command that a fault loses, delays, refuses or repeats, or a message on a channel that it loses."""

    line: str  # of the schedule
    mono_ns: int
    fault: str
    client: int  # index, from 1: the one that sent it, or waits for the message
    watchdog: bool  # sent by the client's watchdog
    node: int  # index of the server, from 1; 0: the resource
    words: list[str]  # of a message: its kind, channel and text

    @property
    def text(self) -> str:
        """The command, and which server it was meant for: "DEL account to redis-1"."""
        words = " ".join(map(shortened, self.words))
        return f"{words} {'from' if self.fault == 'drop-message' else 'to'} {server_name(self.node)}"


def server_name(node: int) -> str:
    return f"redis-{node}" if node else "store"


def shortened(word: str, most: int = LONGEST_WORD) -> str:
    word = RANDOM.sub(r"\1…", word)
    return word if len(word) <= most else f"{word[: most - 1]}…"
