"""A first lockstorm.toml, from three answers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.driver.errors import UsageError
from harness.driver.play import Wish, checked, choose, lock_named
from harness.driver.scenario import scenarios

PURPOSES = {
    "correctness": "something is damaged: money, stock, a file",
    "efficiency": "work is done twice, and that is all",
}
RESOURCES = {
    "plain": ("open", "no, it takes every write"),
    "checks-writes": ("fence-writes", "it refuses a write with an older number than it has seen (a fencing token)"),
    "checks-all": ("fence-reads-and-writes", "... and notes the number at a read, too"),
}
# Where failing costs work that is done twice: does the lock keep out at all, and does everybody get his turn?
EFFICIENCY = ("contention", "crash-before-expire", "crash-holder", "dead-waiter-woken", "dead-waiters", "lost-credits")
DONE_ONCE = ("double-processing", "outbox-crash")  # the same, of what is given out once and then done

TEMPLATE = """\
# What `lockstorm gate` holds this project to. docs/gate.md in lockstorm explains every key, and
# docs/lockstorm.schema.json is for editors.

# The lock, as the project uses it. `lockstorm locks` lists what there is; more [[lock]] may follow.
[[lock]]
name = "{lock}"
store = "{store}"          # {store_words}
# used = "src/orders.py:42"   # where the project chooses it: annotations will point there

# What has to hold. If two workers are in at once, {purpose_words}.
[require]
{store} = [{require}]

# What may happen: stories from the literature and from real bugs. `lockstorm scenarios` lists them.
[scenarios]
play = {play}
# skip = ["packet-delay"]
# repeat = 5                # seeds of each

{storm}# What a gate may take; what has not been played by then is not known, and exit status 3.
[budget]
time = "10m"

# A violation that is known, why it may be there, and until when:
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
# Random faults over clients that work; `lockstorm faults` lists them.
[[storm]]
name = "pauses"
faults = ["pause-client", "kill-client", "partition"]
trials = 10
duration = "10s"

"""


@dataclass(frozen=True)
class Answers:
    lock: str
    purpose: str
    resource: str


def write_starter(file: Path, answers: Answers) -> None:
    """Never over something that is there."""
    text = starter_of(answers)
    try:
        with file.open("x") as opened:
            opened.write(text)
    except FileExistsError:
        raise UsageError(f"{file} exists already: nothing was written") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None


def starter_of(answers: Answers) -> str:
    lock = lock_named(answers.lock)
    purpose = choose("purpose", answers.purpose, list(PURPOSES))
    store, store_words = RESOURCES[choose("resource", answers.resource, list(RESOURCES))]
    checked(Wish("", lock["name"], store))
    if purpose == "correctness":
        require = (
            ["mutual_exclusion", "integrity", "liveness"] if store == "open" else ["integrity", "fencing", "liveness"]
        )
        play = '"all"               # whatever is a story about this lock'
    else:
        require = ["mutual_exclusion", "liveness"]
        names = DONE_ONCE if lock["once"] else EFFICIENCY
        play = f"[{quoted([name for name in names if not scenarios()[name].unfit(lock)])}]"
    return TEMPLATE.format(
        lock=lock["name"],
        store=store,
        store_words=store_words.removeprefix("... ") if store != "open" else "the resource takes every write",
        purpose_words=PURPOSES[purpose],
        require=quoted(require),
        play=play,
        storm="" if lock["real_time_only"] or lock["once"] else STORM,  # no storm passes over those
    )


def quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def ask_questions(
    given: dict[str, str | None], ask: Callable[[str, dict[str, str], str], str], known: dict[str, str]
) -> Answers:
    """Asks for what was not given. `ask`: a question, the answers with their meanings, the usual one."""
    lock = given["lock"] or ask("Which lock do you use?", known, "set-nx-px")
    purpose = given["for"] or ask("What happens when two workers are in at once?", PURPOSES, "correctness")
    meanings = {name: words for name, (_, words) in RESOURCES.items()}
    token = lock_named(lock)["token"]
    resource = given["resource"] or (
        ask("Does what it protects refuse late work?", meanings, "plain") if token else "plain"
    )
    return Answers(lock, purpose, resource)
