"""The locks on etcd, driven by hand on real nodes: what they promise, where they break, whether tokens fence, and that
no resource stays behind."""

import json
import os
import signal
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from lockstorm import Client, Outcome, Trial
from lockstorm.base.hang_limit import HangLimit
from lockstorm.native.library import locks_on
from lockstorm.servers.etcd_server import EtcdServer, leader_of
from lockstorm.servers.services import missing
from lockstorm.trial.client import Result
from tests.helpers.support import ENVIRONMENT, lockstorm, processes_below, short_directory, start_lockstorm, trial

pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(bool(missing("etcd")), reason=f"not installed: {missing('etcd')}"),
]

LOCKS = [lock.name for lock in locks_on("etcd")]
QUEUES = ["etcd-queue", "etcd-queue-unchecked"]
RECIPES = ["etcd", "etcd-queue"]
NODES = "etcd-*"
LONG_MS, SHORT_MS = 30_000, 1_000  # a lease that never ends here, and the shortest one
SWEEP_MS = 500  # how often etcd looks for leases that have ended
MS = 1_000_000


@contextmanager
def real(lock: str, **requests: Any) -> Iterator[Trial]:
    with trial(lock, **{"time": "real", "lease_ms": LONG_MS, **requests}) as running:
        yield running


def keys_of(server: EtcdServer) -> list[dict[str, Any]]:
    """All keys of the node."""
    zero = b64encode(b"\0").decode()
    kvs: list[dict[str, Any]] = server.ask("/v3/kv/range", {"key": zero, "range_end": zero}).get("kvs", [])
    return kvs


def leases_of(server: EtcdServer) -> list[str]:
    return [lease["ID"] for lease in server.ask("/v3/lease/leases").get("leases", [])]


def time_to_live_s(server: EtcdServer, lease: str) -> int:
    """-1: the lease has ended."""
    return int(server.ask("/v3/lease/timetolive", {"ID": lease}).get("TTL", 0))


def test_there_are_a_key_and_queues() -> None:
    assert set(LOCKS) == {"etcd", *QUEUES}
    assert all(lock.real_time_only and lock.token and lock.lease for lock in locks_on("etcd"))


# --- one holder ---


@pytest.mark.parametrize("lock", LOCKS)
def test_one_holds_it_and_the_other_is_refused(lock: str) -> None:
    with real(lock) as running:
        one, two = running.clients(2)
        assert one.is_held().outcome is Outcome.REFUSED
        assert one.acquire().ok
        assert one.is_held().ok
        refused = two.acquire(wait_ms=0)
        assert (refused.outcome, refused.token) == (Outcome.REFUSED, 0)
        assert two.is_held().outcome is Outcome.REFUSED
        assert one.renew().ok
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok
        assert one.is_held().outcome is Outcome.REFUSED
        assert one.renew().outcome is Outcome.REFUSED, "a keepalive of a lease that has ended is answered, too"
        assert one.release().outcome is Outcome.REFUSED


@pytest.mark.parametrize("lock", LOCKS)
def test_nothing_is_left_of_who_was_refused_or_has_released(lock: str) -> None:
    with real(lock) as running:
        (node,) = running.etcd.known
        one, two = running.clients(2)
        one.acquire()
        two.acquire(wait_ms=0)
        assert len(keys_of(node)) == len(leases_of(node)) == 1
        one.release()
        assert not keys_of(node) and not leases_of(node)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_limited_wait_ends(lock: str) -> None:
    with real(lock) as running:
        one, two = running.clients(2)
        one.acquire()
        before_ns = running.mono_ns
        assert two.acquire(wait_ms=500).outcome is Outcome.REFUSED
        assert running.mono_ns - before_ns >= 500 * MS


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("resource", [b"\0\xff'\"\\/", b"x" * 299, b"y" * 298, b"z"])
def test_a_name_is_any_bytes(lock: str, resource: bytes) -> None:
    with real(lock, resource=resource) as running:
        (one,) = running.clients(1)
        others = [running.clients(1, name)[0] for name in (b"another", resource + b"/", resource[:-1] + b"{")]
        assert one.acquire().ok
        assert all(other.acquire(wait_ms=0).ok for other in others), "another name is another lock"
        (two,) = running.clients(1)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


# --- leases ---


