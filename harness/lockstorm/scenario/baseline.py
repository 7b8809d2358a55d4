"""What a right lock of the same kind does in a scenario, by the table of expected verdicts: whether a violation is this
lock's mistake, or what any lock of its kind shows (issue #56)."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache

from lockstorm.base import paths
from lockstorm.base.option_fields import choose
from lockstorm.base.sentence import as_sentence
from lockstorm.locks.adapter import PREFIX, is_adapter
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.fault_names import fault_names
from lockstorm.native.library import locks
from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.verdict import Verdict
from lockstorm.scenario.expected import ExpectedCell, expected
from lockstorm.scenario.library_expected import library_tables, port_of
from lockstorm.scenario.scenario import scenarios
from lockstorm.trial.settings import TrialSettings

ASKED = ("mutual_exclusion", "integrity", "liveness")
ON_OTHER_SERVICES = {"zookeeper": "zookeeper", "etcd": "etcd"}
AS_OTHERS, OWN_MISTAKE = "As any ", "; a right lock of this kind keeps it"
STORM, NO_FAULT = "storm", "No single fault of this storm "
BY_WAITING = {"push": "pubsub", "blocking-pop": "blpop"}
MAJORITY = 3  # servers


# What mends the mistake, by the scenario that shows it; one script is one step for the server, from any language.
CURES = {
    "release-race": "Release in one script that compares the owner: `if redis.call('get', KEYS[1]) == ARGV[1] then "
    "return redis.call('del', KEYS[1]) end return 0`.",
    "release-delayed": "Give each grant its own random value, and compare it in the script that deletes.",
    "extend-lost-lock": "Renew in one script that compares the owner: `if redis.call('get', KEYS[1]) == ARGV[1] then "
    "return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`; a renewal never creates the key.",
    "renewal-overtaken": "Renew in one script that compares the owner before it extends.",
    "renewal-after-release": "End the renewal before the release is sent.",
    "crash-holder": "Give the key a lease when it is set: `SET name value NX PX milliseconds`.",
    "crash-before-expire": "Set the key and its lease in one command: `SET name value NX PX milliseconds`.",
    "try-then-wait": "Try once more after the subscription, and before the wait.",
    "late-answers": "Delete the key on all nodes when an acquire fails, also where no answer came.",
    "refused-acquire": "Remove the waiter's place, its key and its subscription when an acquire gives up.",
}


def right_lock(lock: LockEntry) -> str | None:
    """The C lock of the same kind that makes no mistake: the port of a shipped adapter, or by the lock's traits. None:
    no C lock is like it."""
    if is_adapter(lock.name) and (shipped := lock.name.removeprefix(PREFIX)) in library_tables():
        return port_of(shipped)
    if lock.service == "postgres":
        return "pg-lease" if lock.lease else "pg-advisory"
    if lock.service == "etcd" and lock.fair:
        return "etcd-queue"
    if lock.service != "redis":
        return ON_OTHER_SERVICES.get(lock.service)
    if lock.capacity != 1:
        return "permit-semaphore" if lock.lease else "semaphore"
    if not lock.lease:
        return "setnx"
    if lock.nodes >= MAJORITY:
        return "redlock-renew" if lock.renews else "redlock"
    if lock.token:
        return "fenced" if lock.renews else "set-nx-px-fenced"
    return "set-nx-px-renew" if lock.renews else BY_WAITING.get(lock.waits, "set-nx-px")


def compared_lock(settings: TrialSettings) -> str:
    """The right lock that a trial of a user's own lock is compared with; empty: the table says nothing about such a
    trial. It is about servers as lockstorm sets them up, and about one permit. Servers that a user has attached are
    compared too, in fewer words (baseline_of)."""
    lock = lock_named(settings.lock)
    other = settings.deployment or settings.without or (settings.permits or 1) > 1
    if settings.control or other or not (lock.adapter or lock.plugin):
        return ""
    return right_lock(lock) or ""


def baseline_words(settings: TrialSettings, verdict: Verdict) -> str | None:
    """A sentence about a violation of a user's own lock; None where the table says nothing."""
    names = settings.scenario, settings.store or "open"
    return baseline_of(compared_lock(settings), *names, verdict, is_attached=bool(settings.attached))


