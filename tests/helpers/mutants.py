"""`make mutants`: plants one mistake at a time in the checkers' C source, and sees whether the tests find it.

Each mutant judges the timelines and some thousand random histories, and its verdicts are compared with the definitions;
a mutant that survives this must also pass tests/checkers/test_judgements.py. A mutant that does not compile, or gives
the same machine code, does not count. One that survives is a gap in the tests, or does the same as the original:
tests/equivalent_mutants.txt lists those that are known to, with the reason.
"""

import gc
import json
import os
import pickle
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path

import click
import pytest

from tests.helpers import checker_oracle as oracle
from tests.helpers.checker_oracle import History, Json, Reading
from tests.helpers.comparing import differences
from tests.helpers.judging import image, judged_text
from tests.helpers.random_histories import ManyWriters, RandomHistory
from tests.helpers.recorded_text import ExpectedText
from tests.helpers.timeline import Timeline, cases

ROOT = Path(__file__).resolve().parents[2]
PLACES = {  # file -> its room in checkers/
    **dict.fromkeys(
        ("mutual_exclusion", "integrity", "fencing", "ownership", "liveness", "capacity", "lease", "fairness", "cost"),
        "properties",
    ),
    **dict.fromkeys(("assumptions", "judge", "participants", "policy"), "engine"),
    "render": "commands",
    "checker": "engine",
}
FILES = tuple(PLACES)
KNOWN = ROOT / "tests" / "equivalent_mutants.txt"
DETAILS = ROOT / "tests" / "checkers" / "test_judgements.py"
HISTORIES, MANY_WRITERS = 1500, 100
UNNUMBERED = 600  # of all these, once more without the numbers of operations
ONE_S, DETAILS_S = 1, 20  # of CPU, for one history and for tests/checkers/test_judgements.py: the machine may be busy
MEMORY = 2 << 30

# The code -> what is planted instead. Comments and strings are left alone.
SWAPS: tuple[tuple[str, str], ...] = (
    (r"(?<![<\-])<=(?!=)", "<"),
    (r"(?<![>\-])>=(?!=)", ">"),
    (r"(?<![<\-=])<(?![<=])(?=\s)", "<="),
    (r"(?<![>\-=])>(?![>=])(?=\s)", ">="),
    (r"==", "!="),
    (r"!=", "=="),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r"\+\+", "--"),
    (r"(?<!-)--(?!-)", "++"),
    (r"\+=", "-="),
    (r"-=", "+="),
    (r"\|=", "="),
    (r"(?<=\s)\+(?=\s)", "-"),
    (r"(?<=\s)-(?=\s)", "+"),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"(?<=[(,=&| ])!(?=[\w(])", ""),
    (r"\bOUTCOME_OK\b", "OUTCOME_REFUSED"),
    (r"\bOUTCOME_REFUSED\b", "OUTCOME_UNKNOWN"),
    (r"(?<=[=?:,( ])0(?=[;,): ])", "1"),
    (r"(?<=[=?:,(\- ])1(?=[;,): ])", "0"),
)
CONDITION = re.compile(r"\b(?:if|while) \(")
CALL = re.compile(
    r"^\s+(?!return\b|if\b|for\b|while\b|else\b|case\b|default\b|static\b)[\w\->.()*&\[\] ,?:]+"
    r"(?:[+|-]?=.*|\(.*\)|\+\+|--);$"
)
GUARD = re.compile(r"^\s+if \(.*\) (?:return\b.*|continue|break);$")
WORDS = re.compile(r"snprintf|check_when|check_name|check_grant|check_duration|json_|_Static_assert|abort\(\)|\bfree\(")


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()}  ->  {self.after.strip() or '(nothing)'}"

    @property
    def mutated(self) -> str:
        """The line as mutated; a removed line is named by what it was."""
        return self.after.strip() or f"(nothing): {self.before.strip()}"


