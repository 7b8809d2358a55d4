"""The locks on PostgreSQL, driven by hand on a real server: what they promise, where they break, whether tokens
fence, and that no resource stays behind."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lockstorm import Outcome
from lockstorm.base import paths
from lockstorm.base.hang_limit import HangLimit
from lockstorm.native.library import library, locks_on
from lockstorm.results.event import Event
from lockstorm.servers import postgres_server
from lockstorm.servers.postgres_server import PostgresSession
from lockstorm.servers.services import missing
from lockstorm.storm.storm_plan import StormRequest, plan_storm
from lockstorm.storm.storm_run import StormRun
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial import Trial
from tests.helpers.daily import daily
from tests.helpers.support import ENVIRONMENT, lockstorm, processes_below, short_directory, start_lockstorm, trial
from tests.report.test_story import rendered

pytestmark = pytest.mark.skipif(bool(missing("postgres")), reason=f"not installed: {missing('postgres')}")

LOCKS = [lock.name for lock in locks_on("postgres") if not lock.once]
OF_SESSIONS = [lock.name for lock in locks_on("postgres") if not lock.lease and not lock.once]
OUTBOX = "double-processing"  # a scenario that applies to it: one message by default
TIMES = ("virtual", "real")
NODES = "postgres-*"
MS = 1_000_000


def test_there_are_locks_of_sessions_and_leases() -> None:
    assert set(OF_SESSIONS) == {"pg-advisory", "pg-advisory-xact", "pg-for-update"}
    assert set(LOCKS) - set(OF_SESSIONS) == {"pg-lease"}


# --- one holder ---


@pytest.mark.parametrize("time_", TIMES)
@pytest.mark.parametrize("lock", LOCKS)
def test_one_holds_it_and_the_other_is_refused(lock: str, time_: str) -> None:
    with trial(lock, time=time_, lease_ms=30_000) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        assert one.is_held().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert two.is_held().outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok
        assert one.is_held().outcome is Outcome.REFUSED


@pytest.mark.parametrize("lock", LOCKS)
def test_a_limited_wait_ends(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        one.acquire()
        before_ns = running.mono_ns
        assert two.acquire(wait_ms=500).outcome is Outcome.REFUSED
        assert running.mono_ns - before_ns == 500 * MS


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("resource", [b"\0\xff'$1\\", b"x" * 300])
def test_a_name_is_any_bytes(lock: str, resource: bytes) -> None:
    with trial(lock, resource=resource) as running:
        (one,) = running.clients(1)
        (other,) = running.clients(1, b"another")
        assert one.acquire().ok
        assert other.acquire(wait_ms=0).ok, "another name is another lock"
        (two,) = running.clients(1)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED


def test_an_advisory_lock_is_given_back_as_often_as_it_was_taken() -> None:
    with trial("pg-advisory") as running:
        one, two = running.clients(2)
        assert one.acquire().ok and one.acquire().ok
        assert one.release().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.release().ok
        assert two.acquire(wait_ms=0).ok
        assert one.release().outcome is Outcome.REFUSED, "it is another session's"


# --- sessions ---


@pytest.mark.parametrize("lock", OF_SESSIONS)
def test_a_dead_holder_frees_it_without_any_time_passing(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        one.acquire()
        two.start_acquire()
        running.advance(1000)
        before_ns = running.mono_ns
        running.kill(one)
        assert two.finish().ok
        assert running.mono_ns == before_ns


@pytest.mark.parametrize("lock", OF_SESSIONS)
def test_a_stopped_holder_keeps_it_for_ever(lock: str) -> None:
    with trial(lock) as running:
        one, two = running.clients(2)
        one.acquire()
        two.start_acquire()
        with running.pause(one):
            running.advance(86_400_000)
            assert two.state.name == "WAITING", "a day is nothing: there is no lease"
        one.release()
        assert two.finish().ok


@pytest.mark.parametrize("time_", TIMES)
@pytest.mark.parametrize("lock", OF_SESSIONS)
def test_a_session_that_ended_has_freed_it_and_the_release_has_no_answer(lock: str, time_: str) -> None:
    with trial(lock, time=time_) as running:
        one, two = running.clients(2)
        one.acquire()
        with running.fault("close-links", one, servers=NODES):
            assert two.acquire().ok, "one does not know"
        assert one.release().outcome is Outcome.UNKNOWN, "libpq says that the connection is gone, and no more"
        assert one.is_held().outcome is Outcome.REFUSED, "a new session"
        assert two.is_held().ok
        assert running.judge().properties["mutual_exclusion"].status == "violated"


def test_closing_links_that_nobody_has_is_inconclusive() -> None:
    with trial("pg-lease") as running:
        (one,) = running.clients(1)
        with pytest.raises(Exception, match="there was no such connection to close"):
            running.inject("close-links", one, servers="redis-*")


# --- the lease and its token ---


def test_a_lease_ends_with_its_last_millisecond() -> None:
    with trial("pg-lease", lease_ms=30_000) as running:
        one, two = running.clients(2)
        one.acquire()
        running.advance(29_999)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert one.is_held().ok
        running.advance(1)
        assert one.is_held().outcome is Outcome.REFUSED
        assert two.acquire(wait_ms=0).ok


def test_who_renews_in_time_stays_the_holder_and_keeps_the_token() -> None:
    with trial("pg-lease", lease_ms=30_000) as running:
        one, two = running.clients(2)
        one.acquire()
        running.advance(29_999)
        assert one.renew().ok
        running.advance(29_999)
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        running.advance(1)
        assert one.renew().outcome is Outcome.REFUSED, "too late, although nobody has taken it"
        assert two.acquire(wait_ms=0).token == 2


def test_tokens_rise_over_releases_expiries_and_owners() -> None:
    with trial("pg-lease") as running:
        one, two = running.clients(2)
        tokens = []
        for client, lets_it_run_out in ((one, False), (two, True), (one, True), (one, False), (two, False)):
            tokens.append(client.acquire().token)
            if lets_it_run_out:
                running.advance(running.lease_ms)
            else:
                assert client.release().ok
        assert tokens == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("time_", TIMES)
def test_a_token_survives_a_server_that_is_killed(time_: str) -> None:
    with trial("pg-lease", time=time_, lease_ms=30_000) as running:
        one, two = running.clients(2)
        for _ in range(3):
            assert one.increment().ok
        held = two.acquire()
        running.inject("crash-server", running.database, data="kept").heal()
        (three,) = running.clients(1)
        assert three.acquire(wait_ms=0).outcome is Outcome.REFUSED, "the grant was committed"
        assert two.release().outcome is Outcome.UNKNOWN, "its session has ended"
        assert two.release().ok, "a new session, the same owner"
        assert (held.token, three.acquire().token) == (4, 5)
        assert running.judge().properties["fencing"].status == "holds"


@pytest.mark.parametrize("lock", OF_SESSIONS)
def test_a_server_that_is_killed_forgets_its_sessions_locks(lock: str) -> None:
    """The control of the test before: locks in the server's memory do not survive the crash."""
    with trial(lock) as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        running.inject("crash-server", running.database, data="kept").heal()
        (two,) = running.clients(1)
        assert two.acquire(wait_ms=0).ok
        assert running.judge().properties["mutual_exclusion"].status == "violated"


