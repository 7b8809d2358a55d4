"""What the program of a search prints about the requests of an application (harness/application)."""

import msgspec


class RuleWarning(msgspec.Struct, frozen=True):
    """A rule of applications that single requests break, one after the other: what can go wrong, and why."""

    rule: str
    sentence: str


class SentRequest(msgspec.Struct, frozen=True):
    name: str
    instance: int


class WireAccess(msgspec.Struct, frozen=True):
    """What a request did to a lock or to data, as its messages show it."""

    kind: str
    at_ns: int
    before: int  # the number of events before it
    instance: int
    request: int  # from 1; 0: it is not known
    object: str
    text: str  # the statement


class AloneRequests(msgspec.Struct, frozen=True):
    """What requests did that were sent one after the other, before the first schedule."""

    requests: list[SentRequest] = []
    accesses: list[WireAccess] = []
