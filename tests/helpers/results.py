"""Made-up results of trials, for tests of the code that reads results."""

from typing import Any

from msgspec import structs

from lockstorm.results.verdict import Evidence, PropertyVerdict, TrialResult, Verdict
from lockstorm.scenario.play import inconclusive, trial_result
from lockstorm.trial.settings import TrialSettings


def made_property(status: Any, *evidence: tuple[str, list[int]], reason: str | None = None) -> PropertyVerdict:
    pieces = [Evidence(text, 1, records) for text, records in evidence]
    return PropertyVerdict(status, len(pieces), pieces, reason=reason)


def made_verdict(properties: dict[str, PropertyVerdict], **fields: Any) -> Verdict:
    return structs.replace(inconclusive("made"), properties=properties, **fields)


def made_result(properties: dict[str, PropertyVerdict], **fields: Any) -> TrialResult:
    settings = TrialSettings("set-nx-px", "gc-pause")
    return structs.replace(trial_result(settings, made_verdict(properties), {}, {}, ""), **fields)
