"""Every way to sleep, to wait with a limit, to be interrupted and to read a clock, in each language: the program prints
when each ended, to the nanosecond (Go: hundredth of a second), and what it returned. The files in
tests/programs/expected are what the manual pages promise, on a machine that is infinitely fast and whose timers are
50 us late, as the kernel's are by default. What a release of an interpreter or of `sleep` does beside waiting is its
own matter: one that looks at the clock once more moves it by a nanosecond, and libuv, which counts in milliseconds,
divides a wait into more or fewer parts."""

import re
from itertools import zip_longest

import pytest

from tests.helpers.supervising import LANGUAGES, PROGRAMS, output_of

EXPECTED = PROGRAMS / "expected"
PROCESSES = "processes"  # the part that runs a program of the system
PARTS = ["clocks", "descriptors", "inheriting", "interruptions", "locks"]
PARTS += ["process-descriptors", PROCESSES, "rounds", "shared", "signal-descriptors", "sleeps", "threads", "timers"]
LOOKS_NS = 1000
LATER_NS = {"python": LOOKS_NS, "java": LOOKS_NS, "node": 10**6, "go": 0}
STAMP = re.compile(r"\d+\.?\d{9}")


def assert_as_promised(printed: str, name: str, later_ns: int) -> None:
    """Every word is the expected one; a stamp, in s with nine digits or in ns, may be up to so much later."""
    promised = (EXPECTED / f"time_calls.{name}.txt").read_text()
    for line, expected in zip_longest(printed.splitlines(), promised.splitlines()):
        assert line is not None and expected is not None, (line, expected)
        assert STAMP.sub("", line) == STAMP.sub("", expected)
        for stamp, due in zip(STAMP.findall(line), STAMP.findall(expected), strict=True):
            assert 0 <= int(stamp.replace(".", "")) - int(due.replace(".", "")) <= later_ns, (line, expected)


@pytest.mark.parametrize("part", PARTS)
def test_c(part: str) -> None:
    assert_as_promised(
        output_of(*LANGUAGES["c"].command("time_calls"), part), part, LOOKS_NS if part == PROCESSES else 0
    )


@pytest.mark.parametrize("language", LATER_NS)
def test_other_languages(language: str) -> None:
    assert_as_promised(output_of(*LANGUAGES[language].command("time_calls")), language, LATER_NS[language])
