"""Servers by TLS with a private CA, under sentinels, and in a cluster; all started by the test."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstorm.attach.gateway import Gateway
from lockstorm.attach.server_address import TlsFiles, parse_address
from lockstorm.process.held_port import HeldPort
from lockstorm.process.line_client import LineClient
from lockstorm.servers.topology import cluster_ranges
from tests.helpers.outside_servers import OutsideServer, outside_server, plays
from tests.helpers.stalls import beside_no_stall
from tests.helpers.support import ENVIRONMENT, lockstorm
from tests.helpers.tls_files import make_certificates

pytestmark = pytest.mark.waits

MASTER = "lock-master"


def attached(url: str, *words: str, statuses: tuple[int, ...] = (0,), **more: Any) -> dict[str, Any]:
    done = lockstorm("attach", url, *words, "--json", **more)
    assert done.returncode in statuses, done.stderr + done.stdout
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def refused(url: str, *words: str, **more: Any) -> str:
    done = lockstorm("attach", url, "--lock", "set-nx-px", *words, **more)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    return done.stderr.removeprefix("lockstorm: ").rstrip()


# --- TLS ---


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private authority, ca.pem, and a certificate of localhost that it has signed."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@contextlib.contextmanager
def encrypted(place: Path, directory: Path, asks: str = "no") -> Iterator[OutsideServer]:
    """`asks`: whether it wants a certificate of its clients."""
    ca = str(place / "ca.pem")
    own = ("--tls-cert-file", str(place / "own.pem"), "--tls-key-file", str(place / "own.key"))
    options = (*own, "--tls-ca-cert-file", ca, "--tls-auth-clients", asks, "--requirepass", "secret")
    mine = ("--cert", str(place / "own.pem"), "--key", str(place / "own.key"))
    cli = ("--tls", "--cacert", ca, *mine, "-a", "secret", "--no-auth-warning")
    with outside_server(directory, *options, tls=True, cli=cli) as server:
        yield server


@pytest.mark.parametrize("words", [("--adapter", "redis-py"), ("--lock", "pubsub")])
def test_an_encrypted_server(words: tuple[str, ...], certificates: Path, tmp_path: Path) -> None:
    ca, environment = str(certificates / "ca.pem"), {**ENVIRONMENT, "LOCKSTORM_PASSWORD": "secret"}
    with encrypted(certificates, tmp_path) as server:
        url = f"rediss://localhost:{server.port}/2"
        chosen = ("--scenario", "contention", "--duration", "1s", "--ca", ca)
        answer = attached(url, *words, *chosen, env=environment)
        assert answer["server"]["tls"] is True and answer["closed"] == {}
        assert answer["trials"][0]["grants"] >= 2
        assert f" --ca {ca} " in answer["trials"][0]["replay"]
        assert server.ask("-n", "2", "DBSIZE") == "0"


def test_large_messages_pass_in_both_directions(
    certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTORM_PASSWORD", "secret")
    with encrypted(certificates, tmp_path) as server:
        url = f"rediss://localhost:{server.port}"
        with Gateway(parse_address(url), TlsFiles(str(certificates / "ca.pem"))) as gateway:
            value = bytes(range(256)) * 40_000
            client = LineClient(gateway.socket)
            assert client.request("SET", "large", value) == b"OK"
            assert client.request("GET", "large") == value
            client.close()
            assert "LOCKSTORM_PASSWORD" not in os.environ
        assert not gateway.socket.parent.exists()


def test_a_certificate_that_is_not_trusted(certificates: Path, tmp_path: Path) -> None:
    with encrypted(certificates, tmp_path) as server:
        url = f"rediss://localhost:{server.port}"
        place = f"localhost:{server.port}"
        said = refused(url)
        assert said.startswith(f"{place} has a certificate that is not trusted (self")
        assert said.endswith("): name the file of its certificate authority by --ca FILE")
        assert refused(url, "--ca", str(tmp_path / "none.pem")) == (
            f"--ca {tmp_path}/none.pem cannot be read: no such file or directory"
        )
        assert refused(f"redis://{place}").endswith(": use rediss:// if it expects TLS")
    with outside_server(tmp_path) as plain:
        said = refused(f"rediss://{plain.place}", "--ca", str(certificates / "ca.pem"))
        assert said.startswith(f"{plain.place} does not speak TLS (")
        assert said.endswith("): use redis:// if it expects none")


def test_a_server_that_asks_for_a_certificate_of_ours(certificates: Path, tmp_path: Path) -> None:
    ca, own, key = (str(certificates / name) for name in ("ca.pem", "own.pem", "own.key"))
    words = ("--scenario", "gc-pause", "--control", "--ca", ca)
    environment = {**ENVIRONMENT, "LOCKSTORM_PASSWORD": "secret"}
    with encrypted(certificates, tmp_path, asks="yes") as server:
        url = f"rediss://localhost:{server.port}"
        own_words = ("--client-cert", own, "--client-key", key)
        (trial,) = attached(url, "--lock", "set-nx-px", *words, *own_words, env=environment)["trials"]
        assert f" --ca {ca} --client-cert {own} --client-key {key} " in trial["replay"]
        by_variables = {**environment, "LOCKSTORM_CLIENT_CERT": own, "LOCKSTORM_CLIENT_KEY": key}
        attached(url, "--lock", "set-nx-px", *words, env=by_variables)
        said = refused(url, *words, env=environment)
        assert said.startswith(f"localhost:{server.port} closes the connection (")
        assert said.endswith("): if it asks for a certificate of yours, name that by --client-cert")
        assert refused(url, *words, "--client-cert", own, env=environment).startswith(f"--client-cert {own} cannot be ")
        said = refused(url, *words, "--client-cert", str(tmp_path / "none"), env=environment)
        assert said == (
            f"--client-cert {tmp_path}/none cannot be read: no such file or directory: a certificate and its key "
            "without a password, as PEM"
        )
        said = refused(url, *words, "--client-key", key, env=environment)
        assert said == f"--client-key {key} is the key of a certificate: name that by --client-cert"


# --- sentinels ---


@contextlib.contextmanager
def under_sentinel(directory: Path) -> Iterator[tuple[OutsideServer, OutsideServer, OutsideServer]]:
    """A master, its replica, and one sentinel."""
    with contextlib.ExitStack() as stack:
        master = stack.enter_context(outside_server(directory))
        follows = ("--replicaof", "127.0.0.1", str(master.port))
        replica = stack.enter_context(outside_server(directory, *follows))
        replica.await_answer("master_link_status:up", "INFO", "replication")
        configuration = directory / "sentinel.conf"
        configuration.write_text(
            f"sentinel monitor {MASTER} 127.0.0.1 {master.port} 1\n"
            f"sentinel down-after-milliseconds {MASTER} 60000\nsentinel failover-timeout {MASTER} 10000\n"
        )
        sentinel = stack.enter_context(outside_server(directory, str(configuration), "--sentinel"))
        sentinel.await_answer(str(replica.port), "SENTINEL", "REPLICAS", MASTER)
        yield master, replica, sentinel


@pytest.mark.lengthy("a sentinel promotes a replica")
@beside_no_stall(1000)
def test_a_failover_by_a_sentinel_under_load(tmp_path: Path) -> None:
    with under_sentinel(tmp_path) as (_, replica, sentinel):
        url = f"redis+sentinel://{sentinel.place}/{MASTER}/1"
        ask = " ".join(sentinel.cli)
        (tmp_path / "attach.toml").write_text(
            f'[fault.failover]\ninject = "{ask} SENTINEL FAILOVER {MASTER} | grep OK"\n'
            f'prove = "{ask} SENTINEL GET-MASTER-ADDR-BY-NAME {MASTER} | grep -x {replica.port}"\n'
        )
        faults = ("--fault", "failover", "--faults", str(tmp_path / "attach.toml"))
        # Whether the lock survives depends on what the replica had when it was promoted.
        answer = attached(url, "--lock", "set-nx-px", *faults, statuses=(0, 1))
        (trial,) = answer["trials"]
        assert trial["faults"] == [{"name": "failover", "target": sentinel.place, "proved": True}]
        assert trial["verdict"]["liveness"]["status"] == "holds"
        assert replica.ask("ROLE").startswith("master")
        assert replica.ask("-n", "1", "DBSIZE") == "0"


def test_a_sentinel_that_does_not_know_the_master(tmp_path: Path) -> None:
    with under_sentinel(tmp_path) as (_, _, sentinel):
        url = f"redis+sentinel://{sentinel.place}/other"
        assert refused(url) == f"the sentinel {sentinel.place} knows no master called other"
        said = refused(f"redis://{sentinel.place}")
        assert said == f"{sentinel.place} is a sentinel: name it by redis+sentinel://HOST:PORT/MASTER"
        words = ("--lock", "set-nx-px", "--scenario", "gc-pause", "--control")
        with HeldPort() as port:
            url = f"redis+sentinel://127.0.0.1:{port.number},{sentinel.place}/{MASTER}"
            answer = attached(url, *words)
        assert answer["server"]["kind"] == "sentinel"


# --- a cluster ---


@contextlib.contextmanager
def in_cluster(directory: Path, replicas: int = 0) -> Iterator[list[OutsideServer]]:
    """Three masters, then so many replicas: of the first one, the second one, ..."""
    with contextlib.ExitStack() as stack:
        nodes = []
        for _ in range(3 + replicas):
            bus = ("--cluster-port", str(stack.enter_context(HeldPort()).number))  # 10000 above need not be a port
            quick = ("--cluster-node-timeout", "1000")  # the nodes tell each other their roles within half of it
            nodes.append(stack.enter_context(outside_server(directory, "--cluster-enabled", "yes", *bus, *quick)))
        for number, (node, slots) in enumerate(zip(nodes[:3], cluster_ranges(), strict=True)):
            node.ask("CLUSTER", "ADDSLOTSRANGE", str(slots[0]), str(slots[-1]))
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
        first = nodes[0].ask("CONFIG", "GET", "cluster-port").split()[-1]
        for node in nodes[1:]:
            node.ask("CLUSTER", "MEET", "127.0.0.1", str(nodes[0].port), first)
        for node in nodes:
            node.await_answer(f"cluster_known_nodes:{len(nodes)}", "CLUSTER", "INFO")
            node.await_answer("cluster_state:ok", "CLUSTER", "INFO")
        for node, master in zip(nodes[3:], nodes, strict=False):
            node.await_answer("OK", "CLUSTER", "REPLICATE", master.ask("CLUSTER", "MYID"))
            node.await_answer("master_link_status:up", "INFO", "replication")
        for node in nodes:
            node.ask("CONFIG", "SET", "cluster-node-timeout", "60000")  # a machine that stands still is no lost node
        yield nodes


@pytest.mark.slow("a cluster of six nodes, in which all masters change", seconds=25)
def test_the_masters_of_a_cluster_change_under_load(tmp_path: Path) -> None:
    with in_cluster(tmp_path, replicas=3) as nodes:
        ports = " ".join(str(node.port) for node in nodes[3:])
        each = f"for port in {ports}; do redis-cli -p $port"
        (tmp_path / "attach.toml").write_text(
            f'[fault.failover]\ninject = "{each} CLUSTER FAILOVER | grep OK || exit 1; done"\n'
            f'prove = "{each} ROLE | grep -x master || exit 1; done"\n'
        )
        faults = ("--fault", "failover", "--faults", str(tmp_path / "attach.toml"))
        answer = attached(f"redis+cluster://{nodes[0].place}", "--adapter", "redis-py", *faults)
        (trial,) = answer["trials"]
        assert [fault["proved"] for fault in trial["faults"]] == [True]
        assert trial["verdict"]["liveness"]["status"] == "holds"
        assert [node.ask("DBSIZE") for node in nodes] == ["0"] * 6


@pytest.mark.lengthy("a cluster of three nodes begins to work")
def test_a_cluster(tmp_path: Path) -> None:
    with in_cluster(tmp_path) as nodes:
        for node in nodes:  # whichever is asked first
            answer = attached(f"redis+cluster://{node.place}", "--lock", "set-nx-px", "--dry-run")
            assert answer["server"]["slot"] is not None
        url = f"redis+cluster://{nodes[0].place},{nodes[1].place}"
        words = ("--adapter", "redis-py", "--scenario", "contention", "--duration", "500ms")
        assert attached(url, *words)["trials"][0]["grants"] >= 2
        crash = attached(url, "--lock", "setnx", "--scenario", "crash-holder", "--lease", "2000ms", statuses=(1,))
        assert 1 <= crash["removed"] <= plays(crash)
        assert [node.ask("DBSIZE") for node in nodes] == ["0"] * 3
        said = refused(f"redis://{nodes[0].place}")
        assert said == f"{nodes[0].place} is a node of a cluster: name it by redis+cluster://HOST:PORT"
