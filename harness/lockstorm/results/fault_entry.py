"""An entry of the table of faults. harness/lockstorm/native/describe_tables.c writes it as JSON."""

from typing import Literal, TypeAlias

import msgspec

World: TypeAlias = Literal["trial", "simulation", "library"]


class FaultOptionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An option of a fault (struct fault_word)."""

    name: str
    usual: str | None  # the default value; None: the option is required
    meaning: str


class FaultInWorld(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a fault is in a world, or why it is not there. Exactly one of the two is given."""

    is_: str | None = msgspec.field(name="is")
    is_not: str | None


class FaultEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault (struct fault_row); target, proved, explanation, options and times are those of a trial."""

    name: str
    old_name: str | None
    summary: str
    proof: str
    source: str
    worlds: dict[World, FaultInWorld]
    target: str
    proved: Literal["at once", "before it is healed", "when it is healed"]
    explanation: str
    options: list[FaultOptionEntry]
    times: list[Literal["virtual", "real"]]

    @property
    def trial(self) -> bool:
        """Whether it exists there; so with the next two."""
        return self.worlds["trial"].is_ is not None

    @property
    def simulation(self) -> bool:
        return self.worlds["simulation"].is_ is not None

    @property
    def library(self) -> bool:
        return self.worlds["library"].is_ is not None

    @property
    def in_a_trial(self) -> str:
        """What it is there, or why it is not there."""
        return self._in("trial")

    @property
    def in_the_simulation(self) -> str:
        return self._in("simulation")

    @property
    def in_a_library(self) -> str:
        return self._in("library")

    def _in(self, world: World) -> str:
        there = self.worlds[world]
        return there.is_ or f"not there: {there.is_not}"
