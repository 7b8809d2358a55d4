"""The URL of servers that lockstorm did not start. It names the variable with the password, and never contains it. And
the files that TLS needs: options of `lockstorm attach`, or keys of [attach] in a policy."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import parse_qsl, unquote

from lockstorm.base.errors import UsageError
from lockstorm.results.lock_entry import Service

Kind = Literal["single", "sentinel", "cluster"]
SslMode = Literal["disable", "require", "verify-full"]
USUAL_PASSWORD = "LOCKSTORM_PASSWORD"  # the variable
SENTINEL_PASSWORD = "LOCKSTORM_SENTINEL_PASSWORD"
POSTGRES_PASSWORD = "PGPASSWORD"  # instead of the usual one, as for the programs of PostgreSQL


@dataclass(frozen=True)
class Scheme:
    """What the beginning of a URL says. `plain`: the same servers without TLS."""

    service: Service
    kind: Kind
    tls: bool
    port: int
    plain: str


SCHEMES = {
    "redis": Scheme("redis", "single", False, 6379, "redis"),
    "rediss": Scheme("redis", "single", True, 6379, "redis"),
    "redis+sentinel": Scheme("redis", "sentinel", False, 26379, "redis+sentinel"),
    "rediss+sentinel": Scheme("redis", "sentinel", True, 26379, "redis+sentinel"),
    "redis+cluster": Scheme("redis", "cluster", False, 6379, "redis+cluster"),
    "rediss+cluster": Scheme("redis", "cluster", True, 6379, "redis+cluster"),
    "postgresql": Scheme("postgres", "single", False, 5432, "postgresql"),
    "postgres": Scheme("postgres", "single", False, 5432, "postgres"),
    "etcd": Scheme("etcd", "single", False, 2379, "etcd"),
    "etcds": Scheme("etcd", "single", True, 2379, "etcd"),
    "zookeeper": Scheme("zookeeper", "single", False, 2181, "zookeeper"),
}
SERVICE_NAMES: dict[Service, str] = {
    "redis": "Redis",
    "postgres": "PostgreSQL",
    "etcd": "etcd",
    "zookeeper": "ZooKeeper",
}
FORMS: dict[Service, str] = {
    "redis": "redis://HOST:PORT/DATABASE, rediss:// for TLS, redis+sentinel://HOST:PORT/MASTER/DATABASE with the "
    "address of a sentinel, or redis+cluster://HOST:PORT",
    "postgres": "postgresql://USER@HOST:PORT/DATABASE, with ?sslmode=verify-full for TLS",
    "etcd": "etcd://HOST:PORT, or etcds:// for TLS",
    "zookeeper": "zookeeper://HOST:PORT,HOST:PORT/PATH",
}
EVERY_FORM = "redis://, postgresql://, etcd:// or zookeeper://, such as redis://HOST:PORT/DATABASE"
SEVERAL = ("etcd", "zookeeper")  # a URL of these services may name several servers
# Unlike urlsplit, it lets several hosts be IPv6 addresses.
PARTS = re.compile(r"(?P<scheme>[a-z0-9+.-]+)://(?P<places>[^/?#]*)(?P<path>[^?#]*)(\?(?P<query>[^#]*))?")
WITH_PASSWORD = re.compile(r"[^@]*://[^@]*:.*@")


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
    service: Service = "redis"
    name: str = ""  # PostgreSQL: the database; ZooKeeper: the node below which ours is made, "" is the root
    is_checked: bool = True  # by TLS: the server's certificate has to be trusted

    @property
    def shown(self) -> str:
        """The hosts and ports, for messages."""
        return ",".join(place(*seed) for seed in self.seeds)

    @property
    def with_tls(self) -> str:
        """How its URL would begin, or what it would contain, with TLS."""
        if self.service == "postgres":
            return "sslmode=verify-full"
        return "etcds://" if self.service == "etcd" else "rediss://"

    @property
    def title(self) -> str:
        return SERVICE_NAMES[self.service]

    @property
    def password_variables(self) -> tuple[str, ...]:
        """Where the password may be; the first that is set counts."""
        is_usual = self.password_variable == USUAL_PASSWORD
        return (
            (USUAL_PASSWORD, POSTGRES_PASSWORD)
            if self.service == "postgres" and is_usual
            else (self.password_variable,)
        )

    @property
    def without_tls(self) -> str:
        """How its URL would begin, or what it would contain, without TLS."""
        scheme = SCHEMES[self.url.partition(":")[0]]
        return "sslmode=disable" if scheme.service == "postgres" else f"{scheme.plain}://"


@dataclass(frozen=True)
class TlsFiles:
    """Full paths, or empty. `ca`: the certificates that sign the servers'. `certificate`, `key`: a client's
    own; the key may be in the file of the certificate."""

    ca: str = ""
    certificate: str = ""
    key: str = ""

    @property
    def options(self) -> list[str]:
        named = (("--ca", self.ca), ("--client-cert", self.certificate), ("--client-key", self.key))
        return [word for option, file in named if file for word in (option, file)]

    def check(self, address: ServerAddress) -> None:
        """Raises UsageError for files that would not be used."""
        if self.options and not address.tls:
            option, file, *_ = self.options
            raise UsageError(f"{option} {file} is for rediss:// and the like: {address.url} is without TLS")
        if self.key and not self.certificate:
            raise UsageError(f"--client-key {self.key} is the key of a certificate: name that by --client-cert")


def tls_files(ca: str | Path | None, certificate: str | Path | None, key: str | Path | None, home: Path) -> TlsFiles:
    """The files of a user, relative to a directory."""
    return TlsFiles(*(str((home / each).resolve()) if each else "" for each in (ca, certificate, key)))


def place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(url: str) -> ServerAddress:
    """Raises UsageError for what is no URL of servers that attach knows."""
    parts = PARTS.fullmatch(url)
    if not parts or parts["scheme"] not in SCHEMES:
        shown = re.sub(r"://.*@", "://", url)  # it may have a password
        raise UsageError(f"{shown!r} is no URL of servers that attach knows: give {EVERY_FORM}")
    scheme = SCHEMES[parts["scheme"]]
    user, _, hosts = parts["places"].rpartition("@")
    if WITH_PASSWORD.match(url):
        raise UsageError(
            "the URL contains a password, which other users of this machine could see: leave it out, and put the "
            f"password into the variable {USUAL_PASSWORD}"
        )
    seeds = tuple(_read_seed(url, each, scheme) for each in hosts.split(","))
    if scheme.kind == "single" and scheme.service not in SEVERAL and len(seeds) > 1:
        instead = ": redis+sentinel:// and redis+cluster:// take several" if scheme.service == "redis" else ""
        raise UsageError(f"{url} names {len(seeds)} servers{instead or ', and attach takes one: the primary'}")
    variable, sslmode = _read_query(url, parts["query"] or "", scheme)
    address = ServerAddress(url, scheme.kind, scheme.tls, seeds, unquote(user), 0, "", variable, scheme.service)
    return _with_path(address, parts["path"], sslmode)


def _with_path(address: ServerAddress, path: str, sslmode: SslMode) -> ServerAddress:
    known = vars(address)
    words = [unquote(word) for word in path.split("/") if word]
    if address.service == "redis":
        master, database = _read_path(address.url, words, address.kind)
        return ServerAddress(**{**known, "master": master, "database": database})
    if address.service == "postgres":
        if not address.user or len(words) != 1:
            what = "database" if address.user else "user"
            raise UsageError(f"{address.url} names no {what}: give {FORMS['postgres']}")
        tls, is_checked = sslmode != "disable", sslmode != "require"
        return ServerAddress(**{**known, "name": words[0], "tls": tls, "is_checked": is_checked})
    if address.service == "zookeeper" and address.user:
        raise UsageError(f"{address.url} names a user, and attach does not log in to ZooKeeper: leave it out")
    if address.service == "etcd" and words:
        raise UsageError(f"{address.url} names {'/'.join(words)!r}, and etcd has no databases: give {FORMS['etcd']}")
    return ServerAddress(**{**known, "name": "".join(f"/{word}" for word in words)})


def _read_seed(url: str, text: str, scheme: Scheme) -> tuple[str, int]:
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^\[\]:/\s]+))(?::(\d{1,5}))?", text)
    port = int(found[3] or scheme.port) if found else 0
    if not found or not 0 < port < 1 << 16:
        form = FORMS[scheme.service]
        raise UsageError(f"{url}: {text!r} is no HOST:PORT with a port from 1 to 65535: give {form}")
    return found[1] or found[2], port


def _read_path(url: str, words: list[str], kind: Kind) -> tuple[str, int]:
    """Of Redis: the name of the master, and the database."""
    master = words.pop(0) if words and kind == "sentinel" else ""
    if kind == "sentinel" and not master:
        raise UsageError(f"{url} names no master: redis+sentinel://HOST:PORT/MASTER, as the sentinels call it")
    if kind == "cluster" and words not in ([], ["0"]):
        raise UsageError(f"{url} names a database: a cluster has only database 0, so leave it out")
    if len(words) > 1 or not all(re.fullmatch(r"[0-9]{1,6}", word) for word in words):
        raise UsageError(f"{url}: {'/'.join(words)!r} is no number of a database: give {FORMS['redis']}")
    return master, int(words[0]) if words else 0


def _read_query(url: str, text: str, scheme: Scheme) -> tuple[str, SslMode]:
    """The name of the variable with the password, and how PostgreSQL is to encrypt."""
    query = dict(parse_qsl(text, keep_blank_values=True))
    variable = query.pop("password-env", USUAL_PASSWORD)
    sslmode = query.pop("sslmode", "disable") if scheme.service == "postgres" else "disable"
    if query:
        parameters = "the only parameter is password-env=VARIABLE"
        if scheme.service == "postgres":
            parameters = "the parameters are password-env=VARIABLE and sslmode=MODE"
        raise UsageError(f"{url}: {', '.join(query)} is not known: {parameters}")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise UsageError(f"{url}: password-env={variable} is no name of a variable")
    for known in get_args(SslMode):
        if sslmode == known:
            return variable, known
    raise UsageError(f"{url}: sslmode={sslmode} is not known: there are {', '.join(get_args(SslMode))}")
