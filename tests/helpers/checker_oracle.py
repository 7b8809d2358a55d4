"""What the checkers must say: docs/verdicts.md turned into Python sentence by sentence, without streaming and without
regard to speed. Every function looks at the whole history again and answers for one moment of it.

A judgement is a list of violations per property, each a sort and the index of the record that completes it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

Json = dict[str, Any]
Violation = tuple[str, int]

LEASE, TOKEN, REENTRANT, FAIR, RENEWS = 1, 2, 4, 8, 16
ATOMIC, FENCED, MADE, MARKED, PROLONGED = 2, 4, 8, 16, 32
FOR_EVER = 2**63 - 1
LOST = -(2**63)  # a validity that has ended before every stamp
LAST_NAME = 2**32 - 1  # names are numbered by the index of the record that defines them
WINDOW = 64
GRAIN_NS = 2 * 10**6  # of leases

PROPERTIES = (
    "mutual_exclusion",
    "integrity",
    "fencing",
    "ownership",
    "liveness",
    "capacity",
    "lease",
    "fairness",
    "cost",
)
ADVISORY = ("ownership", "lease", "fairness", "cost")
INVOCATIONS = ("acquire-invoke", "renew-invoke", "release-invoke", "read-invoke", "write-invoke")
RETURNS = ("acquire-return", "renew-return", "release-return", "read-return", "write-return")
OPERATIONS = INVOCATIONS + RETURNS
RELEASE_POLICIES = ("released", "not-happened", "unknown")
ACQUIRE_POLICIES = ("not-happened", "unknown")


@dataclass(frozen=True)
class OracleRecord:
    """One record; names are strings."""

    index: int
    kind: str
    outcome: str = "unknown"
    object: str = ""
    flags: int = 0
    actor: str = ""
    name: str = ""
    mono_ns: int = 0
    op: int = 0
    grant: int = 0
    token: int = 0
    value: int = 0
    extra: int = 0

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def unknown(self) -> bool:
        return self.outcome not in ("ok", "refused")

    def line(self) -> Json:
        """Its JSON form: what differs from the default."""
        said = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "index"}
        return {"index": self.index} | {key: value for key, value in said.items() if value not in (0, "", "unknown")}


History = list[OracleRecord]


@dataclass(frozen=True)
class Reading:
    """How to read an operation if the history does not say whether it happened."""

    releases_failed: bool = False
    acquires_happen: bool = False
    only: frozenset[int] | None = None  # if some failed releases happened and others not: the indices of these


# --- what several definitions use ---


def is_grant(record: OracleRecord) -> bool:
    return record.kind == "acquire-return" and record.ok


def is_access(record: OracleRecord) -> bool:
    return record.kind in ("store-read", "store-write")


def before(history: History, index: int) -> History:
    """The records before an index; no record of a history is missing."""
    return history[: max(0, index - history[0].index)] if history else []


def lock_of(history: History, access: OracleRecord) -> str | None:
    """The lock of the grant that an access names; None: it names none, or no grant before it."""
    named = [each for each in before(history, access.index) if each.index == access.grant != 0 and is_grant(each)]
    return named[0].name if named else None


def opening(history: History, lock: str, at: int) -> OracleRecord:
    """The latest `lock-open` of a lock."""
    said = [each for each in before(history, at) if each.kind == "lock-open" and each.name == lock]
    return said[-1] if said else OracleRecord(0, "lock-open")


def has_trait(history: History, lock: str, at: int, trait: int) -> bool:
    return bool(opening(history, lock, at).extra & trait)


def permits(history: History, lock: str, at: int) -> int:
    opened = [each for each in before(history, at) if each.kind == "lock-open" and each.name == lock]
    stated = [each.token for each in opened if each.token > 0]
    return stated[-1] if stated else 1


def has_permits_to_count(history: History, lock: str, at: int) -> bool:
    """Whether a holder that is granted the lock again has another permit."""
    return permits(history, lock, at) > 1 and not has_trait(history, lock, at, REENTRANT)


def asked_at(history: History, answer: OracleRecord) -> int:
    """The index at which the acquire was invoked that `answer` answers."""
    at = answer.index
    for each in before(history, answer.index):
        own = (each.actor, each.name) == (answer.actor, answer.name)
        if own and each.kind == "acquire-invoke":
            at = each.index
        elif (own and each.kind == "acquire-return") or (each.kind == "actor-exit" and each.name == answer.actor):
            at = answer.index
    return at


def has_failed(history: History, reading: Reading, release: OracleRecord) -> bool:
    """Whether a release-invoke never happened, by the reading."""
    if not reading.releases_failed or (reading.only is not None and release.index not in reading.only):
        return False
    for each in history:
        if each.index <= release.index:
            continue
        if each.kind == "actor-exit" and each.name == release.actor:
            return True
        if each.actor == release.actor and each.kind in ("release-invoke", "release-return"):
            return not (each.kind == "release-return" and each.ok)
    return True


def ends_hold(history: History, reading: Reading, record: OracleRecord) -> bool:
    return record.kind == "release-invoke" and not has_failed(history, reading, record)


def hold(history: History, reading: Reading, actor: str, lock: str, at: int, lapses: Callable[..., bool]) -> History:
    """The grants of a hold that stands just before a record: of a re-entrant lock as many as it needs releases, of any
    other lock one. `lapses` says whether the hold is over when a client is granted the lock."""
    held: History = []
    depth = 0
    for each in before(history, at):
        if is_grant(each) and each.name == lock:
            if lapses(held, each, at):
                held, depth = [], 0
            if each.actor == actor:
                again = depth > 0 and has_trait(history, lock, each.index, REENTRANT)
                held, depth = ([*held, each], depth + 1) if again else ([each], 1)
        elif (each.actor, each.name) == (actor, lock) and ends_hold(history, reading, each) and depth:
            depth -= 1
            held = held if depth else []
        elif each.kind == "actor-exit" and each.name == actor:
            held, depth = [], 0
    return held


def never(held: History, grant: OracleRecord, at: int) -> bool:
    return False


# --- mutual exclusion ---


def announced_until(record: OracleRecord) -> int:
    """Until when a grant or a `validity` lets its client believe, 0: until its release."""
    return LOST if record.kind == "validity" and record.outcome == "refused" else record.value


def believed_until(history: History, held: History, at: int) -> int:
    """The end of the validity that the lock announced to the holder last."""
    words = [
        each
        for each in before(history, at)
        if each.kind == "validity"
        and (each.actor, each.name) == (held[-1].actor, held[-1].name)
        and each.index > held[-1].index
    ]
    return announced_until((words or held)[-1])


def belief(history: History, reading: Reading, actor: str, lock: str, at: OracleRecord) -> History:
    def lapses(held: History, grant: OracleRecord, _: int) -> bool:
        return bool(held) and 0 != believed_until(history, held, grant.index) <= grant.mono_ns

    held = hold(history, reading, actor, lock, at.index, lapses)
    return [] if lapses(held, at, 0) else held


def mutual_exclusion(history: History, reading: Reading) -> Iterator[Violation]:
    clients = {each.actor for each in history if is_grant(each)}
    for grant in filter(is_grant, history):
        if belief(history, reading, grant.actor, grant.name, grant):
            continue  # no new belief begins
        others = [each for each in clients - {grant.actor} if belief(history, reading, each, grant.name, grant)]
        if len(others) >= permits(history, grant.name, grant.index):
            yield "", grant.index


# --- integrity ---


def accepted_writes(history: History, name: str = "") -> History:
    return [
        each for each in history if each.kind == "store-write" and each.ok and each.object and name in ("", each.object)
    ]


def older(one: OracleRecord, other: OracleRecord) -> bool:
    """Grants are ordered by token, then by their index."""
    if one.token and other.token and one.token != other.token:
        return one.token < other.token
    return one.grant < other.grant


def same_life(history: History, one: OracleRecord, other: OracleRecord) -> bool:
    """Whether the client of two accesses did not end in between: then equal numbers mean equal operations."""
    ends = (each for each in history if each.kind == "actor-exit" and each.name == one.name)
    return not any(one.index < each.index < other.index for each in ends)


def earlier_by(history: History, write: OracleRecord) -> History:
    """What the store had accepted of this client for this object, since its process began."""
    own = (each for each in accepted_writes(history, write.object) if each.name == write.name and each.op)
    return [each for each in own if each.index < write.index and same_life(history, each, write)]


def delivered_before(history: History, write: OracleRecord) -> bool:
    earlier = earlier_by(history, write)
    newest = max((each.op for each in earlier), default=0)
    return write.op != 0 and newest - write.op < WINDOW and any(each.op == write.op for each in earlier)


def repeats_newest(history: History, write: OracleRecord, update: OracleRecord) -> bool:
    """Whether a write repeats its client's newest accepted operation; `update` was its first delivery."""
    earlier = earlier_by(history, write)
    newest = max((each.op for each in earlier), default=0)
    return write.op != 0 and newest == write.op == update.op and update in earlier