@pytest.mark.parametrize("lock", RECIPES)
def test_the_shortest_lease_is_a_second_and_ends_with_the_next_sweep(lock: str) -> None:
    with real(lock, lease_ms=SHORT_MS) as running:
        (node,) = running.etcd.known
        one, two = running.clients(2)
        one.acquire()
        (lease,) = leases_of(node)
        assert int(node.ask("/v3/lease/timetolive", {"ID": lease})["grantedTTL"]) == 1
        before_ns = running.mono_ns
        with running.pause(one):
            assert two.acquire().ok
            assert running.mono_ns - before_ns > (SHORT_MS - SHORT_MS / 3) * MS, "from its last renewal on"
        assert one.is_held().outcome is Outcome.REFUSED
        assert two.is_held().ok


def test_a_watchdog_keeps_the_place_and_the_lock() -> None:
    with real("etcd-queue", lease_ms=SHORT_MS) as running:
        one, two = running.clients(2)
        held = one.acquire()
        two.start_acquire()
        running.advance(2 * (SHORT_MS + SWEEP_MS))
        assert one.is_held().ok
        assert one.release().ok
        assert two.finish().token == held.token + 1, "its place is the one that it had before all that time"


def test_a_fixed_lease_is_not_renewed() -> None:
    with real("etcd-queue", lease_ms=SHORT_MS, fixed_lease=True) as running:
        one, two = running.clients(2)
        one.acquire()
        assert two.acquire(wait_ms=3 * SHORT_MS).ok
        assert one.is_held().outcome is Outcome.REFUSED


def test_without_a_watchdog_the_key_lives_by_renewals() -> None:
    with real("etcd", lease_ms=2 * SHORT_MS) as running:
        one, two = running.clients(2)
        one.acquire()
        for _ in range(3):
            running.advance(SHORT_MS)
            assert one.renew().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


# --- tokens ---


@pytest.mark.parametrize("lock", LOCKS)
def test_a_token_is_the_revision_that_made_the_key(lock: str) -> None:
    with real(lock) as running:
        (node,) = running.etcd.known
        (one,) = running.clients(1)
        token = one.acquire().token
        (key,) = keys_of(node)
        assert int(key["create_revision"]) == token


@pytest.mark.parametrize("lock", LOCKS)
def test_tokens_rise_over_releases_expiries_owners_and_restarts(lock: str) -> None:
    with real(lock, lease_ms=SHORT_MS) as running:
        (node,) = running.etcd.known
        one, two, three = running.clients(3)
        tokens = [one.acquire().token]
        assert one.release().ok
        tokens.append(two.acquire().token)
        with running.pause(two):
            tokens.append(three.acquire().token)  # two's lease has ended
        assert three.release().ok
        with running.fault("kill-server", node):
            pass
        tokens.append(one.acquire().token)
        assert one.release().ok
        tokens.append(one.acquire().token)
        assert tokens == sorted(set(tokens)) and min(tokens) > 0


# --- what has no answer ---


def cut_answers(running: Trial, client: Any) -> Any:
    return running.fault("partition", client, servers=NODES, direction="to-client")


@pytest.mark.parametrize("lock", RECIPES)
def test_a_transaction_without_an_answer_is_asked_again_and_done_once(lock: str) -> None:
    with real(lock) as running:
        (node,) = running.etcd.known
        (one,) = running.clients(1)
        one.start_acquire()
        one.run_to("before-transaction")
        with cut_answers(running, one):
            one.go_on()
            running.advance(300)
            assert keys_of(node), "it was carried out"
        granted = one.finish()
        assert granted.ok
        (key,) = keys_of(node)
        assert int(key["create_revision"]) == granted.token
        assert one.release().ok and not leases_of(node)


@pytest.mark.parametrize("lock", RECIPES)
def test_an_acquire_that_stays_without_an_answer_is_taken_up_by_the_next(lock: str) -> None:
    with real(lock) as running:
        (node,) = running.etcd.known
        one, two = running.clients(2)
        one.start_acquire()
        one.run_to("before-transaction")
        with cut_answers(running, one):
            assert one.finish().outcome is Outcome.UNKNOWN
        (key,) = keys_of(node)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED, "it was carried out"
        again = one.acquire(wait_ms=0)
        assert (again.outcome, again.token) == (Outcome.OK, int(key["create_revision"]))
        assert one.is_held().ok and one.release().ok
        assert keys_of(node) == []


