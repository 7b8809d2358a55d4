"""Every way to sleep, to wait with a limit, to be interrupted and to read a clock, in each language: the program prints
when each ended, to the nanosecond (Go: hundredth of a second), and what it returned. The files in
tests/programs/expected are what the manual pages promise, on a machine that is infinitely fast and whose timers are
50 us late, as the kernel's are by default."""

import pytest

from tests.helpers.supervising import LANGUAGES, PROGRAMS, output_of

EXPECTED = PROGRAMS / "expected"
PARTS = ["clocks", "descriptors", "inheriting", "interruptions", "locks"]
PARTS += ["process-descriptors", "processes", "rounds", "shared", "signal-descriptors", "sleeps", "threads", "timers"]
OTHERS = ("python", "node", "java", "go")


@pytest.mark.parametrize("part", PARTS)
def test_c(part: str) -> None:
    assert output_of(*LANGUAGES["c"].command("time_calls"), part) == (EXPECTED / f"time_calls.{part}.txt").read_text()


@pytest.mark.parametrize("language", OTHERS)
def test_other_languages(language: str) -> None:
    printed = output_of(*LANGUAGES[language].command("time_calls"))
    assert printed == (EXPECTED / f"time_calls.{language}.txt").read_text()
