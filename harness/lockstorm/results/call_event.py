"""What happened in a replayed schedule of a library, as the C program of the search prints it (library_json.c). A field
that a kind of event lacks has its default here, and is left out of the JSON."""

from collections.abc import Sequence
from typing import Literal

import msgspec

NO_KEY, NO_END = -2, -1  # LEASE_NO_KEY, LEASE_WITHOUT_END
NEVER = 2**63 - 1  # LATE_FOR_EVER

CallEventKind = Literal["ask", "answer", "executed", "lease", "fault", "late", "idle", "end", "left", "notice", "wire"]


class CallEvent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, rename={"kind": "event"}
):
    """Clients, threads, locks, resources and nodes are numbered from 1; 0: not given."""

    kind: CallEventKind
    at_ns: int
    # the call that a client makes, and again with its answer
    call: str = ""
    client: int = 0
    thread: int = 0
    lock: int = 0
    resource: int = 0
    mode: str = ""
    form: str | None = None  # of an acquire, as the three below
    wait: str = ""
    lease: str = ""
    wait_ms: int = 0
    lease_ms: int = 0
    over: bool = False  # it is made with a context that has ended
    again: bool = False  # a release, asked once more because it failed
    place: int = 0  # of the call that is made, among the lines of the workload, from 1; 0: it has no line
    # the answer
    asked: int = -1  # index of the event that it answers
    outcome: str = ""
    token: int = 0
    cancelled: bool = False
    error: str = ""
    # a fault, or a late message
    fault: str = ""
    until_ns: int = -1  # or NEVER
    # a command that a server has executed
    longer_ms: int = 0  # the lease key ends so much later because of it; or NO_END
    makes: bool = False  # and was not there before
    # a reading of the lease at a server
    remaining_ms: int | None = None  # or NO_KEY, NO_END
    node: int = 0  # where there are several
    left: str = ""  # what a server still has at the end
    # what a request of an application did to a lock or to data (wire_access.py); its text is in `form`
    access: str = ""
    object: str = ""

    @property
    def caller(self) -> tuple[int, int]:
        return self.client, self.thread

    @property
    def left_ms(self) -> int:
        """The reading of a lease."""
        assert self.remaining_ms is not None
        return self.remaining_ms


class BrokenPromise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    promise: str
    sentence: str
    event: int  # index of the event that shows it
    other: int  # ... and of one that it contradicts
    expected_ms: int = 0
    found_ms: int = 0
    access: int = -1  # of a rule of applications: what a request did, that shows it, by its place among all accesses


class PlayedDeviation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a schedule leaves the usual course. `usual` and `instead` say what the two steps are about: the command of
    a message, of Redis, or the call that is made; empty: it has no name."""

    line: str
    usual: str
    instead: str
    event: int  # index of the first event behind it


class CallStoryLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """`broken`: the sentence of the promise that this line shows to be broken. `number`: of the line of the schedule,
    calls first, that this is about, from 1; 0: of none."""

    at_s: float
    who: str
    what: str
    broken: str = ""
    number: int = 0


def first_broken(broken: Sequence[BrokenPromise]) -> list[BrokenPromise]:
    """Of each broken promise the first event that shows it, in the order of these events."""
    first = {each.promise: each for each in reversed(broken)}
    return sorted(first.values(), key=lambda each: each.event)
