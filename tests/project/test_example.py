"""docs/examples: lockstorm reports in plain words that a project's lock is not safe; the project follows the advice
and passes."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from lockstorm.base import paths
from lockstorm.process.process import Sandbox
from lockstorm.servers.redis_server import RedisServer
from tests.helpers.support import ENVIRONMENT

EXAMPLE = paths.ROOT / "docs" / "examples" / "stock"
JARGON = ("linearizab", "believed hold", "CAP", "quorum", "happens-before", "TTL", "residue")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "stock", ignore=shutil.ignore_patterns("runs", "__pycache__")))


def gate(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lockstorm", "gate", *words]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=600, env=ENVIRONMENT)


def follow_patch(project: Path) -> None:
    done = subprocess.run(["patch", "-p1", "-i", "advice.patch"], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_fails_in_words_that_everybody_understands_and_passes_after_following_them(project: Path) -> None:
    failed = gate(project)
    assert failed.returncode == 1, failed.stdout + failed.stderr
    told = " ".join(failed.stdout.split())
    for part in (
        "What happened gc-pause: A holder is paused past its lease, before its write; another client enters",
        "Why it matters Data was damaged: an update that its writer had been told was saved is gone",
        "Two workers were at work at the same time",
        "What to do Use set-nx-px-fenced, and a resource that refuses a late read or write.",
        "hands out a number that only grows, a fencing token. Send it along with every read and write",
        "refuse a number smaller than the largest it has seen",
        "The lock is chosen in stock/reserve.py:15.",
    ):
        assert part in told, part
    assert not [word for word in JARGON if word in failed.stdout]

    advised = re.search(r'\[\[lock\]\]\n\s*name = "(.+)"\n\s*store = "(.+)"\n', failed.stdout)
    assert advised
    policy = project / "lockstorm.toml"
    text = policy.read_text().replace('name = "set-nx-px"', f'name = "{advised[1]}"')
    policy.write_text(text.replace('store = "open"', f'store = "{advised[2]}"'))
    passed = gate(project)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "Safe, as far as this policy asks: of 7 cases 7 passed" in passed.stdout


@pytest.mark.slow("one more run of the example's gate", seconds=4)
def test_the_patch_does_what_the_gate_advises(project: Path) -> None:
    verdict = json.loads(gate(project, "--json").stdout)
    advice = verdict["locks"][0]["advice"]
    assert advice["broken"] == []
    follow_patch(project)
    (lock,) = tomllib.loads((project / "lockstorm.toml").read_text())["lock"]
    assert (lock["name"], lock["store"]) == (advice["lock"], advice["store"])
    assert gate(project).returncode == 0


def test_the_policy_points_at_the_line_that_takes_the_lock(project: Path) -> None:
    for taken in ("locks.set(", "locks.eval(ACQUIRE"):
        (lock,) = tomllib.loads((project / "lockstorm.toml").read_text())["lock"]
        file, line = lock["used"].split(":")
        assert taken in (project / file).read_text().splitlines()[int(line) - 1]
        if taken == "locks.set(":
            follow_patch(project)


# --- the code itself, against a real server ---


@pytest.fixture
def server() -> Iterator[RedisServer]:
    sandbox = Sandbox()
    try:
        started = RedisServer(sandbox, "redis-1", clock=None)
        started.ready()
        yield started
        started.close()
    finally:
        sandbox.close()


def code_of(project: Path) -> ModuleType:
    code = ModuleType("reserve")
    exec((project / "stock" / "reserve.py").read_text(), code.__dict__)
    return code


@pytest.fixture
def warehouse() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as ten_lamps:
        ten_lamps.execute("CREATE TABLE stock (article TEXT, left_over INTEGER, token INTEGER NOT NULL DEFAULT 0)")
        ten_lamps.execute("INSERT INTO stock (article, left_over) VALUES ('lamp', 10)")
        yield ten_lamps


class Interrupting:
    """A warehouse that calls `happens` once before the given statement, as if a worker was paused there."""

    def __init__(self, warehouse: sqlite3.Connection, before: str, happens: object) -> None:
        self.warehouse, self.before, self.happens = warehouse, before, happens

    def execute(self, statement: str, values: tuple[object, ...]) -> sqlite3.Cursor:
        if statement.startswith(self.before) and callable(self.happens):
            happens, self.happens = self.happens, None
            happens()
        return self.warehouse.execute(statement, values)

    def commit(self) -> None:
        self.warehouse.commit()


@pytest.mark.parametrize(("patched", "sold", "left"), [(False, True, 9), (True, False, 7)])
def test_a_worker_that_is_paused_past_its_lease(
    project: Path, server: RedisServer, warehouse: sqlite3.Connection, patched: bool, sold: bool, left: int
) -> None:
    """A worker sells one of ten lamps; before its write its lease ends and another worker sells three. The late write
    puts the three back into stock, unless the warehouse refuses it."""
    if patched:
        follow_patch(project)
    reserve = code_of(project).reserve

    def another() -> None:
        server.link.delete("lock:lamp")  # the lease is over
        assert reserve(server.link, warehouse, "lamp", 3)

    paused = Interrupting(warehouse, "UPDATE stock SET left_over", another)
    assert reserve(server.link, paused, "lamp", 1) is sold
    assert warehouse.execute("SELECT left_over FROM stock").fetchone() == (left,)


def test_its_workflow_uses_what_the_action_offers() -> None:
    workflow = yaml.safe_load((EXAMPLE / ".github" / "workflows" / "lock.yml").read_text())
    action = yaml.safe_load((paths.ROOT / "ci" / "action.yml").read_text())
    steps = workflow["jobs"]["gate"]["steps"]
    step = next(step for step in steps if step["uses"].startswith("OWNER/lockstorm/ci@"))
    assert set(step["with"]) <= set(action["inputs"])
    used = re.findall(r"steps\.(\w+)\.outputs\.(\w+)", json.dumps(steps))
    assert used and all(name == step["id"] and output in action["outputs"] for name, output in used)
