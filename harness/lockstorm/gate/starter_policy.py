"""Writes a first lockstorm.toml from three answers: lock, purpose, resource."""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from lockstorm.base.atomic_file import new_file
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import choose
from lockstorm.base.text_template import text_template
from lockstorm.gate.gate_policy import USER_SUPPLIED, USUAL_REQUIRE
from lockstorm.locks.lock_names import AS_ASKED, is_user_supplied, lock_named
from lockstorm.results.lock_entry import LockEntry
from lockstorm.scenario.play import check_settings
from lockstorm.scenario.scenario import KINDS, scenarios
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
USUAL_ANSWERS = {"for": "correctness", "resource": "plain"}  # of a library of the user's own
LINE_MOST = 110  # of a list of scenarios
TEMPLATE = Path(__file__).with_suffix(".toml.j2")


@dataclass(frozen=True)
class Answers:
    lock: str
    purpose: str  # of PURPOSES
    resource: str  # of RESOURCES


def write_starter_policy(file: Path, answers: Answers) -> None:
    """Raises UsageError, and writes nothing, if the file exists."""
    text = starter_policy_text(answers, file.parent)
    try:
        with new_file(file) as temporary:
            temporary.write_text(text)
    except FileExistsError:
        raise UsageError(f"{file} exists already: nothing was written; -f names another file") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None


def starter_policy_text(answers: Answers, home: Path = Path()) -> str:
    """`home`: the directory of the policy. Raises UsageError for a lock that trials cannot play."""
    lock = lock_named(answers.lock)
    purpose = choose("purpose", answers.purpose, list(PURPOSES))
    store, store_words = RESOURCES[choose("resource", answers.resource, list(RESOURCES))]
    check_settings(TrialSettings(lock.name, "", store=store))
    if purpose == "correctness":
        require: tuple[str, ...] = USUAL_REQUIRE[store]
        play = '"all"               # every scenario that applies to this lock'
        if is_user_supplied(lock.name):
            play = applicable_lines(lock, store)
    else:
        require = ("mutual_exclusion", "liveness")
        names = DONE_ONCE if lock.once else EFFICIENCY
        play = f"[{quoted([name for name in names if not scenarios()[name].inapplicable_reason(lock)])}]"
    key, written = written_lock(lock.name, home)
    return text_template(TEMPLATE).render(
        key=key,
        lock=json.dumps(written, ensure_ascii=False),
        traits=traits_in_words(lock) if is_user_supplied(lock.name) else "",
        has_lease=lock.lease,
        lease_unit_ms=lock.lease_unit_ms or 1,
        has_permits=lock.capacity == AS_ASKED,
        store=store,
        store_words=store_words.removeprefix("... ") if store != "open" else "the resource takes every write",
        purpose_words=PURPOSES[purpose],
        require=quoted(require),
        play=play,
        has_storm=not (lock.real_time_only or lock.once),  # those cannot take part in a storm
    )


def written_lock(lock: str, home: Path) -> tuple[str, str]:
    """The key and the value by which a policy in the directory `home` names a lock."""
    for key, prefix in USER_SUPPLIED.items():
        if lock.startswith(prefix):
            word = lock.removeprefix(prefix)
            if "/" not in word or os.path.isabs(word):
                return key, word
            place = os.path.relpath(word, home)
            return key, place if place.startswith("../") else f"./{place}"
    return "name", lock


def traits_in_words(lock: LockEntry) -> str:
    """What an adapter or a plug-in says of its lock."""
    servers = f"{lock.nodes} servers of {lock.service}" if lock.nodes > 1 else f"one server of {lock.service}"
    traits = {
        "a lease": lock.lease,
        "renewed while its program runs": lock.renews,
        "fencing tokens": lock.token,
        "a queue": lock.fair,
        "its holder may acquire again": lock.reentrant,
        "several permits": lock.capacity == AS_ASKED,
    }
    lacks = {"no lease": not lock.lease, "no fencing tokens": not lock.token}
    words = [name for name, applies in {**traits, **lacks}.items() if applies]
    return f"{lock.summary}, on {servers}: {', '.join(words)}"


def applicable_lines(lock: LockEntry, store: str) -> str:
    """The scenarios that apply to a lock, as a list in TOML with a comment for each kind."""
    lines = []
    for kind, words in KINDS.items():
        names = [
            name
            for name, each in scenarios().items()
            if each.kind == kind and not each.inapplicable_reason(lock, store)
        ]
        if names:
            text = f"{quoted(names)},"
            lines += [
                f"    # {kind}: {words}",
                fill(
                    text,
                    LINE_MOST,
                    initial_indent="    ",
                    subsequent_indent="    ",
                    break_on_hyphens=False,
                    break_long_words=False,
                ),
            ]
    return "\n".join(["[", *lines, "]"])


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
