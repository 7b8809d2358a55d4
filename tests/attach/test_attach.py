"""`lockstorm attach` on one server: what is played, what is touched, and what is left."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base.paths import runnable
from lockstorm.scenario.attached_play import KNOWN, attached_scenarios
from lockstorm.scenario.scenario import scenarios
from tests.helpers.attaching import children_of, traces_of_clients
from tests.helpers.outside_servers import OutsideServer, outside_server, plays
from tests.helpers.proxying import wait_until
from tests.helpers.support import ENVIRONMENT, lockstorm, start_lockstorm

pytestmark = pytest.mark.waits

SECRET = "correct-horse"


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[OutsideServer]:
    with outside_server(tmp_path) as started:
        yield started


def attached(outside: OutsideServer, *words: str, status: int = 0, database: int = 0, **more: Any) -> dict[str, Any]:
    url = f"redis://{outside.place}/{database}"
    done = lockstorm("attach", url, *words, "--json", **more)
    assert done.returncode == status, done.stderr + done.stdout
    assert done.stderr == ""
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def refused(*words: str, **more: Any) -> str:
    done = lockstorm("attach", *words, **more)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("\n") == 1
    return done.stderr


def await_key(outside: OutsideServer) -> None:
    wait_until(lambda: outside.ask("--scan", "--pattern", "lockstorm:attach:*"))


def await_empty(outside: OutsideServer) -> None:
    outside.await_answer("0", "DBSIZE")


# --- what is played ---


def test_a_paused_holder_of_a_library_is_found(outside: OutsideServer, tmp_path: Path) -> None:
    saved = tmp_path / "gc.history"
    words = ("--adapter", "redis-py", "--scenario", "gc-pause")
    answer = attached(outside, *words, "-o", str(saved), status=1)
    (trial,) = answer["trials"]
    assert trial["sentence"].startswith("Mutual exclusion violated, integrity violated")
    assert trial["faults"] == [{"name": "pause-client", "target": "client-1", "proved": True}]
    assert trial["versions"]["redis-server"] == answer["server"]["version"]
    assert answer["exit"] == 1
    url = f"redis://{outside.place}/0"
    again = f"lockstorm attach {url} --scenario gc-pause --adapter redis-py --seed 1"
    assert trial["replay"] == again
    judged = lockstorm("check", str(saved), "--json")
    assert json.loads(judged.stdout)["verdict"]["mutual_exclusion"]["status"] == "violated"
    assert outside.ask("DBSIZE") == "0"


def test_the_end_has_a_line_for_each_trial_and_their_count(outside: OutsideServer) -> None:
    words = ("attach", f"redis://{outside.place}/0", "--adapter", "redis-py", "--scenario", "gc-pause,contention")
    outside.ask("SET", "other", "1")
    done = lockstorm(*words, "--yes")
    assert done.returncode == 1, done.stderr
    again = f"again: {runnable('lockstorm attach')} {words[1]} --scenario gc-pause --yes --adapter redis-py"
    assert again in done.stdout and done.stdout.endswith("\nOf 2 cases: 1 passed, 1 failed, 0 inconclusive\n")
    assert "As any lock with a lease (set-nx-px) on servers that lockstorm starts." in done.stdout
    table = done.stdout[done.stdout.rindex("again: ") :]
    assert re.search(r"✗ +gc-pause +Mutual exclusion violated.*; as any lock with a lease", table), table
    assert re.search(r"✓ +contention +Mutual exclusion holds", table)
    outside.ask("DEL", "other")
    quiet = lockstorm(*words, "-q").stdout
    assert "contention" not in quiet and quiet.count("again: ") == 1 and "--yes" not in quiet
    assert quiet.endswith("\nOf 2 cases: 1 passed, 1 failed, 0 inconclusive\n")


def test_a_control_holds(outside: OutsideServer) -> None:
    answer = attached(outside, "--adapter", "redis-py", "--scenario", "gc-pause,crash-holder", "--control")
    assert [trial["exit"] for trial in answer["trials"]] == [0, 0]


@pytest.mark.slow("plays every scenario, in real time", seconds=30)
def test_every_scenario_is_played(outside: OutsideServer) -> None:
    answer = attached(outside, "--lock", "set-nx-px", status=1)
    found = {trial["scenario"]: trial["exit"] for trial in answer["trials"]}
    broken = ("gc-pause", "partition-holder", "packet-delay", "pause-after-check")
    assert {name: found[name] for name in broken} == dict.fromkeys(broken, 1)
    harmless = ("contention", "connection-closed", "crash-holder", "lost-credits", "lossy-links")
    assert {name: found[name] for name in harmless} == dict.fromkeys(harmless, 0)
    assert set(found.values()) == {0, 1}


def test_every_scenario_has_a_name_that_run_knows_too() -> None:
    assert set(KNOWN) <= set(scenarios())
    assert set(attached_scenarios()) - set(scenarios()) == {"lossy-links"}


def test_lost_answers_are_survived_in_another_database(outside: OutsideServer) -> None:
    outside.ask("SET", "other", "1")  # in database 0
    words = ("--lock", "set-nx-px", "--scenario", "lossy-links", "--clients", "2")
    (trial,) = attached(outside, *words, database=3)["trials"]
    assert [(fault["name"], fault["proved"]) for fault in trial["faults"]] == [("lose-reply", True)] * 2
    assert trial["sentence"] == "Mutual exclusion holds, integrity holds, liveness holds"
    assert outside.ask("KEYS", "*") == "other"
    assert outside.ask("-n", "3", "DBSIZE") == "0"


# --- what is touched ---


def test_a_dry_run_says_what_would_be_touched_and_touches_nothing(outside: OutsideServer) -> None:
    outside.ask("SET", "other", "1")
    before = outside.ask("INFO", "commandstats")
    words = ("--adapter", "redis-py", "--scenario", "gc-pause", "--dry-run")
    done = lockstorm("attach", f"redis://{outside.place}", *words)
    version = re.search(r"redis_version:(\S+)", outside.ask("INFO", "server"))
    assert version and done.returncode == 0
    assert done.stdout.splitlines() == [
        f"server     server at {outside.place}, version {version[1]}: database 0 has 1 key",
        "keys       only names that contain lockstorm:attach:RUN:, removed at the end",
        "lock       adapter:redis-py",
        f"scenario   gc-pause: {scenarios()['gc-pause'].summary}",
        "nothing was touched: this was a dry run",
    ]
    after = outside.ask("INFO", "commandstats")
    changed = {line.split(":")[0] for line in set(after.splitlines()) - set(before.splitlines())}
    assert changed <= {"cmdstat_ping", "cmdstat_info", "cmdstat_dbsize"}
    answer = attached(outside, *words)
    assert (answer["dry_run"], answer["trials"], answer["scenarios"]) == (True, [], ["gc-pause"])
    assert answer["server"]["keys"] == 1


def test_a_database_with_keys_is_left_alone_without_yes(outside: OutsideServer) -> None:
    outside.ask("SET", "other", "1")
    words = ("--lock", "set-nx-px", "--scenario", "gc-pause", "--control")
    assert refused(f"redis://{outside.place}", *words) == (
        f"lockstorm: database 0 of {outside.place} is not empty: it has 1 key. attach makes only keys whose names "
        "contain lockstorm:attach: and removes them at the end: add --yes to go on, or name an empty database\n"
    )
    assert outside.ask("KEYS", "*") == "other"
    attached(outside, *words, "--yes")
    assert outside.ask("KEYS", "*") == "other"


def test_keys_that_a_trial_leaves_are_removed(outside: OutsideServer) -> None:
    """A holder dies with a lock that never expires."""
    answer = attached(outside, "--lock", "setnx", "--scenario", "crash-holder", "--lease", "2000ms", status=1)
    assert 1 <= answer["removed"] <= plays(answer)
    assert outside.ask("DBSIZE") == "0"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_nothing_is_left_when_the_command_is_ended(outside: OutsideServer, number: int, status: int) -> None:
    outside.ask("SET", "other", "1")
    words = ("--lock", "setnx", "--scenario", "contention", "--duration", "60s", "--yes")
    command = start_lockstorm("attach", f"redis://{outside.place}", *words)
    await_key(outside)
    command.send_signal(number)
    command.communicate(timeout=60)
    assert command.returncode == status
    outside.await_answer("other", "KEYS", "*")
    wait_until(lambda: "lockstorm:attach:" not in outside.ask("KEYS", "*"))
    assert outside.ask("KEYS", "*") == "other"
    assert outside.connections() == []


def test_the_end_of_the_gateway_is_said(outside: OutsideServer) -> None:
    words = ("--lock", "set-nx-px", "--scenario", "contention", "--duration", "3s")
    command = start_lockstorm("attach", f"redis://{outside.place}", *words)
    outside.await_answer("lockstorm:attach:", "KEYS", "*")
    gateways = [pid for pid in children_of(command.pid) if b"gateway_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(gateways[0], signal.SIGKILL)
    _, errors = command.communicate(timeout=60)
    assert (len(gateways), command.returncode) == (1, 3)
    sentence = r"lockstorm: the gateway has ended: keys whose names contain lockstorm:attach:\w{12}: may be left\n"
    assert re.fullmatch(sentence, errors)


@pytest.mark.slow("asks a server that has gone, for 20 s", seconds=25)
def test_keys_that_cannot_be_removed_are_said(outside: OutsideServer) -> None:
    words = ("--lock", "set-nx-px", "--scenario", "contention", "--duration", "1s")
    command = start_lockstorm("attach", f"redis://{outside.place}", *words)
    outside.await_answer("lockstorm:attach:", "KEYS", "*")
    outside.process.kill()
    _, errors = command.communicate(timeout=120)
    assert command.returncode == 3
    sentence = r"contain lockstorm:attach:\w{12}: may be left: no server answers at \S+: connection refused"
    assert re.search(sentence, errors) and errors.count("\n") == 1


# --- passwords ---


def test_the_password_is_in_no_result_no_history_and_no_process_of_a_client(tmp_path: Path) -> None:
    saved = tmp_path / "one.history"
    options = ("--user", "app", "on", f">{SECRET}", "~lockstorm:attach:*", "+@all", "--requirepass", "another")
    with outside_server(tmp_path, *options, cli=("-a", "another", "--no-auth-warning")) as outside:
        url = f"redis://app@{outside.place}?password-env=STAGING_SECRET"
        words = ("--adapter", "redis-py", "--scenario", "contention", "--duration", "2s", "-o", str(saved))
        command = start_lockstorm("attach", url, *words, env={**ENVIRONMENT, "STAGING_SECRET": SECRET})
        outside.await_answer("lockstorm:attach:", "KEYS", "*")
        seen = traces_of_clients(command.pid)
        output, errors = command.communicate(timeout=60)
        assert command.returncode == 0, errors
        assert outside.ask("DBSIZE") == "0"
    assert len(seen) >= 4
    assert not any(SECRET.encode() in trace for trace in seen)
    assert SECRET not in output + errors
    assert SECRET.encode() not in saved.read_bytes()


def test_a_password_is_asked_for_checked_and_refused_in_the_url(tmp_path: Path) -> None:
    words = ("--lock", "set-nx-px")
    with outside_server(tmp_path, "--requirepass", SECRET, cli=("-a", SECRET, "--no-auth-warning")) as outside:
        url = f"redis://{outside.place}"
        without = {key: value for key, value in os.environ.items() if key != "LOCKSTORM_PASSWORD"}
        environment = {**without, **ENVIRONMENT}
        assert refused(url, *words, env=environment) == (
            f"lockstorm: {outside.place} asks for a password: put it into the variable LOCKSTORM_PASSWORD\n"
        )
        assert refused(url, *words, env={**environment, "LOCKSTORM_PASSWORD": "wrong"}) == (
            f"lockstorm: {outside.place} refuses the user or the password of the variable LOCKSTORM_PASSWORD: check "
            "both\n"
        )
        said = refused(f"redis://:{SECRET}@{outside.place}", *words)
        assert said == (
            "lockstorm: the URL contains a password, which other users of this machine could see: leave it out, and "
            "put the password into the variable LOCKSTORM_PASSWORD\n"
        )
    with outside_server(tmp_path) as outside:
        said = refused(f"redis://{outside.place}", *words, env={**environment, "LOCKSTORM_PASSWORD": SECRET})
        assert said == (
            f"lockstorm: {outside.place} has no password, and the variable LOCKSTORM_PASSWORD has one: unset it\n"
        )
