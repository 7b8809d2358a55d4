"""The lines that an adapter writes (docs/adapters.md): what a hello and an answer must be, in each version of the
protocol. Every error is for the author of the adapter, and names the key."""

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from lockstorm.base.errors import UsageError
from lockstorm.results.lock_entry import Topology, Waits

OUTCOMES = ("ok", "refused", "unknown")
ANSWER_KEYS: dict[int, tuple[str, ...]] = {1: ("id", "outcome", "error", "token", "valid_until_ms", "held")}
ANSWER_KEYS[2] = ANSWER_KEYS[3] = (*ANSWER_KEYS[1], "cancelled")
NEWEST = 3  # version of the protocol
OPERATIONS = {1: ("renew", "is_held", "status"), 2: ("renew", "is_held", "status", "token")}  # optional
NODES_MOST = 7
UNIT_MOST_MS = 60_000
PLACE_MOST_MS = 3_600_000
THREADS_MOST = 64
SHOWN = 160

MANY_SERVERS = {"sentinel": "a master and its sentinels", "cluster": "a cluster"}  # by topology

AdapterService = Literal["redis", "etcd", "postgres", "zookeeper"]  # what adapters have been tried on
Owner = Literal["thread", "object", "thread-object"]
Mode = Literal["exclusive", "read", "write", "permits"]
Wait = Literal["none", "time", "forever"]
Lease = Literal["given", "renewed", "endless", "default"]
Reentry = Literal["same", "write-read"]
WORD = r"^[^ =#]{1,23}$"
SETTINGS_MOST = 6
LossNotice = Literal["never", "renewal", "lease"]
Cancelled = Literal["release", "renew"]  # besides acquires
Ended = Literal["acquire", "release", "renew"]
ObjectKey = Literal["lease_ms", "form", "wait_ms"]
RequestId = Annotated[int, Meta(ge=1, description="Counts the questions from 1; an answer repeats it.")]
NOT_GIVEN = ("renewed", "endless", "default")  # the meanings of a lease_ms that is null: a form has one of them


class ProtocolError(UsageError):
    """An adapter violates the protocol."""


Text = Annotated[str, Meta(pattern=r"\S")]
UnitMs = Annotated[int, Meta(ge=1, le=UNIT_MOST_MS)]
PlaceMs = Annotated[int, Meta(ge=1, le=PLACE_MOST_MS)]
HoldOperation = Annotated[str, Meta(extra_json_schema={"enum": list(OPERATIONS[2])})]


class AcquireForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of the library's ways to ask for a lock."""

    form: Annotated[Text, Meta(description="One of the library's overloads, by its own name.")]
    wait: Annotated[
        tuple[Wait, ...], Meta(min_length=1, description="none: one try; time: wait_ms; forever: without a limit.")
    ]
    lease: Annotated[
        tuple[Lease, ...],
        Meta(
            min_length=1,
            description="given: lease_ms; what null means (one of): renewed by the library, endless, or default: that "
            "of open, not renewed.",
        ),
    ]
    lease_unit_ms: Annotated[UnitMs, Meta(description="Only multiples are asked for.")] = 1
    wait_unit_ms: Annotated[
        UnitMs, Meta(description="Only multiples are asked for, and a wait may be longer by one unit.")
    ] = 1
    operations: (
        Annotated[
            tuple[HoldOperation, ...],
            Meta(description="What may be asked of a hold that this form granted; default: as in hello."),
        ]
        | None
    ) = None


class AdapterSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the library can be opened with."""

    name: Annotated[str, Meta(pattern=WORD)]
    values: Annotated[
        tuple[int | Annotated[str, Meta(pattern=WORD)], ...],
        Meta(min_length=1, max_length=6, description="The library's own comes first."),
    ]


class AdapterHello(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a hello of version 1, with the defaults of the keys that may be missing."""

    id: RequestId = 1
    outcome: Literal["ok"] = "ok"
    protocol: Literal[1, 2, 3] = 1
    name: Annotated[Text, Meta(description="Of the library.")]
    version: Annotated[str, Meta(description="Of the library.")] = ""
    source: Annotated[str, Meta(description="Where the pattern comes from.")] = ""
    service: Annotated[AdapterService, Meta(description="What its servers are.")] = "redis"
    lease: Annotated[bool, Meta(description="The lock frees itself when its lease runs out.")] = False
    token: Annotated[bool, Meta(description="Every grant carries a fencing token.")] = False
    reentrant: Annotated[bool, Meta(description="The holder may acquire again.")] = False
    fair: Annotated[bool, Meta(description="Grants come in the order of the requests.")] = False
    renews: Annotated[bool, Meta(description="Something extends the lease while the program runs.")] = False
    semaphore: Annotated[bool, Meta(description="As many may hold it as open says permits.")] = False
    tcp: Annotated[bool, Meta(description="It wants nodes as host and port.")] = False
    waits: Waits = "polling"
    nodes: Annotated[int, Meta(ge=1, le=NODES_MOST, description="How many independent servers it wants.")] = 1
    topology: Annotated[
        Topology, Meta(description="What its redis-servers are together; sentinel and cluster need tcp.")
    ] = "single"
    lease_unit_ms: Annotated[UnitMs, Meta(description="What its leases are counted in.")] = 1
    operations: Annotated[
        tuple[HoldOperation, ...], Meta(description="What it can do besides acquire and release.")
    ] = ()


