"""What a right lock of the same kind does, beside each violation of a user's own lock (issue #56)."""

import json
from pathlib import Path

import pytest

from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks
from lockstorm.results.verdict import FaultSeen, Verdict
from lockstorm.scenario.baseline import ASKED, CURES, baseline_in_short, baseline_of, is_own_mistake, right_lock
from lockstorm.scenario.scenario import scenarios
from tests.helpers.planting_served import BLIND_DELETE
from tests.helpers.results import made_property, made_verdict
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
    policy.write_text(
        f'[[lock]]\nadapter = "{blind}"\n[scenarios]\nplay = ["gc-pause", "release-race", "contention"]\n'
    )
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
    counts = text.splitlines()[-7:-5]
    assert [line.split() for line in counts] == [
        ["lock", "store", "cases", "passed", "failed", "inconclusive"],
        [f"adapter:{blind}", "open", "3", "1", "2", "0"],
    ], text
    assert "replace the lock" not in text and "release-race: Release in one script" in text
    assert text.index("release-race: A holder is paused") < text.index("gc-pause: A holder")  # its own mistake first


def test_a_quiet_gate_has_only_what_did_not_pass_and_the_count(blind: str, tmp_path: Path) -> None:
    policy = tmp_path / "lockstorm.toml"
    policy.write_text(f'[[lock]]\nadapter = "{blind}"\n[scenarios]\nplay = ["gc-pause", "contention"]\n')
    done = lockstorm("gate", "-q", "-f", str(policy), cwd=tmp_path)
    first, case, again, *rest = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    assert first.startswith(f"adapter:{blind}") and case.startswith("✗  gc-pause") and "contention" not in done.stdout
    assert again.startswith("again: ") and "run gc-pause --adapter" in again
    assert rest[0] == "Not safe: of 2 cases 1 failed, 1 passed" and rest[1].startswith("kept: ") and len(rest) == 4


def violated(*names: str, faults: tuple[str, ...] = ()) -> Verdict:
    properties = {name: made_property("violated" if name in names else "holds") for name in ASKED}
    return made_verdict(properties, required=[*ASKED], faults=[FaultSeen(fault, "x", True) for fault in faults])


@pytest.mark.parametrize(
    ("names", "faults", "words"),
    [
        (
            ("mutual_exclusion", "integrity"),
            ("pause-client", "kill-client", "pause-client"),
            "As any lock with a lease (set-nx-px): pause-client (gc-pause) can break mutual exclusion and integrity. "
            "Yours need not be worse.",
        ),
        (
            ("mutual_exclusion", "integrity"),
            ("delay-write", "partition"),
            "As any lock with a lease (set-nx-px): partition (partition-holder) can break mutual exclusion; "
            "delay-write (packet-delay) and partition (partition-holder) can break integrity. Yours need not be worse.",
        ),
        (
            ("integrity", "liveness"),
            ("kill-client", "pause-client"),
            None,  # gc-pause does not ask for liveness
        ),
        (
            ("mutual_exclusion", "liveness"),
            ("kill-client",),
            "No single fault of this storm breaks mutual exclusion and liveness of a right lock of this kind "
            "(set-nx-px).",
        ),
        (("integrity",), ("kill-client", "script-flush"), None),  # no scenario has that fault
        (("integrity",), (), None),
    ],
)
def test_a_storm_is_compared_by_the_scenarios_of_its_faults(
    names: tuple[str, ...], faults: tuple[str, ...], words: str | None
) -> None:
    verdict = violated(*names, faults=faults)
    assert baseline_of("set-nx-px", "storm-cuts", "open", verdict, is_attached=False) == words
    assert not is_own_mistake(words)
    if words and words.startswith("No single"):
        assert baseline_in_short(words) == (
            "; no single fault of this storm breaks mutual exclusion and liveness of a right lock of this kind"
        )


def test_on_servers_of_a_user_nothing_is_said_that_the_table_does_not_say() -> None:
    """Their settings may be the cause of what a right lock keeps on ours."""
    race, pause = violated("integrity"), violated("mutual_exclusion", "integrity")
    for scenario, is_attached, begins in (
        ("release-race", False, "A right lock of this kind keeps integrity here"),
        ("release-race", True, None),
        ("gc-pause", False, "As any lock with a lease (set-nx-px): yours is not worse. Kleppmann's figure: "),
        ("gc-pause", True, "As any lock with a lease (set-nx-px) on servers that lockstorm starts."),
    ):
        verdict = race if scenario == "release-race" else pause
        words = baseline_of("set-nx-px", scenario, "open", verdict, is_attached=is_attached)
        assert (words is None) if begins is None else str(words).startswith(begins)
    unknown = violated(
        "mutual_exclusion", "liveness"
    )  # the table does not say whether gc-pause leaves a client waiting
    assert baseline_of("set-nx-px", "gc-pause", "open", unknown, is_attached=False) is None
    assert baseline_of("no-lock-of-ours", "gc-pause", "open", pause, is_attached=False) is None


def test_a_storm_and_the_page_and_the_check_of_a_history_have_the_sentence(blind: str, tmp_path: Path) -> None:
    storm = ("storm", "--adapter", blind, "--faults", "pause-client", "--duration", "8s")
    begins = "As any lock with a lease (set-nx-px): pause-client (gc-pause) can break"
    done = lockstorm(*storm, "-o", str(tmp_path / "storm.history"), "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["baseline"].startswith(begins), done.stdout + done.stderr
    assert f"seed 1: {begins}" in lockstorm(*storm, "--trials", "2").stdout
    assert lockstorm("run", "release-race", "--adapter", blind, "-q", "-o", str(tmp_path / "race.history")).returncode
    Path(blind).unlink()  # a page runs no adapter
    for name, words in (("storm", begins), ("race", "A right lock of this kind keeps mutual exclusion and integrity")):
        lockstorm("report", str(tmp_path / f"{name}.history"), "-o", str(tmp_path / f"{name}.html"))
        assert f'<p class="baseline">{words}' in (tmp_path / f"{name}.html").read_text()
        assert words in lockstorm("check", str(tmp_path / f"{name}.history")).stdout


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
