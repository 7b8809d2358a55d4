"""A recorded trial as the subject of a page or a picture."""

from datetime import UTC, datetime

from lockstorm.base.paths import runnable
from lockstorm.report.diagram import Row
from lockstorm.report.diagram_page import Fields, Subject
from lockstorm.report.history_model import diagram_of
from lockstorm.report.report_source import Recorded, parameters_of
from lockstorm.results.event import Event
from lockstorm.results.properties import is_asked
from lockstorm.results.verdict import Verdict
from lockstorm.scenario.baseline import recorded_baseline
from lockstorm.scenario.play import recorded_command

RECORD_FIELDS = ("kind", "outcome", "actor", "name", "object", "op", "grant", "token", "value", "extra", "flags")
LEFT_OUT = (None, 0, "unknown")  # the values of fields that a record leaves out
# Fields that may be the index of a name, and the field with that name.
NAMED = {"value": "value_name", "extra": "extra_name"}
FAULTS_SHOWN = 8


def trial_subject(recorded: Recorded) -> Subject:
    verdict = recorded.verdict
    return Subject(
        name=_title(recorded),
        what="trial",
        sentence=verdict.sentence,
        exit=verdict.exit,
        statuses=_statuses(verdict),
        facts=_facts(recorded),
        diagram=diagram_of(recorded.events, verdict),
        fields_of=_fields,
        baseline=recorded_baseline(parameters_of(recorded.events), verdict) or "",
    )


def _title(recorded: Recorded) -> str:
    parameters = parameters_of(recorded.events)
    if not {"scenario", "lock"} <= parameters.keys():
        return recorded.name
    control = " (control)" if parameters.get("control") else ""
    return f"{parameters['scenario']}{control} · {parameters['lock']} · {parameters.get('store', 'no')} store"


def _statuses(verdict: Verdict) -> dict[str, str]:
    """Of the required properties, and of the others that are asked and could be judged."""
    return {
        name.replace("_", " "): found.status
        for name, found in verdict.properties.items()
        if name in verdict.required or (found.status != "inconclusive" and is_asked(name, verdict.required))
    }


def _facts(recorded: Recorded) -> Fields:
    parameters, verdict = parameters_of(recorded.events), recorded.verdict
    lease_ms = parameters.get("lease_ms")
    faults = [f"{fault.name} on {fault.target}{'' if fault.proved else ' (not proved)'}" for fault in verdict.faults]
    different = list(dict.fromkeys(faults))
    more = " …" if len(different) > FAULTS_SHOWN else ""
    facts = {
        "time": parameters.get("time"),
        "seed": parameters.get("seed"),
        "lease": f"{lease_ms:,} ms" if lease_ms else None,
        "grants": verdict.grants,
        "records": f"{verdict.records:,}",
        "faults": f"{', '.join(different[:FAULTS_SHOWN])}{more}" or "none",
        "a failed release is read as": verdict.policy.release,
        "file": recorded.name,
    }
    shown = [(name, str(fact)) for name, fact in facts.items() if fact is not None]
    again = recorded_command(parameters)
    return [*shown, ("again", runnable(again))] if again else shown


def _fields(row: Row) -> Fields:
    event = row.record
    if event is None:
        return [("record", "none: computed from earlier records")]
    fields = [("record", str(event.index or ""))]
    for key in RECORD_FIELDS:
        value, name = getattr(event, key), getattr(event, NAMED[key]) if key in NAMED else None
        if value not in LEFT_OUT:
            fields.append((key, f"{value} ({name})" if name else str(value)))
    fields.append(("stamp", f"{event.mono_ns / 1e6:.6f} ms"))
    if event.wall_ns:
        fields.append(("its own clock", _wall_text(event)))
    return fields


def _wall_text(event: Event) -> str:
    whole, nanoseconds = divmod(event.wall_ns, 1_000_000_000)
    try:
        wall = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        wall = str(whole)
    return f"{wall}.{nanoseconds // 1000:06d}"
