"""The verdict of the gate and its formats JUnit XML, SARIF and Markdown. These tests play no trial."""

import datetime
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import fastjsonschema
import msgspec
import pytest
from msgspec import structs

from lockstorm.base import paths
from lockstorm.gate.gate_advice import advise_instead, find_alternatives, survives
from lockstorm.gate.gate_judge import judge_gate
from lockstorm.gate.gate_plan import GateJob, GatePlan, plan_gate
from lockstorm.gate.gate_policy import Acceptance, Policy, read_policy
from lockstorm.gate.junit import as_junit
from lockstorm.gate.markdown import as_markdown
from lockstorm.gate.sarif import as_sarif, project_root
from lockstorm.results.gate_verdict import (
    GateCell,
    GateVerdict,
    LockAdvice,
    PolicyDigest,
    Prevention,
    UnjudgedProperty,
)
from lockstorm.results.kept_run import RunDocument
from lockstorm.results.properties import PROPERTIES
from lockstorm.results.verdict import DeploymentResult, SettingsEffect, TrialResult
from lockstorm.scenario.play import inconclusive, trial_result
from lockstorm.trial.settings import TrialSettings
from tests.helpers.results import made_property, made_result

TODAY = datetime.date(2026, 8, 1)
SCHEMA = json.loads((paths.ROOT / "docs" / "verdict.schema.json").read_text())
POLICY = """[[lock]]
name = "set-nx-px"
[require]
open = ["mutual_exclusion", "integrity"]
[scenarios]
play = "gc-pause"
"""
DAMAGED = {"mutual_exclusion": "violated", "integrity": "violated"}


def made(job: GateJob, statuses: dict[str, str] | None = None) -> TrialResult:
    """The result of a trial: required properties hold unless `statuses` has others, the rest is not judged."""
    required = ("mutual_exclusion", "integrity")
    usual = {name: "holds" if name in required else "inconclusive" for name in PROPERTIES}
    properties = {
        name: made_property(status, *([(f"{name} <was> seen", [1])] if status == "violated" else []))
        for name, status in {**usual, **(statuses or {})}.items()
    }
    return made_result(properties, sentence=f"sentence of {job.name}", required=list(required), took_s=0.5)


def unplayable(reason: str) -> TrialResult:
    return trial_result(TrialSettings("set-nx-px", "gc-pause"), inconclusive(reason), {}, {}, "")


class Judging:
    """A policy and the results of its trials: all properties hold, unless a test sets others."""

    def __init__(self, directory: Path, text: str = POLICY) -> None:
        file = directory / "lockstorm.toml"
        file.write_text(text)
        self.policy: Policy = read_policy(file)
        self.plan: GatePlan = plan_gate(self.policy)
        self.played = {job.name: made(job) for job in self.plan.jobs}

    def set(self, scenario: str, statuses: dict[str, str], *, control: bool = False) -> None:
        for job in self.plan.jobs:
            if (job.request.scenario, job.request.control) == (scenario, control):
                self.played[job.name] = made(job, statuses)

    def verdict(self) -> GateVerdict:
        versions = {"lockstorm": "0.1.0", "redis-server": "7.0.15"}
        run = RunDocument(
            id="2026-08-01T10-00-00Z-abcd",
            state="complete",
            started="2026-08-01T10:00:00Z",
            policy=PolicyDigest("lockstorm.toml", "0" * 64),
            seed=1,
            versions=versions,
            trials=[],
        )
        verdict = judge_gate(self.policy, self.plan, self.played, TODAY, run, "no time was left")
        fastjsonschema.validate(SCHEMA, msgspec.to_builtins(verdict))
        return verdict

    def cell(self) -> GateCell:
        (cell,) = self.verdict().cells
        return cell


def accept(until: str, properties: str = '["mutual_exclusion", "integrity"]') -> str:
    return (
        POLICY + '[[accept]]\nlock = "set-nx-px"\nscenario = "gc-pause"\nwhy = "a <cache> | only"\n'
        f"property = {properties}\nuntil = {until}\n"
    )


