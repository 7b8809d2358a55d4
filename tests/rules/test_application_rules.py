"""The rules of applications, each on records that break it and that do not. The first line of a record names the rules
that it breaks; docs/application-rules.md says why."""

import re
import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.search.application_plan import RULES
from tests.helpers.building import make

RECORDS = Path(__file__).with_name("records")


def broken_by(record: str) -> list[tuple[str, str]]:
    """The rules that a record breaks, each with its sentence."""
    judge = make("test-programs") / "tests" / "judge_rules"
    done = subprocess.run([judge], input=record, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = [line.partition(": ") for line in done.stdout.splitlines()]
    return [(rule, sentence) for rule, _, sentence in lines]


@pytest.mark.parametrize("file", sorted(RECORDS.glob("*.txt")), ids=lambda file: file.stem)
def test_a_record_breaks_the_rules_that_it_names(file: Path) -> None:
    text = file.read_text()
    expected = text.splitlines()[0].removeprefix("#").split()
    assert [rule for rule, _ in broken_by(text)] == expected


def test_every_rule_has_a_record_that_breaks_it_and_one_that_nearly_does() -> None:
    firsts = [file.read_text().splitlines()[0].removeprefix("#").split() for file in RECORDS.glob("*.txt")]
    assert {rule for names in firsts for rule in names} == set(RULES)
    assert sum(not names for names in firsts) >= len(RULES)


def test_a_rule_has_one_name_and_one_definition() -> None:
    page = (paths.ROOT / "docs" / "application-rules.md").read_text()
    assert re.findall(r"^## ([a-z-]+)$", page, re.MULTILINE) == list(RULES)


def test_the_same_of_other_requests_is_said_once() -> None:
    one = "request consume {0}\n{1} access-read users:1 session={1}\n{1} access-write users:1 session={1}\n"
    record = "".join(one.format(1 + number % 2, number) for number in range(1, 6))
    assert [rule for rule, _ in broken_by(record)] == ["unprotected-write"]


def test_a_request_that_is_not_known_accuses_nobody() -> None:
    record = "request consume 1\n0 access-read users:1 session=1\n0 access-write users:1 session=1\n"
    record += "1 access-write users:1 session=2 relative\n"
    assert broken_by(record) == []
