"""The sentences about a violation, for readers who are new to locks: what happened, and why it matters."""

from collections.abc import Iterable

from lockstorm.base.sentence import as_sentence
from lockstorm.results.verdict import TrialResult
from lockstorm.scenario.scenario import scenarios
from lockstorm.search.application_plan import RULES

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


# --- applications ---

APPLICATION_MATTERS = {
    "check": "The data are not what they have to be after the answers that were given. Nothing reports it: it is "
    "noticed when somebody counts.",
    "answer": "A request was never answered. In production it waits until a limit of time ends it, and keeps its "
    "connection and its locks until then.",
}
APPLICATION_SHORT = {"check": "the data were wrong at the end", "answer": "a request was never answered"}
CURES = {  # by rule
    "unlock-before-commit": "Release the lock after the commit: take it outside of the transaction.",
    "snapshot-before-lock": "Take the lock before the transaction begins, or use READ COMMITTED.",
    "read-before-lock": "Read under the lock what the write depends on, or let the UPDATE compare it.",
    "row-lock-outside-transaction": "Put SELECT ... FOR UPDATE and the write that follows into one transaction.",
    "beyond-the-lease": "No lease protects work that takes longer than it. Let the UPDATE compare the value, or the "
    "version, that was read: a late write then changes nothing.",
    "refused-and-goes-on": "Look at what the lock has answered: a request that is refused writes nothing, and says so.",
    "released-by-a-stranger": "Release a lock only if its value is your own: compare and delete in one script.",
    "lock-order": "Take locks in one order everywhere, for example sorted by their keys.",
    "done-twice": "Choose and finish a piece of work in one transaction, with FOR UPDATE SKIP LOCKED. Or let the "
    "UPDATE that takes it compare its state.",
    "unprotected-write": "Let all requests that write these data take the same lock, or let the database compute: "
    "SET n = n - 1.",
    "lock-left": "Release the lock on every way out of the request, errors too, and give it a lease.",
}
NO_CURE = "No rule says why it happens: the story shows the order of messages, and the page of the schedule draws it."


def application_in_short(violated: Iterable[str]) -> str:
    return ", ".join(APPLICATION_SHORT.get(name, f"{name} is broken") for name in violated)


def why_it_matters_to_an_application(violated: Iterable[str]) -> str:
    return " ".join(APPLICATION_MATTERS.get(name) or f"The policy requires that {RULES[name]}." for name in violated)


def cures_of(rules: Iterable[str]) -> list[str]:
    """What mends the mistakes that these rules name; of other properties none."""
    return [CURES[rule] for rule in dict.fromkeys(rules) if rule in CURES] or [NO_CURE]