def is_acknowledged(history: History, write: OracleRecord) -> bool:
    """Whether an accepted write was acknowledged to its writer before that began anything else. A writer that records
    nothing counts as acknowledged."""
    if not write.op:
        return True
    life = [each for each in history if each.kind in OPERATIONS and each.actor == write.name]
    ends = [each for each in history if each.kind == "actor-exit" and each.name == write.name]
    last = [each for each in life + ends if each.index < write.index]
    done = max(last, key=lambda each: each.index, default=None)
    if done and (done in ends or done.op > write.op or (done.op == write.op and done.kind in RETURNS)):
        return False
    if any(each.op > write.op for each in earlier_by(history, write)):
        return False
    for each in sorted(life + ends + accepted_writes(history, write.object), key=lambda each: each.index):
        if each.index <= write.index:
            continue
        if each in ends or (each in life and each.kind in INVOCATIONS):
            return False
        if each.kind == "write-return" and (each.actor, each.op, each.object) == (write.name, write.op, write.object):
            return each.ok
        if each.kind == "store-write" and each.name == write.name and each.op > write.op:
            return False
    return False


def loses(history: History, write: OracleRecord, update: OracleRecord) -> bool:
    """Whether a write was computed from a version before an update that the store had accepted already."""
    same = accepted_writes(history, update.object)
    return (
        write in same
        and write.index > update.index
        and not write.flags & ATOMIC
        and 0 <= write.extra <= same.index(update)
        and not repeats_newest(history, write, update)
    )


def is_lost(history: History, update: OracleRecord) -> bool:
    if delivered_before(history, update) or not any(loses(history, each, update) for each in accepted_writes(history)):
        return False
    return is_acknowledged(history, update)


def exclusive_lock(history: History, access: OracleRecord) -> str | None:
    """The lock of an access, if it has one permit: then a newer grant means that an older one is over."""
    lock = lock_of(history, access)
    return lock if lock is not None and permits(history, lock, access.index) == 1 else None


def integrity(history: History, reading: Reading) -> Iterator[Violation]:
    writes = accepted_writes(history)
    exclusive = [(each, lock) for each in writes if (lock := exclusive_lock(history, each)) is not None]
    for write, lock in exclusive:
        same = [each for each, other in exclusive if other == lock and each.index < write.index]
        if any(older(write, each) for each in same):
            yield "stale_write", write.index
    for write in writes:
        if is_lost(history, write):
            yield "lost_update", write.index
        if write.flags & ATOMIC and write.object == "counter" and delivered_before(history, write):
            yield "duplicated_operation", write.index
        if write.flags & ATOMIC and write.object == "set" and is_done_again(history, write):
            yield "duplicated_operation", write.index


def is_done_again(history: History, write: OracleRecord) -> bool:
    """Whether another operation had added that to the set, among the last 64 additions before."""
    additions = [each for each in accepted_writes(history, "set") if each.flags & ATOMIC and each.index < write.index]
    others = [each for each in additions[-64:] if not (write.op and (each.name, each.op) == (write.name, write.op))]
    return any(each.value == write.value for each in others)


# --- fencing ---


def token_grants(history: History) -> History:
    return [
        each for each in history if is_grant(each) and (each.token or has_trait(history, each.name, each.index, TOKEN))
    ]


def reenters(history: History, reading: Reading, grant: OracleRecord) -> History:
    """The hold that a grant of a re-entrant lock re-enters."""
    held = hold(history, reading, grant.actor, grant.name, grant.index, never)
    return held if has_trait(history, grant.name, grant.index, REENTRANT) else []


def given_since(history: History, grant: OracleRecord) -> int:
    """The stamp before which a grant was not given. A client that waits may be handed the lock by a release."""
    asked = invocation(history, grant)
    since = grant.extra or (asked or grant).mono_ns
    if not asked:
        return since
    several = permits(history, grant.name, grant.index) > 1
    holder, lapsed = "", False
    handed: list[int] = []
    for each in before(history, grant.index):
        if each.name != grant.name:
            continue
        lease_ns = opening(history, grant.name, each.index).value * 10**6
        if is_grant(each):
            holder = each.actor
            lapsed = lapsed or bool(handed and each.mono_ns - handed[-1] >= lease_ns - GRAIN_NS)
        elif each.kind == "release-invoke" and (several or each.actor == holder) and each.index > asked.index:
            handed.append(each.mono_ns)
    if not handed:
        return since
    return min(since, asked.mono_ns if several or lapsed else handed[-1])


def given_before(history: History, grant: OracleRecord) -> int:
    """Before which stamp a grant to another client, which came back, was given before this one: this one's lease would
    have kept it out."""
    lease_ns = opening(history, grant.name, grant.index).value * 10**6
    invoked = asked_at(history, grant)
    if not lease_ns or invoked == grant.index or permits(history, grant.name, grant.index) > 1:
        return LOST
    return given_since(history, grant) + lease_ns - GRAIN_NS


def fencing(history: History, reading: Reading) -> Iterator[Violation]:
    for grant in token_grants(history):
        given = [each for each in token_grants(history) if each.name == grant.name and each.token]
        earlier = [each for each in given if each.index < grant.index]
        mine = reenters(history, reading, grant)
        until = LOST if mine else given_before(history, grant)
        known = [
            each.token
            for each in earlier
            if each.index < asked_at(history, grant) or (each.actor != grant.actor and each.mono_ns < until)
        ]
        same = mine and grant.token and mine[-1].token == grant.token
        if grant.token == 0:
            yield "missing_token", grant.index
        elif any(token > grant.token for token in known):
            yield "falling_token", grant.index
        elif not same and any(each.token == grant.token for each in earlier):
            yield "repeated_token", grant.index
    accesses = [each for each in history if is_access(each) and each.ok and each.token]
    compared = [(each, group) for each in accesses if (group := comparable(history, each)) is not None]
    for late, group in compared:
        same = [each for each, other in compared if other == group and each.index < late.index]
        if any(each.token > late.token for each in same):
            yield "stale_access", late.index
    for access in wrongful_refusals(history, reading):
        yield "wrongful_refusal", access.index


