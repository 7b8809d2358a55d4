"""What a right lock of the same kind does, beside each violation of a user's own lock (issue #56)."""

import json
from pathlib import Path

import pytest

from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks
from lockstorm.scenario.baseline import CURES, right_lock
from lockstorm.scenario.scenario import scenarios
from tests.helpers.planting_served import BLIND_DELETE
from tests.helpers.support import lockstorm


@pytest.fixture
def blind(tmp_path: Path) -> str:
    path = tmp_path / "mine"
    path.write_text(BLIND_DELETE)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("scenario", "begins"),
    [
        ("gc-pause", "As any lock with a lease (set-nx-px): yours is not worse."),
        (
            "release-race",
            "A right lock of this kind keeps mutual exclusion and integrity here (set-nx-px): the mistake",
        ),
    ],
)
def test_a_violation_is_compared_with_a_right_lock(blind: str, scenario: str, begins: str) -> None:
    done = lockstorm("run", scenario, "--adapter", blind, "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["baseline"].startswith(begins), done.stderr
    assert begins in " ".join(lockstorm("run", scenario, "--adapter", blind, "-q").stdout.split())
    for more in (["--control"], ["--without", "LPOS"]):  # the table is about servers that lack nothing
        assert "baseline" not in json.loads(lockstorm("run", scenario, "--adapter", blind, *more, "--json").stdout)


def test_a_gate_says_what_mends_the_mistake_and_replaces_nothing(blind: str, tmp_path: Path) -> None:
    policy = tmp_path / "lockstorm.toml"
    policy.write_text(f'[[lock]]\nadapter = "{blind}"\n[scenarios]\nplay = ["gc-pause", "release-race"]\n')
    verdict = json.loads(lockstorm("gate", "-f", str(policy), "--json", cwd=tmp_path).stdout)
    short = {cell["scenario"]: cell["in_short"] for cell in verdict["cells"]}
    assert short["gc-pause"].endswith("; as any lock with a lease")
    assert short["release-race"].endswith("; a right lock of this kind keeps it")
    compared = {cell["scenario"]: cell["baseline"] for cell in verdict["cells"]}
    assert compared["gc-pause"].startswith("As any lock") and compared["release-race"].endswith(CURES["release-race"])
    (lock,) = verdict["locks"]
    assert lock["cures"] == [f"release-race: {CURES['release-race']}"]
    assert lock["advice"]["change"] == ""
    text = lockstorm("gate", "-f", str(policy), cwd=tmp_path).stdout
    assert "replace the lock" not in text and "release-race: Release in one script" in text
    assert text.index("release-race: A holder is paused") < text.index("gc-pause: A holder")  # its own mistake first


def test_each_kind_of_lock_has_a_right_one() -> None:
    known = {lock.name for lock in locks()}
    assert {right_lock(lock_named(name)) for name in known} <= known
    assert {right_lock(lock_named(f"adapter:lock:{name}")) for name in ("set-nx-px", "pubsub", "redlock")} <= known
    assert set(CURES) <= set(scenarios())


def test_a_place_that_does_not_exist_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text("lock = ...\n")
    policy = tmp_path / "lockstorm.toml"
    text = '[[lock]]\nname = "set-nx-px"\nused = "PLACE"\nrequire = ["liveness"]\n[scenarios]\nplay = ["contention"]\n'
    for place, warning in (("service.py:1", ""), ("gone.py:7", "used = 'gone.py:7': there is no such file")):
        policy.write_text(text.replace("PLACE", place))
        done = lockstorm("gate", "-f", str(policy), cwd=tmp_path)
        assert done.returncode == 0 and warning in done.stderr and ("warning" in done.stderr) == bool(warning)
