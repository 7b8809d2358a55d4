"""Judges mutants of the checkers: their verdicts about thousands of histories, compared with the definitions."""

import json
import os
import pickle
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pytest

from tests.helpers import checker_oracle as oracle
from tests.helpers.checker_oracle import History, Json, Reading
from tests.helpers.comparing import differences
from tests.helpers.judging import image, judged_text
from tests.helpers.mutant_grounds import ROOT
from tests.helpers.random_histories import ManyWriters, RandomHistory
from tests.helpers.recorded_text import ExpectedText
from tests.helpers.timeline import Timeline, cases

DETAILS = ROOT / "tests" / "checkers" / "test_judgements.py"
HISTORIES, MANY_WRITERS = 1500, 100
UNNUMBERED = 600  # of all these, once more without the numbers of operations
ONE_S, DETAILS_S = 1, 20  # of CPU, for one history and for tests/checkers/test_judgements.py: the machine may be busy
MEMORY = 2 << 30


@dataclass(frozen=True)
class Question:
    slots: bytes
    history: History
    results: dict[Reading, Json]
    expected: ExpectedText


def questions() -> list[Question]:
    """With the verdicts by the definitions, which are the same for every mutant."""
    histories: list[Timeline | RandomHistory | ManyWriters] = [
        Timeline(case.timeline) for case in cases(ROOT / "tests" / "timelines")
    ]
    histories += [RandomHistory(seed) for seed in range(1_000_000, 1_000_000 + HISTORIES)]
    histories += [ManyWriters(seed) for seed in range(MANY_WRITERS)]
    recorded = [(each.names, each.records) for each in histories]
    recorded += [(names, [replace(each, op=0) for each in records]) for names, records in recorded[:UNNUMBERED]]
    return [
        Question(image(names, records), records, oracle.verdicts_by_reading(records), ExpectedText.of(names, records))
        for names, records in recorded
    ]


def may_take(seconds: int) -> None:
    """CPU time from here on: SIGPROF kills a mutant that loops for ever."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def is_wrong(question: Question, usual: bytes) -> bool:
    """Whether the verdict is wrong. `usual` is what the original says, which was checked before."""
    may_take(ONE_S)
    text = judged_text(question.slots)
    if text == usual:
        return False
    said = json.loads(text)
    wrong = chain(differences(said, question.history, question.results), question.expected.differences(said))
    return next(wrong, None) is not None


def details_fail() -> bool:
    may_take(DETAILS_S)
    return pytest.main(["-q", "-x", "-p", "no:cacheprovider", str(DETAILS)]) != pytest.ExitCode.OK


def is_true_apart(answer: Callable[[], bool], **environment: str) -> bool:
    """Asks in a process of its own, with other variables: a crash or a hang counts as true."""
    child = os.fork()
    if child == 0:
        os.environ |= environment
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        wrong = True
        try:
            wrong = answer()
        finally:
            os._exit(int(wrong))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


class Definitions:
    """The questions, and what the original answers to each."""

    def __init__(self, library: Path) -> None:
        self.library = library
        asked = questions()
        self.answered = list(zip(asked, self._listen(asked), strict=True))

    def _listen(self, asked: list[Question]) -> list[bytes]:
        answers = self.library.with_name("answers")

        def is_seen() -> bool:
            texts = [judged_text(each.slots) for each in asked]
            answers.write_bytes(pickle.dumps(texts))
            return any(is_wrong(each, b"") for each in asked) or details_fail()

        assert not is_true_apart(is_seen, LOCKSTORM_JUDGE=str(self.library)), "the original itself does not pass"
        texts: list[bytes] = pickle.loads(answers.read_bytes())
        return texts

    def find_mistake(self) -> bool:
        def is_seen() -> bool:
            return any(is_wrong(*each) for each in self.answered) or details_fail()

        return is_true_apart(is_seen, LOCKSTORM_JUDGE=str(self.library))
