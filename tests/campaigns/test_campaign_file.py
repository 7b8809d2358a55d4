"""The file of a campaign: what it means, and what is wrong with it."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.campaigns.campaign_entries import count_cases
from lockstorm.campaigns.campaign_file import (
    KEYS,
    MatrixEntry,
    SearchEntry,
    StormEntry,
    ZooEntry,
    read_campaign_file,
)
from lockstorm.search.search_plan import SearchRequest
from tests.application.described import CREDITS, described


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "it.toml"
    file.write_text(text)
    return file


def test_an_entry_for_each_lock_and_adapter(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        [[explore]]
        lock = ["set-nx-px", "fair"]
        adapter = "redis-py"
        schedules = 1000
        faults = ["pause-client", "kill-client"]
        lease_ms = 500
        all = true
        """,
    )
    first, second, third = read_campaign_file(file).entries
    assert isinstance(first, SearchEntry) and isinstance(second, SearchEntry)
    assert [first.name, second.name, third.name] == ["set-nx-px", "fair", "redis-py"]
    request = first.request
    assert (request.lock, request.schedules, request.faults) == ("set-nx-px", 1000, "pause-client,kill-client")
    assert (request.lease_ms, request.keep_going) == (500, True)
    assert isinstance(third, SearchEntry)
    assert third.request == replace(request, lock="adapter:redis-py") and third.cut < first.cut


