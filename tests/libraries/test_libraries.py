"""`lockstorm libraries`, and docs/libraries.md."""

import json
from pathlib import Path

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.libraries.libraries_page import PAGE, libraries_text
from lockstorm.libraries.library_rows import library_rows
from lockstorm.libraries.library_words import WORDS, read_words
from lockstorm.libraries.promise_figures import figures_of, promise_figures
from lockstorm.locks.adapter import shipped_adapters
from lockstorm.search.campaign import Campaign
from lockstorm.search.library_plan import PROMISES
from lockstorm.search.search_lines import PropertyCount, SearchTally, ViolationGroup
from lockstorm.search.search_result import search_result
from tests.helpers.searching import library_plan
from tests.helpers.support import lockstorm


def test_the_page_is_that_of_the_figures_and_findings() -> None:
    assert PAGE.read_text() == libraries_text(), "make libraries writes it anew"


def test_every_shipped_library_was_measured() -> None:
    figures = promise_figures()
    assert list(figures) == shipped_adapters()
    for adapter, each in figures.items():
        assert each.schedules >= read_words()[0][adapter].schedules and each.calls > each.schedules
        assert set(each.by_calls) <= set(each.broken) <= set(PROMISES)


def test_figures_tell_what_calls_break_from_what_faults_break() -> None:
    plan = library_plan("lock:fair", schedules=10)
    campaign = Campaign(key=plan.key, shards=1)
    counts = {name: PropertyCount(holds=10) for name in PROMISES}
    counts |= {"wait": PropertyCount(7, 3, 0, 3), "residue": PropertyCount(8, 2, 0, 2)}
    campaign.tally = SearchTally(schedules=10, calls=40, verdicts=counts)
    campaign.groups = [
        ViolationGroup(["wait"], [], 2, 1),
        ViolationGroup(["residue", "wait"], ["pause-client"], 1, 2),
    ]
    figures = figures_of(search_result(plan, campaign), "redis")
    assert figures.broken == {"wait": 3, "residue": 2} and figures.by_calls == ["wait"]


def test_the_list_and_one_library() -> None:
    listed = json.loads(lockstorm("libraries", "--json").stdout)
    assert [each["adapter"] for each in listed["libraries"]] == shipped_adapters()
    assert listed["left_out"]
    with_findings = next(row for row in library_rows().values() if row.findings)
    told = " ".join(lockstorm("libraries", with_findings.adapter).stdout.split())
    for finding in with_findings.findings.values():
        assert finding.title in told and finding.promise in told


def test_an_unknown_library_is_named() -> None:
    done = lockstorm("libraries", "redis-pi")
    assert done.returncode == 2 and "did you mean redis-py" in done.stderr


def test_releases_are_of_one_library() -> None:
    for words in (
        ("--release", "1.0"),
        ("sherlock", "--newest", "--release", "1.0"),
        ("sherlock", "--release", "1.0,"),
    ):
        done = lockstorm("libraries", *words)
        assert done.returncode == 2 and "--release" in done.stderr


def test_wrong_words_are_named(tmp_path: Path) -> None:
    path = tmp_path / "libraries.toml"
    for was, becomes in (("licence =", "license ="), ("[pals]", "[pal]"), ("[kazoo]", "[kazoo")):
        path.write_text(WORDS.read_text().replace(was, becomes))
        with pytest.raises(UsageError, match=r"libraries\.toml"):
            read_words(path)
