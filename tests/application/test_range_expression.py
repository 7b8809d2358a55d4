"""What a check expects: expressions over ranges, and what is wrong with other texts."""

import subprocess

import pytest

from tests.helpers.building import make

RIGHT = {  # a.ok is 2 to 5, a.asked is 5, b.ok is 0 to 1
    "7": (7, 7),
    "10 - a.ok": (5, 8),
    "a.ok - a.ok": (-3, 3),
    "a.ok + b.ok": (2, 6),
    "-a.ok": (-5, -2),
    "3 * -a.ok": (-15, -6),
    "a.ok * (b.ok - 1)": (-5, 0),
    "min(a.ok, 3)": (2, 3),
    "max(a.ok, 3) - min(1, b.ok)": (2, 5),
    " 2*3 + 4*5 ": (26, 26),
    "10 - 2 - 3": (5, 5),
    "a.asked - a.ok": (0, 3),
}
WRONG = {
    "": "at letter 1 of '': a number, a name or ( is missing",
    "10 -": "at letter 5 of '10 -': a number, a name or ( is missing",
    "10 a.ok": "at letter 4 of '10 a.ok': +, -, * or the end is missing",
    "c.ok": "at letter 1 of 'c.ok': there is no such name",
    "(1": "at letter 3 of '(1': ) is missing",
    "min(1)": "at letter 6 of 'min(1)': , is missing",
    "min 1": "at letter 5 of 'min 1': ( is missing",
    "1e9": "+, -, * or the end is missing",
    "10000000000": "values are at most 10^9",
    "99999999999999999999": "values are at most 10^9",
    "1000000 * 1000000": "values are at most 10^9",
    "1000000000 + 1": "values are at most 10^9",
    "(" * 100: "there are too many ( in each other",
    "-" * 100 + "1": "there are too many - in a row",
    "a" * 100 + ".ok": "a name is too long",
}


def evaluated(*lines: str) -> list[str]:
    program = make("test-programs") / "tests" / "range_values"
    done = subprocess.run([program], input="".join(f"{line}\n" for line in lines), capture_output=True, text=True)
    assert done.returncode == 0
    return done.stdout.splitlines()


def test_expressions_are_ranges() -> None:
    assert evaluated(*RIGHT) == [f"{low} {high}" for low, high in RIGHT.values()]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_none_has_a_reason(text: str) -> None:
    (said,) = evaluated(text)
    assert said.startswith("wrong: at letter ") and WRONG[text] in said
