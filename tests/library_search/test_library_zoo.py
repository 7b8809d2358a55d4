"""Published bugs of old releases (scenarios/library_zoo.toml): found by the search, and not in the repaired release."""

from pathlib import Path

import pytest

from lockstorm.base.errors import UsageError
from tests.helpers.library_zoo import (
    ENTRIES,
    FIXED_LEAST,
    PAGE,
    SEEDS,
    library_figures,
    old_bugs,
    page_text,
    search_release,
)

BUGS = old_bugs()


@pytest.mark.slow("fetches two releases, and plays some hundred schedules of each", seconds=120)
@pytest.mark.parametrize("name", list(BUGS))
def test_a_published_bug_is_found_and_its_repair_is_not_accused(name: str) -> None:
    bug = BUGS[name]
    found = search_release(bug, bug.broken, bug.schedules)
    assert found.exit == 1 and found.found and found.library, found.sentence
    assert found.library.version == bug.broken and found.found.with_new_programs
    assert set(found.found.violates) & set(bug.promises)
    fixed = search_release(bug, bug.fixed, max(FIXED_LEAST, 2 * found.found.number))
    assert fixed.exit == 0 and fixed.library and fixed.library.version == bug.fixed, fixed.sentence


def test_the_page_and_the_figures_are_those_of_the_entries() -> None:
    assert PAGE.read_text() == page_text(), "python -m tests.helpers.library_zoo writes it anew"
    record = library_figures()
    assert list(record) == list(BUGS)
    for name, known in record.items():
        found = [number for number in known.found if number]
        assert len(found) == len(SEEDS) and max(found) <= BUGS[name].schedules
        assert known.fixed_schedules >= max(FIXED_LEAST, 2 * max(found))


def test_a_wrong_entry_is_named(tmp_path: Path) -> None:
    path = tmp_path / "entries.toml"
    for was, becomes in (("promises = [", "promise = ["), ('["residue"]', '["rest"]')):
        path.write_text(ENTRIES.read_text().replace(was, becomes))
        with pytest.raises(UsageError, match=r"entries\.toml: (redis-py|python-redis-lock)-"):
            old_bugs(path)