def wrongful_refusals(history: History, reading: Reading) -> History:
    """Accesses of the rightful holder that the store refused, though it had accepted one with a newer token."""
    found = []
    for access in history:
        lock = exclusive_lock(history, access) if is_access(access) else None
        if lock is None or access.outcome != "refused" or not access.token:
            continue
        earlier = [each for each in before(history, access.index) if is_access(each) and each.ok and each.token]
        accepted = [each for each in earlier if comparable(history, each) == ("lock", lock)]
        newer = any(each.token > access.token for each in accepted)
        if newer and is_rightful(history, reading, lock, access):
            found.append(access)
    return found


def is_rightful(history: History, reading: Reading, lock: str, access: OracleRecord) -> bool:
    """Whether the grant of an access is held, is the latest one of its lock, and was given after all the others."""
    grants = [each for each in before(history, access.index) if is_grant(each) and each.name == lock]
    grant = grants[-1]
    if grant.index != access.grant or grant.actor != access.name:
        return False
    held = hold(history, reading, grant.actor, lock, access.index, never)
    until = LOST if reenters(history, reading, grant) else given_before(history, grant)
    in_flight = any(each.index >= asked_at(history, grant) for each in grants[:-1])
    came_before = not in_flight or max(each.mono_ns for each in grants[:-1]) < until
    return bool(held) and came_before


def comparable(history: History, access: OracleRecord) -> tuple[str, str] | None:
    """What the tokens of accesses are compared within: the lock, or the object where the lock is not known."""
    if lock_of(history, access) is None:
        return "object", access.object
    lock = exclusive_lock(history, access)
    return None if lock is None else ("lock", lock)


def has_tokens(history: History) -> bool:
    return any(
        each.extra & TOKEN if each.kind == "lock-open" else each.token
        for each in history
        if each.kind in ("lock-open", "acquire-return") or is_access(each)
    )


# --- ownership ---


def latest_grant(history: History, reading: Reading, actor: str, lock: str, at: int) -> int:
    """The index of a client's latest grant, 0: none. One of unknown outcome counts if it is read as having happened."""
    own = (each for each in before(history, at) if each.kind == "acquire-return")
    own = (each for each in own if (each.actor, each.name) == (actor, lock))
    return max((each.index for each in own if each.ok or (reading.acquires_happen and each.unknown)), default=0)


def superseding(history: History, actor: str, lock: str, since: int, at: int) -> OracleRecord | None:
    """The grant to another client that was asked for last, if that was after `since`."""
    others = [each for each in before(history, at) if is_grant(each) and each.name == lock and each.actor != actor]
    others = [each for each in others if permits(history, lock, each.index) == 1]  # else it may stand beside another
    last = max(others, key=lambda each: asked_at(history, each), default=None)
    return last if last and asked_at(history, last) > since else None


def stands(history: History, reading: Reading, grant: OracleRecord, at: int) -> bool:
    """Whether the hold of a grant has not been released, nor its client ended."""
    held = hold(history, reading, grant.actor, grant.name, at, never)
    return bool(held) and first_of(history, reading, held) <= grant.index


def first_of(history: History, reading: Reading, held: History) -> int:
    """The grant with which a hold began: the oldest that is still to be released may be a later one."""
    return min(each.index for each in held)


def invocation(history: History, answer: OracleRecord) -> OracleRecord | None:
    """The invocation that `answer` answers: the latest operation of its client, if it is of that kind."""
    own = [
        each
        for each in before(history, answer.index)
        if (each.kind in OPERATIONS and each.actor == answer.actor)
        or (each.kind == "actor-exit" and each.name == answer.actor)
    ]
    asked = (answer.kind.replace("return", "invoke"), answer.name, answer.op)
    return own[-1] if own and (own[-1].kind, own[-1].name, own[-1].op) == asked else None


def ownership(history: History, reading: Reading) -> Iterator[Violation]:
    for answer in history:
        if not answer.ok or permits(history, answer.name, answer.index) > 1:
            continue
        lock, actor = answer.name, answer.actor
        if answer.kind == "acquire-return" and reenters(history, reading, answer):
            at = asked_at(history, answer)
            mine = latest_grant(history, reading, actor, lock, answer.index)
            loss = superseding(history, actor, lock, mine, answer.index)
            if loss and loss.index < at and not stands(history, reading, loss, answer.index):
                yield "broken_hold", answer.index
        asked = invocation(history, answer)
        if answer.kind not in ("release-return", "renew-return") or not asked:
            continue
        mine = latest_grant(history, reading, actor, lock, asked.index)
        loss = superseding(history, actor, lock, mine, asked.index)
        both = (asked.index, answer.index) if mine == 0 else (answer.index,)
        if loss and all(stands(history, reading, loss, at) for at in both):
            yield ("foreign_release" if answer.kind == "release-return" else "foreign_renewal"), answer.index
        elif loss and mine:
            yield "broken_hold", answer.index
        elif answer.kind == "renew-return" and holds_nothing(history, reading, asked, answer):
            yield "empty_renewal", answer.index
    yield from foreign_extensions(history)


def holds_nothing(history: History, reading: Reading, asked: OracleRecord, answer: OracleRecord) -> bool:
    """Whether a client that was told that its renewal is ok had certainly no hold, of a lock that its holder renews."""
    if not has_trait(history, answer.name, answer.index, LEASE) or has_trait(
        history, answer.name, answer.index, RENEWS
    ):
        return False
    own = [each for each in before(history, asked.index) if (each.actor, each.name) == (asked.actor, asked.name)]
    invoked = [each for each in own if each.kind in ("acquire-invoke", "release-invoke")]
    acquires = [each for each in own if each.kind == "acquire-return" and not each.unknown]
    releases = [each for each in own if each.kind == "release-return" and each.ok]
    is_certain = len(invoked) == len(acquires) + len(releases)
    return is_certain and not hold(history, reading, answer.actor, answer.name, answer.index, never)


def extensions(history: History) -> Iterator[OracleRecord]:
    """Renewals by which a server changed a key of a lock with one permit."""
    for each in history:
        if each.kind == "server-renewal" and each.ok and permits(history, each.name, each.index) <= 1:
            yield each


def foreign_extensions(history: History) -> Iterator[Violation]:
    for each in extensions(history):
        if 0 < each.extra <= LAST_NAME:
            yield "foreign_extension", each.index


def answered_ok(history: History) -> bool:
    """Whether a release or renewal came back ok that ownership can judge."""
    answers = (each for each in history if each.ok and each.kind in ("release-return", "renew-return"))
    answers = (each for each in answers if permits(history, each.name, each.index) == 1)
    return any(invocation(history, each) for each in answers)


# --- liveness ---


@dataclass
class OracleHold:
    """One client's side of a lock at the server, as far as the history shows."""

    depth: int = 0
    permits: int = 0  # of the hold
    until_ns: int = -1
    releasing: int = 0  # index of its last release-invoke, 0: it has been answered
    ends: list[int] = field(default_factory=list)


def bound_ns(history: History) -> int | None:
    said = [each for each in history if each.kind == "parameter" and each.name == "bound_ms" and each.value >= 0]
    return said[-1].value * 10**6 if said else None


