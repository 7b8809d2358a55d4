"""The locks on ZooKeeper, driven by hand on a real server: what they promise, where they break, whether tokens
fence, and how the single-threaded C client behaves in pauses and cuts."""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from lockstorm import Client, Outcome
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.base.hang_limit import CONNECTION_LIMIT_S, START_LIMIT_S, HangLimit
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks_on
from lockstorm.servers.services import missing
from lockstorm.servers.zookeeper_server import ZooKeeperServer, number_of
from lockstorm.storm.storm_faults import BY_NAME, STORM_FAULTS
from lockstorm.storm.storm_plan import fault_inapplicable_reason
from lockstorm.trial.client import Result
from lockstorm.trial.trial import Trial
from tests.helpers.daily import daily
from tests.helpers.support import ENVIRONMENT, lockstorm, trial
from tests.helpers.zookeeper_client import EPHEMERAL_SEQUENTIAL, ZooKeeperClient

pytestmark = pytest.mark.skipif(bool(missing("zookeeper")), reason=f"not installed: {missing('zookeeper')}")

LOCKS = [lock.name for lock in locks_on("zookeeper")]
TIMES = ("virtual", "real")
NODES = "zookeeper-*"
MS = 1_000_000
LEASE_MS = 30_000
DIRECTORY = "/lockstorm/" + b"account".hex()


def queue(running: Trial) -> list[str]:
    """The ends of the names of the nodes of all holders and waiters."""
    with ZooKeeperClient(running.zookeeper.known[0].port) as other:
        return sorted(name[32:] for name in other.children(DIRECTORY))


def test_there_are_locks() -> None:
    assert set(LOCKS) == {"zookeeper", "zookeeper-write-lock"}


# --- one holder ---