def test_all_holds(tmp_path: Path) -> None:
    verdict = Judging(tmp_path).verdict()
    assert (verdict.exit, verdict.sentence) == (0, "Safe, as far as this policy asks: of 1 cases 1 passed")
    (cell,) = verdict.cells
    assert (cell.outcome, cell.statuses) == ("passed", {"mutual_exclusion": "holds", "integrity": "holds"})
    assert cell.replay == "lockstorm run gc-pause --lock set-nx-px --seed 1 --time virtual --store open"
    assert cell.control_replay.endswith("--control")
    assert cell.in_short == "every required property held"


def test_without_controls_one_trial_is_enough(tmp_path: Path) -> None:
    judging = Judging(tmp_path, POLICY + "controls = false\n")
    cell = judging.cell()
    assert (cell.outcome, cell.in_short, cell.control_replay) == ("passed", "every required property held", "")


def test_storms_that_hold_bound_the_chance(tmp_path: Path) -> None:
    text = POLICY + '[[storm]]\nname = "s"\ntrials = 6\nduration = "1s"\n'
    cells = {cell.scenario: cell for cell in Judging(tmp_path, text).verdict().cells}
    assert cells["storm-s"].in_short == "0 violations in 6 storms: under 39 % at 95 %"  # 1 - 0.05^(1/6)
    assert cells["gc-pause"].in_short == "every required property held"
    one = Judging(tmp_path, text.replace("trials = 6", "trials = 1"))
    (storm,) = (cell for cell in one.verdict().cells if cell.scenario == "storm-s")
    assert storm.in_short == "0 violations in 1 storm: too few to say; ask for trials = 6 or more"


def test_a_violation_says_what_happened_why_it_matters_and_what_to_do(tmp_path: Path) -> None:
    judging = Judging(tmp_path)
    judging.set("gc-pause", DAMAGED)
    verdict = judging.verdict()
    (cell,) = verdict.cells
    assert verdict.exit == 1
    assert (cell.outcome, cell.violated) == ("failed", ["integrity", "mutual_exclusion"])
    assert (cell.result, cell.control) == ("violated", "holds")
    assert cell.in_short == "data was damaged, two workers held the lock at once"
    assert "A holder is paused past its lease" in cell.happened and "Integrity <was> seen." in cell.happened
    assert "Nobody got an error" in cell.matters
    advice = verdict.locks[0].advice
    assert advice and (advice.lock, advice.store, advice.broken) == ("set-nx-px-fenced", "fence-reads-and-writes", [])
    assert "a number that only grows, a fencing token" in advice.text


def test_a_control_that_is_violated_needs_no_fault(tmp_path: Path) -> None:
    judging = Judging(tmp_path)
    judging.set("gc-pause", {"integrity": "violated"}, control=True)
    cell = judging.cell()
    assert (cell.outcome, cell.result, cell.control) == ("failed", "holds", "violated")
    assert cell.in_short == "data was damaged, even without a fault"
    assert cell.happened.startswith("Without any fault (the pause ends well within the lease):")
    assert cell.shown and cell.shown.endswith(".control")


def test_what_the_settings_changed_is_told_of_the_first_trial_in_which_they_did(tmp_path: Path) -> None:
    judging = Judging(tmp_path, POLICY + "repeat = 3\ncontrols = false\n")
    effects: tuple[list[SettingsEffect], ...] = (
        [],
        [SettingsEffect("integrity", "violated", "holds", ["appendonly no"])],
        [],
    )
    for (name, result), found in zip(judging.played.items(), effects, strict=True):
        deployment = DeploymentResult([f"maxclients {len(found)}"], [], effects=found)
        judging.played[name] = structs.replace(result, deployment=deployment)
    cell = judging.cell()
    assert cell.deployment and cell.deployment.settings == ["maxclients 1"]
    assert cell.in_short == (
        "every required property held; with appendonly no: integrity is violated, with the defaults it holds"
    )


