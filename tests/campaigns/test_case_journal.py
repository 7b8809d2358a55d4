"""The answers of cases, kept in a file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lockstorm.base.errors import UsageError
from lockstorm.campaigns.campaign_case import CampaignCase, SearchPiece, TrialCase
from lockstorm.campaigns.case_journal import CaseJournal, case_key
from lockstorm.search.search_plan import SearchRequest
from lockstorm.trial.settings import TrialSettings


def test_an_answer_is_there_again(tmp_path: Path) -> None:
    journal = CaseJournal(tmp_path / "cases")
    assert journal.answer("one") is None
    assert journal.add("one", {"it": 1}) and len(journal) == 1
    journal.close()
    again = CaseJournal(tmp_path / "cases")
    assert again.answer("one") == {"it": 1}
    again.close()


def test_a_case_counts_once(tmp_path: Path) -> None:
    journal = CaseJournal(tmp_path / "cases")
    assert journal.add("one", {"it": 1}) and not journal.add("one", {"it": 2})
    assert journal.answer("one") == {"it": 1}
    journal.close()
    assert len((tmp_path / "cases").read_text().splitlines()) == 1


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_that_was_not_written_to_its_end_is_dropped(tmp_path: Path, cut: int) -> None:
    """And the next line does not follow upon its beginning."""
    journal = CaseJournal(tmp_path / "cases")
    journal.add("one", {"it": 1})
    journal.add("two", {"it": 2})
    journal.close()
    whole = (tmp_path / "cases").read_bytes()
    (tmp_path / "cases").write_bytes(whole[:-cut])
    again = CaseJournal(tmp_path / "cases")
    assert again.answer("one") == {"it": 1} and again.answer("two") is None
    again.add("two", {"it": 2})
    again.close()
    assert (tmp_path / "cases").read_bytes() == whole


@pytest.mark.parametrize("line", ["{}", "[]", "no JSON", '{"case": "x"}', "3"])
def test_any_other_line_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    good = json.dumps({"case": "one", "answer": {}})
    (tmp_path / "cases").write_text(f"{good}\n{line}\n{good}\n")
    with pytest.raises(UsageError, match="cases:2: this is no answer of a case"):
        CaseJournal(tmp_path / "cases")


def test_a_case_is_known_by_all_that_it_is() -> None:
    request = SearchRequest("fair", seed=1)
    cases: list[CampaignCase] = [
        SearchPiece(request, 0, 10),
        SearchPiece(request, 10, 20),
        SearchPiece(replace(request, seed=2), 0, 10),
        SearchPiece(replace(request, lock="adapter:lock:fair"), 0, 10),
        TrialCase(TrialSettings("fair", "gc-pause")),
        TrialCase(TrialSettings("fair", "gc-pause", control=True)),
    ]
    keys = [case_key(entry, case) for entry in ("one", "two") for case in cases]
    assert len(set(keys)) == len(keys)
    assert case_key("one", SearchPiece(SearchRequest(seed=1, lock="fair"), 0, 10)) == keys[0]
