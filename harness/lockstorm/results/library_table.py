"""The part of what `lockstorm libraries --json` prints that a page shows."""

import msgspec


class ListedFinding(msgspec.Struct, frozen=True):
    title: str
    what: str
    workaround: str
    breaks: list[str]  # promises


class ListedFigures(msgspec.Struct, frozen=True):
    library: str
    version: str
    schedules: int
    broken: dict[str, int]  # by promise
    by_calls: list[str]  # promises that schedules without faults broke


class ListedLibrary(msgspec.Struct, frozen=True):
    adapter: str
    figures: ListedFigures | None
    findings: dict[str, ListedFinding]
    sentence: str
    use: str
    beware: str
    inapplicable: list[str] = []  # promises that it does not make


class LibraryTable(msgspec.Struct, frozen=True):
    libraries: list[ListedLibrary]
    promises: dict[str, str]  # and their meanings

    @property
    def measured(self) -> list[tuple[ListedLibrary, ListedFigures]]:
        return [(each, each.figures) for each in self.libraries if each.figures]
