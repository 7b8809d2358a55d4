"""Applications that cannot be asked, and files that are wrong: a sentence, and no verdict."""

import socket
import sys
from pathlib import Path

import pytest

from lockstorm.application.application_file import read_application
from lockstorm.base.errors import UsageError
from lockstorm.servers.services import missing
from tests.application.described import CREDITS, NIGHTLY, SERVICES, UNFOLLOWED_FILE, described
from tests.helpers.support import lockstorm

need_postgres = pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")

CHECK = '[[check]]\nsql = "select remaining from users where id = 1"\nequals = "10 - consume.ok"'
COUNTER = '[[check]]\nmodel = "counter"\nstarts = 10\n'
JOB = f'times = 3\n[[request]]\nname = "job"\nsql = "select 1"\n{COUNTER}add = {{ job = 1 }}'
HTTP = 'http = "POST /resources/1/consume"'
JOB_TOO = '[[request]]\nname = "nightly"\ncommand = ["true"]\n'
ROOM = 'ready = "GET /health"\ninstances = 4\n'
SCRIPT = '[locks]\nscripts = [{ sha1 = "c3", does = "releases" }]\n[[check]]'
WRONG = {  # what is replaced, by what, and words of the message
    "unknown key": ("times = 3", "time = 3", ":12: unknown key 'time' in [request]: did you mean times?"),
    "no port": ('"{port}"', '"8080"', ":3: {port} is missing"),
    "unknown place": ("{port}", "{sport}", ":3: {sport} is not known here: there are {port}, {instance}, {redis}"),
    "ready": ("GET /health", "PING", ":4: ready 'PING' has to be GET and a path"),
    "no file": ("credits.sql", "nothere.sql", ": setup: there is no file"),
    "name": ('name = "consume"', 'name = "Consume it"', ":10: 'Consume it': a name has small letters"),
    "method": ("POST /", "FETCH /", ":11: http has to be a method and a path"),
    "times": ("times = 3", "times = 99", ":12: times has to be a whole number from 1 to 12"),
    "two ways": ("times = 3", 'sql = "select 1"', "a request has one of http, redis, sql and command"),
    "no way": (HTTP, "", "a request has one of http, redis, sql and command"),
    "no command words": (HTTP, "command = []", "command has to be a list of words"),
    "command port": (HTTP, 'command = ["job", "{port}"]', ":11: {port} is not known here: there are {number}, {uuid}"),
    "no room": ('ready = "GET /health"\n', ROOM, "a request with command runs as an instance of its own: at most 3"),
    "count": ("consume.ok", "eat.ok", ":15: eat.ok: there is no such number; of each request (consume) there are .ok"),
    "no check": (CHECK, "", "[[check]]: from 1"),
    "no command": ("command = ", "commands = ", "unknown key 'commands' in [app]: did you mean command?"),
    "lock": ("[[check]]", SCRIPT, "40 hexadecimal digits"),
    "model": (CHECK, '[[check]]\nmodel = "lamp"', "there is no model of answers called 'lamp'"),
    "no add": (CHECK, COUNTER, "a counter needs the requests that change it, as in add = { consume = -1 }"),
    "add": (CHECK, COUNTER + "add = { eat = -1 }", ":16: eat: there is no such request; there are consume"),
    "amount": (CHECK, COUNTER + "add = { consume = 1.5 }", ":16: add: 1.5 has to be a whole number"),
    "reads": (CHECK, COUNTER + 'add = { consume = 1 }\nreads = ["consume"]', ":17: consume is named twice"),
    "reads what": (CHECK, COUNTER + "add = { consume = 1 }\nreads = 1", ":17: reads has to be a list of requests"),
    "foreign": (CHECK, COUNTER + 'writes = ["consume"]', "writes is not a key of a check with model = 'counter'"),
    "both": (CHECK, COUNTER + 'sql = "select 1"', "sql is not a key of a check with model = 'counter'"),
    "alone": (CHECK, CHECK + "\nstarts = 10", ":16: starts belongs to a check with model"),
    "writes": (CHECK, '[[check]]\nmodel = "register"\nwrites = ["consume"]', "consume has to write {number}"),
    "answer": (CHECK, COUNTER + 'add = { consume = 1 }\nanswer = "a..b"', ":17: answer 'a..b' has to be a key"),
    "sent": ("times = 3", JOB, "job has no answer: a model judges requests with http"),
    "timers": ('"GET /health"', '"GET /health"\ntimers = "10ms"', ":5: timers"),
    "reset": ("[[request]]", '[reset]\nmysql = "x"\n[[request]]', "unknown key 'mysql' in [reset]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_wrong_is_refused_with_the_line(tmp_path: Path, case: str) -> None:
    old, new, words = WRONG[case]
    extra = JOB_TOO if case == "no room" else ""
    file = described(tmp_path, CREDITS + extra, "late", (old, new))
    with pytest.raises(UsageError) as refused:
        read_application(file)
    assert words in str(refused.value) and str(refused.value).startswith(str(file))


def test_a_file_that_is_not_there_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lockstorm app init"):
        read_application(tmp_path / "none.toml")


BEFORE = (
    "before any request was sent: 'select remaining from users where id = 1' is 10, and 9 - consume.ok = 9 was right"
)
HOLIDAY = "instance 1 answered the request consume, alone, with 500; it said last: the database is on holiday"
RESET = '[reset]\npostgres = "update nothing set x = 1"\n[[request]]'
SILENT = """the answer of the request consume, alone, has no whole number at left: {"remaining": 9}"""
# What is replaced in a file that is right, by what; the exit status, and words of the sentence.
TROUBLE = {
    "ends": (
        '/credits.py", "{port}"',
        '/nothere.py", "{port}"',
        3,
        "instance 1: it ended with status 2; it said last: ",
    ),
    "fails": ('MODE = "late"', 'MODE = "broken"', 3, HOLIDAY),
    "check": ("10 - consume.ok", "9 - consume.ok", 2, BEFORE),
    "expression": ("10 - consume.ok", "10 - (consume.ok", 2, "at letter 17 of '10 - (consume.ok': ) is missing"),
    "statement": ("select remaining", "select nothing", 2, 'column "nothing" does not exist'),
    "answers": ("[[check]]", COUNTER + 'add = { consume = -1 }\nanswer = "left"\n[[check]]', 2, SILENT),
    "setup": ("[[request]]", RESET, 2, 'relation "nothing" does not exist'),
}


@need_postgres
@pytest.mark.parametrize("case", TROUBLE)
def test_what_cannot_be_asked_has_no_verdict(tmp_path: Path, case: str) -> None:
    old, new, status, words = TROUBLE[case]
    file = described(tmp_path, CREDITS, "late", (old, new))
    done = lockstorm("explore", "--app", str(file), "--schedules", "3", "--workers", "1")
    assert done.returncode == status, done.stdout + done.stderr
    assert words in (done.stdout + done.stderr).replace("\n", " ")


# What it does instead of answering, and what the sentence says of that.
UNFOLLOWED = {
    "tls": "a program speaks TLS to it, which is not followed",
    "stranger": "it wanted to connect to 127.0.0.1:27017, where no server of its file is",
    "padded": "it wanted to connect to 127.0.0.1:27017, where no server of its file is",
    "local": "it wanted to connect to /run/postgresql/.s.PGSQL.5432",
    "upgrade": "instance 1 answered the request ask, alone, with 101: what follows is not HTTP/1.1",
    "other": "instance 1 ended the connection of the request ask, alone, without an answer in HTTP/1.1",
    "closes": "without an answer in HTTP/1.1; it said last: goodbye",
    "redirects": "has a verdict: no instance asked its servers anything",
    "daemon": "it ended with status 0 (a service that makes itself a daemon has to stay in the foreground)",
}


def unfollowed(directory: Path, mode: str) -> Path:
    file = directory / "lockstorm-app.toml"
    file.write_text(UNFOLLOWED_FILE.format(python=f'"{sys.executable}"', services=SERVICES, mode=mode))
    return file


@pytest.mark.parametrize("mode", UNFOLLOWED)
def test_what_cannot_be_followed_is_said(tmp_path: Path, mode: str) -> None:
    done = lockstorm("explore", "--app", str(unfollowed(tmp_path, mode)), "--schedules", "3", "--workers", "1")
    assert done.returncode == 3, done.stdout + done.stderr
    assert UNFOLLOWED[mode] in done.stdout.replace("\n", " ")


def test_a_server_of_somebody_else_is_not_reached(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 27017)) as stranger:
        stranger.settimeout(0)
        done = lockstorm("explore", "--app", str(unfollowed(tmp_path, "stranger")), "--schedules", "3")
        assert done.returncode == 3 and UNFOLLOWED["stranger"] in done.stdout.replace("\n", " ")
        with pytest.raises(BlockingIOError):
            stranger.accept()


def test_an_instance_reaches_itself(tmp_path: Path) -> None:
    done = lockstorm("explore", "--app", str(unfollowed(tmp_path, "itself")), "--schedules", "3", "--workers", "1")
    assert done.returncode == 0, done.stdout + done.stderr


@need_postgres
def test_a_setup_that_is_refused_is_named(tmp_path: Path) -> None:
    file = described(tmp_path, CREDITS, "late")
    (tmp_path / "credits.sql").write_text("create table users (id int primary key, remaining int);\ncreate tabel x;\n")
    done = lockstorm("explore", "--app", str(file), "--schedules", "3", "--workers", "1")
    assert done.returncode == 2 and "credits.sql" in done.stderr and "syntax error" in done.stderr


@need_postgres
def test_a_service_that_listens_nowhere_is_not_waited_for(tmp_path: Path) -> None:
    sleeper = ('"-c", "import time; time.sleep(1e9)", "{port}"', 'ready = "GET /health"\n')
    file = described(tmp_path, CREDITS, "late", (sleeper[1], ""))
    text = file.read_text()
    begin, end = text.index('"' + str(Path(__file__).parent)), text.index('"{port}"')
    file.write_text(text[:begin] + sleeper[0].removesuffix('"{port}"') + text[end:])
    done = lockstorm("explore", "--app", str(file), "--schedules", "3", "--workers", "1")
    assert done.returncode == 3
    assert "instance 1 is not ready after 300 s of its time: it does not listen on port" in done.stdout


@need_postgres
def test_a_batch_job_that_fails_alone_has_no_verdict(tmp_path: Path) -> None:
    file = described(tmp_path, CREDITS.partition("[[check]]")[0] + NIGHTLY, "row", ('"wrong"', '"fails"'))
    done = lockstorm("explore", "--app", str(file), "--schedules", "3", "--workers", "1")
    assert done.returncode == 3
    assert "instance 3, the request nightly, alone, ended with status 3" in done.stdout.replace("\n", " ")
