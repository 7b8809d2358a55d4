"""The C library, loaded, with its tables of locks and faults. seam.py declares what it has; the headers document it."""

import ctypes as c
from functools import cache
from typing import Any, TypeVar

import msgspec

from lockstorm.base import paths, shared_objects
from lockstorm.base.errors import Inconclusive
from lockstorm.native.seam import *  # noqa: F403 (what the headers declare, for all who use the library)
from lockstorm.native.seam import SIGNATURES, Flag
from lockstorm.results.fault_entry import FaultEntry
from lockstorm.results.lock_entry import LockEntry

Entry = TypeVar("Entry")

FLAG_TEXT, FLAG_MADE = Flag.TEXT, Flag.MADE
FOREVER = 2**63 - 1
FULL = 2**64 - 1


@cache
def library() -> Any:
    """The library, loaded at the first call. Raises Inconclusive if it is not built."""
    path = paths.build() / "lib" / "liblockstorm.so"
    try:
        loaded = c.CDLL(str(path), use_errno=True)
    except OSError as error:
        if lacking := shared_objects.missing_in(str(error)):
            lacking = shared_objects.missing_for_files([path]) or lacking  # the linker names the first one only
            raise Inconclusive(shared_objects.missing_sentence(lacking)) from None
        raise Inconclusive(f"{path} cannot be loaded ({error}): {paths.HOW_TO_BUILD}") from None
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded


def _described(name: str, entry: type[Entry]) -> list[Entry]:
    text = getattr(library(), name)()
    try:
        return msgspec.json.decode(c.string_at(text), type=list[entry])  # type: ignore[valid-type]
    finally:
        library().describe_free(text)


@cache
def locks() -> list[LockEntry]:
    """Every lock of the table. Callers must not change the list."""
    return _described("describe_locks", LockEntry)


@cache
def zoo_locks() -> list[LockEntry]:
    """The locks of the bug zoo, which locks() does not include. Callers must not change the list."""
    return _described("describe_zoo", LockEntry)


@cache
def locks_on(service: str) -> list[LockEntry]:
    """The locks of the table whose nodes are servers of this kind. Callers must not change the list."""
    return [lock for lock in locks() if lock.service == service]


@cache
def faults() -> list[FaultEntry]:
    """Every fault of the table. Callers must not change the list."""
    return _described("describe_faults", FaultEntry)
