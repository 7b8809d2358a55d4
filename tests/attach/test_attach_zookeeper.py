"""`lockstorm attach` on a ZooKeeper server that the test has started: what is played, touched, and left."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstorm.servers.services import missing
from tests.helpers.attaching import attach_refused, attach_to, wait_for_work, write_pause
from tests.helpers.outside_zookeeper import OutsideZooKeeper, outside_zookeeper
from tests.helpers.proxying import wait_until
from tests.helpers.support import lockstorm, start_lockstorm

pytestmark = [pytest.mark.waits, pytest.mark.skipif(bool(missing("zookeeper")), reason=missing("zookeeper"))]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutsideZooKeeper]:
    with outside_zookeeper(tmp_path_factory.mktemp("zookeeper"), tick_ms=500) as started:
        yield started


def test_a_paused_holder_is_found_on_zookeeper(outside: OutsideZooKeeper) -> None:
    url = f"zookeeper://{outside.place}"
    answer = attach_to(url, "--lock", "zookeeper", "--scenario", "gc-pause", status=1)
    (trial,) = answer["trials"]
    assert trial["sentence"].startswith("Mutual exclusion violated, integrity violated")
    assert trial["versions"] == {"zookeeper": answer["server"]["version"]}
    assert trial["lease_ms"] == 1000 and trial["replay"].endswith(" --lease 1s")
    assert (answer["server"]["service"], answer["closed"]) == ("zookeeper", {})
    assert answer["removed"] >= 2
    assert outside.children() == []


def test_a_session_is_as_long_as_zookeeper_grants_it(outside: OutsideZooKeeper) -> None:
    words = ("--lock", "zookeeper", "--scenario", "gc-pause", "--lease", "900ms")
    assert attach_refused(f"zookeeper://{outside.place}", *words) == (
        f"a lease of 900 ms: {outside.place} grants leases from 1000 to 10000 ms only: choose one of these"
    )


def test_a_dry_run_on_zookeeper_touches_nothing(outside: OutsideZooKeeper) -> None:
    with outside.session() as session:
        session.create("/locks")
        session.create("/locks/theirs")
    words = ("--lock", "zookeeper", "--scenario", "gc-pause")
    url = f"zookeeper://{outside.place}/locks"
    try:
        done = lockstorm("attach", url, *words, "--dry-run")
        lines = done.stdout.splitlines()
        assert lines[0].startswith(f"server     server at {outside.place}, version 3.")
        assert lines[0].endswith(": the node /locks has 1 node")
        assert lines[1:4] == [
            "node       /locks/lockstorm-attach-RUN and what is below it, removed at the end",
            "sessions   those of clients; the servers end what a client has left when its timeout has passed",
            "lock       zookeeper",
        ]
        assert attach_refused(url, *words) == (
            f"the node /locks of {outside.place} is not empty: it has 1 node. attach makes only the node "
            "lockstorm-attach-RUN and removes it at the end: add --yes to go on, or name an empty node"
        )
        assert (outside.children(), outside.children("/locks")) == (["locks"], ["theirs"])
        attach_to(url, *words, "--control", "--yes")
        assert (outside.children(), outside.children("/locks")) == (["locks"], ["theirs"])
    finally:
        with outside.session() as session:
            session.delete("/locks/theirs")
            session.delete("/locks")
    assert attach_refused(url, *words) == (f"{outside.place} has no node /locks: create it, or leave it out of the URL")


@pytest.mark.lengthy("each command is ended while its clients work, and the gateway cleans up")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_nodes_are_removed_when_the_command_is_ended(outside: OutsideZooKeeper, number: int, status: int) -> None:
    words = ("--lock", "zookeeper-write-lock", "--scenario", "contention", "--duration", "60s")
    command = start_lockstorm("attach", f"zookeeper://{outside.place}", *words)
    wait_for_work(command, lambda: _has_places(outside))
    command.send_signal(number)
    command.communicate(timeout=60)
    assert command.returncode == status
    wait_until(lambda: outside.children() == [])


def _has_places(outside: OutsideZooKeeper) -> bool:
    """Whether clients wait in a queue below the node of a run."""
    path = ""
    for _ in range(3):
        names = outside.children(path or "/")
        if not names:
            return False
        path += f"/{names[0]}"
    return bool(outside.children(path))


def test_the_next_server_is_used_if_one_does_not_answer(outside: OutsideZooKeeper) -> None:
    url = f"zookeeper://127.0.0.1:1,{outside.place}"
    answer = attach_to(url, "--lock", "zookeeper", "--scenario", "gc-pause", "--control")
    assert (answer["trials"][0]["grants"], answer["closed"]) == (2, {})


@pytest.mark.lengthy("stops the server for a second while clients work")
def test_a_fault_of_the_team_on_zookeeper(outside: OutsideZooKeeper, tmp_path: Path) -> None:
    words = write_pause(tmp_path, outside.process.pid)
    (trial,) = attach_to(f"zookeeper://{outside.place}", "--lock", "zookeeper", *words, "--clients", "2")["trials"]
    assert trial["faults"] == [{"name": "pause", "target": outside.place, "proved": True}]
    assert trial["sentence"].startswith("Mutual exclusion holds, integrity holds")
    assert outside.children() == []
