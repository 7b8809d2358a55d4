"""What a right lock of the same kind does in a scenario, by the table of expected verdicts: whether a violation is this
lock's mistake, or what any lock of its kind shows (issue #56)."""

from lockstorm.locks.adapter import PREFIX, is_adapter
from lockstorm.locks.lock_names import lock_named
from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.verdict import Verdict
from lockstorm.scenario.expected import expected
from lockstorm.scenario.library_expected import library_tables, port_of
from lockstorm.trial.settings import TrialSettings

ASKED = ("mutual_exclusion", "integrity", "liveness")
ON_OTHER_SERVICES = {"zookeeper": "zookeeper", "etcd": "etcd"}
AS_OTHERS, OWN_MISTAKE = "As any ", "; a right lock of this kind keeps it"
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


def baseline_words(settings: TrialSettings, verdict: Verdict) -> str | None:
    """A sentence about a violation of a user's own lock; None where the table says nothing."""
    judged = {name: verdict.properties[name].status for name in verdict.required if name in verdict.properties}
    violated = [name for name in ASKED if judged.get(name) == "violated"]
    lock = lock_named(settings.lock)
    # The table is about servers as lockstorm sets them up, and about one permit.
    other = settings.attached or settings.deployment or settings.without or (settings.permits or 1) > 1
    if settings.control or other or not (lock.adapter or lock.plugin) or not violated:
        return None
    right = right_lock(lock)
    cell = expected().get((settings.scenario, right, settings.store or "open")) if right else None
    if not cell:
        return None
    own = [name.replace("_", " ") for name in violated if cell.fault.get(name) == "holds"]
    if own:
        kept = f"A right lock of this kind keeps {' and '.join(own)} here ({right}): the mistake is this lock's."
        return f"{kept} {CURES.get(settings.scenario, '')}".strip()
    kind = "lock with a lease" if lock.lease else "lock of this kind"
    return f"{AS_OTHERS}{kind} ({right}): yours is not worse. {cell.reason}".strip()


def baseline_in_short(words: str | None) -> str:
    """The same in a table: what follows the words about the violation."""
    if not words:
        return ""
    return OWN_MISTAKE if is_own_mistake(words) else f"; {words.partition(' (')[0].lower()}"


def is_own_mistake(words: str | None) -> bool:
    """Whether the sentence says that a right lock makes no such mistake: these come first, since they can be mended."""
    return bool(words) and not str(words).startswith(AS_OTHERS)
