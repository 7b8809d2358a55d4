"""Releases that adapters/install-old promises to host: each library is fetched and built in an older release, and its
adapters say what they are (issue #55: shedlock 6.6.0 did not compile)."""

import re
from fnmatch import fnmatch

import pytest

from lockstorm.libraries.tried_release import install_old
from lockstorm.locks.adapter import SHIPPED, adapter_facts
from lockstorm.locks.adapter_lines import ProtocolError
from tests.helpers.library_zoo import old_bugs

RELEASES = {
    "advisory-lock": "2.0.0",  # its only release
    "aioredlock": "0.7.2",
    "bsm-redislock": "0.9.4",
    "cirello-pglock": "1.14.2",
    "coredis": "6.5.0",
    "curator": "5.7.0",
    "dramatiq": "2.1.0",
    "etcd-election": "3.5.17",
    "etcd-mutex": "3.5.17",
    "etcd3": "1.1.0",
    "etcd3gw": "2.5.0",
    "go-pglock": "3.0.0",
    "go-zookeeper": "1.0.3",
    "huey": "3.0.0",
    "jetcd": "0.8.5",
    "node-redlock-4": "4.1.0",
    "node-redlock-5": "5.0.0-beta.1",
    "pals": "0.4.0",
    "pottery": "3.0.0",
    "redis-semaphore": "5.6.0",
    "sesamecare-redlock": "1.3.1",
    "shedlock": "6.6.0",
    "simple-redis-mutex": "2.1.0",
    "spring-integration": "7.0.0",
    "sqlalchemy-dlock": "0.8.0",
    "tooz": "7.0.0",
    "walrus": "0.9.6",
}
LACKING = {("shedlock", "shedlock-safe")}  # adapters for what the older release does not have


def test_each_library_is_built_in_an_older_release() -> None:
    """Those of the zoo are, too."""
    text = (SHIPPED / "install-old").read_text()
    cases = text.partition("case $library in\n")[2].partition("\nesac")[0]
    patterns = [
        word.strip() for line in re.findall(r"^([\w*\[\]| -]+)\)", cases, re.MULTILINE) for word in line.split("|")
    ]
    built = {*RELEASES, *(bug.library for bug in old_bugs().values())}
    patterns.remove("*")  # there is no such library
    assert [pattern for pattern in patterns if not any(fnmatch(name, pattern) for name in built)] == []
    assert [name for name in RELEASES if not any(fnmatch(name, pattern) for pattern in patterns)] == []


@pytest.mark.slow("fetches and builds a release of a library", seconds=30)
@pytest.mark.parametrize("library", RELEASES)
def test_an_older_release_is_built_and_hosted(library: str) -> None:
    place = install_old(library, RELEASES[library], library).parent
    names = sorted(path.name for path in place.iterdir())
    assert names and all(name == library or name.startswith(f"{library}-") for name in names)
    for name in names:
        if (library, name) in LACKING:
            with pytest.raises(ProtocolError, match="it ended with status 1"):
                adapter_facts(str(place / name))
            continue
        facts = adapter_facts(str(place / name))
        assert facts and facts.version == RELEASES[library], name
