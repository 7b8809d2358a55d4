"""Adapters in virtual time: what their programs see of it, where they are held, and that a trial repeats."""

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base.errors import Inconclusive
from lockstorm.locks.adapter import PREFIX
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import Outcome
from lockstorm.scenario.library_expected import adapters_in_trials, port_of
from lockstorm.scenario.play import play
from lockstorm.trial.settings import TrialSettings
from tests.helpers.busy import cpu_burner
from tests.helpers.planting import USUAL, plant_in
from tests.helpers.support import lockstorm, trial


@pytest.fixture
def plant(tmp_path: Path) -> Callable[[str], str]:
    return partial(plant_in, tmp_path)


def virtual_trial(program: str, **requests: Any) -> Any:
    return trial(PREFIX + program, time="virtual", **requests)


# Tells what its clocks show when it is asked whether it holds the lock: by tokens of grants, in ms.
CLOCKS = """
HELLO["token"] = True
def answer(asked):
    if asked["op"] == "acquire":
        wall_ms, mono_ms = round(time.time() * 1000), round(time.monotonic() * 1000)
        return {**OK, "token": (mono_ms if asked["wait_ms"] == 0 else wall_ms - 1767225600000) + 1}
    return OK if asked["op"] in ("open", "release") else lock(asked)
"""


def test_its_clocks_are_those_of_its_host(plant: Callable[[str], str]) -> None:
    with virtual_trial(plant(CLOCKS)) as running:
        one, two = running.clients(2)
        assert (one.acquire(0).token - 1, one.acquire(1).token - 1) == (1_000_000, 0)
        running.advance(12_345)
        assert (one.acquire(0).token - 1, one.acquire(1).token - 1) == (1_012_345, 12_345)
        with running.fault("clock-jump", one, offset_ms=60_000):
            assert (one.acquire(0).token - 1, one.acquire(1).token - 1) == (1_012_345, 72_345)
            assert (two.acquire(0).token - 1, two.acquire(1).token - 1) == (1_012_345, 12_345)


DRAWN = """
import secrets
HELLO["token"] = True
def answer(asked):
    if asked["op"] == "acquire":
        return {**OK, "token": 1 + secrets.randbelow(2**32)}
    return OK if asked["op"] in ("open", "release") else lock(asked)
"""


def test_each_client_and_each_of_its_lives_draws_its_own_random_numbers(plant: Callable[[str], str]) -> None:
    with virtual_trial(plant(DRAWN)) as running:
        one, two = running.clients(2)
        tokens = [one.acquire(0).token, two.acquire(0).token]
        running.kill(one)
        tokens.append(running.restart(one).acquire(0).token)
        assert len(set(tokens)) == 3 and min(tokens) > 0


SLEEPER = """
def answer(asked):
    if asked["op"] == "acquire":
        time.sleep(3600)
    return lock(asked)
"""


def test_an_hour_of_sleep_is_an_hour_of_the_trial(plant: Callable[[str], str]) -> None:
    with virtual_trial(plant(SLEEPER), lease_ms=30_000) as running:
        (one,) = running.clients(1)
        running.context.reply_limit_ms = 1_000_000
        (two,) = running.clients(1)
        assert two.acquire(wait_ms=0).ok
        assert running.mono_ns == 3_600_000_050_000  # a sleep ends 50 us late
        assert one.state.name == "IDLE"


def test_an_answer_later_than_the_limit_is_unknown(plant: Callable[[str], str]) -> None:
    with virtual_trial(plant(SLEEPER)) as running:
        (one,) = running.clients(1)
        assert one.acquire(wait_ms=0).outcome is Outcome.UNKNOWN
        assert running.mono_ns == 15_001_000_000  # 15 limits of a reply have passed


BLOCKED = """
import fcntl
def answer(asked):
    if asked["op"] == "acquire":
        with open(sys.argv[0]) as mine:
            fcntl.flock(mine, fcntl.LOCK_EX)
    return lock(asked)
if os.fork() == 0:
    with open(sys.argv[0]) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        time.sleep(1e9)
time.sleep(0.001)
"""


def test_a_call_that_is_not_known_is_named(plant: Callable[[str], str]) -> None:
    done = lockstorm("run", "gc-pause", "--adapter", plant(BLOCKED), "--quiet")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "cannot be followed in virtual time: the program waits in a call that is not known: " in done.stdout
    assert "(--time real plays it in real time)" in done.stdout


def test_who_waits_without_a_limit_asks_again_when_the_library_gives_up(plant: Callable[[str], str]) -> None:
    gives_up = USUAL.replace("lock(asked)", "lock({**asked, 'wait_ms': 50} if asked['op'] == 'acquire' else asked)")
    with virtual_trial(plant(gives_up), lease_ms=1_000) as running:
        one, two = running.clients(2)
        assert one.acquire().ok
        assert two.acquire(wait_ms=0).outcome is Outcome.REFUSED
        assert two.acquire().ok and 1_000_000_000 <= running.mono_ns < 1_200_000_000