def test_what_is_not_required_does_not_fail(tmp_path: Path) -> None:
    judging = Judging(tmp_path, POLICY.replace('"mutual_exclusion", ', ""))
    judging.set("gc-pause", {"mutual_exclusion": "violated"})
    assert judging.verdict().exit == 0
    assert (judging.cell().result, judging.cell().control) == ("fenced", "holds"), "and is shown, all the same"


def test_what_the_policy_names_and_no_lock_is_played_with_does_not_vanish(tmp_path: Path) -> None:
    text = POLICY.replace('"gc-pause"', '["gc-pause", "pooled-sessions"]')
    judging = Judging(tmp_path, text)
    verdict = judging.verdict()
    assert (verdict.exit, verdict.sentence) == (3, "Not known: of 2 cases 1 could not be judged, 1 passed")
    (cell,) = (cell for cell in verdict.cells if cell.scenario == "pooled-sessions")
    assert (cell.outcome, cell.result, cell.ok) == ("inconclusive", "inconclusive", False)
    assert cell.in_short.startswith("the policy names it, and it was not played: set-nx-px lives on redis")
    for text_of in (as_junit(verdict), as_markdown(verdict), json.dumps(as_sarif(verdict, paths.ROOT))):
        assert "pooled-sessions" in text_of
    both = Judging(tmp_path, text + '[[lock]]\nname = "pg-advisory"\n')
    assert both.verdict().exit == 0, "another lock is played with it"
    assert Judging(tmp_path, POLICY.replace('play = "gc-pause"', 'play = "all"')).verdict().exit == 0


def test_a_named_scenario_that_a_lock_has_no_kind_of_time_for_is_inconclusive_for_that_lock(tmp_path: Path) -> None:
    text = POLICY.replace('"gc-pause"', '["gc-pause", "dead-waiters"]') + '[[lock]]\nname = "etcd"\n'
    verdict = Judging(tmp_path, text).verdict()  # locks on etcd have real time only, and dead-waiters virtual time
    assert (verdict.exit, verdict.sentence) == (3, "Not known: of 4 cases 1 could not be judged, 3 passed")
    (cell,) = (cell for cell in verdict.cells if cell.outcome == "inconclusive")
    assert (cell.lock, cell.scenario) == ("etcd", "dead-waiters")
    assert cell.in_short.startswith("the policy names it, and it was not played: it is played in virtual time")
    every = text.replace('["gc-pause", "dead-waiters"]', '"all"')
    assert all(cell.trials for cell in Judging(tmp_path, every).verdict().cells)


@pytest.mark.parametrize(("integrity", "exit_status"), [("inconclusive", 3), ("violated", 1)])
def test_what_was_seen_counts_more_than_what_is_not_known(tmp_path: Path, integrity: str, exit_status: int) -> None:
    judging = Judging(tmp_path)
    judging.set("gc-pause", {"mutual_exclusion": "inconclusive", "integrity": integrity})
    assert judging.verdict().exit == exit_status


def test_a_trial_that_was_not_played_is_no_pass(tmp_path: Path) -> None:
    judging = Judging(tmp_path)
    del judging.played["set-nx-px.open.gc-pause.1.control"]
    assert judging.verdict().exit == 3
    assert judging.cell().in_short == "1 of 2 trials were not played: no time was left"
    judging.played.clear()
    verdict = judging.verdict()
    assert (verdict.exit, verdict.cells[0].trials, verdict.unjudged) == (3, [], [])


def test_a_trial_that_failed_is_inconclusive(tmp_path: Path) -> None:
    judging = Judging(tmp_path)
    judging.played["set-nx-px.open.gc-pause.1"] = unplayable("redis-server did not start")
    verdict = judging.verdict()
    assert verdict.exit == 3
    assert verdict.sentence == "Not known: of 1 cases 1 could not be judged"
    assert verdict.cells[0].in_short == "Inconclusive: redis-server did not start"
    assert as_sarif(verdict, paths.ROOT)["runs"][0]["results"][0]["level"] == "warning"


