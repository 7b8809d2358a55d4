"""Commands that redis-servers are started without: older releases and hosted servers lack some.

Decision 0147."""

import re
from collections.abc import Iterable

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.servers.redis_config import RedisSetting, check_redis_settings

LACKING_HELP = (
    "Commands that the redis-servers lack, such as LPOS,HELLO: they answer as an older or a hosted server does, that "
    "the command is unknown, also in scripts."
)
NAME = re.compile("[A-Z][A-Z0-9._-]*")
# What lockstorm asks its servers for.
OWN_COMMANDS = (
    "CLIENT CLUSTER CONFIG DBSIZE DEBUG DEL DUMP EVALSHA EXISTS FLUSHALL GET HKEYS INFO KEYS LRANGE MONITOR "
    "PEXPIRETIME PING PSYNC PTTL PUBSUB REPLCONF REPLICAOF ROLE SCRIPT SET SMEMBERS TIME TYPE WAIT ZRANGE"
)
# What a master tells its replicas in the place of other commands.
OF_REPLICATION = "EXEC LPOP MULTI PEXPIREAT RPOP SELECT SREM UNLINK"


def lacking_commands(text: str | None, program: str | None, place: str = "--without") -> tuple[str, ...]:
    """The commands in a list, each once. UsageError for one that this server does not have, or that is needed."""
    names = tuple(dict.fromkeys(word.strip().upper() for word in text.split(","))) if text is not None else ()
    for name in names:
        if not NAME.fullmatch(name):
            raise UsageError(f"{place} {name}: a command is a word, such as LPOS")
        if name in OWN_COMMANDS.split():
            raise UsageError(f"{place} {name}: lockstorm itself asks its servers for {name}")
        if name in OF_REPLICATION.split():
            raise UsageError(f"{place} {name}: servers tell their replicas by {name} what has changed")
    settings = tuple(RedisSetting("rename-command", f'{name} ""', f"{place} {name}") for name in names)
    if settings:
        check_redis_settings(paths.redis_server(program), settings)
    return names


def lacking_options(names: Iterable[str]) -> list[str]:
    """The arguments of a redis-server that lacks these commands."""
    return [word for name in names for word in ("--rename-command", name, "")]
