"""What the name of a lock means: one of the table or of the bug zoo, an adapter (adapter:WORD), or a plug-in
(plugin:WORD)."""

from typing import Any

from harness.driver import adapter, plugin
from harness.driver.library import locks, zoo_locks


def is_brought(lock: str) -> bool:
    """Whether it is the user's own, and no table of ours knows it."""
    return adapter.is_adapter(lock) or plugin.is_plugin(lock)


def entry_of(lock: str) -> dict[str, Any]:
    """The entry of a lock, wherever it is from. Not to be changed."""
    if plugin.is_plugin(lock):
        return plugin.entry_of(lock.removeprefix(plugin.PREFIX))
    if adapter.is_adapter(lock):
        return adapter.entry_of(lock)
    return next(known for known in (*locks(), *zoo_locks()) if known["name"] == lock)


def lock_words(lock: str) -> list[str]:
    """How a command line names a lock."""
    if plugin.is_plugin(lock):
        return ["--plugin", lock.removeprefix(plugin.PREFIX)]
    if adapter.is_adapter(lock):
        return ["--adapter", lock.removeprefix(adapter.PREFIX)]
    return ["--lock", lock]
