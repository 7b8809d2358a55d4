"""A lock with several permits in every command that judges: its holders may overwrite each other's data, and there must
never be more of them than permits."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.planted_plugins import built_from
from tests.helpers.support import lockstorm

# A counter of free permits, which the first client sets to the number of permits, and to SURPLUS more.
SEMAPHORE = """
#include "lockstorm.h"

static const struct poll_pace PACE = {.first_ms = 50, .most_ms = 1000};
static const char TAKE[] = "if tonumber(redis.call('get', KEYS[1])) < 1 then return 0 end "
                           "redis.call('decr', KEYS[1]) return 1";

struct state {
    struct script take;
};

static enum outcome open(struct lock *lock) {
    const struct lock_options *options = &lock->options;
    ((struct state *)lock->state)->take.source = TAKE;
    env_command(lock->env, 0, "SET %b %lld NX", options->resource, options->resource_length,
                (long long)options->permits + SURPLUS);
    return script_load(lock->env, 0, &((struct state *)lock->state)->take);
}

static struct lock_grant attempt(struct lock *lock) {
    const struct lock_options *options = &lock->options;
    struct script *take = &((struct state *)lock->state)->take;
    return (struct lock_grant){
        .outcome = script_outcome(script_run(lock->env, 0, take, "1 %b", options->resource, options->resource_length))};
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &PACE, attempt);
}

static enum outcome release(struct lock *lock) {
    const struct lock_options *options = &lock->options;
    const struct env_reply *reply = env_command(lock->env, 0, "INCR %b", options->resource, options->resource_length);
    return reply->kind == ENV_REPLY_INTEGER ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "permits",
    .summary = "a counter of free permits",
    .capacity = LOCK_CAPACITY_ASKED,
    .waits = LOCK_WAITS_POLLING,
    .state_size = sizeof(struct state),
    .open = open,
    .acquire = acquire,
    .release = release,
};
"""
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
    return "--plugin", built_from(SEMAPHORE, tmp_path_factory.mktemp("right"), "right.so", "-DSURPLUS=0")


@pytest.fixture(scope="module")
def surplus(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A semaphore that gives one permit more."""
    return "--plugin", built_from(SEMAPHORE, tmp_path_factory.mktemp("surplus"), "surplus.so", "-DSURPLUS=1")


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
