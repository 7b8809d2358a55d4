"""The entry of a lock by its name: a lock of the table or of the bug zoo, an adapter (adapter:WORD), or a plug-in
(plugin:WORD)."""

from lockstorm.base.option_fields import choose
from lockstorm.locks import adapter, plugin
from lockstorm.native.library import locks, zoo_locks
from lockstorm.results.lock_entry import LockEntry

APP_PREFIX = "app:"  # of the names of applications in the place of a lock's
AS_ASKED = -1  # the capacity of a lock whose number of permits the user chooses


def is_user_supplied(lock: str) -> bool:
    """Whether the user supplies the lock, as an adapter or a plug-in: then no table has it."""
    return adapter.is_adapter(lock) or plugin.is_plugin(lock)


def is_application(name: str) -> bool:
    return name.startswith(APP_PREFIX)


def hosts_programs(lock: str) -> bool:
    """Whether a search of it runs programs that outlive a schedule: of a library, or of an application."""
    return adapter.is_adapter(lock) or is_application(lock)


def lock_words(lock: str) -> list[str]:
    """The words of a command line that name a lock."""
    if plugin.is_plugin(lock):
        return ["--plugin", lock.removeprefix(plugin.PREFIX)]
    if adapter.is_adapter(lock):
        return ["--adapter", lock.removeprefix(adapter.PREFIX)]
    if is_application(lock):
        return ["--app", lock.removeprefix(APP_PREFIX)]
    return ["--lock", lock]


def lock_named(name: str) -> LockEntry:
    """The entry of a lock, which callers must not change. Raises UsageError, with the nearest name of the table, for an
    unknown one. Names of the zoo must be exact. "adapter:WORD" stands for --adapter WORD, "plugin:WORD" for --plugin
    WORD."""
    if plugin.is_plugin(name):
        return plugin.plugin_entry(name.removeprefix(plugin.PREFIX))
    if adapter.is_adapter(name):
        return adapter.adapter_entry(name)
    for known in zoo_locks():
        if known.name == name:
            return known
    table = {known.name: known for known in locks()}
    return table[choose("lock", name, [*table])]