@pytest.mark.parametrize("time_", TIMES)
@pytest.mark.parametrize("lock", LOCKS)
def test_one_holds_it_and_the_other_is_refused(lock: str, time_: str) -> None:
    with trial(lock, time=time_, lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        assert one.is_held().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert two.is_held().outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok
        assert one.is_held().outcome is Outcome.REFUSED
        assert one.release().outcome is Outcome.REFUSED, "its node is gone"


def test_a_limited_wait_ends_and_leaves_no_node_behind() -> None:
    with trial("zookeeper") as running:
        one, two = running.clients(2)
        one.acquire()
        before_ns = running.mono_ns
        assert two.acquire(wait_ms=500).outcome is Outcome.REFUSED
        assert running.mono_ns - before_ns == 500 * MS
        assert queue(running) == ["lock-0000000000"]


@pytest.mark.parametrize("resource", [b"\0\xff/$1..", b"x" * 300])
def test_a_name_is_any_bytes(resource: bytes) -> None:
    with trial("zookeeper", resource=resource) as running:
        (one,) = running.clients(1)
        (other,) = running.clients(1, b"another")
        assert one.acquire().ok
        assert other.acquire(wait_ms=0).ok, "another name is another lock"
        (two,) = running.clients(1)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


def test_it_is_given_in_the_order_of_requests_and_each_watches_the_one_before() -> None:
    with trial("zookeeper") as running:
        one, two, three = running.clients(3)
        one.acquire()
        for waiter in (two, three):
            waiter.start_acquire()
            running.advance(100)
        running.kill(two)
        running.advance(100)
        one.release()
        running.advance(LEASE_MS / 2)
        assert three.state.name == "WAITING", "the dead one's node is before its own, until its session ends"
        assert three.finish().ok
        assert queue(running) == ["lock-0000000002"]


def test_a_writer_waits_for_readers_before_it_and_not_for_one_behind_it() -> None:
    """Two readers hold the lock together: only readers are between them and the head of the queue."""
    with trial("zookeeper-write-lock") as running:
        (writer,) = running.clients(1)
        with ZooKeeperClient(running.zookeeper.known[0].port) as reader:
            paths = [reader.create(f"{DIRECTORY}/{'0' * 32}read-", EPHEMERAL_SEQUENTIAL) for _ in range(2)]
            assert writer.acquire(wait_ms=100).outcome is Outcome.REFUSED
            writer.start_acquire()
            running.advance(100)
            behind = reader.create(f"{DIRECTORY}/{'0' * 32}read-", EPHEMERAL_SEQUENTIAL)
            kinds = [name.partition("-")[0] for name in sorted(queue(running), key=lambda name: name[-10:])]
            assert kinds == ["read", "read", "write", "read"]
            for path in paths:
                running.advance(100)
                assert writer.state.name == "WAITING"
                reader.delete(path)
            before_ns = running.mono_ns
            assert writer.finish().ok
            assert running.mono_ns == before_ns, "the last reader's end has woken it"
            assert reader.czxid(behind) and writer.is_held().ok, "the reader behind it waits"


# --- the session ---


def test_a_dead_holders_node_goes_with_its_session() -> None:
    with trial("zookeeper", lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        one.acquire()
        two.start_acquire()
        before_ns = running.mono_ns
        running.kill(one)
        assert two.finish().ok
        waited_ms = (running.mono_ns - before_ns) / MS
        assert LEASE_MS <= waited_ms <= LEASE_MS * 4 / 3 + 10, "the clock stops where somebody sends a heartbeat"


def test_heartbeats_keep_a_session_while_its_worker_stands() -> None:
    with trial("zookeeper", lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        one.start_increment()
        one.run_to("before-write")
        two.start_increment()
        running.advance(10 * LEASE_MS)
        assert two.state.name == "WAITING"
        one.finish()
        assert two.finish().ok
        assert running.judge().properties["mutual_exclusion"].status == "holds"


def test_a_stopped_process_sends_no_heartbeats_and_learns_of_it_too_late() -> None:
    with trial("zookeeper", lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        one.acquire()
        two.start_acquire()
        with running.pause(one):
            running.run([two])
        assert two.result().ok
        assert running.judge().properties["mutual_exclusion"].status == "violated"
        running.advance(100)
        assert one.release().outcome is Outcome.REFUSED, (
            "by now it knows that its session is lost, and the node with it"
        )
        assert two.release().ok
        assert one.acquire().ok, "in a new session"


@pytest.mark.parametrize("time_", TIMES)
def test_a_session_outlives_its_connection(time_: str) -> None:
    with trial("zookeeper", time=time_, lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        one.acquire()
        with running.fault("close-links", one, servers=NODES):
            assert two.acquire(wait_ms=100).outcome is Outcome.REFUSED
        assert one.is_held().ok
        told = [(event.outcome, event.actor) for event in running.story() if event.kind == "validity"]
        assert told == [("refused", "client-1"), ("ok", "client-1")], "SUSPENDED, and CONNECTED again"
        assert one.release().ok


def test_who_is_cut_off_is_told_after_two_thirds_of_the_session() -> None:
    with trial("zookeeper", lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        one.acquire()
        two.start_acquire()
        with running.fault("partition", one, servers=NODES):
            running.touch_links(one)
            assert two.finish().ok
        (told,) = (event for event in running.story() if event.kind == "validity")
        granted = [event for event in running.story() if event.kind == "acquire-return"][1]
        assert told.outcome == "refused" and told.actor == "client-1"
        assert told.mono_ns <= LEASE_MS * MS * 2 / 3 + 1000 * MS < granted.mono_ns
        assert running.judge().properties["mutual_exclusion"].status == "holds"


def test_a_create_whose_answer_was_lost_is_found_by_its_guid() -> None:
    with trial("zookeeper", lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        with running.fault("partition", one, servers=NODES, direction="to-client"):
            one.start_acquire()
            running.advance(10)
        assert one.finish().ok
        assert queue(running) == ["lock-0000000000"], "it has not made another one"
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok


def test_who_can_reach_nobody_gives_up_and_is_unknown() -> None:
    with trial("zookeeper", lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        with running.fault("partition", one, servers=NODES):
            one.start_acquire()
            assert one.finish().outcome is Outcome.UNKNOWN
            assert running.mono_ns <= 6 * LEASE_MS * MS
        assert two.acquire().ok
        assert two.release().ok
        assert one.acquire().ok


# --- tokens ---


@pytest.mark.parametrize("time_", TIMES)
def test_tokens_and_sessions_survive_a_server_that_is_killed(time_: str) -> None:
    with trial("zookeeper", time=time_, lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        first = one.acquire().token
        before = running.zookeeper.known[0].process.pid
        with running.fault("kill-server", running.zookeeper.known[0]) as fault:
            assert not fault.proved, "that takes a server that is back"
        assert fault.proved and running.zookeeper.known[0].process.pid != before
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED, "the session, and its node, were on the disk"
        assert one.is_held().ok
        assert one.release().ok
        assert two.acquire().token > first


def test_tokens_rise_over_releases_and_lost_sessions() -> None:
    with trial("zookeeper", lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        tokens = []
        for _ in range(3):
            tokens.append(one.acquire().token)
            assert one.release().ok
        one.acquire()
        running.kill(one)
        tokens.append(two.acquire().token)
        assert tokens == sorted(set(tokens))
        assert running.judge().properties["fencing"].status == "holds"


def test_a_directory_made_anew_begins_its_numbers_again_but_not_its_tokens() -> None:
    with trial("zookeeper") as running:
        (one,) = running.clients(1)
        numbers, tokens = [], []
        for _ in range(2):
            for _ in range(3):
                tokens.append(one.acquire().token)
                numbers += [int(name[-10:]) for name in queue(running)]
                assert one.release().ok
            with ZooKeeperClient(running.zookeeper.known[0].port) as other:
                other.delete(DIRECTORY)
        assert numbers == [0, 1, 2, 0, 1, 2], "as a fencing token it would let an old holder in"
        assert tokens == sorted(set(tokens))


def test_the_token_is_the_czxid_of_the_holders_node() -> None:
    with trial("zookeeper") as running:
        (one,) = running.clients(1)
        token = one.acquire().token
        with ZooKeeperClient(running.zookeeper.known[0].port) as other:
            (name,) = other.children(DIRECTORY)
            assert other.czxid(f"{DIRECTORY}/{name}") == token


def test_a_server_that_stands_still_never_gives_it_to_two() -> None:
    """When the server goes on, two of its threads race: one ends expired sessions, the other reads the heartbeats that
    wait in the kernel. Either session may survive."""
    with trial("zookeeper", lease_ms=LEASE_MS) as running:
        one, two = running.clients(2)
        first = one.acquire().token
        two.start_acquire()
        with running.fault("pause-server", running.zookeeper.known[0]):
            running.advance(1.5 * LEASE_MS)
            told = [event.actor for event in running.story() if event.kind == "validity"]
            assert told == ["client-1"], "the holder no longer believes"
        one.release()
        second = two.finish()
        assert second.ok and second.token > first
        assert running.judge().properties["mutual_exclusion"].status == "holds"


# --- three servers ---

# A client leaves a server that does not answer after two thirds of its session. In the last third the others have to
# elect a leader and serve it. A machine that stands still for so long tells nothing.
ENSEMBLE_LEASE_MS = 12_000


@contextmanager
def ensemble(lease_ms: int = ENSEMBLE_LEASE_MS) -> Iterator[tuple[Trial, Client, Client, ZooKeeperServer]]:
    """A holder whose server leads, and another client."""
    with trial("zookeeper", time="real", lease_ms=lease_ms, nodes=3) as running:
        clients, leader = running.clients(3), running.zookeeper.leader
        at = running.zookeeper.known.index(leader)  # client N asks server N first
        yield running, clients[at], clients[at - 1], leader


def assert_kept(running: Trial, holder: Client, other: Client, token: int) -> None:
    """The holder still has the lock, and tokens go on rising."""
    assert first_answer(lambda: other.acquire(wait_ms=0)).outcome is Outcome.REFUSED
    assert first_answer(holder.is_held).ok
    assert holder.release().ok
    after = other.acquire()
    assert after.ok and after.token > token
    verdict = running.judge().properties
    assert {name: verdict[name].status for name in ("mutual_exclusion", "fencing")} == {
        "mutual_exclusion": "holds",
        "fencing": "holds",
    }


def first_answer(ask: Callable[[], Result]) -> Result:
    """What the servers say. While they elect, the answer is *unknown*, which claims nothing; the caller asks again."""
    limit = HangLimit(START_LIMIT_S, CONNECTION_LIMIT_S)
    while (result := ask()).outcome is Outcome.UNKNOWN:
        if limit.is_over():
            raise Inconclusive(f"no server has answered for {START_LIMIT_S:g} s")
        sleep(0.1)
    return result


@pytest.mark.slow("starts an ensemble of three", seconds=4)
@pytest.mark.waits
def test_a_lock_and_its_token_survive_the_leaders_end() -> None:
    with ensemble() as (running, holder, other, leader):
        token = holder.acquire().token
        leader.close()
        assert_kept(running, holder, other, token)
        assert running.zookeeper.leader is not leader


@pytest.mark.slow("one more ensemble; another lost leader is played every day", seconds=4)
@pytest.mark.waits
def test_a_lock_and_its_token_survive_a_leader_that_stands_still() -> None:
    with ensemble() as (running, holder, other, leader):
        token = holder.acquire().token
        with running.fault("pause-server", leader):
            assert_kept(running, holder, other, token)  # judging ends the pause, and the old leader may not know yet
            assert any(server.is_leader() for server in running.zookeeper.known if server is not leader)


@pytest.mark.slow("one more ensemble; another lost leader is played every day", seconds=3)
@pytest.mark.waits
def test_a_lock_and_its_token_survive_a_leader_cut_off_from_the_others() -> None:
    with ensemble() as (running, holder, other, leader):
        token = holder.acquire().token
        with running.fault("partition", leader.peer_links):
            assert_kept(running, holder, other, token)
            assert any(server.is_leader() for server in running.zookeeper.known if server is not leader)


@pytest.mark.slow("starts an ensemble of three", seconds=4)
@pytest.mark.waits
def test_servers_reach_each_other_on_their_links_only_and_on_this_machine_only() -> None:
    """A way past a link would let a leader that is cut off take part in elections, and win them."""
    with ensemble() as (running, *_):
        members = running.zookeeper.known
        direct = {server: peer_ports(server, itself=True) for server in members}
        for server in members:
            listening, connected = tcp_sockets(server.process.pid)
            assert {server.port} < listening.keys() <= {server.port} | direct[server]
            assert set(listening.values()) == {"127.0.0.1"}
            assert not connected & set().union(*(direct[other] for other in members if other is not server))
        connections = [tcp_sockets(server.process.pid)[1] & peer_ports(server, itself=False) for server in members]
        assert all(connections[1:]), "for elections, the server with the higher number opens the connection"


def peer_ports(server: ZooKeeperServer, *, itself: bool) -> set[int]:
    """Where it listens for the other servers; or else, where it reaches them."""
    lines = re.findall(r"^server\.(\d)=[0-9.]+:(\d+):(\d+)$", server.configuration.read_text(), re.MULTILINE)
    assert len(lines) == 3
    own = number_of(server.name)
    return {int(port) for number, *ports in lines if (int(number) == own) == itself for port in ports}


def tcp_sockets(pid: int) -> tuple[dict[int, str], set[int]]:
    """Port -> address at which a process listens, and the ports that it is connected to."""
    own = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it has just been closed
            own.add(os.readlink(descriptor))
    listening, connected = {}, set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, remote, state, *_, inode = line.split()[:10]
            address, port = local.split(":")
            if f"socket:[{inode}]" in own and state == "0A":
                listening[int(port, 16)] = str(IPv4Address(bytes.fromhex(address[-8:])[::-1]))
            elif f"socket:[{inode}]" in own and state == "01":
                connected.add(int(remote.split(":")[1], 16))
    return listening, connected


@pytest.mark.slow("one more ensemble; another lost majority is played every day", seconds=3)
@pytest.mark.waits
def test_a_minority_cut_off_takes_its_holder_nothing_but_the_server() -> None:
    with ensemble() as (running, _, other, leader):
        holder = running.client_processes.every[minority_of(leader) - 1]
        server = running.zookeeper.known[minority_of(leader) - 1]
        token = holder.acquire().token
        with running.fault("partition", server.peer_links):
            assert_kept(running, holder, other, token)
            assert running.zookeeper.leader is leader


def minority_of(leader: ZooKeeperServer) -> int:
    """The number of a server that is not the leader and that the other client does not ask first."""
    return number_of(leader.name) % 3 + 1


@pytest.mark.slow("starts an ensemble of three", seconds=8)
@pytest.mark.waits
def test_who_is_cut_off_from_its_server_goes_on_with_another() -> None:
    with ensemble() as (running, holder, other, leader):
        token = holder.acquire().token
        with running.fault("partition", holder, servers=leader.name):
            running.touch_links(holder)
            running.advance(ENSEMBLE_LEASE_MS / 3)
            assert_kept(running, holder, other, token)
        assert running.zookeeper.leader is leader


@pytest.mark.slow("starts an ensemble of three twice", seconds=12)
@pytest.mark.waits
def test_without_a_majority_nobody_is_given_the_lock_and_tokens_rise_after_it() -> None:
    with ensemble(lease_ms=2_000) as (running, holder, other, leader):
        token = holder.acquire().token
        others = [server for server in running.zookeeper.known if server is not leader]
        for server in others:
            server.close()
        assert other.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        for server in others:
            server.restart()
        assert holder.release().outcome in (Outcome.OK, Outcome.REFUSED), "as long as its session has lived"
        after = other.acquire()
        assert after.ok and after.token > token


def test_several_servers_are_for_real_time() -> None:
    with pytest.raises(UsageError, match="elections are made of timeouts"), trial("zookeeper", nodes=3):
        pass


# --- time ---


def test_time_passes_at_once_on_a_real_server() -> None:
    with trial("zookeeper", lease_ms=LEASE_MS) as running:
        (one,) = running.clients(1)
        before_us = running.zookeeper.known[0].time_us()
        running.advance(300_000)
        assert running.zookeeper.known[0].time_us() - before_us == 300_000_000
        assert one.acquire().ok, "its session lives: so many heartbeats"


@pytest.mark.parametrize(
    "scenario",
    daily(
        ["gc-pause", "connection-closed", "crash-holder"], ["connection-closed"], "one more scenario played twice", 3
    ),
)
def test_the_same_seed_gives_the_same_history(scenario: str) -> None:
    stories = [json.loads(played(scenario)) for _ in range(2)]
    for story in stories:
        story.pop("elapsed_ms")
    assert stories[0] == stories[1]


def played(scenario: str) -> str:
    return lockstorm("run", scenario, "--lock", "zookeeper", "--json").stdout


# --- what is not there ---


def test_without_a_server_the_trial_says_so() -> None:
    done = lockstorm("run", "gc-pause", "--lock", "zookeeper", env={**ENVIRONMENT, "LOCKSTORM_ZOOKEEPER": "/nowhere"})
    assert done.returncode == 3
    assert "not installed: ZooKeeper is not installed: /nowhere has no zookeeper*.jar" in " ".join(done.stdout.split())


def test_without_a_server_the_cells_are_not_installed_and_in_ci_that_fails() -> None:
    words = ("matrix", "--scenario", "connection-closed", "--lock", "set-nx-px,zookeeper")
    here = {key: value for key, value in ENVIRONMENT.items() if key != "CI"}
    for more, status in (({}, 0), ({"CI": "true"}, 3)):
        done = lockstorm(*words, env={**here, **more, "LOCKSTORM_ZOOKEEPER": "/nowhere"})
        assert done.returncode == status, done.stdout
        assert "1 not installed (ZooKeeper is not installed" in " ".join(done.stdout.split())


def test_without_a_server_doctor_says_so_and_is_well() -> None:
    done = lockstorm("doctor", "--json", env={**ENVIRONMENT, "LOCKSTORM_ZOOKEEPER": "/nowhere"})
    (found,) = (each for each in json.loads(done.stdout)["findings"] if each["name"] == "ZooKeeper")
    assert done.returncode == 0 and found["ok"]
    assert found["found"].startswith("not installed") and "/nowhere has no zookeeper*.jar" in found["found"]


@pytest.mark.parametrize("words", [("storm", "--faults", "flush"), ("compare",), ("run", "flush")])
def test_what_knows_only_redis_says_so(words: tuple[str, ...]) -> None:
    done = lockstorm(*words, "--lock", "zookeeper")
    assert done.returncode == 2
    assert "zookeeper lives on zookeeper" in done.stderr and "Traceback" not in done.stderr


# --- storms ---


def blown(faults: str, *words: str, lock: str = "zookeeper") -> dict[str, Any]:
    done = lockstorm("storm", "--lock", lock, "--faults", faults, "--duration", "2s", "--json", *words)
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.slow("one storm more, of crashes", seconds=5)
@pytest.mark.parametrize("lock", daily(LOCKS, ["zookeeper"], "one more lock in a storm of crashes", 6))
def test_a_storm_of_crashes_breaks_nothing_and_leaves_nothing(lock: str) -> None:
    """A dead client does not act, and a restarted server knows what it acknowledged: tokens rise over every restart."""
    said = blown("kill-client,kill-server", "--seed", "3", lock=lock)
    assert said["versions"].keys() == {"zookeeper", "java"}
    assert all(fault["proved"] for fault in said["storm"]["faults"]) and len(said["storm"]["faults"]) == 2
    statuses = {name: said["verdict"][name]["status"] for name in ("mutual_exclusion", "fencing", "liveness")}
    assert statuses == {"mutual_exclusion": "holds", "fencing": "holds", "liveness": "holds"}


@pytest.mark.slow("two storms over ZooKeeper", seconds=5)
def test_a_storm_of_pauses_breaks_it_and_a_fence_stops_the_damage() -> None:
    for store, integrity in (("open", "violated"), ("fence-reads-and-writes", "holds")):
        verdict = blown("pause-client", "--seed", "5", "--store", store)["verdict"]
        assert verdict["mutual_exclusion"]["status"] == "violated"
        assert verdict["integrity"]["status"] == integrity


@pytest.mark.slow("an ensemble and a Java virtual machine for each fault", seconds=3)
@pytest.mark.parametrize("name", [entry.name for entry in STORM_FAULTS])
def test_every_fault_is_in_a_storm_or_says_why_it_cannot_be(name: str) -> None:
    """A fault that applies is injected; for any other the storm says why not, without looking for a missing target."""
    said = lockstorm("storm", "--lock", "zookeeper", "--faults", name, "--duration", "1s", "--seed", "1", "--json")
    if fault_inapplicable_reason(BY_NAME[name], lock_named("zookeeper"), "virtual"):
        assert said.returncode == 2 and f"{name} " in said.stderr and "Traceback" not in said.stderr
        return
    storm = json.loads(said.stdout)
    (fault,) = storm["storm"]["faults"]
    assert fault["proved"] > 0 and said.returncode in (0, 1), storm["sentence"]


@pytest.mark.parametrize("name", ["clock-jump", "crash-server", "flush"])
def test_what_cannot_happen_to_a_server_is_said(name: str) -> None:
    with (
        trial("zookeeper") as running,
        pytest.raises(UsageError, match=f"{name} applies to redis-servers; to ZooKeeper: "),
    ):
        running.inject(name, running.zookeeper.known[0])


def test_its_clock_can_be_fast_but_is_never_set_back() -> None:
    with trial("zookeeper", lease_ms=LEASE_MS) as running:
        with pytest.raises(UsageError, match="a monotonic clock, which is never set back: keep=yes"):
            running.inject("clock-drift", running.zookeeper.known[0], ppm=1_000_000)
        before_us = running.zookeeper.known[0].time_us()
        with running.fault("clock-drift", running.zookeeper.known[0], ppm=1_000_000, keep="yes") as fault:
            running.advance(10_000)
            assert running.zookeeper.known[0].time_us() - before_us == 20_000_000
        assert fault.proved and "+10.000000 s" in fault.proof
        running.advance(10_000)
        assert running.zookeeper.known[0].time_us() - before_us == 30_000_000


def test_a_session_is_always_kept() -> None:
    done = lockstorm("run", "gc-pause", "--lock", "zookeeper", "--fixed-lease")
    assert done.returncode == 2
    assert "zookeeper is held by a session, which its heartbeats keep" in done.stderr