def quiet_phase(history: History, at: int) -> OracleRecord | None:
    """The beginning of the quiet phase that a record is in."""
    phases = [each for each in before(history, at) if each.kind == "phase"]
    return phases[-1] if phases and phases[-1].name == "quiet" else None


def lease_later(history: History, lock: str, record: OracleRecord) -> int:
    lease_ms = opening(history, lock, record.index).value
    return record.mono_ns + lease_ms * 10**6 if lease_ms else FOR_EVER


def abandoned_until(history: History, lock: str, record: OracleRecord) -> int:
    """Until when a hold stands that no client will end: a lease more, or the bound where there is no lease."""
    bound = bound_ns(before(history, record.index))
    if bound is not None and not opening(history, lock, record.index).value:
        return record.mono_ns + bound
    return lease_later(history, lock, record)


def now_at(history: History, index: int) -> int:
    """The latest stamp up to a record and its own."""
    return max(each.mono_ns for each in before(history, index + 1))


def lapse_hold(mine: OracleHold, now_ns: int) -> None:
    """Ends a hold whose time is up."""
    if 0 <= mine.until_ns <= now_ns:
        end_hold(mine, mine.until_ns)


def end_hold(mine: OracleHold, stamp_ns: int) -> None:
    if mine.until_ns >= 0:
        mine.ends.append(min(mine.until_ns, stamp_ns))
    mine.until_ns = -1


def begin_hold(mine: OracleHold, now_ns: int, until_ns: int, another: bool = False) -> None:
    """A hold that stood before is over if its time was up; otherwise it continues, perhaps with another permit."""
    lapse_hold(mine, now_ns)
    mine.permits = mine.permits + another if mine.until_ns >= 0 else 1
    mine.until_ns = until_ns


def follow_hold(history: History, reading: Reading, mine: OracleHold, each: OracleRecord) -> None:
    """What a record of a client about a lock changes for its hold."""
    lock, now_ns = each.name, now_at(history, each.index)
    several = has_permits_to_count(history, lock, each.index)
    renewed_ns = FOR_EVER if has_trait(history, lock, each.index, RENEWS) else lease_later(history, lock, each)
    if is_grant(each):
        again = mine.depth and (several or has_trait(history, lock, each.index, REENTRANT))
        mine.depth = mine.depth + 1 if again else 1
        mine.releasing = 0
        begin_hold(mine, now_ns, renewed_ns, several)
    elif each.kind == "acquire-return" and each.unknown and reading.acquires_happen:
        begin_hold(mine, now_ns, max(mine.until_ns, lease_later(history, lock, each)), several)
    elif each.kind == "renew-return" and each.ok and mine.depth:
        begin_hold(mine, now_ns, renewed_ns)
        mine.permits = max(mine.permits, mine.depth) if several else mine.permits
    elif each.kind == "release-invoke":
        nested = mine.depth > 1 and not several
        mine.releasing = mine.releasing if nested else each.index
        mine.depth -= nested
    elif each.kind == "release-return" and mine.releasing:
        asked = invocation(history, each)
        if asked and asked.index == mine.releasing:
            mine.releasing = 0
            lapse_hold(mine, now_ns)
            give_back(history, mine, each, has_failed(history, reading, asked))


def give_back(history: History, mine: OracleHold, answer: OracleRecord, failed: bool) -> None:
    """What the answer to a release ends: the hold, or one of its permits."""
    if mine.depth > 1 and has_permits_to_count(history, answer.name, answer.index):
        mine.depth -= not failed
        if not failed and mine.until_ns >= 0 and mine.permits > 1:
            mine.permits -= 1
            mine.ends.append(answer.mono_ns)
        return
    mine.depth = 0
    if failed:
        mine.until_ns = min(mine.until_ns, abandoned_until(history, answer.name, answer))
    else:
        end_hold(mine, answer.mono_ns)


def holds_at(history: History, reading: Reading, lock: str, at: int) -> dict[str, OracleHold]:
    """Per client: until when its hold stands, as known just before a record."""
    holds: dict[str, OracleHold] = {}
    for each in before(history, at):
        mine = holds.setdefault(each.name if each.kind == "actor-exit" else each.actor, OracleHold())
        if each.kind == "actor-exit":
            lapse_hold(mine, now_at(history, each.index))
            mine.until_ns = min(mine.until_ns, abandoned_until(history, lock, each))
            mine.depth, mine.releasing = 0, 0
        elif each.name == lock:
            follow_hold(history, reading, mine, each)
    return holds


def free_since(history: History, reading: Reading, lock: str, at: int, stamp_ns: int) -> int | None:
    """Since when a lock has been free, at a stamp; None: it is not."""
    holds = list(holds_at(history, reading, lock, at).values())
    if sum(each.permits for each in holds if each.until_ns > stamp_ns) >= permits(history, lock, at):
        return None
    ends = [end for each in holds for end in each.ends]
    return max([each.until_ns for each in holds if 0 <= each.until_ns <= stamp_ns] + ends, default=0)


def waiters(history: History, lock: str, at: int) -> History:
    """The invocations of the acquires in flight just before a record, in order."""
    waiting: dict[str, OracleRecord] = {}
    for each in before(history, at):
        if each.kind == "acquire-invoke" and each.name == lock:
            waiting.pop(each.actor, None)
            waiting[each.actor] = each
        elif each.kind == "acquire-return" and each.name == lock:
            waiting.pop(each.actor, None)
        elif each.kind == "actor-exit":
            waiting.pop(each.name, None)
    return list(waiting.values())


def unnoticed(history: History, reading: Reading) -> Iterator[tuple[OracleRecord, int]]:
    """Each answer in a quiet phase at which the lock was free, and for how long it had been while a client waited."""
    for answer in history:
        phase, lock = quiet_phase(history, answer.index), answer.name
        if answer.kind != "acquire-return" or not phase:
            continue
        waiting = waiters(history, lock, answer.index)
        own = [each for each in waiting if each.actor == answer.actor]
        now_ns = now_at(history, answer.index)
        free = free_since(history, reading, lock, answer.index, now_ns)
        if own and free is not None:
            asked = waiting[0] if answer.ok else own[0]
            yield answer, max(0, now_ns - max(asked.mono_ns, phase.mono_ns, free))


def lost_wake_ups(history: History, reading: Reading) -> Iterator[Violation]:
    for answer, free_ns in unnoticed(history, reading):
        said = bound_ns(before(history, answer.index))
        lease_ns = opening(history, answer.name, answer.index).value * 10**6
        bound = said if said is not None else lease_ns or None
        if bound is not None and free_ns > bound:
            yield "lost_wake_up", answer.index


def stuck(history: History, reading: Reading) -> tuple[History, History]:
    """The waiters that were stuck at the end, and those that cannot be judged."""
    end = 1 + max((each.index for each in history), default=0)
    phase = quiet_phase(history, end)
    found: tuple[History, History] = ([], [])
    now_ns = max((each.mono_ns for each in history), default=0)
    for lock in {each.name for each in history if each.kind == "acquire-invoke"} if phase else set():
        for asked in waiters(history, lock, end):
            assert phase
            patient = asked.value >= 0 and (now_ns - asked.mono_ns) // 10**6 <= asked.value
            free = free_since(history, reading, lock, end, now_ns)
            bound = bound_ns(history)
            early = bound is not None and free is not None and now_ns - max(asked.mono_ns, phase.mono_ns, free) <= bound
            found[patient or free is None or early].append(asked)
    return found


