"""What the adapter has of kazoo, and which of its locks the word on the command line asks for."""

import sys
from typing import Any

try:
    from kazoo.client import KazooClient, KazooState
    from kazoo.exceptions import CancelledError, LockTimeout
    from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock
    from kazoo.version import __version__
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

__all__ = ["IS_SEMAPHORE", "KINDS", "CancelledError", "KazooClient", "KazooState", "Lock", "LockTimeout", "__version__"]

ALL: dict[str, dict[str, Any]] = {
    "read-write": {"read": ReadLock, "write": WriteLock},
    "semaphore": {"permits": Semaphore},
}
KINDS = ALL.get(sys.argv[-1], {"exclusive": Lock})  # by mode
IS_SEMAPHORE = "permits" in KINDS
