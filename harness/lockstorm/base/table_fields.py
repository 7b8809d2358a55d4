"""Keys of a TOML table as fields of a msgspec type: their meanings and values, for the schema of the file; and which
keys there are, for its reader (toml_table.py)."""

from collections.abc import Iterator
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, structs

Names = str | Annotated[list[str], Meta(min_length=1)]
AnyNames = str | list[str]
LEFT_OUT: Any = None  # the default of a key that need not be there; it is never null
DURATION = r"^[0-9]+(\.[0-9]+)?(ms|s|min|m|h)$"


def text(words: str, pattern: str | None = None) -> Meta:
    return Meta(description=words, min_length=None if pattern else 1, pattern=pattern)


def number(words: str, low: int, high: int | None = None) -> Meta:
    return Meta(description=words, ge=low, le=high)


def about(words: str) -> Meta:
    return Meta(description=words)


def keys_of(table: type[msgspec.Struct], name: str = "") -> dict[str, tuple[str, ...]]:
    """The keys of a table and of the tables in it, by dotted name; without tables that take any key."""
    found = {}
    if table.__struct_config__.forbid_unknown_fields:
        found[name] = tuple(field.encode_name for field in structs.fields(table))
    for field in structs.fields(table):
        for inner in _tables_in(field.type):
            found |= keys_of(inner, f"{name}.{field.encode_name}" if name else field.encode_name)
    return found


def _tables_in(kind: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for each in get_args(kind):
        yield from _tables_in(each)
