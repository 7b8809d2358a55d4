"""The verdict as SARIF 2.1.0, for code scanning: a result for each property that a case violates."""

from typing import Any

from lockstorm.gate.gate_verdict import ACCEPTED, FAILED, INCONCLUSIVE
from lockstorm.gate.messages import MATTERS, SHORT, sort_properties, what_to_do

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
UNKNOWN_RULE = "inconclusive"


def as_sarif(verdict: dict[str, Any]) -> dict[str, Any]:
    rules = [rule_of(name.replace("_", "-"), SHORT[name], MATTERS[name]) for name in MATTERS]
    rules.append(
        rule_of(
            UNKNOWN_RULE,
            "could not be judged",
            "Nothing was learned: a fault did not take effect, a server did not start, or the time was used up. "
            "This does not count as passed.",
        )
    )
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    locks = {(lock["name"], lock["store"]): lock for lock in verdict["locks"]}
    results = [
        result
        for cell in verdict["cells"]
        for result in results_of(cell, locks[cell["lock"], cell["store"]], verdict["policy"]["file"], index)
    ]
    driver = {"name": "lockstorm", "version": verdict["versions"]["lockstorm"], "rules": rules}
    invocation = {"executionSuccessful": not verdict["interrupted"], "exitCode": verdict["exit"]}
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def rule_of(name: str, short: str, full: str) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "defaultConfiguration": {"level": "warning" if name == UNKNOWN_RULE else "error"},
    }


def results_of(cell: dict[str, Any], lock: dict[str, Any], policy: str, index: dict[str, int]) -> list[dict[str, Any]]:
    if cell["outcome"] == INCONCLUSIVE and not cell["violated"]:
        return [sarif_result(cell, lock, policy, index, UNKNOWN_RULE, "warning", cell["in_short"])]
    if cell["outcome"] not in (FAILED, ACCEPTED, INCONCLUSIVE):
        return []
    level = "error" if cell["outcome"] == FAILED else "note"
    advice = "".join(f" What to do: {paragraph}" for paragraph in what_to_do(lock)) if level == "error" else ""
    found = []
    for name in sort_properties(cell["violated"]):
        text = f"{cell['lock']}, {cell['scenario']}: {SHORT[name]}. {cell['happened']} {MATTERS[name]}{advice}"
        found.append(sarif_result(cell, lock, policy, index, name.replace("_", "-"), level, text))
    return found


def sarif_result(
    cell: dict[str, Any], lock: dict[str, Any], policy: str, index: dict[str, int], rule: str, level: str, text: str
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": index[rule],
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": sarif_location(lock, policy)}],
        "partialFingerprints": {"lockstorm/v1": "/".join((cell["lock"], cell["store"], cell["scenario"], rule))},
        "properties": {"replay": cell["replay"], "sentence": cell["sentence"]},
    }
    if cell["outcome"] == ACCEPTED:
        why = "; ".join(f"{each['why']} (until {each['until']})" for each in cell["accepted"])
        result["suppressions"] = [{"kind": "external", "justification": why}]
    return result


def sarif_location(lock: dict[str, Any], policy: str) -> dict[str, Any]:
    """The place in the project that chooses the lock, if the policy names it; otherwise a line of the policy."""
    path, colon, line = (lock["used"] or "").rpartition(":")
    if colon and line.isdigit() and int(line) > 0:
        return {"artifactLocation": {"uri": path}, "region": {"startLine": int(line)}}
    if lock["used"]:
        return {"artifactLocation": {"uri": lock["used"]}, "region": {"startLine": 1}}
    return {"artifactLocation": {"uri": policy.removeprefix("./")}, "region": {"startLine": lock["line"]}}
