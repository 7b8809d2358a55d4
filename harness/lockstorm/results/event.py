"""One record of a history, as `history to-json` prints it: docs/history.md says what the fields mean. A field that is 0
is left out there, and has its default here."""

import msgspec


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A record. Names are texts; a number stands where the history has no text for it."""

    index: int = 0
    kind: str
    outcome: str | int = "unknown"
    object: str | int | None = None
    flags: int = 0
    actor: str | int | None = None
    name: str | int | None = None
    mono_ns: int = 0
    wall_ns: int = 0
    op: int = 0
    grant: int = 0
    token: int = 0
    value: int = 0
    extra: int = 0
    length: int = 0  # of a text, in bytes
    text: str | None = None
    hex: str | None = None  # of a text that is no UTF-8
    value_name: str | None = None  # for a reader: the text whose index is `value`
    extra_name: str | None = None
    struck: str | None = None  # for a reader: what a fault of a replayed schedule strikes

    @property
    def who(self) -> str:
        """The actor, as a text."""
        return str(self.actor)
