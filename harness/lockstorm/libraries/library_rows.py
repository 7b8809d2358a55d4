"""What lockstorm says of each lock library: the words of scenarios/libraries.toml, the figures, and the findings."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.libraries.finding import Finding, findings
from lockstorm.libraries.promise_figures import PromiseFigures, promise_figures
from lockstorm.locks.adapter import shipped_adapters

WORDS = paths.ROOT / "scenarios" / "libraries.toml"


class LibraryWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is said of a library by hand."""

    package: str  # in the registry of its language
    language: str
    licence: str
    use: str  # what it may be used for
    beware: str = ""  # what to avoid, to switch off or on


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A library that is not tried."""

    name: str
    why: str


@dataclass(frozen=True)
class LibraryRow:
    """All that is known of the library of one adapter."""

    adapter: str
    words: LibraryWords
    figures: PromiseFigures | None
    findings: Mapping[str, Finding]

    @property
    def release(self) -> str:
        return f"{self.figures.library} {self.figures.version}".strip() if self.figures else self.words.package

    @property
    def sentence(self) -> str:
        """What the search has shown, as one sentence."""
        if not self.figures:
            return "not measured"
        played = f"{self.figures.schedules:,} schedules"
        if not self.figures.broken:
            return f"kept every promise in {played}"
        calls = self.figures.by_calls
        faults = [name for name in self.figures.broken if name not in calls]
        parts = [f"{_listed(calls)} by calls alone"] if calls else []
        parts += [f"{_listed(faults)} under faults"] if faults else []
        return f"broke {'; '.join(parts)}, in {played}"

    @property
    def json(self) -> dict[str, Any]:
        return {
            "adapter": self.adapter,
            **msgspec.to_builtins(self.words),
            "figures": msgspec.to_builtins(self.figures),
            "findings": {name: msgspec.to_builtins(finding) for name, finding in self.findings.items()},
            "sentence": self.sentence,
        }


def _listed(names: list[str]) -> str:
    return ", ".join(names)


def read_words(path: Path = WORDS) -> tuple[dict[str, LibraryWords], list[LeftOut]]:
    """UsageError with the reason when the file is wrong."""
    try:
        content = tomllib.loads(path.read_text())
        left_out = msgspec.convert(content.pop("left-out", []), list[LeftOut])
        words = {name: msgspec.convert(entry, LibraryWords) for name, entry in content.items()}
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{path}: {error}") from None
    if sorted(words) != shipped_adapters():
        raise UsageError(f"{path} has {', '.join(sorted(words))}, and shipped are {', '.join(shipped_adapters())}")
    return words, left_out


def left_out_libraries() -> list[LeftOut]:
    return read_words()[1]


def library_rows() -> dict[str, LibraryRow]:
    """The rows by adapter."""
    words, _ = read_words()
    figures, known = promise_figures(), findings()
    return {
        adapter: LibraryRow(
            adapter,
            words[adapter],
            figures.get(adapter),
            {name: finding for name, finding in known.items() if finding.adapter == adapter},
        )
        for adapter in shipped_adapters()
    }