def test_a_lock_that_stays_taken_is_refused_after_two_leases(plant: Callable[[str], str]) -> None:
    never = "def answer(asked): return {'outcome': 'refused'} if asked['op'] == 'acquire' else lock(asked)"
    with virtual_trial(plant(never), lease_ms=1_000) as running:
        (one,) = running.clients(1)
        assert one.acquire().outcome is Outcome.REFUSED
        assert running.mono_ns == 2_000_000_000


# A renewal that is not the library's own: it renews by itself.
RENEWS = "HELLO['renews'] = True\n"


def test_a_renewal_that_nobody_asked_for_is_no_success(plant: Callable[[str], str]) -> None:
    with virtual_trial(plant(RENEWS + USUAL)) as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        assert one.renew().outcome is Outcome.UNKNOWN
    asks = RENEWS + "HELLO['operations'] = ['is_held']\n"
    body = "def answer(asked): return {'outcome': 'refused'} if asked['op'] == 'is_held' else lock(asked)"
    with virtual_trial(plant(asks + body)) as running:
        (one,) = running.clients(1)
        assert one.acquire().ok
        assert one.renew().outcome is Outcome.REFUSED


def test_it_is_held_with_the_answer_that_it_has_not_seen(plant: Callable[[str], str]) -> None:
    with virtual_trial(plant(USUAL), lease_ms=1_000) as running:
        one, two = running.clients(2)
        one.start_acquire()
        one.run_to("after-acquire-reply")
        assert running.nodes.traces() and one.state.name != "IDLE"
        running.advance(1_001)
        assert two.acquire(wait_ms=0).ok
        assert one.finish().ok  # it believes in a lease that is over


def test_what_never_comes_is_not_waited_for(plant: Callable[[str], str]) -> None:
    refuses = "def answer(asked): return {'outcome': 'refused'} if asked['op'] == 'acquire' else lock(asked)"
    with virtual_trial(plant(refuses)) as running:
        (one,) = running.clients(1)
        one.start_acquire(wait_ms=0)
        with pytest.raises(Inconclusive, match="client-1 never came to the checkpoint after-acquire-reply"):
            one.run_to("after-acquire-reply")


# BLPOP ends by the server's clock, which nobody but the server knows of.
POPS = """
def answer(asked):
    if asked["op"] == "acquire":
        assert link.ask("BLPOP", "nothing", 2) is None
    return OK if asked["op"] in ("acquire", "release") else lock(asked)
"""


def test_a_server_ends_its_wait_in_time(plant: Callable[[str], str]) -> None:
    with virtual_trial(plant(POPS)) as running:
        (one,) = running.clients(1)
        assert one.acquire(wait_ms=0).ok
        assert running.mono_ns == 2_001_000_000


def history_of(program: str, path: Path, **fields: Any) -> str:
    result = play(TrialSettings(PREFIX + program, **fields), save=path)
    assert result.exit in (0, 1), result.sentence
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.unlink()
    return digest


def test_the_same_seed_gives_the_same_history_and_another_one_another(tmp_path: Path) -> None:
    played = partial(history_of, "redis-py", tmp_path / "history", scenario="contention")
    assert played(seed=3) == played(seed=3) != played(seed=4)


@pytest.mark.parametrize("adapter", ["advisory-lock", "kazoo"])
def test_what_a_busy_machine_delivers_early_is_read_in_the_next_turn(adapter: str, tmp_path: Path) -> None:
    """A server that is asked may answer before the program waits for it. On PostgreSQL and ZooKeeper the turn then went
    on, and the clients took turns in another order (issue #55, 20)."""
    with cpu_burner(8):
        histories = {history_of(adapter, tmp_path / "history", scenario="contention", seed=1) for _ in range(3)}
    assert len(histories) == 1


# Trials on etcd are in real time.
PLAYED = [adapter for adapter in adapters_in_trials() if not lock_named(port_of(adapter)).real_time_only]


@pytest.mark.slow("a hundred trials of each library", seconds=300)
@pytest.mark.parametrize("adapter", PLAYED)
def test_a_hundred_histories_are_one(adapter: str, tmp_path: Path) -> None:
    repetitions = int(os.environ.get("REPETITIONS", "100"))
    histories = {history_of(adapter, tmp_path / "history", scenario="gc-pause", seed=7) for _ in range(repetitions)}
    assert len(histories) == 1


@pytest.mark.slow("ten trials beside thirty busy processes", seconds=300)
@pytest.mark.parametrize("scenario", ["contention", "gc-pause", "connection-closed"])
@pytest.mark.parametrize("adapter", PLAYED)
def test_histories_are_one_beside_thirty_busy_processes(adapter: str, scenario: str, tmp_path: Path) -> None:
    repetitions = int(os.environ.get("REPETITIONS", "10"))
    with cpu_burner(30):
        histories = {history_of(adapter, tmp_path / "history", scenario=scenario, seed=1) for _ in range(repetitions)}
    assert len(histories) == 1
