"""A first lockstorm-app.toml, by what is in the directory of an application."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lockstorm.application.application_file import USUAL_FILE
from lockstorm.base.errors import UsageError
from lockstorm.base.read_file import read_text
from lockstorm.base.text_template import text_template

UNKNOWN = "fill-in"  # a word of a command that nothing in the directory says
TEMPLATE = Path(__file__).with_suffix(".toml.j2")
USES = {  # words in the file that names what an application needs
    "redis": re.compile(r"redis|redisson|redlock|jedis|lettuce|valkey|bullmq", re.IGNORECASE),
    "postgres": re.compile(r"postgres|psycopg|asyncpg|pgx|\"pg\"|lib/pq", re.IGNORECASE),
}
SERVERS = {
    "redis": "redis = {}",
    "postgres": 'postgres = { setup = "schema.sql", database = "app", user = "app" }  # fill in',
}


@dataclass(frozen=True)
class StarterFile:
    kind: str  # "a Spring Boot service"
    text: str


@dataclass(frozen=True)
class Guess:
    """How an application of one kind is started."""

    kind: str
    command: tuple[str, ...]
    environment: dict[str, str]
    ready: str | None = "/health"  # None: it is ready when it listens


def starter_application(directory: Path) -> StarterFile:
    """UsageError if nothing in the directory says what it is."""
    for name, guess in KINDS.items():
        if (directory / name).is_file():
            needs = read_text(directory / name, "it says what the application needs")
            return _starter(guess(directory, needs), needs)
    raise UsageError(f"{directory} has none of {', '.join(KINDS)}: name the directory of the application")


def _starter(guess: Guess, needs: str) -> StarterFile:
    used = [name for name, words in USES.items() if words.search(needs)] or list(SERVERS)
    environment = {name: value for name, value in guess.environment.items() if _is_for(value, used)}
    text = text_template(TEMPLATE).render(
        file=USUAL_FILE,
        command=json.dumps(guess.command),
        todo_command="  # fill in" if any(UNKNOWN in word for word in guess.command) else "",
        ready=guess.ready,
        environment=", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items()),
        servers=[SERVERS[name] for name in used],
        check='sql = "select remaining from users where id = 1"' if "postgres" in used else 'redis = "GET remaining"',
    )
    return StarterFile(guess.kind, text)


def _is_for(value: str, used: list[str]) -> bool:
    return all(f"{{{name}}}" not in value or name in used for name in SERVERS)


URLS = {"REDIS_URL": "{redis}", "DATABASE_URL": "postgresql://app@{postgres}/app"}


# With -Xbatch a method waits until it is compiled: in virtual time one thread runs at a time, and a JVM that compiles
# beside it starts with twice the work.
JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xbatch", "-XX:-UsePerfData", "-jar")


def _maven_archive(needs: str) -> str:
    own = needs.partition("</parent>")[2] or needs
    final = re.search(r"<finalName>([^<$]+)</finalName>", own)
    name = re.search(r"<artifactId>([^<]+)</artifactId>\s*<version>([^<]+)</version>", own)
    if final:
        return f"target/{final[1]}.jar"
    return f"target/{name[1]}-{name[2]}.jar" if name else f"target/{UNKNOWN}.jar"


def _spring(directory: Path, needs: str) -> Guess:
    return Guess(
        "a Spring Boot service" if "spring-boot" in needs else "a Java service",
        (*JAVA, _maven_archive(needs), "--server.port={port}"),
        {
            "SPRING_DATA_REDIS_URL": "{redis}",
            "SPRING_DATASOURCE_URL": "jdbc:postgresql://{postgres}/app",
            "SPRING_DATASOURCE_USERNAME": "app",
        },
        "/actuator/health" if "actuator" in needs else None,
    )


def _node(directory: Path, needs: str) -> Guess:
    try:
        main = json.loads(needs).get("main", "server.js")
    except (json.JSONDecodeError, AttributeError):
        main = "server.js"
    return Guess("a service on Node", ("node", str(main)), {"PORT": "{port}", **URLS})


def _django(directory: Path, needs: str) -> Guess:
    return Guess("a Django project", ("python", "manage.py", "runserver", "--noreload", "{port}"), URLS, "/")


def _python(directory: Path, needs: str) -> Guess:
    command = ("python", "-m", "uvicorn", f"{UNKNOWN}:app", "--host", "127.0.0.1", "--port", "{port}")
    return Guess("a Python service", command, URLS)


def _go(directory: Path, needs: str) -> Guess:
    module = re.search(r"^module\s+\S*?([^/\s]+)\s*$", needs, re.MULTILINE)
    return Guess("a Go service", (f"./{module[1] if module else UNKNOWN}",), {"PORT": "{port}", **URLS})


KINDS: dict[str, Callable[[Path, str], Guess]] = {
    "pom.xml": _spring,
    "package.json": _node,
    "manage.py": _django,
    "pyproject.toml": _python,
    "requirements.txt": _python,
    "go.mod": _go,
}
