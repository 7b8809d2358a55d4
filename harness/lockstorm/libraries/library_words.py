"""What is said of each lock library by hand: scenarios/libraries.toml."""

import tomllib
from pathlib import Path

import msgspec

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.locks.adapter import shipped_adapters

WORDS = paths.ROOT / "scenarios" / "libraries.toml"


class LibraryWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    package: str  # in the registry of its language
    language: str
    licence: str
    use: str  # what it may be used for
    beware: str = ""  # what to avoid, to switch off or on
    schedules: int = 10_000  # of the search that is kept; fewer where each takes longer


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    why: str


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
