"""The sentences about a violation, for readers who are new to locks: what happened, and why it matters."""

from collections.abc import Iterable

from lockstorm.base.sentence import as_sentence
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.scenario import scenarios

# What a violation of each property means, the most harmful first: sort_properties goes by this order.
MATTERS = {
    "integrity": "Data was damaged: an update that its writer had been told was saved is gone, or an older one was "
    "written over a newer one. Nobody got an error.",
    "mutual_exclusion": "Two workers were at work at the same time on what the lock is there to give to one at a time. "
    "Whatever they both change - a balance, a file, an invoice - can come out wrong.",
    "fencing": "The lock hands out a number with every grant (a fencing token), by which the resource can tell a late "
    "write from a new one. These numbers repeated, fell, or were not checked: a late write got through, or the "
    "rightful holder was turned away.",
    "liveness": "A client was left waiting for a lock that nobody was using. Such requests hang until they time out or "
    "until a person steps in.",
    "ownership": "A worker released or extended the lock while another one held it. The holder does not know that it "
    "is unprotected now.",
    "capacity": "More permits were in use than there are: the limit that they enforce was exceeded.",
    "lease": "The lock was used after the end of the validity that it had announced.",
    "fairness": "A client that had asked first was overtaken.",
}
SHORT = {
    "integrity": "data was damaged",
    "mutual_exclusion": "two workers held the lock at once",
    "fencing": "late and rightful work were not told apart",
    "liveness": "a client waited for ever",
    "ownership": "another client's lock was released or extended",
    "capacity": "too many permits were out",
    "lease": "the lock was used after it had ended",
    "fairness": "waiters were overtaken",
}


def sort_properties(names: Iterable[str]) -> list[str]:
    """The properties by harm, the most harmful first."""
    return sorted(names, key=list(MATTERS).index)


def what_happened(scenario: str, control: bool, played: TrialResult, violated: Iterable[str]) -> str:
    """The summary of a trial's scenario, and the first evidence against each violated property."""
    evidence = [
        played.properties[name].evidence[0].text
        for name in sort_properties(violated)
        if played.properties[name].evidence
    ]
    return " ".join([scenario_summary(scenario, control), *(as_sentence(text) for text in dict.fromkeys(evidence))])


def scenario_summary(scenario: str, control: bool) -> str:
    known = scenarios().get(scenario)
    if known is None:  # a storm
        return "Random faults passed over clients that worked under the lock."
    return f"Without any fault ({known.control}):" if control else known.summary


def short_message(violated: Iterable[str]) -> str:
    return ", ".join(SHORT[name] for name in sort_properties(violated))


def why_it_matters(violated: Iterable[str]) -> str:
    return " ".join(MATTERS[name] for name in sort_properties(violated))
