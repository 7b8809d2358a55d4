"""The conformance run: a correct adapter passes, and each mistake is found by the check for it, with a message that
says what to correct."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import NotInstalled, Stalled
from lockstorm.cli.commands.adapter_command import STARTER_FILES, STARTERS
from lockstorm.conformance import adapter_check
from lockstorm.conformance.adapter_bench import LEASE_MS, AdapterBench
from lockstorm.conformance.adapter_check import one_check
from lockstorm.conformance.check_result import DoneCheck
from lockstorm.locks.adapter import PREFIX, SHIPPED, adapter_entry, shipped_adapters
from lockstorm.locks.adapter_lines import ProtocolError
from lockstorm.process.process import Sandbox
from lockstorm.servers.redis_server import RedisServer
from lockstorm.trial.stall_sentinel import StallSentinel
from tests.helpers.planting import USUAL, plant_in
from tests.helpers.stalls import beside_no_stall
from tests.helpers.support import lockstorm

pytestmark = pytest.mark.waits  # a library runs in real time only

RIGHT = """
HELLO["operations"] = ["renew", "is_held", "status"]
mine = str(os.getpid())
held = False
def owned():
    return (link.ask("GET", name) or b"").decode() == mine
def carried_out(asked):
    global held
    if asked["op"] == "release":
        held = False
        return owned() and link.ask("DEL", name)
    if asked["op"] == "is_held":
        return owned()
    if asked["op"] == "renew":
        return owned() and link.ask("PEXPIRE", name, lease_ms)
    held = lock(asked) == OK
    return held
def answer(asked):
    if asked["op"] == "hello":
        return lock(asked)
    if asked["op"] == "status":
        return {**OK, "held": held}
    try:
        if asked["op"] == "open":
            lock(asked)
            link.timeout_s, link.tries = 1, 1
            return OK
        return OK if carried_out(asked) else {"outcome": "refused"}
    except OSError as error:
        return {"outcome": "unknown", "error": str(error)}