def code_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines within functions, without comments, strings and calls that only write text."""
    inside = comment = False
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        comment |= bare.startswith("/*")
        if not comment and line[:1].isalpha() and line.endswith("{"):
            inside = not line.startswith(("struct", "enum", "const", "static const"))
        elif line == "}":
            inside = False
        elif inside and not comment and bare and '"' not in bare and not WORDS.search(bare):
            yield number, line.split("/*")[0].rstrip()
        comment &= "*/" not in bare


def negations(line: str) -> Iterator[str]:
    """`if (a && b) x;` -> `if (!(a && b)) x;`"""
    for found in CONDITION.finditer(line):
        depth, end = 1, found.end()
        while depth and end < len(line):
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            end += 1
        if depth == 0:
            yield f"{line[: found.end()]}!({line[found.end() : end]}{line[end - 1 :]}"


def place_of(file: str) -> Path:
    """Of its source, without the suffix, from the root of the tree."""
    return Path("checkers", PLACES[file], file)


def mutants_of(file: str) -> Iterator[Mutant]:
    for number, line in code_lines((ROOT / place_of(file)).with_suffix(".c").read_text()):
        for pattern, swap in SWAPS:
            for found in re.finditer(pattern, line):
                yield Mutant(file, number, line, line[: found.start()] + swap + line[found.end() :])
        for after in negations(line):
            yield Mutant(file, number, line, after)
        if CALL.match(line) or GUARD.match(line):
            yield Mutant(file, number, line, "")


def equivalent_mutants() -> set[tuple[str, str]]:
    lines = KNOWN.read_text().splitlines() if KNOWN.exists() else []
    parts = [line.partition(" | ") for line in lines if line.strip() and not line.startswith("#")]
    return {(file, rest.rpartition(" | ")[0]) for file, _, rest in parts}


# --- what is judged ---


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


def is_true_apart(library: Path, answer: Callable[[], bool]) -> bool:
    """Asks a library in a process of its own: a crash or a hang counts as true."""
    child = os.fork()
    if child == 0:
        os.environ["LOCKSTORM_JUDGE"] = str(library)
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


class Yard:
    """A copy of the tree in which mutants are built and tried."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "tree"
        ignored = shutil.ignore_patterns("build", ".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache")
        shutil.copytree(ROOT, self.root, ignore=ignored)
        self.library = self.root / "build" / "tests" / "libjudge.so"
        assert self.is_built()
        self.original = {file: self.code(file) for file in FILES}
        self.text = {file: (self.root / place_of(file)).with_suffix(".c").read_text() for file in FILES}

    def is_built(self) -> bool:
        command = ["make", "-s", "judge", "EXTRA=-w -Wno-error -O1 -g0"]
        return subprocess.run(command, cwd=self.root, capture_output=True).returncode == 0

    def code(self, file: str) -> bytes:
        """The machine code of a file, without line numbers."""
        bare = self.root / "bare.o"
        source = (self.root / "build" / "o" / place_of(file)).with_suffix(".o")
        subprocess.run(["objcopy", "--strip-debug", source, bare], check=True)
        return bare.read_bytes()

    def listen(self, asked: list[Question]) -> list[bytes]:
        """What the original says to each question, after checking it."""
        answers = self.root / "answers"

        def is_seen() -> bool:
            texts = [judged_text(each.slots) for each in asked]
            answers.write_bytes(pickle.dumps(texts))
            return any(is_wrong(each, b"") for each in asked) or details_fail()

        assert not is_true_apart(self.library, is_seen), "the original itself does not pass"
        texts: list[bytes] = pickle.loads(answers.read_bytes())
        return texts

    def try_one(self, mutant: Mutant, asked: list[tuple[Question, bytes]]) -> str:
        """killed, survived, or why the mutant does not count."""
        text = self.text[mutant.file]
        source = (self.root / place_of(mutant.file)).with_suffix(".c")
        lines = text.splitlines(keepends=True)
        lines[mutant.line - 1] = mutant.after + "\n"
        source.write_text("".join(lines))
        try:
            if not self.is_built():
                return "do not compile"
            if self.code(mutant.file) == self.original[mutant.file]:
                return "come to the same code"
            seen = is_true_apart(self.library, lambda: any(is_wrong(*each) for each in asked) or details_fail())
            return "killed" if seen else "survived"
        finally:
            source.write_text(text)


SURVIVED = "survived: "


def survivors(log: Path) -> set[str]:
    """What an earlier run printed, without line numbers, which may have changed."""
    lines = [line.removeprefix(SURVIVED) for line in log.read_text().splitlines() if line.startswith(SURVIVED)]
    return {re.sub(r":\d+:", ":", line, count=1) for line in lines}


def chosen_mutants(files: tuple[str, ...], most: int, seed: int, again: Path | None) -> list[Mutant]:
    mutants = list(dict.fromkeys(each for file in files or FILES for each in mutants_of(file)))
    if again:
        wanted = survivors(again)
        mutants = [each for each in mutants if re.sub(r":\d+:", ":", str(each), count=1) in wanted]
    chosen = random.Random(seed).sample(mutants, min(most, len(mutants)))
    click.echo(f"{len(chosen)} of {len(mutants)}, seed {seed}")
    return sorted(chosen, key=lambda each: (FILES.index(each.file), each.line))


def summed_up(counts: Counter[str]) -> str:
    killed, counted = counts["killed"], counts["killed"] + counts["survived"]
    others = [f"{count} {what}" for what, count in sorted(counts.items()) if what not in ("killed", "survived")]
    found = f"{killed} of {counted} planted mistakes found ({killed / max(1, counted):.1%})"
    return "; ".join([found, ", ".join(others)] if others else [found])


@click.command()
@click.option("--most", type=int, default=100, show_default=True, help="Number of mutants to try, drawn at random.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option(
    "--file", "files", multiple=True, type=click.Choice(FILES), help="Plant only in this file; may be repeated."
)
@click.option(
    "--again",
    type=click.Path(path_type=Path, exists=True),
    help="Try only the mutants that survived in this output of an earlier run.",
)
def main(most: int, seed: int, files: tuple[str, ...], again: Path | None) -> None:
    """Plants mistakes in the checkers and counts those that the tests find."""
    chosen = chosen_mutants(files, most, seed, again)
    asked, equivalent, began = questions(), equivalent_mutants(), time.monotonic()
    total = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="ls-mutants-") as directory:
        yard = Yard(Path(directory))
        answered = list(zip(asked, yard.listen(asked), strict=True))
        gc.freeze()  # so that the children do not copy the memory that they share
        for file, mutants in groupby(chosen, key=lambda each: each.file):
            counts = Counter[str]()
            for mutant in mutants:
                result = yard.try_one(mutant, answered)
                if result == "survived" and (mutant.file, mutant.mutated) in equivalent:
                    result = "are equivalent"
                if result == "survived":
                    click.echo(f"{SURVIVED}{mutant}")
                counts[result] += 1
            click.echo(f"{file}: {summed_up(counts)}")
            total += counts
    click.echo(f"all: {summed_up(total)}; {time.monotonic() - began:.0f} s")
    sys.exit(1 if total["survived"] else 0)


if __name__ == "__main__":
    main()
