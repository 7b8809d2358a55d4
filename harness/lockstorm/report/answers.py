"""The record of what a lock's servers answered to one request (docs/history.md, `answers`), in words."""

from dataclasses import dataclass, field

from lockstorm.results.event import Event

GRANT, EXTENSION, RELEASE = 1, 2, 3  # enum env_asked, in harness/environment/env.h
OF_PARTS = 8  # ENV_ASKED_PARTS
YES, NO, NONE = 1, 2, 3  # the digits of env_answers_add

# What servers do that say yes, and no: one of them, several.
YES_WORDS = {GRANT: ("grants it", "grant it"), EXTENSION: ("extends it", "extend it"), RELEASE: ("frees it", "free it")}
NO_WORDS = {
    GRANT: ("refuses", "refuse"),
    EXTENSION: ("refuses", "refuse"),
    RELEASE: ("has nothing of it", "have nothing of it"),
}
SILENT_WORDS = ("does not answer", "do not answer")


@dataclass(frozen=True)
class ServerAnswers:
    """`asked`: GRANT, EXTENSION or RELEASE. The numbers of the servers, from 1 on; none if the record does not say
    which answered how."""

    asked: int
    server: str  # what is asked: "node", "part"
    yes: tuple[int, ...]
    no: tuple[int, ...]
    silent: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.yes) + len(self.no) + len(self.silent)

    @property
    def sentence(self) -> str:
        """ "node 1 and 2 grant it, node 3 refuses, node 4 and 5 do not answer" """
        parts = [
            (self.yes, YES_WORDS[self.asked]),
            (self.no, NO_WORDS[self.asked]),
            (self.silent, SILENT_WORDS),
        ]
        return ", ".join(self._part(numbers, words) for numbers, words in parts if numbers)

    @property
    def brief(self) -> str:
        """ "3 yes, 1 no (4), 1 silent (5)" """
        if self.count in (len(self.no), len(self.silent)):
            return f"all {self.count} {'no' if self.no else 'silent'}"
        parts = [f"{len(self.yes)} yes"] if self.yes else []
        for numbers, word in ((self.no, "no"), (self.silent, "silent")):
            parts += [f"{len(numbers)} {word} ({', '.join(map(str, numbers))})"] if numbers else []
        return ", ".join(parts)

    def _part(self, numbers: tuple[int, ...], words: tuple[str, str]) -> str:
        names = ", ".join(map(str, numbers[:-1])) + (" and " if numbers[1:] else "") + str(numbers[-1])
        several = len(numbers) > 1
        return f"{self.server}{'s' if several else ''} {names} {words[several]}"


def answers_of(event: Event) -> ServerAnswers:
    digits = [int(digit) for digit in str(event.value)] if event.value > 0 else []
    of = {wanted: tuple(at for at, digit in enumerate(digits, 1) if digit == wanted) for wanted in (YES, NO, NONE)}
    asked = event.extra & ~OF_PARTS
    server = "part" if event.extra & OF_PARTS else "node"
    return ServerAnswers(asked if asked in YES_WORDS else GRANT, server, of[YES], of[NO], of[NONE])


@dataclass
class AnswerSelection:
    """Chooses the answers that say something new; takes the events of a history in their order."""

    acquiring: set[str] = field(default_factory=set)  # clients that ask for the lock
    latest: dict[str, ServerAnswers] = field(default_factory=dict)  # client -> its last answer in this acquire

    def is_shown(self, event: Event) -> bool:
        """Not where a client that polls is answered as before; nor what it is answered when it gives back what it was
        not granted, or has released, as long as all nodes answer as they must."""
        client = event.who
        if event.kind == "acquire-invoke":
            self.acquiring.add(client)
            self.latest.pop(client, None)
        elif event.kind == "acquire-return":
            self.acquiring.discard(client)
        elif event.kind == "actor-exit":
            self.acquiring.discard(str(event.name))
        elif event.kind == "answers":
            return self._says_something(client, answers_of(event))
        return True

    def _says_something(self, client: str, answers: ServerAnswers) -> bool:
        if answers.asked == RELEASE:
            return bool(answers.silent or (answers.no and client not in self.acquiring))
        if answers.asked == GRANT and not answers.count:
            return False
        before = self.latest.get(client)
        self.latest[client] = answers
        return not (client in self.acquiring and before == answers)
