"""Applications in a policy: what is read, what is judged, what is written and kept."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import fastjsonschema
import msgspec
import pytest

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.gate.gate import judge_again, play_and_judge
from lockstorm.gate.gate_plan import plan_gate
from lockstorm.gate.gate_policy import Policy, read_policy
from lockstorm.gate.messages import CURES
from lockstorm.gate.runs import list_runs, read_kept_run
from lockstorm.gate.worker import GateWorkerPool
from lockstorm.results.gate_verdict import GateVerdict
from lockstorm.search.application_plan import RULES
from lockstorm.search.campaign import Campaign
from lockstorm.search.search_lines import SearchTally
from lockstorm.search.search_plan import SearchPlan
from lockstorm.search.search_result import SearchResult, search_result
from lockstorm.servers.services import missing
from tests.application.described import CREDITS, described
from tests.helpers.support import lockstorm

SCHEMA = json.loads((paths.ROOT / "docs" / "verdict.schema.json").read_text())
APP = '[[app]]\nfile = "lockstorm-app.toml"\n'
LOCK = '[[lock]]\nname = "set-nx-px"\nrequire = ["mutual_exclusion"]\n[scenarios]\nplay = "crash-holder"\n'


def policy(directory: Path, text: str, mode: str = "late") -> Policy:
    described(directory, CREDITS, mode)
    file = directory / "lockstorm.toml"
    file.write_text(text)
    return read_policy(file)


# --- the policy ---


def test_an_application_is_searched_as_its_keys_say(tmp_path: Path) -> None:
    keys = 'name = "shop"\nrequire = ["check", "lock-left"]\nschedules = 70\nseed = 5\ntime_limit = "2min"\n'
    (app,) = policy(tmp_path, f'{APP}{keys}faults = ["pause-client=2", "lose-reply"]\n').apps
    assert (app.title, app.file, app.line) == ("shop", "lockstorm-app.toml", 1)
    assert (app.plan.required, app.plan.schedules) == (("check", "lock-left"), 70)
    assert (app.plan.budget, app.plan.seconds, app.plan.context.seed) == ({"pause-client": 2, "lose-reply": 1}, 120, 5)


def test_an_application_has_usual_settings_and_its_own_name(tmp_path: Path) -> None:
    read = policy(tmp_path, APP + 'except = "answer"\n' + LOCK)
    (app,) = read.apps
    assert (app.title, app.plan.required, app.plan.seconds) == (tmp_path.name, ("check",), 60)
    assert [lock.name for lock in read.locks] == ["set-nx-px"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[app]]\n", ":1: [[app]] lacks file"),
        ("[[app]]\nfiles = 1", ":2: unknown key 'files' in [app]: did you mean file?"),
        ('[[app]]\nfile = "none.toml"', "there is no DIRECTORY/none.toml: `lockstorm app init` writes one"),
        (APP + "schedules = 0", ":3: schedules has to be a whole number from 1"),
        (APP + "time_limit = 5", ":3: time_limit 5: say the unit"),
        (APP + "seed = -1", ":3: seed has to be a whole number from 0"),
        (APP + 'faults = "pause-clent"', ":1: there is no fault called 'pause-clent': did you mean pause-client?"),
        (APP + 'require = "chec"', ":1: there is no property of an application called 'chec': did you mean check?"),
        (APP + 'except = "lock-left"', ":1: --except lock-left: it is not required, only check, answer"),
        (APP + 'name = "%"', ":3: the name '%' becomes that of a file"),
        (APP + APP, ":3: there are two applications called"),
        (APP + 'strategy = "pct"', ":3: unknown key 'strategy' in [app]"),
        (APP + '[scenarios]\nplay = "all"', ":3: scenarios is about locks, and this policy has no [[lock]]"),
        (APP + "[[accept]]\n", ":3: accept is about locks"),
        (APP + 'why = "x"\n' + LOCK, ":3: unknown key 'why' in [app]"),
        ("app = 1", ":1: write [[app]]: there may be several"),
    ],
)
def test_a_mistake_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        policy(tmp_path, text)
    assert message.replace("DIRECTORY", str(tmp_path)) in str(refused.value)


def test_a_mistake_in_the_file_of_the_application_has_both_places(tmp_path: Path) -> None:
    (tmp_path / "lockstorm.toml").write_text(APP)
    described(tmp_path, CREDITS, "late", ("equals", "equal"))
    with pytest.raises(UsageError, match=r"lockstorm\.toml:1: .*lockstorm-app\.toml:15: unknown key 'equal'"):
        read_policy(tmp_path / "lockstorm.toml")


def test_every_rule_has_what_mends_it() -> None:
    assert list(CURES) == list(RULES)


# --- budgets: what a search comes to is given here ---


def tried(plan: SearchPlan, schedules: int) -> SearchResult:
    """A search that has found nothing in so many schedules."""
    campaign = Campaign(
        key=plan.key, shards=1, digests={1: bytes(8 * schedules)}, tally=SearchTally(schedules=schedules)
    )
    return search_result(plan, campaign)


class Budgeted:
    """A run of a policy in which each search takes all the time that it may, and tries as many schedules."""

    def __init__(self, directory: Path, text: str) -> None:
        self.policy = policy(directory, text)
        self.seconds: list[int] = []
        self.reported: list[str] = []

    def verdict(self) -> GateVerdict:
        plan = plan_gate(self.policy)
        verdict, self.run = play_and_judge(self.policy, plan, self.reported.append, GateWorkerPool(1), self._search)
        fastjsonschema.validate(SCHEMA, msgspec.to_builtins(verdict))
        return verdict

    def _search(self, plan: SearchPlan) -> SearchResult:
        self.seconds.append(plan.seconds)
        return tried(plan, min(plan.schedules, plan.seconds or plan.schedules))


def test_a_budget_that_ends_a_search_makes_it_inconclusive(tmp_path: Path) -> None:
    budgeted = Budgeted(tmp_path, APP + 'schedules = 100\n[budget]\ntime = "40s"\n')
    (case,) = budgeted.verdict().applications
    assert 30 <= budgeted.seconds[0] <= 40
    assert (case.outcome, case.planned) == ("inconclusive", 100)
    assert case.in_short == f"{budgeted.seconds[0]} of 100 schedules were played: the budget of time was used up"
    assert judge_again(budgeted.run).applications == [case], "run.json says that it was cut short"


@pytest.mark.parametrize("limits", ["schedules = 20", 'time_limit = "20s"', 'schedules = 50\ntime_limit = "20s"'])
def test_a_search_within_its_budget_passes(tmp_path: Path, limits: str) -> None:
    budgeted = Budgeted(tmp_path, f'{APP}{limits}\n[budget]\ntime = "10min"\n')
    verdict = budgeted.verdict()
    assert (verdict.exit, verdict.sentence) == (0, "Safe, as far as this policy asks: of 1 cases 1 passed")
    assert verdict.applications[0].schedules == 20 and budgeted.reported == [tmp_path.name]


def test_an_interrupt_leaves_no_verdict_on_the_application(tmp_path: Path) -> None:
    def interrupted(_plan: SearchPlan) -> SearchResult:
        raise KeyboardInterrupt

    read = policy(tmp_path, APP)
    verdict, run = play_and_judge(read, plan_gate(read), lambda _: None, GateWorkerPool(1), interrupted)
    assert verdict.interrupted and verdict.exit == 3
    assert verdict.applications[0].in_short == "no schedule was played: the run was interrupted"
    assert read_kept_run(run).state == "interrupted"


# --- the command ---


@pytest.fixture(scope="module")
def unsafe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kept run in which one application loses updates, another is right, and a lock passes."""
    directory = tmp_path_factory.mktemp("unsafe")
    for mode in ("early", "late"):
        (directory / mode).mkdir()
        described(directory / mode, CREDITS, mode)
    apps = [
        f'[[app]]\nname = "{mode}"\nfile = "{mode}/lockstorm-app.toml"\nfaults = "none"\nschedules = 60\n'
        for mode in ("early", "late")
    ]
    (directory / "lockstorm.toml").write_text("".join(apps) + LOCK)
    done = lockstorm("gate", "-f", str(directory / "lockstorm.toml"), "--json", "-o", str(directory / "out"))
    assert done.returncode == 1, done.stdout + done.stderr
    return directory / "runs" / str(json.loads(done.stdout)["run"])