def test_what_no_trial_asks_for_is_not_known(tmp_path: Path) -> None:
    """A pause has no quiet phase, so its trials cannot judge liveness."""
    judging = Judging(tmp_path, POLICY.replace('"integrity"', '"integrity", "liveness"'))
    verdict = judging.verdict()
    assert verdict.exit == 3
    assert verdict.unjudged == [UnjudgedProperty("set-nx-px", "open", "liveness")]
    assert verdict.cells[0].outcome == "passed"


def test_a_property_that_only_some_ask_for(tmp_path: Path) -> None:
    """Ownership is not required by default: a trial that could not judge it counts as inconclusive only if it could
    judge nothing at all."""
    judging = Judging(tmp_path, POLICY.replace('"mutual_exclusion", "integrity"', '"ownership"'))
    assert judging.verdict().exit == 3, "no trial judged it"
    assert judging.cell().outcome == "not-judged"
    assert judging.cell().in_short == "none of the required properties can be judged here"
    judging.set("gc-pause", {"ownership": "holds"})
    assert judging.verdict().exit == 0
    judging.set("gc-pause", {"mutual_exclusion": "inconclusive"})
    assert judging.cell().statuses == {"ownership": "inconclusive"}
    judging.set("gc-pause", {"ownership": "violated"})
    assert judging.verdict().exit == 1


# --- acceptances ---


@pytest.mark.parametrize(
    ("until", "exit_status", "outcome", "state"),
    [
        ("2026-08-02", 0, "accepted", "used"),
        ("2026-08-01", 0, "accepted", "used"),
        ("2026-07-31", 1, "failed", "expired"),
    ],
)
def test_an_acceptance_is_valid_up_to_its_last_day(
    tmp_path: Path, until: str, exit_status: int, outcome: str, state: str
) -> None:
    judging = Judging(tmp_path, accept(until))
    judging.set("gc-pause", DAMAGED)
    verdict = judging.verdict()
    assert (verdict.exit, verdict.cells[0].outcome) == (exit_status, outcome)
    assert [each.state for each in verdict.acceptances] == [state]


def test_an_acceptance_covers_only_what_it_names(tmp_path: Path) -> None:
    judging = Judging(tmp_path, accept("2027-01-01", '"mutual_exclusion"'))
    judging.set("gc-pause", {"mutual_exclusion": "violated"})
    assert judging.verdict().exit == 0
    judging.set("gc-pause", DAMAGED)
    assert judging.verdict().exit == 1


def test_an_acceptance_covers_its_lock_its_scenario_and_its_store() -> None:
    def covers(store: str | None, *what: str) -> bool:
        return Acceptance("setnx", store, "gc-pause", ("integrity",), "known", TODAY, 1).covers(*what)

    assert covers(None, "setnx", "open", "gc-pause") and covers("open", "setnx", "open", "gc-pause")
    for store in (None, "open"):
        assert not covers(store, "blpop", "open", "gc-pause")
        assert not covers(store, "setnx", "open", "contention")
    assert covers(None, "setnx", "fence-writes", "gc-pause")
    assert not covers("open", "setnx", "fence-writes", "gc-pause")


def test_an_acceptance_of_what_no_longer_happens_is_reported(tmp_path: Path) -> None:
    judging = Judging(tmp_path, accept("2026-01-01"))
    verdict = judging.verdict()
    assert (verdict.exit, verdict.acceptances[0].state) == (0, "gone")
    assert "accepts what no longer happens: remove it" in as_markdown(verdict)
    judging.set("gc-pause", {"integrity": "inconclusive"})
    assert judging.verdict().acceptances[0].state == "unknown", "without a judgement it is not known to be gone"


