"""A lock with several permits in every command that judges: its holders may overwrite each other's data, and there must
never be more of them than permits."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.planted_plugins import one_mistake
from tests.helpers.support import lockstorm

SHIPPED = (("--lock", "semaphore"), ("--lock", "permit-semaphore"))
POLICY = """[[lock]]
{lock}
permits = 2
[scenarios]
play = ["contention"]
time = "virtual"
[[storm]]
name = "pauses"
faults = ["pause-client"]
trials = 2
duration = "2s"
clients = 4
"""


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A semaphore that gives as many permits as it has."""
    return "--plugin", one_mistake(tmp_path_factory.mktemp("right"), "permits", "SURPLUS=0")


@pytest.fixture(scope="module")
def surplus(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A semaphore that gives one permit more."""
    return "--plugin", one_mistake(tmp_path_factory.mktemp("surplus"), "permits", "SURPLUS=1")


# Each with enough clients for a surplus: more than two at once.
COMMANDS = {
    "run": ("run", "contention", "--clients", "4", "--duration", "5s"),
    "explore": ("explore", "--clients", "4", "--faults", "pause-client", "--schedules", "300"),
    "storm": ("storm", "--clients", "4", "--faults", "pause-client", "--duration", "5s", "--trials", "2"),
}


def result_of(*words: str) -> dict[str, Any]:
    done = lockstorm(*words, "--permits", "2", "--json")
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["exit"] == done.returncode
    return result


@pytest.mark.parametrize("command", COMMANDS)
def test_a_right_semaphore_passes(command: str, right: tuple[str, str]) -> None:
    result = result_of(*COMMANDS[command], *right)
    assert (result["exit"], result["verdict"]["capacity"]["status"]) == (0, "holds"), result["sentence"]
    assert "capacity" in result["required"] and "integrity" not in result["required"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_permit_too_many_is_a_violation(command: str, surplus: tuple[str, str]) -> None:
    result = result_of(*COMMANDS[command], *surplus)
    assert (result["exit"], result["verdict"]["capacity"]["status"]) == (1, "violated"), result["sentence"]


@pytest.mark.parametrize("command", COMMANDS)
def test_who_requires_integrity_of_a_semaphore_gets_it(command: str, right: tuple[str, str]) -> None:
    result = result_of(*COMMANDS[command], *right, "--require", "integrity")
    assert (result["exit"], result["required"]) == (1, ["integrity"])
    assert result["verdict"]["integrity"]["status"] == "violated"


@pytest.mark.parametrize(("words", "is_asked"), [((), False), (("--require", "integrity"), True)])
def test_a_table_speaks_of_integrity_only_if_it_is_asked_for(words: tuple[str, ...], is_asked: bool) -> None:
    done = lockstorm("run", "gc-pause", "--lock", "semaphore", "--permits", "2", *words)
    assert (done.returncode, "integrity" in done.stdout) == (int(is_asked), is_asked), done.stdout


@pytest.mark.parametrize("lock", SHIPPED, ids=lambda words: words[1])
def test_the_shipped_semaphores_pass_without_a_fault(lock: tuple[str, str]) -> None:
    assert result_of(*COMMANDS["run"], *lock)["exit"] == 0
    assert result_of("explore", "--faults", "none", "--schedules", "300", *lock)["exit"] == 0


def test_a_violation_that_does_not_count_makes_no_group(right: tuple[str, str]) -> None:
    """The explorer lists which schedules violate what; overwritten data of a semaphore is no violation."""
    words = ("explore", "--faults", "none", "--schedules", "300", *right)
    assert result_of(*words)["groups"] == []
    assert result_of(*words, "--require", "integrity")["groups"][0]["violates"] == ["integrity"]


def gate_verdict(directory: Path, lock: tuple[str, str], require: str = "") -> dict[str, Any]:
    (directory / "lockstorm.toml").write_text(POLICY.format(lock=f'plugin = "{lock[1]}"{require}'))
    done = lockstorm("gate", "-f", str(directory / "lockstorm.toml"), "--json")
    assert done.stdout, done.stderr
    verdict: dict[str, Any] = json.loads(done.stdout)
    assert verdict["exit"] == done.returncode
    return verdict


@pytest.mark.slow("a whole policy", seconds=5)
def test_the_gate_requires_capacity_of_a_semaphore(
    tmp_path: Path, right: tuple[str, str], surplus: tuple[str, str]
) -> None:
    passed = gate_verdict(tmp_path, right)
    assert passed["locks"][0]["require"] == ["mutual_exclusion", "capacity", "liveness"]
    assert {cell["outcome"] for cell in passed["cells"]} == {"passed"}, passed["sentence"]
    failed = gate_verdict(tmp_path, surplus)
    assert {cell["outcome"] for cell in failed["cells"]} == {"failed"}
    assert all("capacity" in cell["violated"] for cell in failed["cells"])
    advice = failed["locks"][0]["advice"]
    assert advice is None or advice["lock"] in ("semaphore", "permit-semaphore"), "a mutex is no semaphore"
    chosen = gate_verdict(tmp_path, right, '\nrequire = ["integrity"]')
    assert {cell["outcome"] for cell in chosen["cells"]} == {"failed"}
