"""Storms over the locks on etcd: what they are made of, and what is looked for afterwards."""

import json
from base64 import b64encode

import pytest

from lockstorm import Trial
from lockstorm.native.library import locks_on
from lockstorm.servers.services import missing
from lockstorm.storm.storm_plan import StormRequest, choose_faults, plan_storm
from lockstorm.storm.storm_run import StormRun
from lockstorm.trial.settings import TrialSettings
from tests.helpers.stalls import unless_stalled
from tests.helpers.support import lockstorm

pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(bool(missing("etcd")), reason=f"not installed: {missing('etcd')}"),
]


def test_all_means_what_can_happen_to_etcd() -> None:
    lock = next(lock for lock in locks_on("etcd") if lock.name == "etcd")
    assert choose_faults("all", lock, "real") == (
        *("delay-write", "kill-client", "kill-server", "partition", "pause-client", "pause-server"),
        *("stall-worker", "suspend-host"),
    )


@pytest.mark.waits
@pytest.mark.parametrize("lock", ["etcd", "etcd-queue"])
def test_a_storm_over_etcd_kills_its_server_and_every_client_is_served(lock: str) -> None:
    """Beside other faults, a storm that was played again at a slower pace has no room for each of them."""
    words = ("--lock", lock, "--duration", "4s", "--clients", "3", "--json")
    for faults in ("kill-server", "kill-server,kill-client,pause-client"):
        said = unless_stalled(json.loads(lockstorm("storm", *words, "--faults", faults).stdout))
        counts = {fault["name"]: fault for fault in said["storm"]["faults"]}
        assert said["time"] == "real" and "--time real" in said["replay"]
        assert all(fault["proved"] == fault["injected"] for fault in counts.values()), counts
        assert said["verdict"]["liveness"]["status"] == "holds" and said["exit"] != 3
        if faults == "kill-server":
            assert counts["kill-server"]["injected"] > 0, counts


@pytest.mark.waits
def test_a_key_without_a_lease_is_left_behind_by_a_storm() -> None:
    """Tests the alarm: no lock of ours leaves a key behind, so the test does."""
    plan = plan_storm(
        StormRequest(TrialSettings("etcd", "storm", time="real", duration_ms=1000, clients=2), faults="pause-client")
    )
    with Trial(plan.settings) as running:
        storm_run = StormRun(running, plan)
        storm_run.warm_up()
        storm_run.run()
        running.etcd.known[0].ask("/v3/kv/put", {"key": b64encode(b"forgotten").decode()})
        storm_run.drain()
        left = [event for event in running.story() if event.kind == "residue"]
    assert [(event.name, event.value) for event in left] == [("key forgotten", 1)]
