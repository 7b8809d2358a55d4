"""What lockstorm says of each lock library: words, figures, and findings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from lockstorm.libraries.finding import Finding, findings
from lockstorm.libraries.library_words import LibraryWords, read_words
from lockstorm.libraries.promise_figures import PromiseFigures, promise_figures
from lockstorm.locks.adapter import shipped_adapters


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
        parts = [f"{', '.join(calls)} by calls alone"] if calls else []
        parts += [f"{', '.join(faults)} under faults"] if faults else []
        return f"broke {'; '.join(parts)}, in {played}"

    @property
    def json(self) -> dict[str, Any]:  # the fields of three types, side by side
        return {
            "adapter": self.adapter,
            **msgspec.to_builtins(self.words),
            "figures": msgspec.to_builtins(self.figures),
            "inapplicable": self.figures.inapplicable if self.figures else [],
            "findings": {name: msgspec.to_builtins(finding) for name, finding in self.findings.items()},
            "sentence": self.sentence,
        }


def library_rows() -> dict[str, LibraryRow]:
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