def was_free_all_along(history: History, reading: Reading, answer: OracleRecord) -> bool:
    """Whether a lock was there for the taking from an acquire up to its answer."""
    asked = [each for each in waiters(history, answer.name, answer.index) if each.actor == answer.actor]
    free = free_since(history, reading, answer.name, answer.index, now_at(history, answer.index))
    return free is not None and not (asked and free > asked[0].mono_ns)


def asked_in_vain(history: History, reading: Reading, lock: str) -> list[tuple[OracleRecord, OracleRecord]]:
    """The acquires of a lock, with their answers, that ended without a grant though it was free all the time,
    since the latest grant in the last phase, if that is a quiet one."""
    phase = quiet_phase(history, 1 + max((each.index for each in history), default=0))
    vain: list[tuple[OracleRecord, OracleRecord]] = []
    for answer in history if phase else ():
        assert phase
        if answer.kind != "acquire-return" or answer.name != lock or answer.index < phase.index:
            continue
        asked = next((each for each in waiters(history, lock, answer.index) if each.actor == answer.actor), None)
        if answer.ok:
            vain = []
        elif asked and asked.index > phase.index and was_free_all_along(history, reading, answer):
            vain.append((asked, answer))
    return vain


UNSERVED_ASKS = 3


def unserved(history: History, reading: Reading) -> Iterator[Violation]:
    for lock in {each.name for each in history if each.kind == "acquire-invoke"}:
        vain = asked_in_vain(history, reading, lock)
        end = 1 + max(each.index for each in history)
        lease_ns = opening(history, lock, end).value * 10**6
        said = bound_ns(history)
        bound = said if said is not None else lease_ns or None
        if len(vain) < UNSERVED_ASKS or bound is None:
            continue
        (first, _), (_, last) = vain[0], vain[-1]
        if now_at(history, last.index) - first.mono_ns > bound:
            yield "unserved", last.index


def liveness(history: History, reading: Reading) -> Iterator[Violation]:
    yield from lost_wake_ups(history, reading)
    yield from unserved(history, reading)
    for asked in stuck(history, reading)[0]:
        yield "stuck_waiter", asked.index
    for each in history:
        if each.kind == "residue" and each.value > 0:
            yield "residue", each.index


# --- capacity ---


@dataclass
class Permits:
    out: int = 0
    taken: int = 0
    perhaps: int = 0
    until_ns: int = 0

    def over(self) -> None:
        self.out = self.taken = self.until_ns = 0


def permits_at(history: History, reading: Reading, lock: str, at: int) -> dict[str, Permits]:
    """Per client: the permits that it has, just before a record."""
    clients: dict[str, Permits] = {}
    for each in before(history, at):
        mine = clients.setdefault(each.name if each.kind == "actor-exit" else each.actor, Permits())
        if each.kind == "actor-exit":
            mine.over()
            mine.perhaps = 0
        if each.name != lock:
            continue
        if is_grant(each):
            permits_lapse(clients, each.mono_ns)
            nested = mine.out > 0 and has_trait(history, lock, each.index, REENTRANT)
            stamps = [each.value] if mine.out == 0 else [mine.until_ns, each.value]
            mine.until_ns = min((stamp for stamp in stamps if stamp), default=0)
            mine.out += 1
            mine.taken += not nested
        elif each.kind == "acquire-return" and each.unknown:
            mine.perhaps += 1
        elif each.kind == "validity" and mine.out:
            mine.until_ns = announced_until(each)
        elif each.kind == "release-invoke":
            permits_give(history, reading, mine, each)
        elif each.kind == "release-return" and not each.ok:
            asked = invocation(history, each)
            mine.perhaps += asked is not None and may_have_had(history, reading, asked)
    return clients


def permits_lapse(clients: dict[str, Permits], mono_ns: int) -> None:
    for each in clients.values():
        if each.out and 0 != each.until_ns <= mono_ns:
            each.perhaps += each.taken
            each.over()


def permits_give(history: History, reading: Reading, mine: Permits, release: OracleRecord) -> None:
    if mine.out == 0:
        mine.perhaps = max(0, mine.perhaps - 1)
    elif not has_failed(history, reading, release):
        nested = mine.out > mine.taken
        mine.out -= 1
        mine.taken -= not nested
        if mine.out == 0:
            mine.over()


def may_have_had(history: History, reading: Reading, release: OracleRecord) -> bool:
    mine = permits_at(history, reading, release.name, release.index).get(release.actor, Permits())
    return bool(mine.out or mine.perhaps)


def capacity(history: History, reading: Reading) -> Iterator[Violation]:
    for each in history:
        room = permits(history, each.name, each.index)
        if room < 2:
            continue
        if is_grant(each):
            clients = permits_at(history, reading, each.name, each.index)
            permits_lapse(clients, each.mono_ns)
            mine = clients.get(each.actor, Permits())
            nested = mine.out > 0 and has_trait(history, each.name, each.index, REENTRANT)
            if not nested and sum(client.taken for client in clients.values()) >= room:
                yield "surplus_grant", each.index
        if each.kind == "release-return" and each.ok:
            asked = invocation(history, each)
            if asked and not may_have_had(history, reading, asked):
                yield "unowned_release", each.index


# --- lease ---


def life_grant(history: History, client: str, lock: str, at: int) -> OracleRecord | None:
    """A client's latest grant of a lock since its process began."""
    latest = None
    for each in before(history, at):
        if is_grant(each) and (each.actor, each.name) == (client, lock):
            latest = each
        elif each.kind == "actor-exit" and each.name == client:
            latest = None
    return latest


def releases_done(history: History, actor: str, lock: str, at: int) -> OracleRecord | None:
    """The release-return that ended a client's latest hold, if nothing of the hold is left."""
    depth, done, last = 0, None, 0
    for each in before(history, at):
        if each.kind == "actor-exit" and each.name == actor:
            depth, done, last = 0, None, 0
        if (each.actor, each.name) != (actor, lock):
            continue
        if is_grant(each):
            several = has_permits_to_count(history, lock, each.index)
            again = depth > 0 and (several or has_trait(history, lock, each.index, REENTRANT))
            depth, done, last = depth + 1 if again else 1, None, 0
        elif each.kind == "release-invoke" and depth:
            depth -= 1
            last = each.index if depth == 0 else 0
        elif each.kind == "release-return" and each.ok and last:
            asked = invocation(history, each)
            done = each if asked and asked.index == last else done
    return done


def late_renewals(history: History) -> Iterator[Violation]:
    counted = set()
    for each in history:
        done = releases_done(history, each.actor, each.name, each.index)
        if not each.ok or not done or done.index in counted:
            continue
        late = False
        if each.kind == "renew-return":
            asked = invocation(history, each)
            late = asked is not None and asked.index > done.index
        elif each.kind == "validity":
            told_since = (one for one in history if done.index < one.index < each.index and one.kind == "validity")
            late = sum((one.actor, one.name, one.ok) == (each.actor, each.name, True) for one in told_since) == 1
        if late:
            counted.add(done.index)
            yield "late_renewal", each.index


