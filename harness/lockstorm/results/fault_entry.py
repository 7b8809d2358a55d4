"""An entry of the table of faults. harness/lockstorm/native/describe_tables.c writes it as JSON."""

from typing import Literal

import msgspec


class FaultOptionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An option of a fault (struct fault_word)."""

    name: str
    usual: str | None  # the default value; None: the option is required
    meaning: str


class FaultEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault (struct fault)."""

    name: str
    summary: str
    target: str
    proof: str
    proved: Literal["at once", "before it is healed", "when it is healed"]
    explanation: str
    source: str
    options: list[FaultOptionEntry]
    times: list[Literal["virtual", "real"]]