def verdict_of(run: Path) -> Any:
    verdict = json.loads((run / "verdict.json").read_text())
    fastjsonschema.validate(SCHEMA, verdict)
    return verdict


needs_postgres = pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")
searches = pytest.mark.lengthy("searches some tens of schedules of two services")


@needs_postgres
@searches
def test_the_verdict_has_the_smallest_story_and_its_cause(unsafe: Path) -> None:
    verdict = verdict_of(unsafe)
    assert verdict["sentence"] == "Not safe: of 3 cases 1 failed, 2 passed"
    early, late = verdict["applications"]
    assert (early["outcome"], early["violated"], late["outcome"]) == ("failed", ["check"], "passed")
    assert "released redis user:1:lock before it committed the transaction" in early["happened"]
    assert any("releases redis user:1:lock" in line for line in early["story"])
    assert early["to_do"] == [CURES["unlock-before-commit"]]
    assert early["in_short"].startswith("the data were wrong at the end (schedule ")
    assert "met every check in 60 schedules" in late["in_short"] and late["story"] == []


@needs_postgres
@searches
def test_the_schedule_is_kept_and_can_be_replayed(unsafe: Path) -> None:
    early = verdict_of(unsafe)["applications"][0]
    assert early["schedule"] == "searches/early.schedule" and (unsafe / early["schedule"]).exists()
    again = lockstorm(*early["replay"].split()[1:], "--json")
    assert again.returncode == 1 and json.loads(again.stdout)["violates"] == ["check"]
    kept = read_kept_run(unsafe)
    assert [(each.name, each.played, each.cut) for each in kept.searches] == [
        ("early", True, False),
        ("late", True, False),
    ]
    assert list_runs(unsafe.parent)[0].searches == 2


