"""`lockstorm app init` and `app check`."""

import json
import tomllib
from pathlib import Path

import pytest

from lockstorm.application.application_file import read_application
from lockstorm.application.starter_application import KINDS, starter_application
from lockstorm.base.errors import UsageError
from lockstorm.servers.services import missing
from tests.application.described import CREDITS, described
from tests.helpers.support import lockstorm

NEEDS = {
    "pom.xml": "<project><artifactId>shop</artifactId><version>1</version>spring-boot redisson postgresql</project>",
    "package.json": '{"main": "shop.js", "dependencies": {"ioredis": "5", "pg": "8"}}',
    "manage.py": "redis psycopg",
    "pyproject.toml": 'dependencies = ["redis", "psycopg"]',
    "requirements.txt": "redis\npsycopg\n",
    "go.mod": "module example.org/shop\nrequire github.com/redis/go-redis/v9\nrequire github.com/jackc/pgx/v5\n",
}
COMMANDS = {
    "pom.xml": "target/shop-1.jar",
    "package.json": "shop.js",
    "manage.py": "runserver",
    "pyproject.toml": "uvicorn",
    "requirements.txt": "uvicorn",
    "go.mod": "./shop",
}


@pytest.mark.parametrize("name", KINDS)
def test_a_starter_is_a_file_that_can_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(NEEDS[name])
    done = lockstorm("app", "init", str(tmp_path))
    assert done.returncode == 0 and "lockstorm app check" in done.stdout
    (tmp_path / "schema.sql").write_text("")
    values = tomllib.loads(done.stdout[done.stdout.index("[[app]]") :])
    assert Path(values["app"][0]["file"]).resolve() == tmp_path / "lockstorm-app.toml", "of a policy in this directory"
    application = read_application(tmp_path / "lockstorm-app.toml")
    assert application.services == ("redis", "postgres") and COMMANDS[name] in application.command
    again = lockstorm("app", "init", str(tmp_path))
    assert again.returncode == 2 and "exists already" in again.stderr


def test_only_the_servers_that_are_used_are_written(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"dependencies": {"ioredis": "5"}}')
    values = tomllib.loads(starter_application(tmp_path).text)
    assert values["servers"] == {"redis": {}}
    assert values["app"]["environment"] == {"PORT": "{port}", "REDIS_URL": "{redis}"}


@pytest.mark.parametrize(
    ("added", "archive", "ready"),
    [
        ("", "target/shop-1.jar", None),
        ("<build><finalName>store</finalName></build>", "target/store.jar", None),
        ("<artifactId>spring-boot-starter-actuator</artifactId>", "target/shop-1.jar", "GET /actuator/health"),
    ],
)
def test_a_spring_boot_service_is_started_as_maven_packs_it(
    tmp_path: Path, added: str, archive: str, ready: str | None
) -> None:
    (tmp_path / "pom.xml").write_text(NEEDS["pom.xml"].replace("</project>", f"{added}</project>"))
    app = tomllib.loads(starter_application(tmp_path).text)["app"]
    assert archive in app["command"]
    assert app.get("ready") == ready


def test_a_directory_with_nothing_in_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has none of pom\.xml, package\.json"):
        starter_application(tmp_path)


@pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")
def test_a_check_shows_what_a_request_does_and_warns(tmp_path: Path) -> None:
    file = described(tmp_path, CREDITS, "early")
    done = lockstorm("app", "check", str(file), "--json")
    assert done.returncode == 0, done.stderr
    checked = json.loads(done.stdout)
    (request,) = checked["requests"]
    assert [f"{each['kind']} {each['object']}".strip() for each in request["accesses"]] == [
        "lock-granted redis user:1:lock",
        "transaction-begun",
        "access-read postgres users id=1",
        "access-write postgres users id=1",
        "lock-released redis user:1:lock",
        "transaction-committed",
    ]
    assert [each["rule"] for each in checked["warnings"]] == ["unlock-before-commit"]
    assert checked["sentence"].endswith("took 1 lock and touched 1 row or key; 1 warning")