@pytest.mark.parametrize("lock", RECIPES)
def test_a_release_without_an_answer_is_unknown_and_frees_nobody_elses(lock: str) -> None:
    with real(lock) as running:
        one, two, three = running.clients(3)
        one.acquire()
        one.start_release()
        one.run_to("before-release")
        with cut_answers(running, one):
            one.go_on()
            assert two.acquire().ok, "it was carried out"
        assert one.finish().outcome is Outcome.UNKNOWN
        assert one.release().outcome is Outcome.REFUSED
        assert two.is_held().ok
        assert three.acquire(wait_ms=0).outcome is Outcome.REFUSED


# --- the queue ---


@pytest.mark.parametrize("lock", QUEUES)
def test_grants_come_in_the_order_of_arrival(lock: str) -> None:
    with real(lock) as running:
        first, *waiting = running.clients(5)
        first.acquire()
        for each in waiting:
            each.start_acquire()
            each.run_to("in-queue")
            each.go_on()
        tokens = []
        for before, each in zip([first, *waiting], waiting, strict=False):
            assert before.release().ok
            tokens.append(each.finish().token)
        assert tokens == sorted(tokens)


@pytest.mark.parametrize("lock", QUEUES)
def test_a_deletion_between_the_look_and_the_watch_is_not_missed(lock: str) -> None:
    with real(lock) as running:
        one, two = running.clients(2)
        one.acquire()
        two.start_acquire()
        two.run_to("in-queue")
        one.release()
        before_ns = running.mono_ns
        assert two.finish().ok
        assert running.mono_ns - before_ns < LONG_MS * MS / 2, "it was told, and did not look again after a lease"


@pytest.mark.parametrize("lock", QUEUES)
def test_a_watch_whose_connection_ends_is_begun_again(lock: str) -> None:
    with real(lock) as running:
        one, two = running.clients(2)
        one.acquire()
        two.start_acquire()
        running.advance(200)
        with running.fault("close-links", two, servers=NODES):
            pass
        running.advance(200)
        with cut_answers(running, two):
            one.release()
            running.advance(200)
        before_ns = running.mono_ns
        assert two.finish().ok
        assert running.mono_ns - before_ns < LONG_MS * MS / 2


def test_a_dead_waiters_place_goes_with_its_lease() -> None:
    with real("etcd-queue", lease_ms=SHORT_MS) as running:
        one, two, three = running.clients(3)
        one.acquire()
        two.start_acquire()
        two.run_to("in-queue")
        three.start_acquire()
        three.run_to("in-queue")
        three.go_on()
        running.kill(two)
        one.release()
        assert three.finish().ok


@pytest.mark.parametrize(("lock", "granted"), [("etcd-queue", False), ("etcd-queue-unchecked", True)])
def test_whose_place_is_gone_when_its_turn_comes(lock: str, granted: bool) -> None:
    """The test revokes the lease; the scenario waiter-expired has a pause instead."""
    with real(lock) as running:
        (node,) = running.etcd.known
        one, two = running.clients(2)
        held = one.acquire()
        two.start_acquire(wait_ms=2_000)
        two.run_to("in-queue")
        (place,) = (key for key in keys_of(node) if int(key["create_revision"]) > held.token)
        node.ask("/v3/lease/revoke", {"ID": place["lease"]})
        one.release()
        found = two.finish()
        assert found.ok, "it lines up again, and nobody else is there"
        assert (found.token == int(place["create_revision"])) is granted
        assert two.is_held().outcome is (Outcome.REFUSED if granted else Outcome.OK)


# --- a node that goes and comes back ---


@pytest.mark.parametrize("lock", RECIPES)
def test_a_killed_node_forgets_neither_key_nor_lease(lock: str) -> None:
    with real(lock) as running:
        (node,) = running.etcd.known
        one, two = running.clients(2)
        one.acquire()
        (lease,) = leases_of(node)
        running.advance(2_500)
        if lock == "etcd":
            assert time_to_live_s(node, lease) < LONG_MS / 1000 - 1
        with running.fault("kill-server", node) as fault:
            pass
        assert "has ended, another answers" in fault.proof
        assert time_to_live_s(node, lease) >= LONG_MS / 1000 - 2, "the new leader gives every lease a whole term"
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok


