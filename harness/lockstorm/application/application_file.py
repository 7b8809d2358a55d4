"""The file that says what an application is, `lockstorm-app.toml` (docs/applications.md): how one instance is started,
which servers it uses, what is sent to it, and what must be so at the end."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from lockstorm.application.answer_model import MODEL_KEYS, ModelChoice, read_model
from lockstorm.base.errors import UsageError
from lockstorm.base.toml_table import TomlTable, read_toml

USUAL_FILE = "lockstorm-app.toml"
INSTANCES_MOST, INSTANCES_USUAL = 4, 2  # LIBRARY_CLIENTS
REQUESTS_MOST, CHECKS_MOST, RESETS_MOST, TIMES_MOST = 16, 24, 16, 12  # application.h, WORKLOAD_CALLS
NAME = re.compile(r"[a-z_][a-z0-9_]{0,60}")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PORTS = {"redis": 6379, "postgres": 5432}  # where instances reach the servers; each is led to its own connection
ADDRESSES = {"redis": "redis://127.0.0.1:6379", "postgres": "127.0.0.1:5432"}
PLACE = re.compile(r"\{([a-z_]+)\}")
COUNTS = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)\.([A-Za-z_]+)")
COUNTED = ("ok", "refused", "unknown", "asked")
LEASE_USUAL_MS, LEASE_MOST_MS = 10_000, 10_000_000
LASTS_MOST_MS = TIMERS_MOST_MS = 600_000  # application_file.c
KEYS = {
    "": ("app", "servers", "reset", "request", "check", "locks"),
    "locks": ("keys", "lists", "not_locks", "tables", "scripts"),
    "app": ("name", "command", "instances", "ready", "directory", "environment", "lease", "lasts", "timers"),
    "servers": ("redis", "postgres"),
    "servers.redis": (),
    "servers.postgres": ("setup", "database", "user"),
    "reset": ("redis", "postgres"),
    "request": ("name", "http", "headers", "json", "body", "redis", "sql", "command", "times"),
    "check": ("sql", "redis", "equals", "at_least", "at_most", "text", "empty", *MODEL_KEYS),
}
Service = Literal["redis", "postgres"]
ASKED_BY: Mapping[str, Service] = {"sql": "postgres", "redis": "redis"}  # the key of a request or check
HINTS = {"keys": "key", "lists": "list", "not_locks": "no-key", "tables": "table"}  # in application_file.c
ACTIONS = {"acquires": "acquires", "releases": "releases", "extends": "extends", "nothing": "harmless"}
HINTS_MOST = 32
KINDS = {"equals": "equals", "at_least": "least", "at_most": "most", "text": "text"}  # in application_file.c


@dataclass(frozen=True)
class Database:
    """Of an application on PostgreSQL."""

    name: str = "app"
    user: str = "app"
    setup: Path | None = None  # statements that make the tables, and the rows that a schedule begins with


@dataclass(frozen=True)
class Asked:
    """What is sent to a server: a statement, or a command."""

    service: Service
    text: str


@dataclass(frozen=True)
class RequestChoice:
    """What is sent in a schedule, at most `times` times: to an instance, or to a server from which one takes it."""

    name: str
    times: int
    method: str = ""
    target: str = ""
    head: str = ""  # further lines of the head, each with its end
    body: str = ""
    asked: Asked | None = None
    command: tuple[str, ...] = ()  # of a program of its own


@dataclass(frozen=True)
class CheckChoice:
    """What a server is asked for, and what is right."""

    asked: Asked
    kind: str  # as application_file.c has it
    right: str  # the expression, or the text


@dataclass(frozen=True)
class LockHint:
    """What the user says of a lock that is not seen otherwise (struct lock_hint in harness/recogniser)."""

    kind: str
    pattern: str
    action: str = "acquires"
    owner: int = 0
    lease: int = 0


@dataclass(frozen=True)
class Application:
    """All settings of the file, checked."""

    file: Path
    name: str
    command: tuple[str, ...]
    instances: int
    ready: str  # the target of a GET that an instance answers with a status below 400 when it is ready; or empty
    directory: Path
    environment: Mapping[str, str]
    lease_ms: int  # the longest of its locks
    lasts_ms: int  # a schedule goes on for so long at least, for what instances do by themselves
    timers_ms: int  # the period of its timers; 0: it has none
    services: tuple[Service, ...]
    database: Database = field(default_factory=Database)
    resets: tuple[Asked, ...] = ()
    hints: tuple[LockHint, ...] = ()
    requests: tuple[RequestChoice, ...] = ()
    checks: tuple[CheckChoice | ModelChoice, ...] = ()


def read_application(file: Path) -> Application:
    """Raises UsageError, with the line, for the first mistake."""
    _, top = read_toml(file, KEYS, "`lockstorm app init` writes one")
    for name in ("app", "servers"):
        if name not in top.values:
            raise UsageError(f"{file}: [{name}] is missing")
    app, servers = top.table("app"), top.table("servers")
    services: tuple[Service, ...] = tuple(name for name in PORTS if name in servers.values)  # type: ignore[misc]
    if not services:
        raise servers.error(None, '[servers] names none: redis = {}, postgres = { setup = "schema.sql" }')
    requests = _requests(top, services)
    _check_room(app, requests)
    environment = _environment(app)
    command = _command(app)
    for key, texts in (("command", command), ("environment", environment.values())):
        for text in texts:
            _check_places(app, key, text, ("port", "instance", *services))
    if any(each.method for each in requests) and not any(
        "{port}" in text for text in (*command, *environment.values())
    ):
        raise app.error(
            "command",
            "{port} is missing: each instance listens on a port of its own, which the command or "
            "the environment has to hand to it",
        )
    lease_ms = app.duration_ms("lease", 1, LEASE_MOST_MS) or LEASE_USUAL_MS
    return Application(
        file=file,
        name=app.text("name") or file.absolute().parent.name,
        command=command,
        instances=app.number("instances", 1, INSTANCES_MOST, INSTANCES_USUAL) or INSTANCES_USUAL,
        ready=_ready(app),
        directory=(file.parent / (app.text("directory") or ".")).absolute(),
        environment=environment,
        lease_ms=lease_ms,
        lasts_ms=_lasts_ms(app, lease_ms, requests),
        timers_ms=app.duration_ms("timers", 1000, TIMERS_MOST_MS) or 0,
        services=services,
        database=_database(servers, file) if "postgres" in services else Database(),
        resets=_resets(top.table("reset"), services),
        hints=_hints(top.table("locks")),
        requests=requests,
        checks=_checks(top, services, requests),
    )


# --- [app] ---


def _texts(table: TomlTable, key: str) -> tuple[str, ...]:
    value = table.values.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(each, str) and each for each in value):
        raise table.error(
            key if value is not None else None,
            f'{key} has to be a list of words, as in {key} = ["python", "shop.py", "{{port}}"]',
        )
    return tuple(value)


def _command(app: TomlTable) -> tuple[str, ...]:
    return _texts(app, "command")


def _environment(app: TomlTable) -> dict[str, str]:
    value = app.values.get("environment", {})
    if not isinstance(value, dict) or not all(isinstance(each, str | int) for each in value.values()):
        raise app.error("environment", "environment has to be a table of texts")
    return {str(name): str(each) for name, each in value.items()}


def _check_places(table: TomlTable, key: str, text: str, known: tuple[str, ...]) -> None:
    for name in PLACE.findall(text):
        if name not in known:
            raise table.error(
                key, f"{{{name}}} is not known here: there are {', '.join(f'{{{each}}}' for each in known)}"
            )


def _lasts_ms(app: TomlTable, lease_ms: int, requests: Iterable[RequestChoice]) -> int:
    """Nobody answers what is sent to a server: an instance takes it when it looks there, which may be after a lease."""
    lasts_ms = app.duration_ms("lasts", 0, LASTS_MOST_MS)
    if lasts_ms is not None:
        return lasts_ms
    return min(lease_ms, LASTS_MOST_MS) if any(each.asked for each in requests) else 0


def _ready(app: TomlTable) -> str:
    text = app.text("ready")
    if text is None:
        return ""
    method, _, target = text.partition(" ")
    if method != "GET" or not target.startswith("/"):
        raise app.error("ready", f'ready {text!r} has to be GET and a path, as in "GET /health"')
    return target


# --- [servers], [reset] ---


def _database(servers: TomlTable, file: Path) -> Database:
    table = servers.table("postgres")
    setup = table.text("setup")
    path = file.parent / setup if setup else None
    if path and not path.is_file():
        raise servers.error("postgres", f"setup: there is no file {path}")
    names = {key: table.text(key, "app") or "app" for key in ("database", "user")}
    for key, name in names.items():
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,40}", name):
            raise servers.error("postgres", f"{key} {name!r}: small letters, digits and _")
    return Database(names["database"], names["user"], path)


def _resets(table: TomlTable, services: tuple[Service, ...]) -> tuple[Asked, ...]:
    resets = []
    for service in PORTS:
        value = table.values.get(service)
        if value is None:
            continue
        if service not in services:
            raise table.error(service, f"[servers] has no {service}")
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(each, str) and each.strip() for each in texts):
            raise table.error(service, f"{service} has to be a text, or a list of texts")
        resets += [Asked(service, each) for each in texts]
    if len(resets) > RESETS_MOST:
        raise table.error(None, f"[reset] has {len(resets)} texts, and {RESETS_MOST} is the most")
    return tuple(resets)


# --- [locks] ---


def _hints(table: TomlTable) -> tuple[LockHint, ...]:
    hints = []
    for key, kind in HINTS.items():
        if key in table.values:
            hints += [LockHint(kind, pattern) for pattern in _texts(table, key)]
    scripts = table.values.get("scripts", [])
    if not isinstance(scripts, list) or not all(isinstance(each, dict) for each in scripts):
        raise table.error(
            "scripts", 'scripts has to be a list, as in [{ sha1 = "c3f8...", does = "releases", owner = 1 }]'
        )
    for each in scripts:
        sha1, does = each.get("sha1"), each.get("does")
        numbers = {name: each.get(name, 0) for name in ("owner", "lease")}
        if not isinstance(sha1, str) or not re.fullmatch("[0-9a-fA-F]{40}", sha1):
            raise table.error("scripts", f"sha1 {sha1!r} has to be 40 hexadecimal digits, as EVALSHA names the script")
        if does not in ACTIONS:
            raise table.error("scripts", f"does {does!r}: there are {', '.join(ACTIONS)}")
        if set(each) - {"sha1", "does", *numbers} or not all(
            type(n) is int and 0 <= n <= 100 for n in numbers.values()
        ):
            raise table.error("scripts", "a script has sha1, does, and the numbers of the arguments owner and lease")
        hints.append(LockHint("script", sha1.lower(), ACTIONS[does], **numbers))
    if len(hints) > HINTS_MOST:
        raise table.error(None, f"[locks] has {len(hints)} entries, and {HINTS_MOST} is the most")
    return tuple(hints)


# --- [[request]] ---


def _requests(top: TomlTable, services: tuple[Service, ...]) -> tuple[RequestChoice, ...]:
    tables = top.tables("request")
    if not 1 <= len(tables) <= REQUESTS_MOST:
        raise top.error("request" if tables else None, f"[[request]]: from 1 to {REQUESTS_MOST} say what is sent")
    requests = tuple(_request(table, services) for table in tables)
    names = [each.name for each in requests]
    for table, name in zip(tables, names, strict=True):
        if names.count(name) > 1:
            raise table.error("name", f"there are two requests called {name}")
    return requests


def _request(table: TomlTable, services: tuple[Service, ...]) -> RequestChoice:
    name = table.required_text("name")
    if not NAME.fullmatch(name):
        raise table.error("name", f"{name!r}: a name has small letters, digits and _, as checks use it")
    times = table.number("times", 1, TIMES_MOST, 2) or 2
    ways = [key for key in ("http", "redis", "sql", "command") if key in table.values]
    if len(ways) != 1:
        raise table.error(None, "a request has one of http, redis, sql and command")
    if ways[0] == "command":
        command = _texts(table, "command")
        for word in command:
            _check_places(table, "command", word, ("number", "uuid", *services))
        return RequestChoice(name, times, command=command)
    if ways[0] != "http":
        return RequestChoice(name, times, asked=_asked(table, ways[0], services))
    method, _, target = table.required_text("http").partition(" ")
    if method not in METHODS or not target.startswith("/") or " " in target:
        raise table.error(
            "http", f'http has to be a method and a path, as in "POST /orders"; methods are {", ".join(METHODS)}'
        )
    content, body = _body(table)
    headers = {**content, **_headers(table)}
    for key, text in (("http", target), ("body", body), *(("headers", each) for each in headers.values())):
        for place in PLACE.findall(text) if key != "body" else []:
            if place not in ("number", "uuid"):
                raise table.error(key, f"{{{place}}} is not known here: there are {{number}} and {{uuid}}")
    head = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
    return RequestChoice(name, times, method, target, head, body)


def _check_room(app: TomlTable, requests: Sequence[RequestChoice]) -> None:
    if any(each.command for each in requests) and app.values.get("instances") == INSTANCES_MOST:
        raise app.error(
            "instances", f"a request with command runs as an instance of its own: at most {INSTANCES_MOST - 1}"
        )


def _headers(table: TomlTable) -> dict[str, str]:
    value = table.values.get("headers", {})
    if not isinstance(value, dict):
        raise table.error("headers", "headers has to be a table of texts")
    for name, each in value.items():
        if not isinstance(each, str) or "\n" in each or "\r" in each or not re.fullmatch(r"[!-9;-~]+", name):
            raise table.error("headers", f"headers: {name} is not a header's name with a text of one line")
    return dict(value)


def _body(table: TomlTable) -> tuple[dict[str, str], str]:
    """The headers that go with a body, and the body."""
    if "json" in table.values:
        if "body" in table.values:
            raise table.error("json", "a request has json or a body")
        value: Any = table.values["json"]
        return {"Content-Type": "application/json"}, msgspec.json.encode(value).decode()
    return {}, table.text("body", "") or "" if "body" in table.values else ""


def _asked(table: TomlTable, key: str, services: tuple[Service, ...]) -> Asked:
    service = ASKED_BY[key]
    if service not in services:
        raise table.error(key, f"[servers] has no {service}")
    return Asked(service, table.required_text(key))


# --- [[check]] ---


def _checks(
    top: TomlTable, services: tuple[Service, ...], requests: Sequence[RequestChoice]
) -> tuple[CheckChoice | ModelChoice, ...]:
    tables = top.tables("check")
    if not 1 <= len(tables) <= CHECKS_MOST:
        raise top.error(
            "check" if tables else None, f"[[check]]: from 1 to {CHECKS_MOST} say what must be so at the end"
        )
    names = [each.name for each in requests]
    asked = {each.name: each.target + each.body if each.method else None for each in requests}
    return tuple(
        read_model(table, asked) if "model" in table.values else _check(table, services, names) for table in tables
    )


def _check(table: TomlTable, services: tuple[Service, ...], requests: list[str]) -> CheckChoice:
    asks = [key for key in ASKED_BY if key in table.values]
    if len(asks) != 1:
        raise table.error(None, "a check has one of sql, redis and model")
    asked = _asked(table, asks[0], services)
    for key in MODEL_KEYS:
        if key in table.values:
            raise table.error(key, f'{key} belongs to a check with model = "counter" or "register"')
    ways = [key for key in (*KINDS, "empty") if key in table.values]
    if len(ways) != 1:
        raise table.error(None, f"a check has one of {', '.join(KINDS)} and empty = true")
    way = ways[0]
    if way == "empty":
        if table.values["empty"] is not True:
            raise table.error("empty", "empty is true: what is asked for must not be there")
        return CheckChoice(asked, "empty", "")
    value = table.values[way]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise table.error(way, f"{way} has to be a number or a text")
    right = str(value)
    if way != "text":
        for name, count in COUNTS.findall(right):
            if name not in requests or count not in COUNTED:
                raise table.error(
                    way,
                    f"{name}.{count}: there is no such number; of each request ({', '.join(requests)}) "
                    f"there are .{', .'.join(COUNTED)}",
                )
    return CheckChoice(asked, KINDS[way], right)