class AdapterFacts(AdapterHello, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a hello of version 2 or 3, which says more."""

    protocol: Literal[1, 2, 3] = 2
    owner: Annotated[
        Owner,
        Meta(description="Who owns a hold: a thread by any object, an object in any thread, or a thread by an object."),
    ]
    forms: Annotated[tuple[AcquireForm, ...], Meta(min_length=1, description="What acquire can be asked for.")]
    threads: Annotated[int, Meta(ge=1, le=THREADS_MOST, description="Most threads that one program hosts.")] = 1
    modes: Annotated[tuple[Mode, ...], Meta(min_length=1)] = ("exclusive",)
    reenters: Annotated[
        tuple[Reentry, ...],
        Meta(
            description="same: an owner may acquire again what it holds in the same mode; write-read: a writer reads."
        ),
    ] = ()
    cancel: Annotated[bool, Meta(description="A call under way can be cancelled.")] = False
    of_object: Annotated[
        tuple[ObjectKey, ...],
        Meta(description="What the first acquire of a lock object says of these keys holds for the object."),
    ] = ()
    lease_key: Annotated[
        str, Meta(description="The server's key whose remaining time is the lease.", pattern=r"\{resource\}")
    ] = ""  # or empty
    watchdog_divisor: Annotated[
        int, Meta(ge=1, le=1000, description="The watchdog renews after its lease divided by this.")
    ] = 3
    renew_lease: Annotated[bool, Meta(description="A renewal takes lease_ms.")] = False
    validity: Annotated[bool, Meta(description="Grants carry valid_until_ms.")] = False
    lenient_release: Annotated[bool, Meta(description="A release by an owner that holds nothing is answered ok.")] = (
        False
    )
    parts: Annotated[
        bool, Meta(description="The lock is made of several, and a client that waits for one may hold others.")
    ] = False
    timer_ms: Annotated[UnitMs, Meta(description="Timers of the library fire at most this late.")] = 1
    place_ms: Annotated[
        PlaceMs | None, Meta(description="A waiting client that has ended keeps its place for no longer than this.")
    ] = None
    poll_ms: Annotated[UnitMs | None, Meta(description="A waiter tries again within this time.")] = None
    keeps: Annotated[
        tuple[Annotated[str, Meta(pattern="[^* ]")], ...],
        Meta(
            description="Keys that a correct library leaves at the server for good; a * at the end stands for any rest."
        ),
    ] = ()
    cancels: Annotated[
        tuple[Cancelled, ...], Meta(description="Version 3: calls that can be cancelled, besides acquires.")
    ] = ()
    holds_two: Annotated[
        bool, Meta(description="Version 3: a thread may hold the locks of two resources at once, renewed together.")
    ] = False
    silence_ms: Annotated[
        int, Meta(ge=0, description="Version 3: a hold ends when its client is silent for so long; 0: it does not.")
    ] = 0
    settings: Annotated[
        tuple[AdapterSetting, ...],
        Meta(max_length=SETTINGS_MOST, description="Version 3: settings of the library that a search draws."),
    ] = ()
    loss_notice: Annotated[
        LossNotice,
        Meta(
            description="Version 3: by when the library tells that a hold that it renews is lost: at its next renewal, "
            "or within a lease."
        ),
    ] = "never"
    over: Annotated[
        tuple[Ended, ...], Meta(description="Version 3: calls that can be made with a context that has ended.")
    ] = ()

    def key_of(self, resource: str) -> str:
        return self.lease_key.replace("{resource}", resource)


class AdapterAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The answer to every other question."""

    id: RequestId
    outcome: Literal["ok", "refused", "unknown"]
    error: Annotated[str, Meta(description="For a reader of the log.")] | None = None
    token: Annotated[int, Meta(ge=1, description="Of a grant, or of a question for the token.")] | None = None
    valid_until_ms: (
        Annotated[
            float, Meta(description="Of a grant: until when the library itself believes in it, by CLOCK_MONOTONIC.")
        ]
        | None
    ) = None
    held: Annotated[bool | None, Meta(description="Of a status: what the library believes; null: it does not say.")] = (
        None
    )
    cancelled: Annotated[bool, Meta(description="From version 2 on: the library raised its cancellation error.")] = (
        False
    )


class AdapterNotice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an adapter of version 3 writes by itself."""

    notice: Annotated[Literal["lost"], Meta(description="The library has told that a hold is lost.")]
    thread: Annotated[int, Meta(ge=1, description="The thread whose hold it was.")] = 1
    lock: Annotated[int, Meta(ge=1, description="The number of the lock object.")] = 1
    resource: Annotated[str, Meta(description="What the lock object is for; absent: that of open.")] = ""


# --- what a value must be: a predicate, and the same in words ---

Rule = tuple[Callable[[Any], bool], str]


def _whole(low: int, high: int) -> Rule:
    return (lambda value: type(value) is int and low <= value <= high), f"a whole number from {low} to {high}"


def _one_of(literal: Any) -> Rule:
    return (lambda value: value in get_args(literal)), f"one of {', '.join(get_args(literal))}"


def _some(what: str, words: tuple[str, ...], fewest: int = 0) -> Rule:
    def fits(value: Any) -> bool:
        return isinstance(value, list) and len(value) >= fewest and all(each in words for each in value)

    return fits, f"a list of {what}, of {', '.join(words)}"


_TEXT: Rule = (lambda value: isinstance(value, str) and value.strip() != ""), "a text that is not empty"
_FLAG: Rule = (lambda value: isinstance(value, bool)), "true or false"
_KEY: Rule = (lambda value: isinstance(value, str) and "{resource}" in value), "a text with {resource} in it"
_KEYS: Rule = (
    (lambda value: isinstance(value, list) and all(isinstance(each, str) and each.strip("* ") for each in value)),
    "a list of keys of the server, which may contain {resource} and end with *",
)


def _is_setting(value: Any) -> bool:
    try:
        msgspec.convert(value, AdapterSetting)
    except msgspec.ValidationError:
        return False
    return True


_SETTINGS: Rule = (
    (lambda value: isinstance(value, list) and len(value) <= SETTINGS_MOST and all(map(_is_setting, value))),
    f"a list of at most {SETTINGS_MOST} objects with a name and up to 6 values, which are numbers or words",
)
_FORMS: Rule = (lambda value: isinstance(value, list) and len(value) > 0), "a list of objects, at least one"
FORM_KEYS: dict[str, Rule] = {
    "form": _TEXT,
    "wait": _some("waits", get_args(Wait), 1),
    "lease": _some("leases", get_args(Lease), 1),
    "lease_unit_ms": _whole(1, UNIT_MOST_MS),
    "wait_unit_ms": _whole(1, UNIT_MOST_MS),
    "operations": _some("optional operations", OPERATIONS[2]),
}
FORM_NEEDED = ("form", "wait", "lease")
HELLO_KEYS: dict[str, Rule] = {
    "id": _whole(1, 2**53),
    "outcome": ((lambda value: value == "ok"), "ok"),
    "protocol": ((lambda value: value == 1), "1, the version that it speaks"),
    "name": _TEXT,
    "version": _TEXT,
    "source": _TEXT,
    "service": _one_of(AdapterService),
    **dict.fromkeys(("lease", "token", "reentrant", "fair", "renews", "semaphore", "tcp"), _FLAG),
    "waits": _one_of(Waits),
    "nodes": _whole(1, NODES_MOST),
    "topology": _one_of(Topology),
    "lease_unit_ms": _whole(1, UNIT_MOST_MS),
    "operations": _some("optional operations", OPERATIONS[1]),
}
HELLO_NEEDED = ("protocol", "name")
HELLO_KEYS_2: dict[str, Rule] = {
    **HELLO_KEYS,
    "protocol": ((lambda value: value == 2), "2, the version that it speaks"),
    "operations": _some("optional operations", OPERATIONS[2]),
    "threads": _whole(1, THREADS_MOST),
    "owner": _one_of(Owner),
    "modes": _some("modes", get_args(Mode), 1),
    "forms": _FORMS,
    "reenters": _some("kinds of re-entry", get_args(Reentry)),
    "of_object": _some("keys of acquire", get_args(ObjectKey)),
    "lease_key": _KEY,
    "watchdog_divisor": _whole(1, 1000),
    "timer_ms": _whole(1, UNIT_MOST_MS),
    "place_ms": _whole(1, PLACE_MOST_MS),
    "poll_ms": _whole(1, UNIT_MOST_MS),
    "keeps": _KEYS,
    **dict.fromkeys(("cancel", "renew_lease", "validity", "lenient_release", "parts"), _FLAG),
}
HELLO_KEYS_3: dict[str, Rule] = {
    **HELLO_KEYS_2,
    "protocol": ((lambda value: value == 3), "3, the version that it speaks"),
    "cancels": _some("calls", get_args(Cancelled)),
    "loss_notice": _one_of(LossNotice),
    "settings": _SETTINGS,
    "holds_two": _FLAG,
    "silence_ms": _whole(0, 10_000_000),
    "over": _some("calls", get_args(Ended)),
}
KEYS_OF_VERSION = {1: HELLO_KEYS, 2: HELLO_KEYS_2, 3: HELLO_KEYS_3}
HELLO_NEEDED_2 = (*HELLO_NEEDED, "owner", "forms")


def _check_keys(what: str, found: Mapping[str, Any], rules: Mapping[str, Rule], needed: tuple[str, ...]) -> None:
    for key, value in found.items():
        if key not in rules:
            raise ProtocolError(f"{what} has the unknown key {key!r}: there are {', '.join(rules)}")
        good, words = rules[key]
        if not good(value):
            raise ProtocolError(f"{what} has {json.dumps({key: value})}: {key} must be {words}")
    for key in needed:
        if key not in found:
            raise ProtocolError(f"{what} lacks {key!r}: {rules[key][1]}")


def check_hello(answer: Mapping[str, Any], asked: int = 1) -> None:
    """The answer to a hello that asked for this version. An adapter that knows only an older one answers that."""
    protocol = answer.get("protocol")
    if asked == 1 or protocol == 1:
        _check_keys("its hello", answer, HELLO_KEYS, HELLO_NEEDED)
        _check_topology(answer)
        return
    if type(protocol) is not int or not 1 <= protocol <= asked:
        found = json.dumps({"protocol": protocol})
        raise ProtocolError(f"its hello has {found}: protocol must be from 1 to {asked}, the version that it speaks")
    _check_keys("its hello", answer, KEYS_OF_VERSION[protocol], HELLO_NEEDED_2)
    _check_topology(answer)
    names: list[str] = []
    for number, form in enumerate(answer["forms"]):
        _check_form(f"forms[{number}] of its hello", form)
        if form["form"] in names:
            raise ProtocolError(
                f"forms[{number}] of its hello has the name {form['form']!r} again: each form has its own"
            )
        names.append(form["form"])


def _check_topology(hello: Mapping[str, Any]) -> None:
    """Servers that tell of each other do it with addresses of TCP, and are one place for locks."""
    topology = hello.get("topology", "single")
    if topology not in MANY_SERVERS:
        return
    what = MANY_SERVERS[topology]
    for key, usual, needed, why in (
        ("service", "redis", "redis", f"{what} is made of redis-servers"),
        ("tcp", False, True, "its servers tell the library addresses of TCP"),
        ("nodes", 1, 1, f"{what} is one node, whatever the number of its servers"),
    ):
        if hello.get(key, usual) != needed:
            found = json.dumps({"topology": topology, key: hello.get(key, usual)})
            raise ProtocolError(f"its hello has {found}: {key} must be {json.dumps(needed)}, for {why}")


def _check_form(what: str, form: Any) -> None:
    if not isinstance(form, dict):
        raise ProtocolError(f"{what} is {json.dumps(form)}: it must be an object")
    _check_keys(what, form, FORM_KEYS, FORM_NEEDED)
    meanings = [lease for lease in form["lease"] if lease in NOT_GIVEN]
    if len(meanings) > 1:
        raise ProtocolError(
            f'{what} has "lease": {json.dumps(form["lease"])}: a lease_ms of null can only mean one of '
            f"{', '.join(NOT_GIVEN)} in one form"
        )


def parse_hello(line: bytes, number: int, asked: int = 1) -> AdapterHello:
    """The answer to request `number`, a hello that asked for this version: AdapterFacts from version 2 on."""
    hello = _parse_object(line)
    _check_id(hello["id"], number)
    check_hello(hello, asked)
    return msgspec.convert(hello, AdapterFacts if hello["protocol"] > 1 else AdapterHello)


def check_answer(line: bytes, number: int, protocol: int = 1) -> AdapterAnswer:
    """The answer to request `number`. Raises ProtocolError with a message for the author of the adapter."""
    answer = parse_answer(line, protocol)
    _check_id(answer.id, number)
    return answer


def parse_notice(line: bytes) -> AdapterNotice | None:
    """None: the line is an answer."""
    with contextlib.suppress(ValueError):
        if isinstance(body := json.loads(line), dict) and "notice" in body:
            try:
                return msgspec.convert(body, AdapterNotice)
            except msgspec.ValidationError as error:
                raise _wrong_answer(line, str(error)) from None
    return None


def _check_id(found: int, number: int) -> None:
    if found != number:
        raise ProtocolError(f'it answered request {number} with "id": {found!r}: repeat the id of the request')


def parse_answer(line: bytes, protocol: int) -> AdapterAnswer:
    """An answer, to whichever request."""
    answer, keys = _parse_object(line), ANSWER_KEYS[protocol]
    if unknown := [key for key in answer if key not in keys]:
        raise _wrong_answer(line, f"unknown key {unknown[0]!r}, there are {', '.join(keys)}")
    try:
        return msgspec.convert(answer, AdapterAnswer)
    except msgspec.ValidationError as error:
        raise _wrong_answer(line, str(error)) from None


def _wrong_answer(line: bytes, why: str) -> ProtocolError:
    return ProtocolError(f"it answered {line[:SHOWN].decode(errors='replace')!r}: {why}")


def _parse_object(line: bytes) -> dict[str, Any]:  # a hello is checked key by key, so that each error names its key
    try:
        answer = json.loads(line)
    except ValueError:
        raise ProtocolError(
            f"it wrote {line[:SHOWN].decode(errors='replace')!r}, which is not JSON. Standard output is for answers, "
            "one object a line; everything else that a library prints must go to standard error"
        ) from None
    if not isinstance(answer, dict):
        raise _wrong_answer(line, "an answer must be a JSON object")
    if type(answer.get("id")) is not int:
        raise _wrong_answer(line, '"id" must be the id of the request')
    if answer.get("outcome") not in OUTCOMES:
        raise _wrong_answer(line, f'"outcome" must be one of {", ".join(OUTCOMES)}')
    if type(answer.get("cancelled", False)) is not bool:
        raise _wrong_answer(line, '"cancelled" must be true or false')
    return answer
