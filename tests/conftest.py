"""Fixtures that several files need: a proxy, a redis-server behind it, and a connection through it."""

from collections.abc import Iterator

import pytest

from lockstorm.servers.redis_server import RedisServer
from lockstorm.testing.item_state import PLAY
from tests.helpers.proxying import LINK, Proxy, Wire, proxy, redis_behind
from tests.helpers.support import PLAY_NOW


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # The plug-in counts the plays of tests with its fixtures, pytest-rerunfailures those of all others.
    PLAY_NOW[0] = max(item.stash.get(PLAY, 1), getattr(item, "execution_count", 1))


@pytest.fixture
def running() -> Iterator[Proxy]:
    with proxy() as started:
        yield started


@pytest.fixture
def server(running: Proxy) -> Iterator[RedisServer]:
    with redis_behind(running) as started:
        yield started


@pytest.fixture
def wire(running: Proxy, server: RedisServer) -> Wire:
    return running.wire(running.add(LINK, server.socket))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test with a parameter "real" plays in real time, in which it waits."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and "real" in item.callspec.params.values():
            item.add_marker(pytest.mark.waits)