def test_a_node_that_stands_still_answers_later() -> None:
    with real("etcd") as running:
        (node,) = running.etcd.known
        one, _ = running.clients(2)
        with running.fault("pause-server", node):
            one.start_acquire()
            running.advance(300)
            assert one.state.name != "IDLE"
        assert one.finish().ok


@pytest.mark.waits

# --- three nodes ---


def others_than(running: Trial, node: EtcdServer) -> list[EtcdServer]:
    return [each for each in running.etcd.known if each is not node]


def answered(ask: Callable[[], Result], within_s: float = 30) -> Result:
    """Asks until there is an answer: during an election there may be none."""
    limit = HangLimit(within_s)
    while (found := ask()).outcome is Outcome.UNKNOWN:
        assert not limit.is_over(), "no answer"
    return found


def gives_back(client: Client) -> bool:
    """A release without an answer may have been carried out: the next one then finds no lease."""
    return client.release().outcome is not Outcome.REFUSED


def cut_off(running: Trial, node: EtcdServer) -> Any:
    """Cuts the node off from the other nodes and from clients, in both directions."""
    return running.fault("partition", f"*{node.name}*")


FAULTS = {
    "killed": lambda running, node: running.fault("kill-server", node),
    "paused": lambda running, node: running.fault("pause-server", node),
    "cut off": cut_off,
}


@pytest.mark.parametrize("how", FAULTS)
@pytest.mark.parametrize("lock", RECIPES)
def test_the_lock_survives_its_leader_and_tokens_rise(lock: str, how: str) -> None:
    with real(lock, nodes=3) as running:
        leader = leader_of(running.etcd.known)
        others = others_than(running, leader)
        one, two = running.clients(2)
        first = answered(one.acquire)
        assert first.ok
        with FAULTS[how](running, leader):
            assert leader_of(others) in others, "there is another leader"
            assert answered(lambda: two.acquire(wait_ms=0)).outcome is Outcome.REFUSED
            assert answered(one.renew).ok, "it asks the next node if this one does not answer"
            assert gives_back(one)
            second = answered(two.acquire)
            assert second.token > first.token
        assert answered(two.is_held).ok
        assert gives_back(two)
        assert answered(one.acquire).token > second.token


@pytest.mark.parametrize("lock", RECIPES)
def test_the_holder_goes_on_by_way_of_another_node_when_its_own_is_cut_off(lock: str) -> None:
    with real(lock, nodes=3) as running:
        one, two = running.clients(2)
        assert answered(one.acquire).ok, "it asks the first node first"
        with cut_off(running, running.etcd.known[0]):
            assert leader_of(running.etcd.known[1:])
            assert answered(one.renew).ok
            assert answered(one.is_held).ok
            assert answered(lambda: two.acquire(wait_ms=0)).outcome is Outcome.REFUSED
        assert gives_back(one)


@pytest.mark.parametrize("lock", RECIPES)
def test_without_a_majority_nobody_gets_it_and_nobody_loses_it(lock: str) -> None:
    with real(lock, nodes=3) as running:
        leader = leader_of(running.etcd.known)
        one, two = running.clients(2)
        held = answered(one.acquire)
        first, second = others_than(running, leader)
        with running.fault("pause-server", first), running.fault("pause-server", second):
            assert two.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
            assert one.renew().outcome is Outcome.UNKNOWN
        assert answered(one.is_held).ok, "its lease has a whole term again"
        assert gives_back(one)
        assert answered(two.acquire).token > held.token


# --- what it is started with, and what stays behind ---


def inodes_of(pid: int) -> set[str]:
    """The inodes of the process's sockets that are still open."""
    names = []
    for entry in os.scandir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            names.append(os.readlink(entry.path))
    return {name.removeprefix("socket:[").removesuffix("]") for name in names if name.startswith("socket:")}


def test_nodes_have_no_port_that_anybody_else_could_reach() -> None:
    with real("etcd", nodes=3) as running:
        own = set().union(*(inodes_of(node.process.pid) for node in running.etcd.known))
        lines = [
            line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()
        ]
        assert own and not [line for line in lines if line[9] in own]
        assert running.recorder.path.parent.stat().st_mode & 0o077 == 0