def test_a_token_begins_anew_when_its_row_is_deleted() -> None:
    """The reason that a released lease stays as a row: deleting the row removes the fence."""
    with trial("pg-lease", store="fence-reads-and-writes") as running:
        one, two = running.clients(2)
        for _ in range(3):
            assert one.increment().ok
        running.database.session.rows("DELETE FROM lease WHERE expires < clock_timestamp()")
        assert two.acquire().token == 1
        assert two.read().outcome is Outcome.REFUSED, "the resource has seen newer ones: nobody gets in any more"
        verdict = running.judge().properties
        assert verdict["fencing"].status == "violated"


def test_a_token_goes_back_with_a_server_that_lost_its_last_commits() -> None:
    """A failover to an asynchronous replica, or a restored backup, leaves an older copy of the same database."""
    with trial("pg-lease", store="open") as running:
        (one,) = running.clients(1)
        assert one.increment().ok
        older = "CREATE TABLE older AS SELECT * FROM lease"
        running.database.session.rows(older)
        for _ in range(2):
            assert one.increment().ok
        running.database.session.rows("DELETE FROM lease; INSERT INTO lease SELECT * FROM older")
        assert one.acquire().token == 2, "granted before"
        assert running.judge().properties["fencing"].status == "violated"


@pytest.mark.waits
def test_under_contention_the_last_token_counts_all_grants() -> None:
    with trial("pg-lease", time="real", lease_ms=30_000) as running:
        clients = running.clients(4)
        for client in clients:
            client.start_hold(turns=25)
        running.finish(*clients)
        grants = sorted(
            event.token for event in running.story() if event.kind == "acquire-return" and event.outcome == "ok"
        )
        assert grants == list(range(1, 101))


