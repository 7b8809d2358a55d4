"""`lockstorm attach` on etcd that the test has started: what is played, touched, and left."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstorm.servers.services import missing
from tests.helpers.attaching import attach_refused, attach_to, traces_of_clients, wait_for_work, write_pause
from tests.helpers.daily import daily
from tests.helpers.outside_etcd import OutsideEtcd, outside_etcd
from tests.helpers.proxying import wait_until
from tests.helpers.support import ENVIRONMENT, lockstorm, start_lockstorm
from tests.helpers.tls_files import make_certificates

pytestmark = [pytest.mark.waits, pytest.mark.skipif(bool(missing("etcd")), reason=missing("etcd"))]

SECRET = "correct-horse"
# etcd grants 1 s as its shortest lease, and 2 s without these.
QUICK = ("--heartbeat-interval=20", "--election-timeout=100")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutsideEtcd]:
    with outside_etcd(tmp_path_factory.mktemp("etcd"), None, *QUICK) as started:
        yield started


@pytest.mark.lengthy("waits for the end of a lease of etcd")
def test_a_paused_holder_is_found_on_etcd(outside: OutsideEtcd) -> None:
    answer = attach_to(f"etcd://{outside.place}", "--lock", "etcd", "--scenario", "gc-pause", status=1)
    (trial,) = answer["trials"]
    assert trial["sentence"].startswith("Mutual exclusion violated, integrity violated")
    assert trial["versions"] == {"etcd": answer["server"]["version"]}
    assert trial["lease_ms"] == 1000 or trial.get("played_again"), "a trial that is played again goes at a slower pace"
    assert (answer["server"]["service"], answer["closed"]) == ("etcd", {})
    assert (outside.key_names(), outside.leases()) == ([], [])


def test_a_lease_is_as_long_as_etcd_grants_it(tmp_path: Path) -> None:
    words = ("--lock", "etcd", "--scenario", "gc-pause")
    with outside_etcd(tmp_path) as server:
        url = f"etcd://{server.place}"
        assert attach_refused(url, *words, "--lease", "1000ms") == (
            f"a lease of 1000 ms: {server.place} grants leases from 2000 to 86400000 ms only: choose one of these"
        )
        (trial,) = attach_to(url, *words, status=1)["trials"]
        assert trial["lease_ms"] == 2000
        assert trial["replay"].endswith(" --lease 2s")
        assert server.leases() == []


def test_a_dry_run_on_etcd_touches_nothing(outside: OutsideEtcd) -> None:
    outside.put("other", "1")
    before = outside.ask("/v3/kv/range", key="AA==")["header"]["revision"]
    words = ("--lock", "etcd-queue", "--scenario", "gc-pause")
    try:
        done = lockstorm("attach", f"etcd://{outside.place}", *words, "--dry-run")
        version = outside.ask("/v3/maintenance/status")["version"]
        assert done.stdout.splitlines()[:4] == [
            f"server     server at {outside.place}, version {version}: the keyspace has 1 key",
            "keys       only names that begin with lockstorm:attach:RUN: or, in hexadecimal, "
            "6c6f636b73746f726d3a6174746163683a, removed at the end",
            "leases     those that clients ask for, revoked at the end",
            "lock       etcd-queue",
        ]
        assert attach_refused(f"etcd://{outside.place}", *words) == (
            f"the keyspace of {outside.place} is not empty: it has 1 key. attach makes only keys that begin with "
            "lockstorm:attach: and leases, and removes them at the end: add --yes to go on, or name an empty cluster"
        )
        assert outside.ask("/v3/kv/range", key="AA==")["header"]["revision"] == before
        assert outside.leases() == []
        attach_to(f"etcd://{outside.place}", *words, "--control", "--yes")
        assert outside.key_names() == ["other"]
    finally:
        outside.ask("/v3/kv/deleterange", key="b3RoZXI=")


ENDED = [
    (lock, number, status)
    for lock in ("etcd", "etcd-queue")
    for number, status in ((signal.SIGKILL, -9), (signal.SIGINT, 130))
]


@pytest.mark.lengthy("each command is ended while its clients work, and the gateway cleans up")
@pytest.mark.parametrize(("lock", "number", "status"), daily(ENDED, ENDED[:1], "another lock, or another end", 2))
def test_keys_and_leases_are_removed_when_the_command_is_ended(
    outside: OutsideEtcd, lock: str, number: int, status: int
) -> None:
    words = ("--lock", lock, "--scenario", "contention", "--duration", "60s", "--lease", "60000ms")
    command = start_lockstorm("attach", f"etcd://{outside.place}", *words)
    wait_for_work(command, lambda: outside.key_names() and outside.leases())
    command.send_signal(number)
    command.communicate(timeout=60)
    assert command.returncode == status
    wait_until(lambda: (outside.key_names(), outside.leases()) == ([], []))


@pytest.mark.slow("certificates for one more service", seconds=5)
def test_etcd_by_tls_with_a_user(tmp_path: Path) -> None:
    place = make_certificates(tmp_path)
    ca, words = str(place / "ca.pem"), ("--lock", "etcd", "--scenario", "contention", "--duration", "2s")
    with outside_etcd(tmp_path, place) as server:
        where = f"localhost:{server.port}"
        assert attach_refused(f"etcds://app@{where}", *words, "--ca", ca) == (
            f"{where} knows no users: leave app@ out of the URL"
        )
        server.put("theirs", "1")
        server.ask_for_users("app", SECRET)
        assert attach_refused(f"etcds://{where}", *words, "--ca", ca) == (
            f"{where} asks for a user: write it before the host, etcd://USER@HOST:PORT"
        )
        assert attach_refused(f"etcds://app@{where}", *words, "--ca", ca) == (
            f"{where} asks for a password: put it into the variable LOCKSTORM_PASSWORD"
        )
        wrong = {**ENVIRONMENT, "LOCKSTORM_PASSWORD": "wrong"}
        assert attach_refused(f"etcds://app@{where}", *words, "--ca", ca, env=wrong) == (
            f"{where} refuses the user app or the password of the variable LOCKSTORM_PASSWORD: check both"
        )
        said = attach_refused(f"etcds://app@{where}", *words, env=wrong)
        assert said.startswith(f"{where} has a certificate that is not trusted (")
        said = attach_refused(f"etcd://app@{where}", *words, env=wrong)
        assert said.startswith(f"{where} closes the connection (")
        assert said.endswith("): use etcds:// if it expects TLS")
        right = {**ENVIRONMENT, "LOCKSTORM_PASSWORD": SECRET}
        command = start_lockstorm("attach", f"etcds://app@{where}", *words, "--ca", ca, env=right)
        wait_until(lambda: any(each.startswith("lockstorm:attach:") for each in server.key_names()))
        seen = traces_of_clients(command.pid)
        output, errors = command.communicate(timeout=60)
        assert command.returncode == 0, errors
        assert len(seen) >= 8 and not any(SECRET.encode() in trace for trace in seen)
        assert SECRET not in output + errors and server.token not in output + errors
        assert (server.key_names(), server.leases()) == (["theirs"], [])


def test_the_next_member_is_used_if_one_does_not_answer(outside: OutsideEtcd) -> None:
    url = f"etcd://127.0.0.1:1,{outside.place}"
    (trial,) = attach_to(url, "--lock", "etcd", "--scenario", "gc-pause", "--control")["trials"]
    assert trial["grants"] == 2


@pytest.mark.parametrize("lock", ["etcd", "etcd-queue"])
def test_runs_with_the_same_seed_choose_different_leases(outside: OutsideEtcd, lock: str) -> None:
    """A lease has no name, and a run revokes each that its clients have asked for: another's among them would end."""
    leases: list[set[str]] = []
    for _ in range(2):
        before = outside.revision()
        answer = attach_to(f"etcd://{outside.place}", "--lock", lock, "--scenario", "gc-pause", "--control")
        leases.append(outside.past_leases(answer["prefix"], before))
        assert len(leases[-1]) >= 2, "each of two clients has had one; more, if the trial was played again"
    first, second = leases
    assert first.isdisjoint(second)


@pytest.mark.lengthy("stops the server for a second while clients work")
def test_a_fault_of_the_team_on_etcd(outside: OutsideEtcd, tmp_path: Path) -> None:
    words = write_pause(tmp_path, outside.process.pid)
    (trial,) = attach_to(f"etcd://{outside.place}", "--lock", "etcd", *words, "--clients", "2")["trials"]
    assert trial["faults"] == [{"name": "pause", "target": outside.place, "proved": True}]
    assert trial["sentence"].startswith("Mutual exclusion holds, integrity holds")
    assert (outside.key_names(), outside.leases()) == ([], [])