def test_an_acceptance_does_not_hide_what_is_not_known(tmp_path: Path) -> None:
    judging = Judging(tmp_path, accept("2027-01-01"))
    judging.set("gc-pause", {"mutual_exclusion": "violated", "integrity": "inconclusive"})
    assert judging.verdict().exit == 3


# --- advice ---


def advice_for(directory: Path, text: str) -> LockAdvice | None:
    judging = Judging(directory, text)
    return advise_instead(judging.policy, judging.policy.locks[0], [])


def test_advice_for_data_is_a_fence_that_survives_every_story_that_is_played(tmp_path: Path) -> None:
    advice = advice_for(tmp_path, POLICY.replace('"gc-pause"', '["gc-pause", "gc-pause-read", "packet-delay"]'))
    assert advice and (advice.lock, advice.store) == ("set-nx-px-fenced", "fence-reads-and-writes")


def test_advice_keeps_the_lock_when_only_its_resource_has_to_change(tmp_path: Path) -> None:
    advice = advice_for(tmp_path, POLICY.replace('"set-nx-px"', '"fenced"'))
    assert advice and advice.lock == "fenced" and advice.store != "open"


def test_advice_is_never_a_lock_that_is_safe_because_it_never_lets_go(tmp_path: Path) -> None:
    """In a pause of its holder, SETNX without expiry excludes all others. A policy without liveness must not be advised
    to use it."""
    assert survives("gc-pause", "setnx", "open", ("mutual_exclusion", "integrity"))
    advice = advice_for(tmp_path, POLICY)
    assert advice and advice.lock == "set-nx-px-fenced"


def test_advice_says_what_it_does_not_help_against(tmp_path: Path) -> None:
    """After a failover loses the counter of tokens, it starts again: no fence survives that."""
    advice = advice_for(tmp_path, POLICY.replace('"gc-pause"', '["gc-pause", "failover-unreplicated"]'))
    assert advice and advice.broken == ["failover-unreplicated"]
    assert "It is still broken by: failover-unreplicated." in advice.text


def test_what_no_lock_helps_against_says_what_would_prevent_it(tmp_path: Path) -> None:
    text = POLICY.replace('"gc-pause"', '["gc-pause", "failover-unreplicated"]')
    judging = Judging(tmp_path, text)
    judging.set("gc-pause", DAMAGED)
    judging.set("failover-unreplicated", DAMAGED)
    verdict = judging.verdict()
    assert verdict.locks[0].prevention == [
        Prevention("failover-unreplicated", "the grant is replicated before the master fails")
    ]
    for written in (as_markdown(verdict).replace("\\", ""), as_junit(verdict)):
        assert "failover-unreplicated (the grant is replicated before the master fails)" in written


STORM = """[[lock]]
name = "{lock}"
store = "{store}"
require = ["integrity"]
[scenarios]
play = []
[[storm]]
name = "all"
"""


def test_what_only_a_storm_broke_gets_advice_too(tmp_path: Path) -> None:
    judging = Judging(tmp_path, STORM.format(lock="set-nx-px", store="open"))
    judging.set("storm-all", {"integrity": "violated"})
    verdict = judging.verdict()
    advice = verdict.locks[0].advice
    assert advice and (advice.lock, advice.store) == ("set-nx-px-fenced", "fence-reads-and-writes")
    assert verdict.cells[0].happened.startswith("Random faults passed over clients that worked under the lock.")


def test_the_outputs_say_that_nothing_better_is_known(tmp_path: Path) -> None:
    judging = Judging(tmp_path, STORM.format(lock="set-nx-px-fenced", store="fence-reads-and-writes"))
    judging.set("storm-all", {"integrity": "violated"})
    verdict = judging.verdict()
    assert verdict.locks[0].advice is None
    for written in (as_markdown(verdict), as_junit(verdict), json.dumps(as_sarif(verdict, paths.ROOT))):
        assert "No other choice that lockstorm knows is known to do better here" in written