def test_the_story_names_the_server_that_keeps_the_lease() -> None:
    with trial("pg-lease") as running:
        one, _ = running.clients(2)
        one.acquire()
        running.advance(running.lease_ms * 2)
        one.release()
        lines = rendered(running.story())
    assert "postgres client-1's lease has run out: the lock is free, client-1 does not know" in lines


# --- the outbox ---


def test_publishers_claim_different_messages_and_wait_for_none() -> None:
    with trial("pg-skip-locked", scenario=OUTBOX, permits=3) as running:
        one, two, three, four = running.clients(4)
        assert [client.acquire(wait_ms=0).value for client in (one, two, three)] == [1, 2, 3]
        assert four.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert two.is_held().ok
        assert two.release().ok
        assert two.is_held().outcome is Outcome.REFUSED
        assert four.acquire(wait_ms=0).outcome is Outcome.REFUSED, "what is marked is not claimed again"
        running.kill(one)
        assert four.acquire(wait_ms=0).value == 1, "what is not marked is"


@pytest.mark.parametrize("checkpoint", ["before-release", "between-mark-and-commit"])
def test_a_mark_that_is_not_committed_is_none(checkpoint: str) -> None:
    with trial("pg-skip-locked", scenario=OUTBOX) as running:
        one, two = running.clients(2)
        one.acquire()
        one.start_release()
        running.kill(one, at=checkpoint)
        assert two.acquire(wait_ms=0).value == 1


def test_a_claim_whose_session_ended_is_not_marked_from_another_one() -> None:
    with trial("pg-skip-locked", scenario=OUTBOX) as running:
        one, two = running.clients(2)
        one.acquire()
        with running.fault("close-links", one, servers=NODES):
            assert two.acquire(wait_ms=0).value == 1
        assert one.release().outcome is Outcome.UNKNOWN
        assert two.release().ok
        assert running.judge().properties["mutual_exclusion"].status == "violated"


@pytest.mark.waits
def test_in_a_race_each_message_is_dispatched_once() -> None:
    with trial("pg-skip-locked", scenario=OUTBOX, time="real", permits=40) as running:
        publishers = running.clients(4)
        for publisher in publishers:
            publisher.start_hold(turns=10)
        running.finish(*publishers)
        done = "SELECT count(*) FROM outbox WHERE sent IS NOT NULL"
        assert running.database.session.value(done) == "40"


# --- virtual time ---


def test_a_day_passes_at_once_on_a_real_server() -> None:
    with trial("pg-lease") as running:
        before_us = running.database.time_us()
        running.advance(86_400_000)
        assert running.database.time_us() - before_us == 86_400_000_000


@pytest.mark.parametrize("lock", LOCKS)
def test_the_same_seed_gives_the_same_history(lock: str) -> None:
    def played() -> list[Event]:
        with trial(lock, seed=11) as running:
            clients = running.clients(3)
            for client in clients:
                client.start_workload(500, work_ms=20, think_ms=20)
            running.finish(*clients)
            return running.story()

    first = played()
    assert len([event for event in first if event.kind == "acquire-return"]) > 10
    assert first == played()