"""


def right_but(was: str, becomes: str) -> str:
    assert RIGHT.count(was) == 1
    return RIGHT.replace(was, becomes)


def wait_of(wait_ms: int) -> str:
    return f"def answer(asked):\n    if 'wait_ms' in asked: asked['wait_ms'] = {wait_ms}\n    return lock(asked)"


PROGRAMS = (".py", ".mjs", ".cjs", ".go", ".java")
YES = "def answer(asked): return lock(asked) if asked['op'] == 'hello' else OK"
# A check, a mistake that it finds, and a part of its message.
MISTAKES = [
    ("grants", "HELLO['token'] = True\n" + USUAL, 'has to carry "token"'),
    (
        "grants",
        "HELLO['token'] = True\ndef answer(asked): return lock(asked) | ({'token': 7} if 'wait_ms' in asked else {})",
        "its second grant has the token 7, its first had 7",
    ),
    ("excludes", YES, "two copies of it hold the lock"),
    ("excludes", wait_of(6000), "is one try, without waiting"),
    ("waits_for_so_long", wait_of(0), "had to wait for 300 ms"),
    ("is_served", wait_of(0), "it did not wait"),
    ("releases_its_own", USUAL, "a release has to compare the owner first"),
    (
        "releases_its_own",
        right_but('owned() and link.ask("DEL", name)', 'not owned() or link.ask("DEL", name)'),
        "which changes nothing: refused",
    ),
    (
        "is_held_asks_servers",
        right_but('"is_held":\n        return owned()', '"is_held":\n        return held'),
        "not a variable",
    ),
    ("status_reports_belief", right_but('"held": held', '"held": False'), "its status says"),
    (
        "renews",
        right_but('owned() and link.ask("PEXPIRE", name, lease_ms)', "owned()"),
        "was free when its first lease was over",
    ),
    (
        "renews",
        right_but('owned() and link.ask("PEXPIRE", name, lease_ms)', 'link.ask("SET", name, mine, "PX", lease_ms)'),
        "a renewal must not take it again",
    ),
    ("keeps", "HELLO['renews'] = True\n" + USUAL, "another copy got the lock after two leases and a half"),
    ("lasts", "HELLO['lease'] = False\n" + USUAL, "while its holder lived: it has a lease"),
    (
        "expires",
        "def answer(asked):\n    if asked['op'] == 'open': asked['lease_ms'] = 60000\n    return lock(asked)",
        "it did not answer acquire within",
    ),
    ("connects_where_open_says", YES, "connect to those, nowhere else"),
    (
        "survives_silence",
        right_but('{"outcome": "unknown", "error": str(error)}', '{"outcome": "refused"}'),
        "so it is unknown whether they carried it out",
    ),
    ("ends", "import atexit\natexit.register(time.sleep, 60)\n" + USUAL, "leave the loop at the end of standard input"),
]


@pytest.fixture(scope="module")
def servers() -> Iterator[list[RedisServer]]:
    sandbox = Sandbox()
    try:
        server = RedisServer(sandbox, "redis-1", clock=None)
        server.ready()
        server.listen()
        yield [server]
        server.close()
    finally:
        sandbox.close()


def checked(program: str, check: str, servers: list[RedisServer]) -> DoneCheck:
    servers[0].link.flushall()
    return one_check(AdapterBench(adapter_entry(PREFIX + program), servers, "check"), getattr(adapter_check, check))


@beside_no_stall(LEASE_MS)
@pytest.mark.parametrize(("check", "body", "message"), MISTAKES, ids=[message for *_, message in MISTAKES])
def test_a_mistake_is_found_and_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: list[RedisServer], check: str, body: str, message: str
) -> None:
    if check == "expires":
        monkeypatch.setattr(adapter_check, "ANSWER_LIMIT_S", 1.5)
    monkeypatch.setattr("lockstorm.locks.adapter.END_LIMIT_S", 1.0)
    done = checked(plant_in(tmp_path, body), check, servers)
    assert not done.ok and message in done.wrong, done


@beside_no_stall(LEASE_MS)
@pytest.mark.parametrize("check", sorted({check for check, *_ in MISTAKES}))
def test_without_the_mistake_the_same_check_passes(tmp_path: Path, servers: list[RedisServer], check: str) -> None:
    endless = right_but("lock(asked) == OK", "lock(asked) == OK and bool(link.ask('PERSIST', name))")
    body = endless if check == "lasts" else RIGHT
    program = "python-redis-lock-renew" if check == "keeps" else plant_in(tmp_path, body)
    done = checked(program, check, servers)
    assert done.ok, done


def test_what_fails_beside_a_stall_is_checked_again_with_a_longer_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: list[RedisServer]
) -> None:
    leases = []

    def check(bench: AdapterBench) -> None:
        """the lease is kept"""
        leases.append(bench.lease_ms)
        if len(leases) < 3:
            raise ProtocolError("another copy got the lock")

    monkeypatch.setattr(StallSentinel, "find_stall", lambda _: None)
    bench = AdapterBench(adapter_entry(PREFIX + plant_in(tmp_path, RIGHT)), servers, "check")
    assert one_check(bench, check) == DoneCheck("the lease is kept", False, "another copy got the lock")
    leases.clear()
    monkeypatch.setattr(StallSentinel, "find_stall", lambda _: Stalled("it stood still") if len(leases) < 3 else None)
    assert one_check(bench, check) == DoneCheck("the lease is kept", True, "")
    assert leases == [LEASE_MS, 2 * LEASE_MS, 4 * LEASE_MS]


def test_a_whole_run_says_what_is_wrong_and_ends_with_1(tmp_path: Path) -> None:
    done = lockstorm("adapter", "check", plant_in(tmp_path, "HELLO['tcp'] = True" + RIGHT))
    assert done.returncode == 0 and "12 checks, 0 wrong" in done.stdout, done.stdout + done.stderr
    done = lockstorm("adapter", "check", plant_in(tmp_path, USUAL))
    assert done.returncode == 1, done.stderr
    assert "  WRONG  only the holder can release\n         a copy that was refused the lock" in done.stdout


ALL_CHECKS = pytest.mark.slow("plays all checks with a library", seconds=15)
ASKED_AGAIN = "version 3: a call whose context has ended leaves nothing, or can be asked once more"
CANCELS = "version 2: a cancelled call ends, and leaves nothing"
FORGETS = "version 2: forget ends threads and lock objects, and keeps connections"
HOSTS = "version 2: while a call of one thread waits, those of others are answered"
LIMITED = "a client that waits for a limited time is refused after it"
RENEWS = "a renewal makes the lease longer, and is refused when the lock is lost"
SAYS_UNKNOWN = "without an answer of its servers it says unknown, in time"
WAITS = "version 2: each form waits and leases as its hello says"
# Where the libraries deviate from their documentation (docs/adapter-cells.md); redisson passes the same checks.
UNKEPT = {
    "aioredlock": [RENEWS],
    "cirello-pglock": [HOSTS, WAITS],
    "etcd-election": [ASKED_AGAIN],
    "etcd3gw": [RENEWS, WAITS],
    "pals": [FORGETS],
    "portalocker": [SAYS_UNKNOWN],
    "redisson-fair": [CANCELS],
    "redisson-fenced": [WAITS],
    "redisson-multi": [CANCELS],
    "redisson-redlock": [CANCELS],
    "sherlock": [WAITS],
    "tooz-etcd": [LIMITED, WAITS],
    "tooz-postgres": [LIMITED, WAITS],
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "redis-py" else ALL_CHECKS) for name in shipped_adapters()]
)
def test_what_is_shipped_is_right(name: str) -> None:
    try:
        adapter_entry(PREFIX + name)
    except NotInstalled as reason:
        pytest.skip(str(reason))
    done = lockstorm("adapter", "check", name, timeout=300)
    unkept = UNKEPT.get(name, [])
    assert re.findall("^  WRONG  (.*)$", done.stdout, re.MULTILINE) == unkept, done.stdout + done.stderr
    assert done.returncode == (1 if unkept else 0), done.stdout + done.stderr


def test_what_is_shipped_is_short() -> None:
    """A shipped adapter shows how little code an adapter needs, what version 3 asks included. What speaks the protocol
    is shared, and does more."""
    folders = [path for path in (paths.ROOT / "adapters").iterdir() if path.is_dir()]
    programs = [path for folder in folders for path in folder.glob("*.*") if path.suffix in PROGRAMS]
    assert len(programs) > 2
    for path in programs:
        assert len(path.read_text().splitlines()) < (120 if path.stem in ("lines", "tasks") else 90), path


@pytest.mark.slow("puts a starter to the whole check", seconds=20)
def test_the_starter_passes_and_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    assert lockstorm("adapter", "init", "python", "-o", str(path)).returncode == 0
    again = lockstorm("adapter", "init", "python", "-o", str(path))
    assert again.returncode == 2 and "exists already" in again.stderr
    other = lockstorm("adapter", "init", "pyton", "-o", str(tmp_path / "other"))
    assert other.returncode == 2 and "did you mean python?" in other.stderr
    path.write_text(path.read_text().replace("/usr/bin/env python3", sys.executable))
    done = lockstorm("adapter", "check", str(path))
    assert done.returncode == 0 and "version 2: forget ends threads" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("language", sorted(STARTERS))
def test_a_starter_is_written_for_each_language(tmp_path: Path, language: str) -> None:
    starter = STARTERS[language]
    done = lockstorm("adapter", "init", language, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    program = starter.program or starter.main
    assert text.startswith(f"./{starter.main}") and text.endswith(f"check ./{program}")
    assert starter.first in text
    assert {path.name for path in tmp_path.iterdir()} == set(starter.files)
    for name, source in starter.files.items():
        assert (tmp_path / name).read_text() == (STARTER_FILES / source).read_text()
    assert (tmp_path / starter.main).stat().st_mode & 0o111
    (tmp_path / starter.main).unlink()
    again = lockstorm("adapter", "init", language, cwd=tmp_path)
    beside = len(starter.files) > 1
    assert again.returncode == (2 if beside else 0)
    assert not beside or ("exists already" in again.stderr and not (tmp_path / starter.main).exists())


# The protocol comes with lockstorm, so a starter has little more than the lock.
CODE_LINES_MOST = {"lock-adapter.py": 30, "lock-adapter.cjs": 30, "lock-adapter.go": 30, "LockAdapter.java": 30}
NO_CODE = re.compile(r"""\W*$|//|\#|import\b|package\b|const .* = require\(|from .* import\b|"[^ ]*"( //.*)?$""")


