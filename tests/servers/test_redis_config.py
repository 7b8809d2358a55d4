"""What a trial takes of a redis.conf, and what it chooses itself."""

from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import UsageError
from lockstorm.servers.redis_config import (
    RedisSetting,
    check_redis_settings,
    chosen_by_trial,
    divide,
    read_redis_config,
    replicas_needed,
)


def written(directory: Path, text: str, name: str = "redis.conf") -> Path:
    file = directory / name
    file.write_text(text)
    return file


def setting(line: str, place: str) -> RedisSetting:
    name, _, value = line.partition(" ")
    return RedisSetting(name, value, place)


def test_settings_are_read_with_their_lines(tmp_path: Path) -> None:
    file = written(tmp_path, "# a comment\n\n  appendFsync   always\nport\t6379\nsave 900 1 # three words\n")
    assert [(each.name, each.value, each.place) for each in read_redis_config(file)] == [
        ("appendfsync", "always", f"{file}:3"),
        ("port", "6379", f"{file}:4"),
        ("save", "900 1 # three words", f"{file}:5"),
    ]


def test_files_that_it_includes_are_read_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    written(tmp_path / "more", "hz 20\n", "b.conf")
    written(tmp_path / "more", "hz 30\n", "a.conf")
    file = written(tmp_path, "hz 10\ninclude more/*.conf\ninclude none/*.conf\nmaxclients 50\n")
    assert [each.line for each in read_redis_config(file)] == ["hz 10", "hz 30", "hz 20", "maxclients 50"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("appendonly\n", "{file}:1: 'appendonly' has no value"),
        ("hz 10\ninclude other.conf\n", "{file}:2: there is no other.conf"),
        ("include redis.conf\n", "{file}:1: files include each other more than 8 deep"),
        ("a\0b c\n", "{file} is not text"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(UsageError) as error:
        read_redis_config(file)
    assert str(error.value) == message.format(file=file)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "redis.conf").write_bytes(b"appendonly \xff\n")
    with pytest.raises(UsageError, match=r"redis.conf is not text in UTF-8"):
        read_redis_config(tmp_path / "redis.conf")
    with pytest.raises(UsageError, match=r"there is no /nowhere/redis\.conf"):
        read_redis_config(Path("/nowhere/redis.conf"))
    with pytest.raises(UsageError, match="Is a directory"):
        read_redis_config(tmp_path)


def test_the_last_of_several_counts_and_what_a_trial_chooses_is_named() -> None:
    buffers = [f"client-output-buffer-limit {each}" for each in ("normal 0 0 0", "pubsub 32mb 8mb 60", "normal 1 1 1")]
    lines = ["hz 10", "port 6379", buffers[0], "tls-port 1", "hz 20", *buffers[1:]]
    settings = [setting(line, f"f:{at}") for at, line in enumerate(lines)]
    kept, changed = divide(settings)
    assert [each.line for each in kept] == [
        "hz 20",
        "client-output-buffer-limit normal 1 1 1",
        "client-output-buffer-limit pubsub 32mb 8mb 60",
    ]
    assert [(each.setting.line, each.setting.place) for each in changed] == [
        ("port 6379", "f:1"),
        ("tls-port 1", "f:3"),
    ]


@pytest.mark.parametrize("name", ["appendonly", "appendfsync", "min-replicas-to-write", "maxmemory-policy", "timeout"])
def test_what_decides_about_locks_is_the_teams(name: str) -> None:
    assert chosen_by_trial(name) is None


@pytest.mark.parametrize("name", ["min-replicas-to-write", "min-slaves-to-write"])
def test_replicas_that_a_master_needs(name: str) -> None:
    assert replicas_needed([RedisSetting(name, "1", ""), RedisSetting(name, "2", "")]) == 2
    assert replicas_needed([RedisSetting("hz", "2", "")]) == 0


def test_the_server_itself_judges_the_settings() -> None:
    good = (RedisSetting("appendonly", "yes", "f:1"), RedisSetting("maxmemory", "100mb", "f:2"))
    check_redis_settings(paths.redis_server(), good)
    for line, why in (("appendfsync sometimes", "must be one of"), ("nonsense 1", "(Bad|no such) directive")):
        bad = setting(line, "f:3")
        with pytest.raises(UsageError, match=f"f:3: the server refuses '{line}': .*{why}"):
            check_redis_settings(paths.redis_server(), (*good, bad))
