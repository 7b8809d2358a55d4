"""Writes a first lockstorm.toml from three answers: lock, purpose, resource."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base.atomic_file import new_file
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.base.text_template import text_template
from lockstorm.gate.gate_policy import USUAL_REQUIRE
from lockstorm.locks.lock_names import lock_named
from lockstorm.scenario.play import check_settings
from lockstorm.scenario.scenario import scenarios
from lockstorm.trial.settings import TrialSettings

PURPOSES = {
    "correctness": "something is damaged: money, stock, a file",
    "efficiency": "work is done twice, and that is all",
}
RESOURCES = {
    "plain": ("open", "no, it takes every write"),
    "checks-writes": ("fence-writes", "it refuses a write with an older number than it has seen (a fencing token)"),
    "checks-all": ("fence-reads-and-writes", "... and notes the number at a read, too"),
}
# Scenarios for a lock whose failure only repeats work: does it exclude at all, and does every waiter get its turn?
EFFICIENCY = ("contention", "crash-before-expire", "crash-holder", "dead-waiter-woken", "dead-waiters", "lost-credits")
DONE_ONCE = ("double-processing", "outbox-crash")  # the same for a lock that gives out each piece of work once
TEMPLATE = Path(__file__).with_suffix(".toml.j2")


@dataclass(frozen=True)
class Answers:
    lock: str
    purpose: str  # of PURPOSES
    resource: str  # of RESOURCES


def write_starter_policy(file: Path, answers: Answers) -> None:
    """Raises UsageError, and writes nothing, if the file exists."""
    text = starter_policy_text(answers)
    try:
        with new_file(file) as temporary:
            temporary.write_text(text)
    except FileExistsError:
        raise UsageError(f"{file} exists already: nothing was written; -f names another file") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None


def starter_policy_text(answers: Answers) -> str:
    lock = lock_named(answers.lock)
    purpose = choose("purpose", answers.purpose, list(PURPOSES))
    store, store_words = RESOURCES[choose("resource", answers.resource, list(RESOURCES))]
    check_settings(TrialSettings(lock.name, "", store=store))
    if purpose == "correctness":
        require: tuple[str, ...] = USUAL_REQUIRE[store]
        play = '"all"               # every scenario that applies to this lock'
    else:
        require = ("mutual_exclusion", "liveness")
        names = DONE_ONCE if lock.once else EFFICIENCY
        play = f"[{quoted([name for name in names if not scenarios()[name].inapplicable_reason(lock)])}]"
    return text_template(TEMPLATE).render(
        lock=lock.name,
        store=store,
        store_words=store_words.removeprefix("... ") if store != "open" else "the resource takes every write",
        purpose_words=PURPOSES[purpose],
        require=quoted(require),
        play=play,
        has_storm=not (lock.real_time_only or lock.once),  # those cannot take part in a storm
    )


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def ask_questions(
    given: dict[str, str | None], ask: Callable[[str, dict[str, str], str], str], known: dict[str, str]
) -> Answers:
    """Asks for the answers that were not given. `ask` takes a question, the answers with their meanings, and the
    default answer."""
    lock = given["lock"] or ask("Which lock do you use?", known, "set-nx-px")
    purpose = given["for"] or ask("What happens when two workers are in at once?", PURPOSES, "correctness")
    meanings = {name: words for name, (_, words) in RESOURCES.items()}
    token = lock_named(lock).token
    resource = given["resource"] or (
        ask("Does what it protects refuse late work?", meanings, "plain") if token else "plain"
    )
    return Answers(lock, purpose, resource)
