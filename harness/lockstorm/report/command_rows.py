"""The commands of a schedule, each with its answer, in words: for the terminal and for a page."""

from collections.abc import Sequence
from dataclasses import dataclass

from lockstorm.results.struck_command import server_name, shortened
from lockstorm.results.verdict import HeardCommand

LONGEST_ANSWER = 120  # letters
FATES = {
    "answered": "",
    "answer-lost": "the answer is lost on its way back",
    "waits": "waits in the server",
    "answered-late": "answered now",
    "late": "executed late: nobody waits for its answer",
    "lost": "never arrives",
    "refused": "an error, and not executed",
}


@dataclass(frozen=True)
class CommandRow:
    time: str
    client: str
    server: str
    command: str
    answer: str
    fate: str  # of HeardCommand


def command_rows(commands: Sequence[HeardCommand]) -> list[CommandRow]:
    return [
        CommandRow(
            f"{each.mono_ns / 1e9:.3f} s",
            f"client-{each.client}" + ("'s watchdog" if each.watchdog else ""),
            server_name(each.node),
            " ".join(map(shortened, each.words)),
            _answer(each),
            each.fate,
        )
        for each in commands
    ]


def _answer(heard: HeardCommand) -> str:
    late = f"at {heard.answered_ns / 1e9:.3f} s" if heard.answered_ns is not None else ""
    parts = (shortened(heard.answer or "", LONGEST_ANSWER), FATES[heard.fate], late)
    return " - ".join(part for part in parts if part)
