"""Storms over the locks on etcd: what they are made of, and what is looked for afterwards."""

import json
from base64 import b64encode

import pytest

from harness.driver import Trial
from harness.driver.library import locks_on
from harness.driver.play import Wish
from harness.driver.services import missing
from harness.driver.storm import StormWish, choose_faults, plan
from harness.driver.weather import Weather
from tests.support import lockstorm

pytestmark = pytest.mark.skipif(bool(missing("etcd")), reason=f"not installed: {missing('etcd')}")


def test_all_means_what_can_happen_to_etcd() -> None:
    lock = next(lock for lock in locks_on("etcd") if lock["name"] == "etcd")
    assert choose_faults("all", lock, "real") == (
        *("delay-write", "kill-client", "kill-server", "partition", "pause-client", "pause-server"),
        *("stall-worker", "suspend-host"),
    )


@pytest.mark.parametrize("lock", ["etcd", "etcd-queue"])
def test_a_storm_over_etcd_kills_its_server_and_everybody_is_served(lock: str) -> None:
    words = ("--faults", "kill-server,kill-client,pause-client", "--duration", "4s", "--clients", "3", "--json")
    said = json.loads(lockstorm("storm", "--lock", lock, *words).stdout)
    counts = {fault["name"]: fault for fault in said["storm"]["faults"]}
    assert said["time"] == "real" and "--time real" in said["replay"]
    assert counts["kill-server"]["proved"] == counts["kill-server"]["injected"] > 0
    assert said["verdict"]["liveness"]["status"] == "holds" and said["exit"] != 3


def test_a_key_without_a_lease_is_left_behind_by_a_storm() -> None:
    """The alarm: nothing of ours leaves anything, so somebody else does."""
    plan_ = plan(StormWish(Wish("storm", "etcd", time="real", duration_ms=1000, clients=2), faults="pause-client"))
    with Trial(plan_.settings) as running:
        weather = Weather(running, plan_)
        weather.warm_up()
        weather.blow()
        running.etcd.members[0].ask("/v3/kv/put", {"key": b64encode(b"forgotten").decode()})
        weather.calm()
        left = [event for event in running.story() if event["kind"] == "residue"]
    assert [(event["name"], event["value"]) for event in left] == [("key forgotten", 1)]