def released_hold(history: History, actor: str, lock: str, at: int) -> tuple[OracleRecord | None, int]:
    """The answer, ok or refused, to the release that left nothing of a client's latest released hold; and the number of
    its grants that it has not released."""
    depth, asked_at, last = 0, 0, None
    for each in before(history, at):
        if each.kind == "actor-exit" and each.name == actor:
            depth, asked_at, last = 0, 0, None
        if (each.actor, each.name) != (actor, lock):
            continue
        if is_grant(each):
            several = has_permits_to_count(history, lock, each.index)
            again = depth > 0 and (several or has_trait(history, lock, each.index, REENTRANT))
            depth, asked_at = depth + 1 if again else 1, 0
        elif each.kind == "release-invoke" and depth:
            depth -= 1
            asked_at = 0 if depth else each.index
        elif each.kind == "release-return" and asked_at:
            asked = invocation(history, each)
            if asked and asked.index == asked_at:
                last = None if each.unknown else each
    return last, depth


def late_commands(history: History) -> Iterator[Violation]:
    """Renewals that servers heard after a release: sent after it, or making a key."""
    counted = set()
    for each in history:
        if each.kind != "server-renewal":
            continue
        last, depth = released_hold(history, each.actor, each.name, each.index)
        if last is None or last.index in counted:
            continue
        sent_after = each.grant == 0 and each.op == last.op
        if sent_after or (depth == 0 and each.flags & MADE):
            counted.add(last.index)
            yield "late_renewal", each.index


def hollow_renewals(history: History) -> Iterator[Violation]:
    """A client was told that it has renewed, and no server that heard of it had a key of its own. Once per hold."""
    counted = set()
    for told in history:
        if not told.ok or told.kind not in ("renew-return", "validity"):
            continue
        begun, since = 0, 0  # the hold, or the process; what is told about
        for each in before(history, told.index):
            own = (each.actor, each.name) == (told.actor, told.name)
            if (own and is_grant(each)) or (each.kind == "actor-exit" and each.name == told.actor):
                begun = since = each.index
            if own and each.kind == "validity":
                since = each.index
        asked = invocation(history, told) if told.kind == "renew-return" else None
        if told.kind == "renew-return" and not asked:
            continue
        heard = [
            each
            for each in before(history, told.index)
            if (each.kind, each.actor, each.name) == ("server-renewal", told.actor, told.name)
            and (asked.index < each.index and each.op == asked.op if asked else each.index > since)
        ]
        hold = (told.actor, told.name, begun)
        if heard and not any(each.value for each in heard) and hold not in counted:
            counted.add(hold)
            yield "hollow_renewal", told.index


