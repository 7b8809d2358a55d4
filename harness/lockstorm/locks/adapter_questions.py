"""The questions that lockstorm asks an adapter (docs/adapters.md), one on a line, for docs/adapter.schema.json."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lockstorm.base.table_fields import LEFT_OUT
from lockstorm.locks.adapter_lines import Mode, RequestId

Number = Annotated[int, Meta(ge=1)]


class UnixNode(msgspec.Struct, forbid_unknown_fields=True):
    unix: Annotated[str, Meta(description="The path of a socket.")]


class TcpNode(msgspec.Struct, forbid_unknown_fields=True):
    host: str
    port: Annotated[int, Meta(ge=1, le=65535)]


Node = UnixNode | TcpNode


class Question(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="op"):
    id: RequestId


class AskHello(Question, tag="hello"):
    protocol: Annotated[Literal[1, 2, 3], Meta(description="The version that lockstorm would speak.")]


class AskOpen(Question, tag="open"):
    resource: Annotated[str, Meta(description="The name of what is locked.")]
    lease_ms: Number
    permits: Annotated[int, Meta(ge=1, description="Of a semaphore.")]
    fixed_lease: Annotated[bool, Meta(description="The lease is fixed: nothing may renew it.")]
    nodes: Annotated[
        list[Any],  # of Node; two types without a tag are a union for the schema only
        Meta(
            min_length=1,
            description="Independent servers; with the topology cluster its nodes, with sentinel the sentinels.",
            extra_json_schema={"items": {"$ref": "#/definitions/Node"}},
        ),
    ]
    settings: Annotated[
        dict[str, int | str], Meta(description="Version 3: values of settings in hello; absent: the library's own.")
    ] = LEFT_OUT
    master: Annotated[
        str, Meta(description="With the topology sentinel: the name by which sentinels know the master.")
    ] = LEFT_OUT


class LockCall(Question, kw_only=True):
    """Keys that version 1 has not."""

    thread: Annotated[int, Meta(ge=1, description="The thread that makes the call; made at its first call.")] = LEFT_OUT
    lock: Annotated[int, Meta(ge=1, description="The number of the lock object; made at its first use.")] = LEFT_OUT
    resource: Annotated[str, Meta(description="What the lock object is for.")] = LEFT_OUT
    mode: Mode = LEFT_OUT


class EndingCall(LockCall, kw_only=True):
    over: Annotated[bool, Meta(description="Version 3: the call is made with a context that has ended.")] = LEFT_OUT


class AskAcquire(EndingCall, tag="acquire", kw_only=True):
    wait_ms: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="How long to wait for the lock; 0: one try; null: as long as the library does by itself."),
    ]
    form: Annotated[str, Meta(description="Version 2: of forms in hello.")] = LEFT_OUT
    lease_ms: Annotated[
        Number | UnsetType | None,
        Meta(description="Version 2: null: the library is given no lease. Absent: as version 1, by open."),
    ] = UNSET


class AskRelease(EndingCall, tag="release"):
    pass


class AskIsHeld(LockCall, tag="is_held"):
    pass


class AskStatus(LockCall, tag="status"):
    pass


class AskToken(LockCall, tag="token"):
    pass


class AskRenew(EndingCall, tag="renew"):
    lease_ms: Annotated[
        int, Meta(ge=1, description="Version 2: the remaining time from now on; absent: that of the grant.")
    ] = LEFT_OUT


class AskCancel(Question, tag="cancel"):
    call: Annotated[
        int, Meta(ge=1, description="The id of a call that is under way: an acquire, or what cancels in hello says.")
    ]


class AskForget(Question, tag="forget"):
    pass


AnyQuestion = (
    AskHello | AskOpen | AskAcquire | AskRelease | AskIsHeld | AskStatus | AskToken | AskRenew | AskCancel | AskForget
)
