"""The URL of servers that lockstorm did not start. It names the variable with the password, and never contains it."""

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl, unquote

from lockstorm.base.errors import UsageError

Kind = Literal["single", "sentinel", "cluster"]
USUAL_PASSWORD = "LOCKSTORM_PASSWORD"  # the variable
SENTINEL_PASSWORD = "LOCKSTORM_SENTINEL_PASSWORD"
PORTS: dict[Kind, int] = {"single": 6379, "sentinel": 26379, "cluster": 6379}
SCHEMES: dict[str, tuple[Kind, bool]] = {  # -> whether by TLS
    "redis": ("single", False),
    "rediss": ("single", True),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}
# Unlike urlsplit, it lets several hosts be IPv6 addresses.
PARTS = re.compile(r"(?P<scheme>[a-z0-9+.-]+)://(?P<places>[^/?#]*)(?P<path>[^?#]*)(\?(?P<query>[^#]*))?")
WITH_PASSWORD = re.compile(r"[^@]*://[^@]*:.*@")
FORMS = (
    "redis://HOST:PORT/DATABASE, rediss:// for TLS, redis+sentinel://HOST:PORT/MASTER/DATABASE with the address of a "
    "sentinel, or redis+cluster://HOST:PORT"
)
ELSEWHERE = ("postgres", "postgresql", "etcd", "etcds", "zookeeper", "zk", "http", "https", "valkey", "memcached")


@dataclass(frozen=True)
class ServerAddress:
    """What a URL says. `seeds`: where to ask first: the server, the sentinels, or some nodes of the cluster."""

    url: str  # as it may be shown: it has no password
    kind: Kind
    tls: bool
    seeds: tuple[tuple[str, int], ...]
    user: str
    database: int
    master: str  # the name that sentinels know it by
    password_variable: str

    @property
    def shown(self) -> str:
        """The hosts and ports, for messages."""
        return ",".join(place(*seed) for seed in self.seeds)


def place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(url: str) -> ServerAddress:
    """Raises UsageError for what is no URL of a Redis server."""
    parts = PARTS.fullmatch(url)
    scheme = parts["scheme"] if parts else ""
    if not parts or scheme not in SCHEMES:
        raise _unknown_scheme(url, scheme)
    kind, tls = SCHEMES[scheme]
    user, _, hosts = parts["places"].rpartition("@")
    if WITH_PASSWORD.match(url):
        raise UsageError(
            "the URL contains a password, which other users of this machine could see: leave it out, and put the "
            f"password into the variable {USUAL_PASSWORD}"
        )
    seeds = tuple(_read_seed(url, each, PORTS[kind]) for each in hosts.split(","))
    if kind == "single" and len(seeds) > 1:
        raise UsageError(f"{url} names {len(seeds)} servers: redis+sentinel:// and redis+cluster:// take several")
    master, database = _read_path(url, parts["path"], kind)
    variable = _read_query(url, parts["query"] or "")
    return ServerAddress(url, kind, tls, seeds, unquote(user), database, master, variable)


def _unknown_scheme(url: str, scheme: str) -> UsageError:
    if scheme in ELSEWHERE:
        return UsageError(f"attach works with Redis, and not yet with {scheme}:// servers: give {FORMS}")
    return UsageError(f"{_without_login(url)!r} is no URL of a Redis server: give {FORMS}")


def _without_login(url: str) -> str:
    return re.sub(r"://.*@", "://", url)


def _read_seed(url: str, text: str, usual_port: int) -> tuple[str, int]:
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^\[\]:/\s]+))(?::(\d{1,5}))?", text)
    port = int(found[3] or usual_port) if found else 0
    if not found or not 0 < port < 1 << 16:
        raise UsageError(f"{url}: {text!r} is no HOST:PORT with a port from 1 to 65535: give {FORMS}")
    return found[1] or found[2], port


def _read_path(url: str, path: str, kind: Kind) -> tuple[str, int]:
    """The name of the master, and the database."""
    words = [unquote(word) for word in path.split("/") if word]
    master = words.pop(0) if words and kind == "sentinel" else ""
    if kind == "sentinel" and not master:
        raise UsageError(f"{url} names no master: redis+sentinel://HOST:PORT/MASTER, as the sentinels call it")
    if kind == "cluster" and words not in ([], ["0"]):
        raise UsageError(f"{url} names a database: a cluster has only database 0, so leave it out")
    if len(words) > 1 or not all(re.fullmatch(r"[0-9]{1,6}", word) for word in words):
        raise UsageError(f"{url}: {'/'.join(words)!r} is no number of a database: give {FORMS}")
    return master, int(words[0]) if words else 0


def _read_query(url: str, text: str) -> str:
    """The name of the variable with the password."""
    query = dict(parse_qsl(text, keep_blank_values=True))
    variable = query.pop("password-env", USUAL_PASSWORD)
    if query:
        raise UsageError(f"{url}: {', '.join(query)} is not known: the only parameter is password-env=VARIABLE")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise UsageError(f"{url}: password-env={variable} is no name of a variable")
    return variable