def long_renewals(history: History) -> Iterator[Violation]:
    """A renewal leaves a key to live longer than a lease, in whole seconds. Once per hold."""
    counted = set()
    for each in history:
        if each.kind != "server-renewal" or not (each.flags & MARKED and each.flags & PROLONGED):
            continue
        lease_ms = opening(history, each.name, each.index).value
        begun = life_grant(history, each.actor, each.name, each.index)
        ended = [one.index for one in before(history, each.index) if (one.kind, one.name) == ("actor-exit", each.actor)]
        hold = (each.actor, each.name, begun.index if begun else 0, len(ended))
        short = each.value <= -(-lease_ms // 1000) * 1000 + GRAIN_NS // 10**6
        if lease_ms and not short and permits(history, each.name, each.index) <= 1 and hold not in counted:
            counted.add(hold)
            yield "long_renewal", each.index


def lease_end(history: History, grant: OracleRecord) -> int:
    """The end of the lease with which a grant comes, if it began as early as it can have."""
    since = given_since(history, grant)
    return min(since + opening(history, grant.name, grant.index).value * 10**6, grant.value or FOR_EVER)


def lease_ends(history: History, client: str, lock: str, index: int) -> tuple[list[int], int]:
    """The ends of what certainly prolonged the lease of a client's hold, before an index; empty: it holds nothing. And
    the latest stamp at which the hold can have begun."""
    ends: list[int] = []
    depth = stated = began = 0
    lapsed = left = False  # left: of a hold that may have been granted anew, a release was invoked
    for each in before(history, index):
        if each.kind == "actor-exit" and each.name == client:
            depth = 0
        if (each.actor, each.name) != (client, lock):
            continue
        lease_ns = opening(history, lock, each.index).value * 10**6
        asked = invocation(history, each)
        if is_grant(each):
            several = has_permits_to_count(history, lock, each.index)
            again = depth and (several or has_trait(history, lock, each.index, REENTRANT))
            over = max(ends, default=LOST) < each.mono_ns
            lapsed = bool(again and (lapsed or several or over))
            began = each.mono_ns if over or not again else began
            left = bool(again and left)
            depth, ends, stated = (depth + 1, ends, each.value) if again else (1, [], each.value)
            if lease_ns and not again:
                ends.append(lease_end(history, each))
        elif each.kind == "release-invoke":
            left = left or (depth > 1 and lapsed)
            ends = [] if left else ends
            depth -= depth > 0
        elif each.kind == "validity" and each.outcome == "refused":
            ends, stated = [], LOST
        elif each.kind == "validity" and each.ok and each.extra:
            stated = each.value  # recorded by the driver, not by the lock
        elif each.kind == "validity":
            stated = each.value
            over = max(ends, default=LOST) < each.mono_ns
            lapsed, began = lapsed or over, each.mono_ns if over else began
            ends = [min(each.mono_ns + lease_ns, each.value or FOR_EVER)] if depth and lease_ns else []
        elif depth and lease_ns and each.kind == "renew-return" and each.ok and asked:
            over = max(ends, default=LOST) < asked.mono_ns
            lapsed, began = lapsed or over, each.mono_ns if over else began
            ends.append(asked.mono_ns + lease_ns)
        elif (
            depth
            and lease_ns
            and each.kind == "server-renewal"
            and each.flags & MARKED
            and each.value > 0
            and not stated
        ):
            over = max(ends, default=LOST) < each.mono_ns
            lapsed, began = lapsed or over, each.mono_ns if over else began
            ends.append(each.mono_ns + min(each.value * 10**6, lease_ns))
    return ends if depth and not left else [], began


def hold_since(history: History, grant: OracleRecord) -> OracleRecord:
    """The grant with which the hold of a grant began."""
    since, depth = grant, 0
    for each in before(history, grant.index + 1):
        if each.kind == "actor-exit" and each.name == grant.actor:
            depth = 0
        if (each.actor, each.name) != (grant.actor, grant.name):
            continue
        if is_grant(each):
            several = has_permits_to_count(history, each.name, each.index)
            again = depth and (several or has_trait(history, each.name, each.index, REENTRANT))
            since, depth = (since, depth + 1) if again else (each, 1)
        elif each.kind == "release-invoke":
            depth -= depth > 0
    return since


def ran(history: History, earlier: OracleRecord, grant: OracleRecord) -> bool:
    """Whether the lease of the hold of an earlier grant certainly ran when a later one was made."""
    ends, began = lease_ends(history, earlier.actor, grant.name, grant.index)
    runs = bool(ends) and grant.mono_ns + GRAIN_NS <= max(ends)
    return runs and began + GRAIN_NS <= lease_end(history, grant)


def premature_grants(history: History) -> Iterator[Violation]:
    leased = [each for each in filter(is_grant, history) if opening(history, each.name, each.index).value]
    for grant in leased:
        earlier = [each for each in leased if each.name == grant.name and each.index < grant.index]
        capacity = permits(history, grant.name, grant.index)
        latest = {each.actor: each for each in (earlier if capacity > 1 else earlier[-1:])}
        latest.pop(grant.actor, None)
        first = hold_since(history, grant).index == grant.index
        if first and sum(ran(history, each, grant) for each in latest.values()) >= capacity:
            yield "premature_grant", grant.index


def holds_within_validity(history: History, client: str, lock: str, index: int, at_ns: int) -> bool:
    """Whether a client holds a lock before an index, and was told of a validity that ends a grain after a stamp."""
    depth = until_ns = 0
    for each in before(history, index):
        if each.kind == "actor-exit" and each.name == client:
            depth = 0
        if (each.actor, each.name) != (client, lock):
            continue
        if is_grant(each):
            several = has_permits_to_count(history, lock, each.index)
            again = depth and (several or has_trait(history, lock, each.index, REENTRANT))
            depth, until_ns = (depth + 1 if again else 1), each.value
        elif each.kind == "release-invoke":
            depth -= depth > 0
        elif each.kind == "validity":
            until_ns = LOST if each.outcome == "refused" else each.value
    return depth > 0 and at_ns + GRAIN_NS <= until_ns


def broken_validities(history: History) -> Iterator[Violation]:
    premature = {index for _, index in premature_grants(history)}
    for grant in filter(is_grant, history):
        leased = opening(history, grant.name, grant.index).value
        first = hold_since(history, grant).index == grant.index
        if not leased or not first or grant.value <= grant.mono_ns or grant.index in premature:
            continue
        others = {each.actor for each in before(history, grant.index) if each.name == grant.name} - {grant.actor}
        relying = [
            each for each in others if holds_within_validity(history, each, grant.name, grant.index, grant.mono_ns)
        ]
        if len(relying) >= permits(history, grant.name, grant.index):
            yield "broken_validity", grant.index


def lease(history: History, reading: Reading) -> Iterator[Violation]:
    yield from premature_grants(history)
    yield from broken_validities(history)
    for each in history:
        if is_grant(each) and each.value and each.value <= each.mono_ns:
            yield "spent_grant", each.index
        if each.kind == "store-write" and each.ok:
            lock = lock_of(history, each)
            grant = life_grant(history, each.name, lock, each.index) if lock is not None else None
            if (
                grant
                and grant.index == each.grant
                and 0 != believed_until(history, [grant], each.index) <= each.mono_ns
            ):
                yield "late_write", each.index
    yield from late_renewals(history)
    yield from late_commands(history)
    yield from hollow_renewals(history)
    yield from long_renewals(history)


# --- fairness ---


def overtaken_waiters(history: History) -> list[tuple[OracleRecord, History]]:
    """Each grant that was asked for, with the waiters that had asked earlier."""
    found = []
    for grant in filter(is_grant, history):
        waiting = waiters(history, grant.name, grant.index)
        own = [each for each in waiting if each.actor == grant.actor]
        if own:
            found.append((grant, [each for each in waiting if each.index < own[0].index]))
    return found


def order_ns(history: History, at: int) -> int | None:
    """From which distance on two requests arrive in the order of their stamps; None: it is not said."""
    said = [each.value for each in before(history, at) if each.kind == "parameter" and each.name == "order_ms"]
    known = [each for each in said if each >= 0]
    return known[-1] * 10**6 if known else None


def is_reentry(history: History, grant: OracleRecord) -> bool:
    """Whether the client held the lock already when it was granted it."""
    depth = 0
    for each in before(history, grant.index):
        if each.kind == "actor-exit" and each.name == grant.actor:
            depth = 0
        elif (each.actor, each.name) == (grant.actor, grant.name):
            depth = depth + is_grant(each) - (each.kind == "release-invoke" and depth > 0)
    return depth > 0 and has_trait(history, grant.name, grant.index, REENTRANT)


def is_owed_its_turn(history: History, grant: OracleRecord) -> bool:
    """Whether a grant that overtakes others may be unfair."""
    return has_trait(history, grant.name, grant.index, FAIR) and not is_reentry(history, grant)


def asked_for_previous(history: History, grant: OracleRecord) -> int:
    """When a client asked for its previous grant of a lock, in this life; 0: it had none that it had asked for."""
    asked_before = 0
    for each in before(history, grant.index):
        if each.kind == "actor-exit" and each.name == grant.actor:
            asked_before = 0
        elif is_grant(each) and (each.actor, each.name) == (grant.actor, grant.name):
            asked = asked_at(history, each)
            asked_before = asked if asked != each.index else asked_before
    return asked_before


def end_of_wait(history: History, wait: OracleRecord) -> OracleRecord | None:
    """What ends a wait: an answer, the client's next request for the same lock, or its exit."""
    for each in history:
        own = (each.actor, each.name) == (wait.actor, wait.name) and each.kind in ("acquire-return", "acquire-invoke")
        if each.index > wait.index and (own or (each.kind == "actor-exit" and each.name == wait.actor)):
            return each
    return None


def was_waiting(history: History, wait: OracleRecord, passed: OracleRecord) -> bool:
    """Whether a client that was passed by a grant certainly had its place in the queue then."""
    end = end_of_wait(history, wait)
    if end and is_grant(end) and permits(history, wait.name, end.index) == 1:
        return True
    at = end.index if end else 1 + max(each.index for each in history)
    apart = order_ns(history, at)
    ended_ns = end.mono_ns if end else now_at(history, at)
    return apart is not None and ended_ns - passed.mono_ns > apart


def fairness(history: History, reading: Reading) -> Iterator[Violation]:
    if any(each.kind in ("fault-inject", "rule", "checkpoint") for each in history):
        return
    passed_by: dict[int, OracleRecord] = {}  # the first grant that has passed a wait
    for grant, earlier in overtaken_waiters(history):
        if not is_owed_its_turn(history, grant):
            continue
        apart = order_ns(history, grant.index)
        if apart is None:
            if any(each.index < asked_for_previous(history, grant) for each in earlier):
                yield "", grant.index
            continue
        (own,) = [each for each in waiters(history, grant.name, grant.index) if each.actor == grant.actor]
        for each in earlier:
            if own.mono_ns - each.mono_ns > apart:
                passed_by.setdefault(each.index, grant)
    for wait in history:
        if wait.index in passed_by and was_waiting(history, wait, passed_by[wait.index]):
            yield "", (end_of_wait(history, wait) or passed_by[wait.index]).index


# --- whether it can be judged, and the whole ---


def broken(history: History) -> bool:
    """Whether an assumption fails without which no property can be judged."""
    latest: dict[str, OracleRecord | None] = {}
    stamps: dict[str, int] = {}
    for each in history:
        if each.kind == "torn":
            return False
        if each.kind == "actor-exit":
            latest[each.name] = None
        if (each.kind in OPERATIONS or is_access(each)) and each.actor and each.mono_ns:
            if each.mono_ns < stamps.get(each.actor, each.mono_ns):
                return True
            stamps[each.actor] = each.mono_ns
        if each.kind not in OPERATIONS:
            continue
        last = latest.get(each.actor) if each.actor else None  # records without a name may be of several clients
        if last and last.kind in INVOCATIONS and last.op and each.op:
            pair = INVOCATIONS.index(last.kind) if each.kind in RETURNS else -1
            if pair < 0 or RETURNS[pair] != each.kind or last.op != each.op:
                return True
        latest[each.actor] = each
        if each.kind == "release-invoke" and each.grant:
            named = [one for one in before(history, each.index) if one.index == each.grant]
            if not named or not is_grant(named[0]) or (named[0].actor, named[0].name) != (each.actor, each.name):
                return True
    return False


def unproved(history: History) -> bool:
    """Some injection was neither seen to take effect nor taken back before the same fault was injected again; or all
    were taken back, or none was injected although some were meant."""
    injections = [each for each in history if each.kind == "fault-inject"]
    proved = False
    for injection in injections:
        proofs = [each for each in history if each.kind == "fault-prove" and each.index > injection.index]
        again = [each for each in injections if each.index > injection.index and same_fault(each, injection)]
        end = again[0].index if again else 10**9
        outcomes = {each.outcome for each in proofs if same_fault(each, injection) and each.index < end}
        if not outcomes & {"ok", "refused"}:
            return True
        proved |= "ok" in outcomes
    meant = [each.value for each in history if each.kind == "parameter" and each.name == "faults_meant"]
    return not proved and (bool(injections) or (bool(meant) and meant[-1] > 0))


def same_fault(one: OracleRecord, other: OracleRecord) -> bool:
    return (one.name, one.value) == (other.name, other.value)


def answered_in_quiet(history: History) -> History:
    """The answers to acquires in the last phase, if that is a quiet one."""
    phase = quiet_phase(history, 1 + max((each.index for each in history), default=0))
    return [each for each in history if phase and each.kind == "acquire-return" and each.index > phase.index]


def served(history: History, reading: Reading) -> bool:
    """Whether a client was answered rightly in the last phase, if that is a quiet one: granted, or refused beside a
    holder."""
    return any(
        is_grant(each) or (each.outcome == "refused" and not was_free_all_along(history, reading, each))
        for each in answered_in_quiet(history)
    )


CHECKS: dict[str, Callable[[History, Reading], Iterator[Violation]]] = {
    "mutual_exclusion": mutual_exclusion,
    "integrity": integrity,
    "fencing": fencing,
    "ownership": ownership,
    "liveness": liveness,
    "capacity": capacity,
    "lease": lease,
    "fairness": fairness,
    "cost": lambda history, reading: iter(()),
}


def contended(history: History, lock: str) -> bool:
    """Whether more than one client asked for a lock."""
    asked = {each.actor for each in history if each.kind in ("acquire-invoke", "acquire-return") and each.name == lock}
    return len(asked) > 1


def could_be_violated(history: History, reading: Reading) -> dict[str, bool]:
    """Whether there was anything that a property could have been violated by."""
    grants = [each for each in history if is_grant(each)]
    disturbed = any(each.kind in ("fault-inject", "rule", "checkpoint") for each in history)
    promised = any(each.kind == "lock-open" and each.extra & FAIR for each in history)
    return {
        "mutual_exclusion": any(contended(history, each.name) for each in grants),
        "integrity": any(each.kind == "store-write" and each.ok and each.object for each in history),
        "fencing": bool(token_grants(history)),
        "ownership": answered_ok(history) or any(extensions(history)),
        "liveness": served(history, reading) and not stuck(history, reading)[1],
        "capacity": any(permits(history, each.name, each.index) > 1 for each in grants),
        "lease": any(each.value or opening(history, each.name, each.index).value for each in grants)
        or any(each.kind == "server-renewal" or (each.kind == "renew-return" and each.ok) for each in history),
        "fairness": promised and not disturbed and bool(grants),
        "cost": False,
    }


def verdicts(history: History, reading: Reading) -> Json:
    """Per property: the status, and the violations."""
    grants = any(map(is_grant, history))
    if broken(history):
        return {name: ("inconclusive", []) for name in PROPERTIES}
    unfit = not grants or unproved(history) or any(each.kind == "torn" for each in history)
    something = could_be_violated(history, reading)
    result = {}
    for name, violations in CHECKS.items():
        found = list(violations(history, reading))
        status = "violated" if found else "holds" if something[name] and not unfit else "inconclusive"
        result[name] = (status, found)
    return result


def is_certain(history: History) -> bool:
    """No release failed and no acquire is of unknown outcome: every reading is the same."""
    asked: set[str] = set()
    for each in history:
        if each.kind == "actor-exit" and each.name in asked:
            return False
        if each.kind == "release-invoke":
            if each.actor in asked:
                return False
            asked.add(each.actor)
        if each.kind == "release-return":
            asked.discard(each.actor)
            if not each.ok:
                return False
        if each.kind == "torn" or (each.kind == "acquire-return" and each.unknown):
            return False
    return not asked


READINGS = tuple(Reading(failed, happen) for happen in (False, True) for failed in (False, True))


def allowed(release: str, acquire: str) -> list[Reading]:
    """The readings that a pair of policies leaves open."""
    wanted = {"released": (False,), "not-happened": (True,), "unknown": (False, True)}[release]
    return [
        each
        for each in READINGS
        if each.releases_failed in wanted and (acquire == "unknown" or not each.acquires_happen)
    ]


def verdicts_by_reading(history: History) -> dict[Reading, Json]:
    if is_certain(history):
        return dict.fromkeys(READINGS, verdicts(history, READINGS[0]))
    return {each: verdicts(history, each) for each in READINGS}


def is_partly_read(history: History) -> bool:
    """Whether releases of a re-entrant lock failed of two clients: one of them may have happened and another not."""
    failed = [each for each in history if each.kind == "release-invoke" and has_failed(history, Reading(True), each)]
    failed = [each for each in failed if has_trait(history, each.name, each.index, REENTRANT)]
    return any((each.name, each.actor != one.actor) == (one.name, True) for each in failed for one in failed)


def under(results: dict[Reading, Json], release: str, acquire: str, partly: bool) -> dict[str, tuple[str, int]]:
    """The verdict under a pair of policies: inconclusive where readings differ, and for ownership where some readings
    of failed releases were not tried (`partly`)."""
    verdict = {}
    for name in PROPERTIES:
        answers = [results[each][name] for each in allowed(release, acquire)]
        same = len({status for status, _ in answers}) == 1
        if name == "ownership" and release == "unknown" and partly and answers[0][0] != "violated":
            same = False
        least = min(len(found) for _, found in answers)
        verdict[name] = (answers[0][0], least) if same else ("inconclusive", 0)
    return verdict


def has_semaphore(history: History) -> bool:
    return any(each.kind == "lock-open" and each.token > 1 for each in history)


def is_integrity_asked(history: History) -> bool:
    """Holders of a semaphore work at the same time. What the store adds itself is to be added once all the same."""
    end = 1 + max((each.index for each in history), default=0)
    about_locks = (
        "lock-open",
        "validity",
        "server-renewal",
        *(each for each in OPERATIONS if each.startswith(("acq", "ren", "rel"))),
    )
    locks = {each.name for each in history if each.kind in about_locks}
    shared = bool(locks) and all(permits(history, name, end) > 1 for name in locks)
    return not shared or any(each.flags & ATOMIC for each in accepted_writes(history))


def required(history: History) -> list[str]:
    """The properties that decide the exit status without --require."""
    end = 1 + max((each.index for each in history), default=0)
    applies = {
        "integrity": is_integrity_asked(history),
        "fencing": has_tokens(history),
        "liveness": quiet_phase(history, end) is not None,
        "capacity": has_semaphore(history),
    }
    return [name for name in PROPERTIES if name not in ADVISORY and applies.get(name, True)]