@pytest.mark.parametrize("name", CODE_LINES_MOST)
def test_a_starter_is_short(name: str) -> None:
    """Lines that are neither comments, imports nor only brackets: the client, the lock and what serve() is given."""
    lines = [line.strip() for line in (STARTER_FILES / name).read_text().splitlines()]
    code = [line for line in lines if not NO_CODE.match(line)]
    assert 10 < len(code) <= CODE_LINES_MOST[name], code


def check_starter(program: Path) -> None:
    """It passes all checks, and is granted the lock in trials and in a search."""
    done = lockstorm("adapter", "check", str(program), timeout=300)
    assert done.returncode == 0 and "version 2: forget ends threads" in done.stdout, done.stdout + done.stderr
    done = lockstorm("run", "contention", "--adapter", str(program))
    assert done.returncode == 0 and "Mutual exclusion holds" in done.stdout, done.stdout + done.stderr
    done = lockstorm("explore", "--adapter", str(program), "--schedules", "40")
    assert done.returncode == 0 and "kept every promise in 40 schedules" in done.stdout, done.stdout + done.stderr


OWNER = "redis.call('GET', KEYS[1]) == ARGV[1] and "


def check_mistake(program: Path, source: Path) -> None:
    """The starter without its comparison of the owner: the check says so, and a search finds it."""
    text = source.read_text()
    assert text.count(OWNER) == 1
    source.write_text(text.replace(OWNER, ""))
    done = lockstorm("adapter", "check", str(program), "--json", timeout=300)
    wrong = {each["name"]: each["wrong"] for each in json.loads(done.stdout)["checks"] if not each["ok"]}
    assert done.returncode == 1 and "compare the owner" in wrong["only the holder can release"], done.stderr
    done = lockstorm("explore", "--adapter", str(program), "--schedules", "400", timeout=300)
    assert done.returncode == 1 and "breaks a promise of my lock" in done.stdout, done.stdout + done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The directory of a starter; what lockstorm builds of it goes when the test ends."""
    yield tmp_path
    shutil.rmtree(paths.cache("adapters") / "own" / tmp_path.relative_to("/"), ignore_errors=True)


@pytest.mark.slow("waits in real time", seconds=60)
def test_the_starter_in_javascript_passes(home: Path) -> None:
    check_installed("redis-semaphore")
    assert lockstorm("adapter", "init", "node", cwd=home).returncode == 0
    (home / "node_modules").symlink_to(paths.ROOT / "build" / "adapters" / "node" / "node_modules")
    check_starter(home / "lock-adapter.cjs")
    check_mistake(home / "lock-adapter.cjs", home / "lock-adapter.cjs")


@pytest.mark.slow("builds a program, and waits in real time", seconds=60)
def test_the_starter_in_go_passes(home: Path) -> None:
    check_installed("bsm-redislock")
    assert lockstorm("adapter", "init", "go", cwd=home).returncode == 0
    for name in ("go.mod", "go.sum"):  # the versions whose modules are there
        shutil.copy(SHIPPED / "bsm-redislock" / name, home)
    check_starter(home / "lock-adapter")
    check_mistake(home / "lock-adapter", home / "lock-adapter.go")


if CARGO := shutil.which("cargo", path=f"{os.environ['PATH']}:{Path.home()}/.cargo/bin"):

    @pytest.mark.slow("fetches and compiles crates", seconds=120)
    def test_the_starter_in_rust_passes(tmp_path: Path) -> None:
        assert lockstorm("adapter", "init", "rust", cwd=tmp_path).returncode == 0
        subprocess.run([str(CARGO), "build", "--quiet", "--release"], cwd=tmp_path, check=True)
        check_starter(tmp_path / "target" / "release" / "lock-adapter")


def check_installed(name: str) -> None:
    try:
        adapter_entry(PREFIX + name)
    except NotInstalled as reason:
        pytest.skip(str(reason))


@pytest.mark.slow("fetches a library, and starts a Java program for each check", seconds=90)
def test_the_starter_in_java_passes(home: Path) -> None:
    check_installed("redisson")  # which shows that there are Maven and a JDK
    assert lockstorm("adapter", "init", "java", cwd=home).returncode == 0
    subprocess.run(STARTERS["java"].first.split(), cwd=home, check=True, capture_output=True)
    check_starter(home / "lock-adapter")
    check_mistake(home / "lock-adapter", home / "LockAdapter.java")


@pytest.mark.slow("starts every shipped adapter; the page of adapters is compared every day", seconds=12)
def test_what_is_shipped_is_listed() -> None:
    done = lockstorm("adapter", "list")
    assert done.returncode == 0 and re.search(r"^redis-py +redis-py 8\.1\.0$", done.stdout, re.MULTILINE)