def test_options_of_the_environment_do_not_reach_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCD_NAME", "another")
    monkeypatch.setenv("ETCD_LISTEN_CLIENT_URLS", "http://127.0.0.1:1")
    with real("etcd") as running:
        assert running.clients(1)[0].acquire().ok


def test_the_version_is_part_of_the_result() -> None:
    done = lockstorm("run", "connection-closed", "--lock", "etcd", "--control", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 0 and said["time"] == "real"
    assert said["versions"]["etcd"].startswith("3.")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ("run", "gc-pause", "--time", "virtual"),
            "in real time with etcd: etcd reads the clock without",
        ),
        (("run", "crash-before-expire"), "etcd lives on etcd"),
        (("run", "gc-pause", "--lease", "1500ms"), "1500 ms: etcd counts leases in units of 1000 ms"),
        (("run", "waiter-expired"), "etcd has no queue"),
        (("storm", "--time", "virtual"), "etcd can only be tried in real time: etcd reads the clock without"),
        (
            ("storm", "--faults", "crash-server"),
            "crash-server applies to redis-servers or postgres, and etcd lives on etcd",
        ),
        (
            ("storm", "--faults", "clock-jump"),
            "clock-jump applies to redis-servers or postgres, and etcd lives on etcd",
        ),
        (("storm", "--lease", "1500ms"), "1500 ms: etcd counts leases in units of 1000 ms"),
        (("compare",), "etcd lives on etcd"),
    ],
)
def test_what_cannot_be_is_said(words: tuple[str, ...], reason: str) -> None:
    done = lockstorm(*words, "--lock", "etcd")
    assert done.returncode == 2
    assert reason in " ".join(done.stderr.split()) and "Traceback" not in done.stderr


NOWHERE = {"LOCKSTORM_ETCD": "/nowhere"}


def test_without_etcd_the_trial_says_so() -> None:
    done = lockstorm("run", "gc-pause", "--lock", "etcd", env={**ENVIRONMENT, **NOWHERE})
    assert done.returncode == 3
    assert "not installed" in done.stdout and "/nowhere is not a program" in done.stdout


def test_without_etcd_the_cells_are_not_installed_and_in_ci_that_fails() -> None:
    words = ("matrix", "--scenario", "connection-closed", "--lock", "set-nx-px,etcd")
    here = {key: value for key, value in ENVIRONMENT.items() if key != "CI"}
    for more, status in (({}, 0), ({"CI": "true"}, 3)):
        done = lockstorm(*words, env={**here, **more, **NOWHERE})
        assert done.returncode == status, done.stdout
        assert "1 not installed (etcd is not installed: /nowhere is not a program)" in " ".join(done.stdout.split())


@pytest.mark.slow("asks the doctor of etcd as others do of Redis", seconds=5)
def test_doctor_tells_what_is_here_and_what_nothing_moves() -> None:
    for more, words in (
        (NOWHERE, "not installed"),
        ({}, "In real time only: etcd reads the clock without the C library"),
    ):
        done = lockstorm("doctor", "--json", env={**ENVIRONMENT, **more})
        (found,) = (each for each in json.loads(done.stdout)["findings"] if each["name"] == "etcd")
        assert done.returncode == 0 and found["ok"]
        assert words in found["found"]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_is_ended_leaves_nothing(ending: signal.Signals) -> None:
    words = ("run", "contention", "--lock", "etcd-queue", "--duration", "60s", "--json")
    with short_directory() as directory:
        driver = start_lockstorm(*words, env={**ENVIRONMENT, "TMPDIR": str(directory)}, start_new_session=True)
        try:
            wait_until(lambda: any(directory.glob("lockstorm-*/client-4.log")), "four clients")
            assert processes_below(directory)
        finally:
            driver.send_signal(ending)
            driver.communicate(timeout=600)
        wait_until(lambda: not processes_below(directory), "processes gone")
        wait_until(lambda: not list(directory.iterdir()), "the private directory gone")


def wait_until(condition: Any, what: str, within_s: float = 30) -> None:
    limit = HangLimit(within_s)
    while not condition():
        assert not limit.is_over(), f"not within {within_s} s: {what}"
        time.sleep(0.01)
