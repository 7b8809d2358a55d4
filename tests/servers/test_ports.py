"""The ports of servers: from the choice on nobody else can have them, whether the server listens or not."""

import errno
import socket
import struct
from typing import Any

import pytest

from lockstorm.base import paths
from lockstorm.process.held_port import HeldPort
from lockstorm.process.process import Process, Sandbox
from lockstorm.servers.services import missing
from tests.helpers.support import trial

IP_LOCAL_PORT_RANGE = 51  # Linux 6.3: from which ports the kernel chooses for this socket
ZOOKEEPER = pytest.mark.skipif(bool(missing("zookeeper")), reason=f"not installed: {missing('zookeeper')}")


def is_taken(port: int) -> bool:
    """Whether a program that asks for this port is refused."""
    with socket.socket() as asking:
        try:
            asking.bind(("127.0.0.1", port))
        except OSError as refusal:
            assert refusal.errno == errno.EADDRINUSE
            return True
    return False


def offer_only(port: int, asking: socket.socket) -> None:
    """The kernel may give the socket no other port than this one. An older kernel is asked for it instead."""
    try:
        asking.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, struct.pack("I", port << 16 | port))
    except OSError as refusal:
        assert refusal.errno == errno.ENOPROTOOPT
        asking.bind(("127.0.0.1", port))


def test_a_held_port_is_given_to_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere, HeldPort() as held:
        assert is_taken(held.number)
        with socket.socket() as asking, pytest.raises(OSError) as refusal:
            offer_only(held.number, asking)
            asking.connect(elsewhere.getsockname())
        assert refusal.value.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL)
        held.close()
        with socket.socket() as asking:
            offer_only(held.number, asking)
            asking.connect(elsewhere.getsockname())
            assert asking.getsockname()[1] == held.number


@pytest.mark.parametrize("reuse", [0, 1])
def test_a_held_port_is_given_to_nobody_who_asks_for_any(reuse: int) -> None:
    with HeldPort() as held, socket.socket() as asking, pytest.raises(OSError) as refusal:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        offer_only(held.number, asking)
        asking.bind(("127.0.0.1", 0))
    assert refusal.value.errno == errno.EADDRINUSE


def test_a_server_listens_at_its_held_port_and_again_after_its_end() -> None:
    with HeldPort() as held:
        for _ in range(2):
            with socket.create_server(("127.0.0.1", held.number)) as server:  # it sets SO_REUSEADDR
                client = socket.create_connection(("127.0.0.1", held.number))
                accepted, _ = server.accept()
                accepted.close()
                client.close()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", held.number))
            assert is_taken(held.number)


def test_a_sandbox_gives_its_ports_back() -> None:
    sandbox = Sandbox()
    ports = {sandbox.hold_port() for _ in range(5)}
    assert len(ports) == 5 and all(is_taken(port) for port in ports)
    sandbox.close()
    assert not any(is_taken(port) for port in ports)


@pytest.mark.parametrize(
    ("lock", "settings", "count"),
    [
        ("set-nx-px", {"topology": "sentinel", "time": "real"}, 5),
        ("set-nx-px", {"topology": "cluster", "time": "real"}, 12),
        ("replica-wait", {}, 1),
        pytest.param("zookeeper", {}, 1, marks=ZOOKEEPER),
        pytest.param("zookeeper", {"nodes": 3, "time": "real"}, 9, marks=ZOOKEEPER),
    ],
)
@pytest.mark.waits
def test_no_port_of_a_server_can_be_taken_before_it_listens(
    lock: str, settings: dict[str, Any], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[int] = []
    hold, start = Sandbox.hold_port, Sandbox.start

    def hold_and_note(self: Sandbox) -> int:
        chosen.append(hold(self))
        return chosen[-1]

    def occupy_and_start(self: Sandbox, name: str, *words: Any, **more: Any) -> Process:
        assert [port for port in chosen if not is_taken(port)] == []
        return start(self, name, *words, **more)

    monkeypatch.setattr(Sandbox, "hold_port", hold_and_note)
    monkeypatch.setattr(Sandbox, "start", occupy_and_start)
    with trial(lock, **settings) as running:
        (client,) = running.clients(1)
        assert client.acquire().ok
        assert len(set(chosen)) == count and all(is_taken(port) for port in chosen)


@ZOOKEEPER
def test_the_port_of_a_server_that_is_down_stays_its_own() -> None:
    with trial("zookeeper") as running:
        (server,) = running.zookeeper.known
        server.close()
        assert is_taken(server.port)
        server.restart()
        assert "Mode: standalone" in server.ask("srvr")


def test_no_port_is_chosen_without_being_held() -> None:
    sources = [path for path in (paths.ROOT / "harness" / "lockstorm").rglob("*.py") if path.name != "held_port.py"]
    assert len(sources) > 100
    assert [path.name for path in sources if ".bind((" in path.read_text()] == []
