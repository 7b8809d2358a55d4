"""What operations leave at the nodes is found by comparing, and recorded."""

from collections.abc import Iterator
from typing import Any

import pytest

from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial import Trial

LEASE_MS = 3_000


@pytest.fixture
def trial() -> Iterator[Trial]:
    with Trial(TrialSettings("set-nx-px", lease_ms=LEASE_MS)) as running:
        running.server.link.rpush("queue", "one")
        running.server.link.set("counter", 1)
        yield running


def left(trial: Trial) -> list[tuple[str, int]]:
    return [(str(each.name), each.value) for each in trial.story() if each.kind == "residue"]


def test_nothing_is_left(trial: Trial) -> None:
    before = trial.residue.traces()
    assert before == {b"key queue": 1, b"key counter": 1}
    trial.server.link.lpop("queue")
    trial.server.link.incr("counter")  # a string's value is no trace
    trial.residue.compare(before)
    assert left(trial) == [("nothing", 0)]


def test_a_key_an_element_and_a_subscription_are_left(trial: Trial) -> None:
    before = trial.residue.traces()
    link: Any = trial.server.link
    link.set("lock", "owner", px=LEASE_MS)  # also one that expires
    link.rpush("queue", "two", "three")
    link.zadd("times", {"one": 1})
    link.hset("hash", "field", 1)
    link.sadd("set", 1)
    with link.pubsub() as listener:
        listener.subscribe("freed")
        listener.get_message(timeout=1)
        trial.residue.compare(before)
    new = [("key hash", 1), ("key lock", 1), ("key queue", 2), ("key set", 1), ("key times", 1)]
    assert left(trial) == [*new, ("subscription to freed", 1)]
    trial.recorder.phase("quiet")
    liveness = trial.judge().properties["liveness"]
    assert (liveness.status, liveness.count) == ("violated", 6)


def test_on_several_nodes_the_node_is_named() -> None:
    with Trial(TrialSettings("redlock", lease_ms=LEASE_MS, nodes=5)) as trial:
        before = trial.residue.traces()
        trial.servers[3].link.set("lock", "owner")
        trial.residue.compare(before)
        assert left(trial) == [("key lock on redis-4", 1)]


def test_a_lease_that_became_longer(trial: Trial) -> None:
    link = trial.server.link
    for key in ("shorter", "longer", "gone", "same"):
        link.set(key, "owner", px=LEASE_MS)
    before = trial.residue.expiries()
    assert before == {name: LEASE_MS for name in (b"shorter", b"longer", b"gone", b"same")}
    link.pexpire("shorter", LEASE_MS - 1)
    link.pexpire("longer", LEASE_MS + 7)
    link.delete("gone")
    link.set("new", "owner", px=LEASE_MS)
    trial.residue.compare_expiries(before)
    assert left(trial) == [("ms more for longer", 7)]


def test_commands_that_nobody_had_a_reason_to_send(trial: Trial) -> None:
    heard = trial.commands()
    trial.residue.commands(trial.commands() - heard)
    trial.server.link.get("counter")
    trial.residue.commands(trial.commands() - heard)
    assert left(trial) == [("commands", 0), ("commands", 1)]