def recorded_baseline(parameters: Mapping[str, str | int], verdict: Verdict) -> str | None:
    """The same of a history, by its parameters. It starts no adapter: the history says what it was compared with."""
    right, scenario, store = (str(parameters.get(name, "")) for name in ("compared_with", "scenario", "store"))
    is_attached = str(parameters.get("command", "")).startswith("lockstorm attach ")
    return baseline_of(right, scenario, store, verdict, is_attached=is_attached)


def baseline_of(right: str, scenario: str, store: str, verdict: Verdict, *, is_attached: bool) -> str | None:
    """`right`: the lock to compare with; empty: nothing can be said."""
    judged = {name: verdict.properties[name].status for name in verdict.required if name in verdict.properties}
    violated = [name for name in ASKED if judged.get(name) == "violated"]
    if not right or not violated or right not in {lock.name for lock in locks()}:
        return None
    if scenario.partition("-")[0] == STORM:
        return _storm_words(right, store, violated, [fault.name for fault in verdict.faults if fault.proved])
    cell = expected().get((scenario, right, store))
    if not cell:
        return None
    own = [name for name in violated if cell.fault.get(name) == "holds"]
    if own:
        if is_attached:  # what a right lock keeps on our servers it may lose on these, by their settings
            return None
        kept = f"A right lock of this kind keeps {_in_words(own)} here ({right}): the mistake is this lock's."
        return f"{kept} {CURES.get(scenario, '')}".strip()
    if any(cell.fault.get(name) != "violated" for name in violated):
        return None
    reason = [as_sentence(cell.reason)] if cell.reason else []
    if is_attached:
        return " ".join([f"{AS_OTHERS}{_kind(right)} ({right}) on servers that lockstorm starts.", *reason])
    return " ".join([f"{AS_OTHERS}{_kind(right)} ({right}): yours is not worse.", *reason])


def _storm_words(right: str, store: str, violated: list[str], faults: Iterable[str]) -> str | None:
    """What single faults of a storm do to a right lock, by the scenarios that have them. The table has no storms, so
    this does not say that a right lock keeps anything in this one."""
    stories = {fault: _cells_of(fault, right, store) for fault in sorted(set(faults))}
    broken_by: dict[str, list[str]] = {}  # faults with a scenario -> properties
    unbroken = []
    for name in violated:
        breaking = {
            fault: [cell.scenario for cell in cells if cell.fault.get(name) == "violated"]
            for fault, cells in stories.items()
        }
        words = " and ".join(f"{fault} ({names[0]})" for fault, names in breaking.items() if names)
        if words:
            broken_by.setdefault(words, []).append(name)
        elif stories and all(cells and _keeps(cells, name) for cells in stories.values()):
            unbroken.append(name)
        else:
            return None
    told = "; ".join(f"{words} can break {_in_words(names)}" for words, names in broken_by.items())
    sentences = [f"{NO_FAULT}breaks {_in_words(unbroken)} of a right lock of this kind ({right})."] if unbroken else []
    sentences += [f"{AS_OTHERS}{_kind(right)} ({right}): {told}. Yours need not be worse."] if told else []
    return " ".join(sentences)


@cache
def _stories() -> dict[str, list[str]]:
    """The scenarios of a single fault, by its name. Raises UsageError for a name that does not exist."""
    path = paths.ROOT / "scenarios" / "single_faults.toml"
    stories: dict[str, list[str]] = tomllib.loads(path.read_text())
    for fault, names in stories.items():
        choose("fault", fault, list(fault_names("trial")))
        for name in names:
            choose("scenario", name, list(scenarios()))
    return stories


def _cells_of(fault: str, right: str, store: str) -> list[ExpectedCell]:
    keys = ((scenario, right, store) for scenario in _stories().get(fault, ()))
    return [cell for key in keys if (cell := expected().get(key))]


def _keeps(cells: list[ExpectedCell], name: str) -> bool:
    return all(cell.fault.get(name) == "holds" for cell in cells)


def _kind(right: str) -> str:
    return "lock with a lease" if lock_named(right).lease else "lock of this kind"


def _in_words(names: Iterable[str]) -> str:
    return " and ".join(name.replace("_", " ") for name in names)


def baseline_in_short(words: str | None) -> str:
    """The same in a table: what follows the words about the violation."""
    if not words:
        return ""
    return OWN_MISTAKE if is_own_mistake(words) else f"; {words.partition(' (')[0].lower()}"


def is_own_mistake(words: str | None) -> bool:
    """Whether the sentence says that a right lock makes no such mistake: these come first, since they can be mended."""
    return bool(words) and not str(words).startswith((AS_OTHERS, NO_FAULT))
