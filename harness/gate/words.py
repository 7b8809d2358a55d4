"""What a violation means, for somebody who has never thought about locks: what happened, and why it matters."""

from collections.abc import Iterable
from typing import Any

from harness.driver.scenario import scenarios

# Property -> what it means when it is violated. The first that applies is told first.
MATTERS = {
    "integrity": "Data was damaged: an update that its writer had been told was saved is gone, or an older one was "
    "written over a newer one. Nobody got an error.",
    "mutual_exclusion": "Two workers were at work at the same time on what the lock is there to give to one at a time. "
    "Whatever they both change - a balance, a file, an invoice - can come out wrong.",
    "fencing": "The lock hands out a number with every grant (a fencing token), by which the resource can tell a late "
    "write from a new one. These numbers repeated, fell, or were not checked, so a late write got through.",
    "liveness": "Somebody was left waiting for a lock that nobody was using. Such requests hang until they time out or "
    "until a person steps in.",
    "ownership": "A worker released or extended the lock while it belonged to another one, who does not know that it "
    "is unprotected now.",
    "capacity": "More permits were out than there are: the limit that they are there to keep is not kept.",
    "lease": "The lock was used for longer than it is valid, by its own word.",
    "fairness": "Somebody who had asked first was overtaken again and again.",
}
SHORT = {
    "integrity": "data was damaged",
    "mutual_exclusion": "two workers held the lock at once",
    "fencing": "late work was not recognised",
    "liveness": "somebody waited for ever",
    "ownership": "the lock of somebody else was released or extended",
    "capacity": "too many permits were out",
    "lease": "the lock was used after it had ended",
    "fairness": "waiters were overtaken",
}
IN_ORDER = tuple(MATTERS)


def sort_properties(names: Iterable[str]) -> list[str]:
    """The most harmful first."""
    return sorted(names, key=IN_ORDER.index)


def what_happened(scenario: str, control: bool, played: dict[str, Any], violated: Iterable[str]) -> str:
    """The story of a trial, and what was seen in it of these properties."""
    seen = [
        played["verdict"][name]["evidence"][0]["text"]
        for name in sort_properties(violated)
        if played["verdict"][name]["evidence"]
    ]
    return " ".join([story_of(scenario, control), *(sentence(text) for text in dict.fromkeys(seen))])


def story_of(scenario: str, control: bool) -> str:
    told = scenarios().get(scenario)
    if told is None:
        return "Random faults passed over clients that worked under the lock."
    return f"Without any fault ({told.control}):" if control else told.summary


def sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def in_short(violated: Iterable[str]) -> str:
    return ", ".join(SHORT[name] for name in sort_properties(violated))


def why_it_matters(violated: Iterable[str]) -> str:
    return " ".join(MATTERS[name] for name in sort_properties(violated))


def what_to_do(lock: dict[str, Any]) -> list[str]:
    """Advice about a lock of a verdict, in paragraphs: another choice, and what else would prevent what is left."""
    said = [lock["advice"]["text"]] if lock["advice"] else []
    if lock["prevention"]:
        other = "this choice does not help" if lock["advice"] else "no other choice that lockstorm knows helps"
        kept = "; ".join(f"{each['scenario']} ({each['text']})" for each in lock["prevention"])
        said.append(
            f"Against these {other}, and what would prevent them stands behind each: {kept}. Where one of them cannot "
            "happen to you, leave it out ([scenarios] skip in the policy); where you can live with it, accept it until "
            "a day ([[accept]])."
        )
    return said or ["No other choice that lockstorm knows is known to do better here: the trial shows what happened."]