def test_a_policy_about_liveness_only_is_not_advised_to_build_a_fence(tmp_path: Path) -> None:
    text = '[[lock]]\nname = "setnx"\nrequire = "liveness"\n[scenarios]\nplay = "crash-holder"\n'
    advice = advice_for(tmp_path, text)
    assert advice and (advice.store, advice.text) == ("open", "Use set-nx-px-renew.")


def test_only_a_semaphore_replaces_a_semaphore(tmp_path: Path) -> None:
    for permits, replacing in ((2, {"permit-semaphore", "semaphore"}), (1, {"permit-semaphore", "semaphore", "setnx"})):
        text = POLICY.replace('"set-nx-px"', f'"permit-semaphore"\npermits = {permits}')
        policy = Judging(tmp_path, text.replace("gc-pause", "contention")).policy
        names = {each.lock for each in find_alternatives(policy, policy.locks[0])}
        assert names & replacing == replacing and (names == replacing) == (permits == 2), permits


def test_no_advice_where_nothing_is_known_to_be_better(tmp_path: Path) -> None:
    text = '[[lock]]\nname = "set-nx-px-fenced"\nstore = "fence-reads-and-writes"\n[scenarios]\nplay = "gc-pause"\n'
    assert advice_for(tmp_path, text) is None


# --- JUnit XML, SARIF, Markdown ---


def test_junit(tmp_path: Path) -> None:
    judging = Judging(
        tmp_path, POLICY.replace('"gc-pause"', '["contention", "crash-holder", "gc-pause", "packet-delay"]')
    )
    judging.set("gc-pause", DAMAGED)
    judging.set("packet-delay", {"integrity": "inconclusive"})
    root = ElementTree.fromstring(as_junit(judging.verdict()))
    check_junit(root)
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    failure = root.find("testsuite/testcase[@name='gc-pause']/failure")
    assert failure is not None and failure.text
    for part in (
        "What happened:",
        "Integrity <was> seen",
        "Why it matters:",
        "What to do:",
        "See it again: lockstorm run gc-pause",
    ):
        assert part in failure.text
    assert root.find("testsuite/testcase[@name='packet-delay']/error") is not None


def test_junit_has_accepted_cases_as_skipped_and_unjudged_ones_as_errors(tmp_path: Path) -> None:
    judging = Judging(tmp_path, accept("2027-01-01").replace('"integrity"]\n[sc', '"integrity", "liveness"]\n[sc'))
    judging.set("gc-pause", DAMAGED)
    root = ElementTree.fromstring(as_junit(judging.verdict()))
    check_junit(root)
    skipped = root.find("testsuite/testcase[@name='gc-pause']/skipped")
    assert skipped is not None and "a <cache> | only (until 2027-01-01)" in skipped.get("message", "")
    assert root.find("testsuite/testcase[@name='requires liveness']/error") is not None


def test_junit_replaces_characters_that_xml_forbids(tmp_path: Path) -> None:
    judging = Judging(tmp_path)
    judging.played["set-nx-px.open.gc-pause.1"] = unplayable("it said \x00\x1b[31m \ud800 ]]>")
    root = ElementTree.fromstring(as_junit(judging.verdict()).encode())
    assert "it said \ufffd\ufffd[31m \ufffd ]]>" in ElementTree.tostring(root, encoding="unicode", method="text")


CASES = {"failure", "error", "skipped"}
COUNTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def check_junit(root: ElementTree.Element) -> None:
    """Checks elements, attributes and counts against what readers of JUnit XML expect."""
    assert root.tag == "testsuites" and set(root.attrib) == {"name", "tests", "time", *COUNTS}
    for suite in root:
        assert suite.tag == "testsuite" and set(suite.attrib) == {"name", "tests", "time", *COUNTS}
        for case in suite:
            assert case.tag == "testcase" and set(case.attrib) == {"classname", "name", "time"}
            assert len(case) <= 1 and all(each.tag in CASES and len(each) == 0 for each in case)
            assert all(set(each.attrib) <= {"message", "type"} and each.get("message") for each in case)
            assert float(case.attrib["time"]) >= 0
        assert len({case.get("name") for case in suite}) == len(suite) == int(suite.attrib["tests"])
        for key, tag in COUNTS.items():
            assert int(suite.attrib[key]) == len(suite.findall(f"testcase/{tag}"))
    for key in ("tests", *COUNTS):
        assert int(root.attrib[key]) == sum(int(suite.attrib[key]) for suite in root)