@needs_postgres
@searches
def test_pipelines_read_the_same(unsafe: Path) -> None:
    junit = ElementTree.parse(unsafe / "junit.xml").getroot()
    assert (junit.get("tests"), junit.get("failures")) == ("3", "1")
    failure = junit.find("testsuite[@name='lockstorm.app.early']/testcase[@name='search']/failure")
    assert failure is not None and "What to do: Release the lock after the commit" in str(failure.text)
    log = json.loads((unsafe / "lockstorm.sarif").read_text())["runs"][0]
    (result,) = log["results"]
    assert (result["ruleId"], result["level"]) == ("application-check", "error")
    assert log["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "application-check"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    summary = (unsafe / "summary.md").read_text()
    assert "### `early`, an application" in summary and "releases redis user:1:lock" in summary
    assert (unsafe.parents[1] / "out" / "summary.md").read_text() == summary


@needs_postgres
@searches
def test_a_kept_run_says_what_it_cannot_judge_again(unsafe: Path) -> None:
    again = lockstorm("check", str(unsafe))
    assert again.returncode == 1, again.stderr
    assert (
        "early: the verdict of the run, as a search keeps no histories; this plays its schedule again" in again.stdout
    )
    assert "late: the verdict of the run, as a search keeps no histories; this searches again" in again.stdout
    (unsafe.parents[1] / "early" / "lockstorm-app.toml").rename(unsafe.parents[1] / "gone.toml")
    as_json = json.loads(lockstorm("check", str(unsafe), "--json").stdout)
    (unsafe.parents[1] / "gone.toml").rename(unsafe.parents[1] / "early" / "lockstorm-app.toml")
    assert as_json.pop("differences") == [] and as_json == verdict_of(unsafe), "without the application's file, too"


@needs_postgres
@searches
def test_the_text_and_the_page_tell_the_story(unsafe: Path, tmp_path: Path) -> None:
    told = lockstorm("check", str(unsafe)).stdout
    for words in (
        "early, an application: early/lockstorm-app.toml",
        "What happened",
        "Why it matters",
        "See it happen",
    ):
        assert words in told
    page = tmp_path / "page.html"
    assert lockstorm("report", str(unsafe), "-o", str(page)).returncode == 0
    text = page.read_text()
    assert "Are these 3 locks and applications safe?" in text and "releases redis user:1:lock" in text


@needs_postgres
@pytest.mark.lengthy("starts a service")
def test_what_the_servers_refuse_ends_the_gate_with_its_place(tmp_path: Path) -> None:
    described(tmp_path, CREDITS, "late", ("select remaining from", "select remaining form"))
    (tmp_path / "lockstorm.toml").write_text(APP)
    done = lockstorm("gate", "-f", str(tmp_path / "lockstorm.toml"))
    assert done.returncode == 2 and "lockstorm.toml:1: " in done.stderr, done.stderr
    assert list_runs(tmp_path / "runs")[0].state == "interrupted"
