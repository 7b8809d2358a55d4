"""`app check`: an application is started once, each request is sent alone to each instance, and what it did to locks
and data is read from its messages. What can go wrong when two requests meet is said at once."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from lockstorm.locks.lock_names import APP_PREFIX
from lockstorm.results.wire_access import RuleWarning, WireAccess
from lockstorm.search.explorer import explorer_for
from lockstorm.search.replay import context_words
from lockstorm.search.search_plan import SearchRequest, plan_search

NOT_RECOGNISED = "not-recognised"
UNSEEN = ("lock-asked",)  # what follows it says more


class CheckedRequest(msgspec.Struct, frozen=True):
    """One request, sent alone to the first instance, or alone as a program."""

    name: str
    accesses: list[WireAccess]
    not_understood: list[str]  # statements


class CheckedApplication(msgspec.Struct, frozen=True):
    """The JSON of `app check`."""

    app: str
    name: str
    requests: list[CheckedRequest]
    warnings: list[RuleWarning]
    sentence: str
    exit: int


def check_application(file: Path) -> CheckedApplication:
    """UsageError for what the file has wrong; Inconclusive if an instance cannot be asked."""
    plan = plan_search(SearchRequest(f"{APP_PREFIX}{file}", schedules=1, workers=1))
    with explorer_for(plan.context, 1) as explorer:
        said = explorer.introduce(context_words(plan.context, plan.required))
    names = [each.name for each in said.alone.requests]
    checked = [
        _request(name, [access for access in said.alone.accesses if access.request == names.index(name) + 1])
        for name in dict.fromkeys(names)
    ]
    return CheckedApplication(
        app=str(file),
        name=said.offer.name,
        requests=checked,
        warnings=said.warnings,
        sentence=_sentence(said.offer.name, checked, said.warnings),
        exit=0,
    )


def _request(name: str, accesses: Sequence[WireAccess]) -> CheckedRequest:
    shown = [each for each in accesses if each.kind not in (*UNSEEN, NOT_RECOGNISED)]
    return CheckedRequest(name, shown, [each.text for each in accesses if each.kind == NOT_RECOGNISED])


def _sentence(name: str, requests: Sequence[CheckedRequest], warnings: Sequence[RuleWarning]) -> str:
    locks = {each.object for request in requests for each in request.accesses if each.kind == "lock-granted"}
    data = {each.object for request in requests for each in request.accesses if each.kind.startswith("access")}
    unclear = sum(len(request.not_understood) for request in requests)
    touched = "touched 1 row or key" if len(data) == 1 else f"touched {len(data) or 'no'} rows and keys"
    seen = f"{_count(len(requests), 'request')} of {name} took {_count(len(locks), 'lock')} and {touched}"
    more = f"; {_count(unclear, 'statement')} not understood" if unclear else ""
    return f"{seen}{more}; {_count(len(warnings), 'warning')}"


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