# The required and the optional keys of the SARIF 2.1.0 objects used here (OASIS standard, section 3).
SARIF = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"invocations", "originalUriBaseIds", "results", "columnKind"}),
    "driver": ({"name"}, {"version", "rules", "informationUri"}),
    "rule": ({"id"}, {"shortDescription", "fullDescription", "defaultConfiguration"}),
    "result": (
        {"message"},
        {"ruleId", "ruleIndex", "level", "locations", "partialFingerprints", "properties", "suppressions"},
    ),
    "physicalLocation": ({"artifactLocation"}, {"region"}),
}


def with_keys_checked(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    required, optional = SARIF[kind]
    assert required <= set(value) <= required | optional, kind
    return value


# Of a path that is relative to a base (RFC 3986, sections 3.3 and 4.2): no colon in the first segment, no "//" or "..".
RELATIVE_PATH = re.compile(r"(?!//|[^/]*:)(?!(.*/)?\.\.(/|$))([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})+")


def check_artifact(place: dict[str, Any], bases: dict[str, Any]) -> None:
    """SARIF 2.1.0, section 3.4: `uri` is a valid reference; a relative one names the base that it is relative to."""
    if "uriBaseId" in place:
        assert RELATIVE_PATH.fullmatch(place["uri"]) and not place["uri"].startswith(("/", "./")), place
        base = bases[place["uriBaseId"]]["uri"]
        assert base.startswith("file:///") and base.endswith("/")
    else:
        assert place["uri"].startswith("file:///") and RELATIVE_PATH.fullmatch(place["uri"].removeprefix("file:///"))


def check_sarif(log: dict[str, Any]) -> list[dict[str, Any]]:
    """Checks a log against the standard. Returns its results."""
    assert with_keys_checked("log", log)["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = with_keys_checked("driver", with_keys_checked("run", run)["tool"]["driver"])
    rules = [with_keys_checked("rule", rule)["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    assert isinstance(run["invocations"][0]["executionSuccessful"], bool)
    for result in run["results"]:
        assert with_keys_checked("result", result)["level"] in ("none", "note", "warning", "error")
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
        for location in result["locations"]:
            place = with_keys_checked("physicalLocation", location["physicalLocation"])
            check_artifact(place["artifactLocation"], run["originalUriBaseIds"])
            assert place["region"]["startLine"] >= 1
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        assert all(each["kind"] in ("inSource", "external") for each in result.get("suppressions", []))
    prints = [tuple(result["partialFingerprints"].items()) for result in run["results"]]
    assert len(set(prints)) == len(prints)
    return list(run["results"])


def test_sarif_points_at_the_policy_or_where_the_lock_is_chosen(tmp_path: Path) -> None:
    judging = Judging(tmp_path)
    assert check_sarif(as_sarif(judging.verdict(), paths.ROOT)) == []
    judging.set("gc-pause", DAMAGED)
    results = check_sarif(as_sarif(judging.verdict(), paths.ROOT))
    assert [each["ruleId"] for each in results] == ["integrity", "mutual-exclusion"]
    assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "lockstorm.toml"
    for used, line in (("src/stock.py:12", 12), ("src/stock.py", 1)):
        chosen = Judging(tmp_path, POLICY.replace("[require]", f'used = "{used}"\n[require]'))
        chosen.set("gc-pause", DAMAGED)
        place = check_sarif(as_sarif(chosen.verdict(), paths.ROOT))[0]["locations"][0]["physicalLocation"]
        artifact = {"uri": "src/stock.py", "uriBaseId": "%SRCROOT%"}
        assert place == {"artifactLocation": artifact, "region": {"startLine": line}}


@pytest.mark.parametrize(
    ("file", "used", "uri", "line"),
    [
        ("shop/lock storm.toml", None, "shop/lock%20storm.toml", 1),
        ("./shop//lockstorm.toml", None, "shop/lockstorm.toml", 1),
        ("PROJECT/shop/lockstorm.toml", None, "shop/lockstorm.toml", 1),
        ("/elsewhere/a b.toml", None, "file:///elsewhere/a%20b.toml", 1),
        ("shop/lockstorm.toml", "src/100%#1?.py:7", "shop/src/100%25%231%3F.py", 7),
        ("shop/lockstorm.toml", "src/Bestände.py:7", "shop/src/Best%C3%A4nde.py", 7),
        ("shop/lockstorm.toml", "../lib/lock.py:7", "lib/lock.py", 7),
        ("lockstorm.toml", "a:b.py:7", "a%3Ab.py", 7),
        ("shop/lockstorm.toml", "/opt/lib/lock.py:7", "file:///opt/lib/lock.py", 7),
        ("shop/lockstorm.toml", "PROJECT/lib/lock.py", "lib/lock.py", 1),
    ],
)
def test_sarif_names_files_by_valid_uris(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, used: str | None, uri: str, line: int
) -> None:
    """Paths in a policy are relative to it; those in the log to the project."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    text = POLICY.replace("[require]", f'used = "{used}"\n[require]') if used else POLICY
    judging = Judging(tmp_path, text.replace("PROJECT", str(project)))
    judging.set("gc-pause", DAMAGED)
    verdict = judging.verdict()
    policy_file = PolicyDigest(file.replace("PROJECT", str(project)), verdict.policy.sha256)
    verdict = structs.replace(verdict, policy=policy_file)
    place = check_sarif(as_sarif(verdict, project))[0]["locations"][0]["physicalLocation"]
    base = {} if uri.startswith("file:") else {"uriBaseId": "%SRCROOT%"}
    assert place == {"artifactLocation": {"uri": uri, **base}, "region": {"startLine": line}}


def test_the_project_is_where_its_repository_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "project" / "shop" / "lockstorm.toml"
    policy.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert project_root(policy) == tmp_path, "no repository: the directory in which the gate was called"
    monkeypatch.chdir("/")
    (tmp_path / "project" / ".git").write_text("gitdir: elsewhere")  # a worktree has a file
    assert project_root(policy) == tmp_path / "project"


def test_sarif_suppresses_what_is_accepted(tmp_path: Path) -> None:
    judging = Judging(tmp_path, accept("2027-01-01"))
    judging.set("gc-pause", DAMAGED)
    results = check_sarif(as_sarif(judging.verdict(), paths.ROOT))
    assert [each["level"] for each in results] == ["note", "note"]
    assert results[0]["suppressions"] == [{"kind": "external", "justification": "a <cache> | only (until 2027-01-01)"}]


def test_markdown_keeps_its_tables_whole(tmp_path: Path) -> None:
    judging = Judging(tmp_path, accept("2027-01-01"))
    judging.set("gc-pause", DAMAGED)
    text = as_markdown(judging.verdict())
    rows = [line for line in text.splitlines() if line.startswith("| ") and "gc-pause" in line]
    assert len(rows) == 1 and rows[0].replace("\\|", "").count("|") == 4
    assert r"a \<cache\> \| only" in rows[0] and "<cache>" not in text


def test_markdown_has_a_failure_with_its_advice(tmp_path: Path) -> None:
    judging = Judging(tmp_path)
    judging.set("gc-pause", DAMAGED)
    text = as_markdown(judging.verdict())
    assert text.startswith("## ❌ Not safe: of 1 cases 1 failed")
    assert '```toml\n[[lock]]\nname = "set-nx-px-fenced"\n' in text
    assert r"Integrity \<was\> seen" in text