def test_every_other_kind(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        [[matrix]]
        name = "pauses"
        lock = ["set-nx-px", "redlock"]
        scenario = "gc-pause"
        store = "open"
        repeat = 2
        [[storm]]
        lock = "set-nx-px"
        trials = 5
        faults = "pause-client"
        duration = "2s"
        lease_ms = 500
        wait_ms = -1
        [[zoo]]
        bug = ["redis-py-818"]
        no_explore = true
        """,
    )
    matrix, storm, zoo = read_campaign_file(file).entries
    assert isinstance(matrix, MatrixEntry) and isinstance(storm, StormEntry) and isinstance(zoo, ZooEntry)
    assert {cell[:2] for cell in matrix.cells} == {("gc-pause", "set-nx-px"), ("gc-pause", "redlock")}
    assert (storm.name, storm.storm.trials, storm.storm.request.duration_ms) == ("storm-set-nx-px", 5, 2000)
    assert (storm.storm.request.lease_ms, storm.storm.wait_ms) == (500, -1), "as files of before say it"
    assert zoo.hunt is None
    assert [count_cases(entry) for entry in (matrix, storm, zoo)] == [2 * 2 * 2, 5, 2]


def test_a_search_is_cut_into_cases(tmp_path: Path) -> None:
    file = written(tmp_path, '[[explore]]\nlock = "fair"\nschedules = 25\ncut = 10\n')
    assert count_cases(read_campaign_file(file).entries[0]) == 3


def test_an_entry_for_each_application(tmp_path: Path) -> None:
    for name in ("shop", "mail"):
        (tmp_path / name).mkdir()
        described(tmp_path / name, CREDITS, "late", ("[app]", f'[app]\nname = "my {name}"'))
    apps = 'app = ["shop/lockstorm-app.toml", "mail/lockstorm-app.toml"]'
    file = written(tmp_path, f'[[explore]]\n{apps}\nschedules = 500\nfaults = "none"\nrequire = ["check"]\n')
    first, second = read_campaign_file(file).entries
    assert isinstance(first, SearchEntry) and [first.name, second.name] == ["my-shop", "my-mail"]
    assert first.request == SearchRequest(
        f"app:{tmp_path}/shop/lockstorm-app.toml", schedules=500, faults="none", require="check"
    )
    assert count_cases(first) == 3, "sessions of 50, 50, 50 and 50, of 200, and of 200"


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("turns = 2", ":4: turns: a search of an application draws it"),
        ("permits = 2", ":4: permits: a search of an application draws it"),
        ('require = "chec"', "did you mean check?"),
        ('faults = "pause-clent"', "did you mean pause-client?"),
        ('app = "none.toml"', "Cannot overwrite a value"),
        ("[[storm]]\napp = 'lockstorm-app.toml'", ":5: unknown key 'app' in [storm]"),
        ("[[gate]]\npolicy = 'lockstorm.toml'", "lockstorm.toml:1: [[app]] lacks schedules, and searches for 60s then"),
        ("[[gate]]\npolicy = 'timed.toml'", "timed.toml:1: [[app]] has time_limit: a budget of a campaign is a number"),
    ],
)
def test_a_wrong_entry_of_an_application_is_refused(tmp_path: Path, keys: str, reason: str) -> None:
    described(tmp_path, CREDITS, "late")
    (tmp_path / "lockstorm.toml").write_text('[[app]]\nfile = "lockstorm-app.toml"\n')
    (tmp_path / "timed.toml").write_text('[[app]]\nfile = "lockstorm-app.toml"\nschedules = 9\ntime_limit = "1min"\n')
    with pytest.raises(UsageError) as refused:
        read_campaign_file(written(tmp_path, f'[[explore]]\napp = "lockstorm-app.toml"\nschedules = 5\n{keys}\n'))
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it has no entry"),
        ("[[explore\n", "it.toml"),
        ("[[explor]]\n", ":1: unknown key 'explor': did you mean explore?"),
        ('[[explore]]\nlock = "fair"\n', ":1: [[explore]] lacks schedules"),
        ("[[explore]]\nschedules = 5\n", ":1: [[explore]] lacks a lock, an adapter, a plugin or an app"),
        ("[[storm]]\ntrials = 5\n", ":1: [[storm]] lacks a lock, an adapter or a plugin"),
        ('[[explore]]\napp = "no.toml"\nschedules = 5\n', ":2: there is no "),
        ('[[explore]]\nlock = "fiar"\nschedules = 5\n', "there is no lock called 'fiar': did you mean fair?"),
        ("[[explore]]\nlock = []\nschedules = 5\n", ":2: lock is empty"),
        ("[[explore]]\nlock = 3\nschedules = 5\n", ":2: lock has to be a text or a list of texts"),
        ('[[explore]]\nlock = "fair"\nschedules = 0\n', ":3: schedules has to be a whole number from 1"),
        (
            '[[explore]]\nlock = "fair"\nschedules = 5\ntime_limit = "3s"\n',
            ":4: time_limit: a budget of a campaign is a number",
        ),
        ('[[explore]]\nlock = "fair"\nschedules = 5\nshard = "1/2"\n', ":4: shard: the engine divides the work"),
        ('[[explore]]\nlock = "fair"\nschedules = 5\nstrategy = "exhaustive"\n', ":4: exhaustive goes from one"),
        ('[[explore]]\nlock = "fair"\nschedules = 5\nstrategie = "pct"\n', "did you mean strategy?"),
        ('[[explore]]\nlock = "fair"\nschedules = 5\nfaults = "puase"\n', "did you mean pause-client?"),
        (
            '[[explore]]\nadapter = "redis-py"\nschedules = 5\nturns = 2\n',
            ":4: turns: a search of a library draws it",
        ),
        ('[[explore]]\nadapter = "redis-pi"\nschedules = 5\n', "redis-pi"),
        ('[[explore]]\nlock = "fair"\nname = "a/b"\nschedules = 5\n', ":3: the name 'a/b' becomes the name of a file"),
        ('[[matrix]]\nname = "campaign"\n', ":2: the name 'campaign' is that of a file of the campaign itself"),
        ('[[explore]]\nlock = "fair"\nschedules = 5\n' * 2, ":4: there are two entries called 'fair'"),
        ('[[matrix]]\nlock = "fair"\nscenario = "gc-puase"\n', "did you mean gc-pause?"),
        ('[[matrix]]\ntime = "vrtual"\n', "there is no time called 'vrtual'"),
        ("[[matrix]]\nrepeat = 0\n", ":2: repeat has to be a whole number from 1"),
        ('[[storm]]\nlock = "fair"\nfaults = "puase-client"\n', "pause-client"),
        ('[[storm]]\nlock = "fair"\nduration = "soon"\n', ":3: duration 'soon': a duration is a number and its unit"),
        ('[[zoo]]\nbug = "redis-py-819"\n', ":2: there is no bug called 'redis-py-819'"),
        ("[[gate]]\n", ":1: [[gate]] lacks policy"),
        ('[[gate]]\npolicy = "no.toml"\n', "no.toml"),
        ('[[gate]]\npolicy = "a\\u0000b"\n', ":2: policy has a character of code 0"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_campaign_file(written(tmp_path, text))
    assert reason in str(refused.value)


def test_a_policy_on_servers_that_are_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lockstorm.toml").write_text('[[lock]]\nname = "set-nx-px"\n[attach]\nurl = "redis://127.0.0.1:1"\n')
    with pytest.raises(UsageError, match=r"\[attach\] names servers"):
        read_campaign_file(written(tmp_path, '[[gate]]\npolicy = "lockstorm.toml"\n'))


def test_no_file_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no"):
        read_campaign_file(tmp_path / "no.toml")
    (tmp_path / "it.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not text in UTF-8"):
        read_campaign_file(tmp_path / "it.toml")


def test_the_document_names_every_table_and_its_own_keys() -> None:
    page = (paths.ROOT / "docs" / "campaigns.md").read_text()
    assert [kind for kind in KEYS[""] if f"[[{kind}]]" not in page] == []
    assert [key for key in ("name", "cut", "policy", "no_explore", "fixed_schedules") if f"`{key}`" not in page] == []
