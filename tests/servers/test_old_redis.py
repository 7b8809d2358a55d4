"""A redis-server that lacks a command which the explorer needs."""

from pathlib import Path

from tests.helpers.support import ENVIRONMENT, lockstorm


def test_a_replica_whose_keys_cannot_be_copied_with_their_expiry_ends_the_search(tmp_path: Path) -> None:
    """After a failover the other replica gets the data of the promoted one. Without PEXPIRETIME (before Redis 7.0) it
    would get keys that never expire."""
    server = tmp_path / "redis-server"
    server.write_text('#!/bin/sh\nexec redis-server "$@" --rename-command PEXPIRETIME ""\n')
    server.chmod(0o755)
    words = ["--lock", "set-nx-px", "--replicas", "2", "--faults", "failover", "--schedules", "50", "--seed", "1"]
    done = lockstorm("explore", *words, env={**ENVIRONMENT, "LOCKSTORM_REDIS_SERVER": str(server)})
    assert done.returncode == 3, done.stdout
    assert "unknown command 'PEXPIRETIME'" in done.stdout + done.stderr
    assert "violated" not in done.stdout
