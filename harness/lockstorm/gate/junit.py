"""The verdict as JUnit XML: a suite for each lock and store mode, a case for each scenario, with its message.
An application is a suite with one case."""

import xml.etree.ElementTree as ElementTree

from lockstorm.base.sentence import as_sentence
from lockstorm.base.xml_text import xml_text
from lockstorm.gate.gate_judge import ACCEPTED, FAILED, INCONCLUSIVE, NOT_JUDGED
from lockstorm.results.gate_verdict import (
    GateApplication,
    GateCell,
    GateLock,
    GateVerdict,
    UnjudgedProperty,
    what_to_do,
)


def as_junit(verdict: GateVerdict) -> str:
    root = ElementTree.Element("testsuites", name="lockstorm")
    for lock in verdict.locks:
        cells = verdict.cells_of(lock)
        unjudged = [each for each in verdict.unjudged if (each.lock, each.store) == (lock.name, lock.store)]
        root.append(suite_of(lock, cells, unjudged))
    root.extend(application_suite(each) for each in verdict.applications)
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in root):.3f}")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def suite_of(lock: GateLock, cells: list[GateCell], unjudged: list[UnjudgedProperty]) -> ElementTree.Element:
    name = f"lockstorm.{lock.name}.{lock.store}"
    suite = ElementTree.Element("testsuite", name=name)
    for cell in cells:
        suite.append(case_element(name, cell, lock))
    for each in unjudged:
        what = each.property.replace("_", " ")
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=f"requires {what}", time="0.000")
        ElementTree.SubElement(case, "error", message=f"no scenario of the policy judges {what}")
    return suite_counted(suite, sum(cell.took_s for cell in cells))


def suite_counted(suite: ElementTree.Element, took_s: float) -> ElementTree.Element:
    """A suite, with the numbers of its cases."""
    suite.set("tests", str(len(suite)))
    for key, tag in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items():
        suite.set(key, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("time", f"{took_s:.3f}")
    return suite


def application_suite(each: GateApplication) -> ElementTree.Element:
    name = f"lockstorm.app.{each.name}"
    suite = ElementTree.Element("testsuite", name=name)
    case = ElementTree.SubElement(suite, "testcase", classname=name, name="search", time=f"{each.took_s:.3f}")
    if each.outcome == FAILED:
        failure = ElementTree.SubElement(case, "failure", message=xml_text(each.in_short), type=each.violated[0])
        failure.text = xml_text(application_text(each))
    elif each.outcome == INCONCLUSIVE:
        error = ElementTree.SubElement(case, "error", message=xml_text(each.in_short), type="inconclusive")
        error.text = xml_text(f"{each.sentence}\nAgain: {each.replay}")
    return suite_counted(suite, each.took_s)


def application_text(each: GateApplication) -> str:
    lines = [f"What happened: {each.happened}", *each.story, f"Why it matters: {each.matters}"]
    lines += [f"What to do: {paragraph}" for paragraph in each.to_do]
    return "\n".join([*lines, f"See it again: {each.replay}"])


def case_element(suite: str, cell: GateCell, lock: GateLock) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=suite, name=cell.scenario, time=f"{cell.took_s:.3f}")
    message = xml_text(cell.in_short)
    if cell.outcome == FAILED:
        failure = ElementTree.SubElement(case, "failure", message=message, type=cell.violated[0])
        failure.text = xml_text(failure_text(cell, lock))
    elif cell.outcome == INCONCLUSIVE:
        error = ElementTree.SubElement(case, "error", message=message, type="inconclusive")
        error.text = xml_text(f"{cell.sentence}\nAgain: {cell.replay}")
    elif cell.outcome == ACCEPTED:
        reasons = "; ".join(f"{each.why} (until {each.until})" for each in cell.accepted)
        ElementTree.SubElement(case, "skipped", message=xml_text(f"{cell.in_short}; accepted: {reasons}"))
    elif cell.outcome == NOT_JUDGED:
        ElementTree.SubElement(case, "skipped", message=message)
    return case


def failure_text(cell: GateCell, lock: GateLock) -> str:
    lines = [f"What happened: {cell.in_full}", f"Why it matters: {cell.matters}"]
    if cell.reason:
        lines.append(f"Why this lock: {as_sentence(cell.reason)}")
    lines += [f"What to do: {paragraph}" for paragraph in what_to_do(lock)]
    lines += [f"The acceptance in the policy expired: it was valid until {each.until}." for each in cell.accepted]
    return "\n".join([*lines, f"In detail: {cell.sentence}", f"See it again: {cell.replay}"])
