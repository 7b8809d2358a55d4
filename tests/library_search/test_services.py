"""Searches of libraries on etcd, PostgreSQL and ZooKeeper, real servers in virtual time, which a search supervises."""

import json

import pytest

from lockstorm.base.errors import NotInstalled
from lockstorm.locks.adapter import PREFIX, adapter_entry
from tests.helpers.support import lockstorm

SERVICES = {"etcd-mutex": "etcd", "kazoo": "zookeeper", "pals": "postgres"}
SAME = ("history_sha256", "steps", "verdict")


@pytest.mark.lengthy("starts real servers, and plays a search on them twice")
@pytest.mark.parametrize("adapter", sorted(SERVICES))
def test_a_search_plays_real_servers_and_repeats_itself(adapter: str) -> None:
    try:
        entry = adapter_entry(PREFIX + adapter)
    except NotInstalled as reason:
        pytest.skip(str(reason))
    assert entry.service == SERVICES[adapter]
    words = ("explore", "--adapter", adapter, "--seed", "3", "--schedules", "12", "--jobs", "1", "--json")
    one, two = (json.loads(lockstorm(*words, timeout=300).stdout) for _ in range(2))
    assert one["schedules"] == two["schedules"] == 12 and one["unplayed"] == 0
    assert sum(one["injected"].values()) > 0
    assert [one[key] for key in SAME] == [two[key] for key in SAME]


def test_what_is_for_redis_alone_is_refused_elsewhere() -> None:
    for words, complaint in (
        (("--faults", "restart"), "fault of libraries on zookeeper"),
        (("--server", "valkey-server"), "--server names a redis-server"),
        (("--lease-ms", "100"), "--lease-ms 100: from 200"),
    ):
        done = lockstorm("explore", "--adapter", "kazoo", *words)
        assert done.returncode == 2 and complaint in " ".join(done.stderr.split()), done.stderr
