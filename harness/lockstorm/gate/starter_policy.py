"""Writes a first lockstorm.toml from three answers: lock, purpose, resource."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lockstorm.base.atomic_file import new_file
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
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

TEMPLATE = """\
# What `lockstorm gate` requires of this project. `lockstorm docs gate` explains every key;
# docs/lockstorm.schema.json lets an editor complete and check them.

# The lock, as the project uses it. `lockstorm locks` lists all; add one [[lock]] for each lock in use.
[[lock]]
name = "{lock}"
store = "{store}"          # {store_words}
# used = "src/orders.py:42"   # where the project chooses it: annotations will point there

# The properties that must hold. If two workers are in at once, {purpose_words}.
[require]
{store} = [{require}]

# The scenarios to play, from the literature and from real bugs. `lockstorm scenarios` lists them.
[scenarios]
play = {play}
# skip = ["packet-delay"]
# repeat = 5                # number of seeds for each

{storm}# The time that a gate may take. Trials that are not played by then are inconclusive: exit status 3.
[budget]
time = "10min"

# A known violation that is accepted, why, and until when (the last day):
# [[accept]]
# lock = "{lock}"
# scenario = "gc-pause"
# property = ["mutual_exclusion"]
# why = "the report is only written twice; ticket 123"
# until = 2027-03-31

[runs]
directory = "runs"          # put it into .gitignore
keep = 20
"""

STORM = """\
# Random faults while clients work under the lock. `lockstorm faults` lists them.
[[storm]]
name = "pauses"
faults = ["pause-client", "kill-client", "partition"]
trials = 10
duration = "10s"

"""


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
        require = (
            ["mutual_exclusion", "integrity", "liveness"] if store == "open" else ["integrity", "fencing", "liveness"]
        )
        play = '"all"               # every scenario that applies to this lock'
    else:
        require = ["mutual_exclusion", "liveness"]
        names = DONE_ONCE if lock.once else EFFICIENCY
        play = f"[{quoted([name for name in names if not scenarios()[name].inapplicable_reason(lock)])}]"
    return TEMPLATE.format(
        lock=lock.name,
        store=store,
        store_words=store_words.removeprefix("... ") if store != "open" else "the resource takes every write",
        purpose_words=PURPOSES[purpose],
        require=quoted(require),
        play=play,
        storm="" if lock.real_time_only or lock.once else STORM,  # those cannot take part in a storm
    )


def quoted(names: list[str]) -> str:
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
