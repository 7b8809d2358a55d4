"""Records of a history: docs/history.md says what the fields mean."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

KINDS = (
    *("text", "text-more", "parameter", "lock-open", "acquire-invoke", "acquire-return", "renew-invoke"),
    *("renew-return", "release-invoke", "release-return", "read-invoke", "read-return", "write-invoke"),
    *("write-return", "store-read", "store-write", "fault-inject", "fault-prove", "fault-heal", "checkpoint", "clock"),
    *("actor-exit", "note", "validity", "rule", "released", "phase", "server-renewal", "answers", "is-held"),
    *("residue", "torn"),
)
Number8 = Annotated[int, Meta(ge=0, le=255)]
Number32 = Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
Number64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
KindName = Annotated[str, Meta(extra_json_schema={"enum": list(KINDS)})]
OutcomeName = Annotated[str, Meta(extra_json_schema={"enum": ["unknown", "ok", "refused"]})]
ObjectName = Annotated[str, Meta(extra_json_schema={"enum": ["register", "counter", "set"]})]


class HistoryHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The first line of a history as JSON Lines."""

    history: Literal["lockstorm"]
    version: Literal[1]
    time: Literal["virtual", "real"] = "virtual"
    seed: int = 0
    dropped: Annotated[int, Meta(ge=0)] = 0  # records for which there was no room


class HistoryRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Every other line. Names are texts; a number stands where the history has no text for it."""

    index: Annotated[int, Meta(ge=0)] = 0
    kind: KindName | Number8
    outcome: OutcomeName | Number8 = "unknown"
    object: ObjectName | Number8 | None = None
    flags: Number8 = 0
    actor: str | Number32 | None = None
    name: str | Number32 | None = None
    mono_ns: Number64 = 0
    wall_ns: Number64 = 0
    op: Number32 = 0
    grant: Number32 = 0
    token: Number64 = 0
    value: Number64 = 0
    extra: Number64 = 0
    length: Number64 = 0  # of a text, in bytes
    text: str | None = None
    hex: Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")] | None = None  # of a text that is no UTF-8


class Event(HistoryRecord, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A record as `history to-json` prints it for a reader. A field that is 0 is left out there, and has its default
    here."""

    kind: str
    value_name: str | None = None  # the text whose index is `value`
    extra_name: str | None = None
    struck: str | None = None  # what a fault of a replayed schedule strikes

    @property
    def who(self) -> str:
        return str(self.actor)