def test_processes_that_sleep_are_at_rest_and_others_are_not() -> None:
    awaits_quiescence = library().processes_await_quiescence
    awaits_quiescence.restype, awaits_quiescence.argtypes = ctypes.c_bool, [ctypes.c_int, ctypes.c_int64]
    sleeping = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    napping = subprocess.Popen(["sleep", "60"])
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    parent = subprocess.Popen(["sh", "-c", f"{sys.executable} -c 'while True: pass' & echo; wait"], stdout=-1)
    assert sleeping.stdin and parent.stdout and parent.stdout.readline()
    child = int(Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()[0])
    try:
        assert awaits_quiescence(sleeping.pid, 5000)
        assert not awaits_quiescence(napping.pid, 100), "it will look again, woken or not"
        assert not awaits_quiescence(spinning.pid, 100)
        assert not awaits_quiescence(parent.pid, 100), "it waits, but its child runs"
    finally:
        for process in (sleeping, napping, spinning, parent):
            process.kill()
            process.wait()
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()
        sleeping.stdin.close()
    assert not awaits_quiescence(sleeping.pid, 100), "it is gone"


# --- what is here, and what stays behind ---


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root does the server run as somebody else")
def test_a_directory_that_the_servers_user_cannot_enter_is_named() -> None:
    with short_directory() as directory:
        done = lockstorm("run", "gc-pause", "--lock", "pg-lease", env={**ENVIRONMENT, "TMPDIR": str(directory)})
    assert done.returncode == 3
    assert f"cannot pass through {directory}" in " ".join(done.stdout.split())


def test_without_a_server_the_trial_says_so() -> None:
    done = lockstorm("run", "gc-pause", "--lock", "pg-lease", env={**ENVIRONMENT, "LOCKSTORM_POSTGRES": "/nowhere"})
    assert done.returncode == 3
    assert "not installed" in done.stdout and "/nowhere has none" in done.stdout


def test_without_a_server_the_cells_are_not_installed_and_in_ci_that_fails() -> None:
    words = ("matrix", "--scenario", "connection-closed", "--lock", "set-nx-px,pg-lease")
    here = {key: value for key, value in ENVIRONMENT.items() if key != "CI"}
    for more, status in (({}, 0), ({"CI": "true"}, 3)):
        done = lockstorm(*words, env={**here, **more, "LOCKSTORM_POSTGRES": "/nowhere"})
        assert done.returncode == status, done.stdout
        assert "1 not installed (PostgreSQL is not installed: /nowhere has none)" in " ".join(done.stdout.split())


def test_without_a_server_doctor_says_so_and_is_well() -> None:
    done = lockstorm("doctor", "--json", env={**ENVIRONMENT, "LOCKSTORM_POSTGRES": "/nowhere"})
    (found,) = (each for each in json.loads(done.stdout)["findings"] if each["name"] == "PostgreSQL")
    assert done.returncode == 0 and found["ok"]
    assert found["found"].startswith("not installed") and "/nowhere has none" in found["found"]


@pytest.mark.parametrize("words", [("storm", "--faults", "flush"), ("compare",), ("run", "flush")])
def test_what_knows_only_redis_says_so(words: tuple[str, ...]) -> None:
    done = lockstorm(*words, "--lock", "pg-lease")
    assert done.returncode == 2
    assert "pg-lease lives on postgres" in done.stderr and "Traceback" not in done.stderr


# --- storms ---


def blown(lock: str, faults: str, *words: str) -> dict[str, Any]:
    done = lockstorm("storm", "--lock", lock, "--faults", faults, "--json", *words)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize("lock", daily(LOCKS, ["pg-advisory"], "one more lock in two storms", 3))
def test_a_storm_is_repeated_by_its_seed(lock: str) -> None:
    first, second = (blown(lock, "all", "--seed", "3", "--duration", "3s") for _ in range(2))
    for key in ("verdict", "records", "grants", "storm"):
        assert first[key] == second[key]
    assert first["versions"].keys() == {"postgres"}
    assert first["verdict"]["liveness"]["status"] == "holds", "nobody waits for what nobody holds"


def test_a_storm_of_pauses_breaks_the_lease_and_a_fence_stops_the_damage() -> None:
    for store, integrity in (("open", "violated"), ("fence-reads-and-writes", "holds")):
        words = ("--seed", "7", "--work", "20ms", "--store", store)
        verdict = blown("pg-lease", "pause-client", *words)["verdict"]
        assert verdict["mutual_exclusion"]["status"] == "violated"
        assert verdict["integrity"]["status"] == integrity


