"""docs/examples/articles: each file can be read, its route exists, and a search of the service in Spring Boot says what
the README says."""

import os
from pathlib import Path

import pytest

from lockstorm.application.application_file import read_application
from lockstorm.base import paths
from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.servers.services import missing

ARTICLES = paths.ROOT / "docs" / "examples" / "articles"
SOURCES = ARTICLES.parent / "applications" / "spring" / "src" / "main" / "java" / "lockstorm"
INSTALLED = Path(os.environ.get("LOCKSTORM_APPLICATIONS", paths.ROOT / "build" / "applications")) / "spring"
FINDS = {  # the rule that says why; nothing: so many schedules with the usual faults meet every check
    "credits-lock-inside-the-transaction": "unlock-before-commit",
    "credits-with-the-lock": "",
    "credits-without-a-lock": "unprotected-write",
    "worker-answered-once": "",
    "worker-late-release": "beyond-the-lease",
}
SCHEDULES, CLEAN_SCHEDULES = 500, 40


def test_each_file_names_a_route_that_exists() -> None:
    routes = "".join((SOURCES / name).read_text() for name in ("Replies.java", "RequestWorker.java"))
    assert sorted(file.stem for file in ARTICLES.glob("*.toml")) == sorted(FINDS)
    for name in FINDS:
        (request,) = read_application(ARTICLES / f"{name}.toml").requests
        assert f'"{request.target}"' in routes


def test_the_readme_names_each_file() -> None:
    text = (ARTICLES / "README.md").read_text()
    assert [name for name in FINDS if f"`{name}`" not in text] == []


@pytest.mark.slow("starts a service in Spring Boot some ten times", seconds=60)
@pytest.mark.skipif(not INSTALLED.exists(), reason="not installed: docs/examples/applications/install spring")
@pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")
@pytest.mark.parametrize("name", FINDS)
def test_a_search_says_what_the_readme_says(name: str) -> None:
    schedules = SCHEDULES if FINDS[name] else CLEAN_SCHEDULES
    request = SearchRequest(f"app:{ARTICLES / name}.toml", seed=1, schedules=schedules, workers=1)
    result = search_schedules(plan_search(request), lambda _: None)
    if not FINDS[name]:
        assert result.exit == 0, result.sentence
        return
    assert result.exit == 1 and result.found, result.sentence
    assert FINDS[name] in {each.promise for each in result.found.evidence}
