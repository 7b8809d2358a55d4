"""The verdict as SARIF 2.1.0, for code scanning: a result for each property that a case violates, of an application for
each that the smallest schedule violates."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lockstorm.gate.gate_judge import ACCEPTED, FAILED, INCONCLUSIVE
from lockstorm.gate.gate_policy import used_place
from lockstorm.gate.messages import (
    MATTERS,
    SHORT,
    application_in_short,
    sort_properties,
    why_it_matters_to_an_application,
)
from lockstorm.results.gate_verdict import GateApplication, GateCell, GateLock, GateVerdict, what_to_do

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
UNKNOWN_RULE = "inconclusive"
SarifObject = dict[str, Any]  # the standard defines them, and nothing here reads them
BASE = "%SRCROOT%"  # the usual name of the directory to which paths are relative


def project_root(policy: Path) -> Path:
    """The top of the repository that the policy is in; without one, the working directory if the policy is below it,
    else the policy's directory."""
    directory = policy.absolute().parent
    here = Path.cwd()
    usual = here if directory.is_relative_to(here) else directory
    return next((each for each in (directory, *directory.parents) if (each / ".git").exists()), usual)


def as_sarif(verdict: GateVerdict, root: Path) -> SarifObject:
    """The log. `root`: the directory of the project, to which the paths in it are relative."""
    policy = Path(verdict.policy.file)
    rules = [rule_of(name.replace("_", "-"), SHORT[name], MATTERS[name]) for name in MATTERS]
    rules += application_rules(verdict.applications)
    rules.append(
        rule_of(
            UNKNOWN_RULE,
            "could not be judged",
            "Nothing was learned: a fault did not take effect, a server did not start, or the time was used up. "
            "This does not count as passed.",
        )
    )
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    locks = {(lock.name, lock.store): lock for lock in verdict.locks}
    places = {key: sarif_location(lock, policy, root) for key, lock in locks.items()}
    results = [
        result
        for cell in verdict.cells
        for key in [(cell.lock, cell.store)]
        for result in results_of(cell, locks[key], places[key], index)
    ]
    for each in verdict.applications:
        results += application_results(each, policy_line(policy, each.line, root), index)
    driver = {"name": "lockstorm", "version": verdict.versions["lockstorm"], "rules": rules}
    invocation = {"executionSuccessful": not verdict.interrupted, "exitCode": verdict.exit}
    base = root.absolute().as_uri()
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "originalUriBaseIds": {BASE: {"uri": base if base.endswith("/") else f"{base}/"}},
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def rule_of(name: str, short: str, full: str) -> SarifObject:
    return {
        "id": name,
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "defaultConfiguration": {"level": "warning" if name == UNKNOWN_RULE else "error"},
    }


def results_of(cell: GateCell, lock: GateLock, place: SarifObject, index: dict[str, int]) -> list[SarifObject]:
    if cell.outcome == INCONCLUSIVE and not cell.violated:
        return [sarif_result(cell, place, index, UNKNOWN_RULE, "warning", cell.in_short)]
    if cell.outcome not in (FAILED, ACCEPTED, INCONCLUSIVE):
        return []
    level = "error" if cell.outcome == FAILED else "note"
    advice = "".join(f" What to do: {paragraph}" for paragraph in what_to_do(lock)) if level == "error" else ""
    found = []
    for name in sort_properties(cell.violated):
        text = f"{cell.lock}, {cell.scenario}: {SHORT[name]}. {cell.in_full} {MATTERS[name]}{advice}"
        found.append(sarif_result(cell, place, index, name.replace("_", "-"), level, text))
    return found


def application_rules(cases: list[GateApplication]) -> list[SarifObject]:
    """Those that the applications violate."""
    names = dict.fromkeys(name for each in cases for name in each.violated)
    return [
        rule_of(application_rule(name), application_in_short([name]), why_it_matters_to_an_application([name]))
        for name in names
    ]


def application_rule(name: str) -> str:
    return f"application-{name}"


def application_results(case: GateApplication, place: SarifObject, index: dict[str, int]) -> list[SarifObject]:
    if case.outcome not in (FAILED, INCONCLUSIVE):
        return []
    failed = case.outcome == FAILED
    to_do = "".join(f" What to do: {paragraph}" for paragraph in case.to_do)
    text = f"{case.name}: {case.happened} {case.matters}{to_do}" if failed else f"{case.name}: {case.in_short}"
    return [
        {
            "ruleId": rule,
            "ruleIndex": index[rule],
            "level": "error" if failed else "warning",
            "message": {"text": text},
            "locations": [{"physicalLocation": place}],
            "partialFingerprints": {"lockstorm/v1": "/".join(("app", case.name, rule))},
            "properties": {"replay": case.replay, "sentence": case.sentence},
        }
        for rule in (map(application_rule, case.violated) if failed else [UNKNOWN_RULE])
    ]


def sarif_result(
    cell: GateCell, place: SarifObject, index: dict[str, int], rule: str, level: str, text: str
) -> SarifObject:
    result: SarifObject = {
        "ruleId": rule,
        "ruleIndex": index[rule],
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"lockstorm/v1": "/".join((cell.lock, cell.store, cell.scenario, rule))},
        "properties": {"replay": cell.replay, "sentence": cell.sentence},
    }
    if cell.outcome == ACCEPTED:
        why = "; ".join(f"{each.why} (until {each.until})" for each in cell.accepted)
        result["suppressions"] = [{"kind": "external", "justification": why}]
    return result


def sarif_location(lock: GateLock, policy: Path, root: Path) -> SarifObject:
    """The place in the project that chooses the lock, if the policy names it; otherwise a line of the policy."""
    if lock.used:
        path, line = used_place(lock.used)
        return {"artifactLocation": sarif_artifact(policy.parent / path, root), "region": {"startLine": line}}
    return policy_line(policy, lock.line, root)


def policy_line(policy: Path, line: int, root: Path) -> SarifObject:
    return {"artifactLocation": sarif_artifact(policy, root), "region": {"startLine": line}}


def sarif_artifact(path: Path, root: Path) -> dict[str, str]:
    """A file as a URI reference, relative to the project if it is in there."""
    whole = Path(os.path.abspath(path))
    if whole.is_relative_to(root.absolute()):
        relative = whole.relative_to(root.absolute())
        return {"uri": quote(os.fsencode(relative)), "uriBaseId": BASE}
    return {"uri": whole.as_uri()}