def test_a_storm_of_closed_connections_breaks_a_lock_of_sessions() -> None:
    assert blown("pg-advisory", "close-links", "--seed", "2")["verdict"]["mutual_exclusion"]["status"] == "violated"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--lock", "pg-skip-locked"), "is done once"),
        (("--lock", "pg-lease", "--faults", "clock-jump", "--time", "real"), "nothing sets the clock of postgres"),
    ],
)
def test_what_no_storm_can_do_here_is_named(words: tuple[str, ...], said: str) -> None:
    done = lockstorm("storm", *words)
    assert done.returncode == 2 and said in done.stderr


def test_what_a_session_holds_after_a_storm_is_left_behind() -> None:
    """The alarm: our locks leave no residue, so another session takes an advisory lock."""
    plan = plan_storm(StormRequest(TrialSettings("pg-lease", "storm", duration_ms=1000), faults="pause-client"))
    with Trial(plan.settings) as running:
        storm_run = StormRun(running, plan)
        storm_run.warm_up()
        storm_run.run()
        other = PostgresSession(running.database.socket)
        other.rows("SELECT pg_advisory_lock(1)")
        storm_run.drain()
        left = [event for event in running.story() if event.kind == "residue" and event.value]
        other.close()
    assert [str(event.name).partition(" with ")[2] for event in left] == ["an advisory lock"]


def segments_of(pids: list[int], but: set[int]) -> set[int]:
    """The numbers of the System V shared memory segments that these processes created, but for those that are older."""
    lines = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()]
    number, creator = lines[0].index("shmid"), lines[0].index("cpid")
    return {int(line[number]) for line in lines[1:] if int(line[creator]) in pids} - but


def segments() -> set[int]:
    return {int(line.split()[1]) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}


@pytest.mark.waits
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_is_ended_leaves_nothing(ending: signal.Signals) -> None:
    words = ("run", "contention", "--lock", "pg-lease", "--time", "real", "--duration", "60s", "--json")
    older = segments()  # their creators' numbers may be given out again
    with short_directory() as directory:
        directory.chmod(0o711)
        driver = start_lockstorm(*words, env={**ENVIRONMENT, "TMPDIR": str(directory)}, start_new_session=True)
        try:
            await_true(lambda: any(directory.glob("lockstorm-*/client-4.log")), "four clients")
            pids = processes_below(directory)
            (private,) = directory.glob("lockstorm-*")
            assert segments_of(pids, older), "PostgreSQL has made one, so there is something to leave"
        finally:
            driver.send_signal(ending)
            driver.communicate(timeout=600)
        await_true(lambda: not processes_below(directory), "processes gone")
        await_true(lambda: not list(directory.iterdir()), "the private directory gone")
        # A process that is ending has no command line any more, yet it detaches its memory a moment later.
        await_true(lambda: not segments_of(pids, older), "the shared memory gone")
        assert not [name for name in os.listdir("/dev/shm") if any(name.endswith(f"_{pid}") for pid in pids)]
        assert not list(Path("/dev/shm").glob(f"{private.name}*"))


@pytest.mark.parametrize("in_memory", [True, False])
def test_its_data_lies_in_memory_where_there_is_plenty(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "MEMORY_FREE_BYTES", 0 if in_memory else 1 << 62)
    with trial("pg-lease") as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        place = running.database.directory.resolve()
        assert place.is_relative_to("/dev/shm") == in_memory
        assert place.joinpath("PG_VERSION").exists()
    assert not place.exists()


def await_true(condition: Any, what: str, within_s: float = 30) -> None:
    limit = HangLimit(within_s)
    while not condition():
        assert not limit.is_over(), f"not within {within_s} s: {what}"
        time.sleep(0.01)


def test_another_user_can_use_only_what_the_server_was_given() -> None:
    with trial("pg-lease") as running:
        private = running.recorder.path.parent
        assert private.stat().st_mode & 0o077 == (0o010 if os.geteuid() == 0 else 0)
        assert running.database.sockets.stat().st_mode & 0o777 == 0o700
        assert paths.postgres() in Path(f"/proc/{running.database.process.pid}/cmdline").read_text()
