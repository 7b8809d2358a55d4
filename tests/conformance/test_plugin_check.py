"""`lockstorm plugin`: each check finds its mistake, and the starter is a plug-in that passes."""

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec import structs

from lockstorm.base import paths
from lockstorm.conformance import plugin_check
from lockstorm.conformance.check_result import DoneCheck
from lockstorm.conformance.plugin_check import Check, PluginBench, checks_for, one_check
from lockstorm.locks import plugin
from lockstorm.locks.lock_names import lock_named
from tests.helpers.planted_plugins import one_mistake, plant
from tests.helpers.support import lockstorm

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
ATTEMPT = "    struct state *self = lock->state;\n    const struct lock_options"
UNKNOWN = "!= ENV_REPLY_STATUS) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN}"
LEASE_GIVEN = "self->owner, (long long)options->lease_ms)"
POLL = "poll_until_granted(lock, wait_ms,"
LEASE = ".traits = LOCK_TRAIT_LEASE"
IS_HELD = "    .is_held = held,\n    .acquire = acquire,"
HELD_BY_ALL = "static enum outcome held(struct lock *lock) { return lock ? OUTCOME_OK : OUTCOME_REFUSED; }\n"
RENEWED = "    .renew = renewed,\n    .acquire = acquire,"
RENEWS_ANY = """static enum outcome renewed(struct lock *lock) {
    const struct lock_options *options = &lock->options;
    return script_outcome(env_command(lock->env, 0, "PEXPIRE %b %lld", options->resource, options->resource_length,
                                      (long long)options->lease_ms));
}
"""
RENEWS_NOTHING = "static enum outcome renewed(struct lock *lock) { return lock ? OUTCOME_OK : OUTCOME_REFUSED; }\n"
ABI = "const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;"

Verdict = Callable[[str, Mapping[str, str]], DoneCheck]


@pytest.fixture
def checked(tmp_path: Path) -> Verdict:
    def one(check: str, changes: Mapping[str, str]) -> DoneCheck:
        return one_check(PluginBench(plugin.plugin_entry(plant(tmp_path, changes))), getattr(plugin_check, check))

    return one


def test_the_example_passes_all(tmp_path: Path) -> None:
    done = lockstorm("plugin", "check", plant(tmp_path), "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 0 and result["ok"], done.stdout
    assert len(result["checks"]) == len(checks_for(plugin.plugin_entry(result["plugin"]))) == 10


ZOOKEEPER = pytest.mark.slow("a ZooKeeper server for each of its checks", seconds=8)


@pytest.mark.parametrize("made_of", ["PUSH", "SIGNAL_LIST", pytest.param("QUEUE", marks=ZOOKEEPER)])
def test_a_lock_that_is_made_of_what_is_lent_passes_all(tmp_path: Path, made_of: str) -> None:
    done = lockstorm("plugin", "check", one_mistake(tmp_path, "lent", made_of), "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 0 and result["ok"], done.stdout
    checks = [check["name"] for check in result["checks"]]
    assert checks == [check.__doc__ for check in checks_for(plugin.plugin_entry(result["plugin"]))]


WRONG = [
    ("excludes", {"SET %b %s NX PX": "SET %b %s PX"}, "two clients hold the lock at once"),
    ("releases_its_own", {RELEASE: "return redis.call('del', KEYS[1])"}, "released it all the same"),
    ("grants", {"ENV_REPLY_NIL) return": "ENV_REPLY_STATUS) return"}, "it answered refused: the lock was free"),
    ("waits_for_so_long", {POLL: "poll_until_granted(lock, 2 * wait_ms,"}, "had to wait for 2000 ms"),
    ("is_served", {POLL: "poll_until_granted(lock, wait_ms < 0 ? 0 : wait_ms,"}, "was released while it waited"),
    ("survives_silence", {UNKNOWN: UNKNOWN.replace("OUTCOME_UNKNOWN", "OUTCOME_REFUSED")}, "it is unknown whether"),
    ("expires", {" NX PX %lld": " NX", LEASE_GIVEN: "self->owner)"}, "LOCK_TRAIT_LEASE"),
    ("keeps", {LEASE: LEASE + " | LOCK_TRAIT_RENEWS"}, "LOCK_TRAIT_RENEWS"),
    ("is_held_asks_servers", {"    .acquire = acquire,": IS_HELD, ABI: HELD_BY_ALL + ABI}, "does not hold the lock"),
    ("renews", {"    .acquire = acquire,": RENEWED, ABI: RENEWS_NOTHING + ABI}, "free when its first lease was over"),
    ("renews_its_own", {"    .acquire = acquire,": RENEWED, ABI: RENEWS_ANY + ABI}, "made the holder's lease longer"),
    ("renews_its_own", {"    .acquire = acquire,": RENEWED, ABI: RENEWS_NOTHING + ABI}, "answered ok to the renewal"),
    ("can_be_explored", {"SET %b %s NX PX": "SET %b %s PX"}, "without any fault: "),
    ("can_be_explored", {ATTEMPT: "    static volatile int tries;\n    tries++;\n" + ATTEMPT}, "a static variable"),
    ("keeps_to_its_environment",
     {"#include <stdio.h>": "#include <stdio.h>\n#include <time.h>", ATTEMPT: "    (void)time(NULL);\n" + ATTEMPT},
     "it calls time itself: env_mono_ns or env_wall_ns is there for that"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "changes", "sentence"), WRONG)
def test_each_check_finds_its_mistake(checked: Verdict, check: str, changes: dict[str, str], sentence: str) -> None:
    found = checked(check, changes)
    assert not found.ok and sentence in found.wrong, found


def test_every_check_is_seen_to_fail() -> None:
    """WRONG has a mistake for every check that any plug-in can get."""
    every = structs.replace(lock_named("set-nx-px"), renewable=True, lease=True, renews=True)
    checks: list[Check] = checks_for(every)
    assert {check.__name__ for check in checks} == {check for check, _, _ in WRONG}


def test_tokens_that_are_promised_have_to_rise(checked: Verdict) -> None:
    found = checked("grants", {LEASE: LEASE + " | LOCK_TRAIT_TOKEN"})
    assert not found.ok and "the tokens 0 and 0: each has to be" in found.wrong


def test_what_crashes_is_wrong_and_the_other_checks_go_on(tmp_path: Path) -> None:
    changes = {"#include <stdio.h>": "#include <stdio.h>\n#include <stdlib.h>",
               'env_checkpoint(lock->env, "before-release");': "abort();"}  # fmt: skip
    done = lockstorm("plugin", "check", plant(tmp_path, changes))
    assert done.returncode == 1 and "WRONG  a free lock is granted, and released" in done.stdout
    assert "client-1, which hosts it, ended by SIGABRT" in " ".join(done.stdout.split())
    assert "ok     a lock that is taken is refused" in done.stdout


def test_what_cannot_be_loaded_is_no_plug_in() -> None:
    done = lockstorm("plugin", "check", "./nowhere.so")
    assert done.returncode == 2 and "there is no such file" in done.stderr


def test_a_starter_is_written_and_built_with_the_printed_command(tmp_path: Path) -> None:
    source = tmp_path / "first.c"
    done = lockstorm("plugin", "init", "-o", str(source))
    assert done.returncode == 0 and source.read_text() == plugin.STARTER.read_text()
    _, build, check = done.stdout.splitlines()
    assert subprocess.run(build, shell=True, capture_output=True, cwd=tmp_path).returncode == 0
    assert check == f"lockstorm plugin check {tmp_path}/first.so"
    assert plugin.plugin_entry(str(tmp_path / "first.so")).shared_object.name == "my-lock"


@pytest.mark.parametrize(("output", "sentence"), [("taken.c", "exists already"), ("no/where.c", "does not exist"),
                                                  ("first.h", "ends in .c")])  # fmt: skip
def test_nothing_is_overwritten(tmp_path: Path, output: str, sentence: str) -> None:
    (tmp_path / "taken.c").touch()
    done = lockstorm("plugin", "init", "-o", str(tmp_path / output))
    assert done.returncode == 2 and sentence in done.stderr


def test_the_page_shows_what_the_command_says(tmp_path: Path) -> None:
    """docs/test-your-own-lock.md lists the checks of the starter."""
    page = (paths.ROOT / "docs" / "test-your-own-lock.md").read_text()
    shown = re.findall(r"^  ok     (.*)$", page.partition("\n## In C\n")[2], re.MULTILINE)
    entry = plugin.plugin_entry(plant(tmp_path))
    assert shown == [(check.__doc__ or "").strip() for check in checks_for(entry)]


def test_the_starter_fits_on_a_page() -> None:
    assert len(plugin.STARTER.read_text().splitlines()) < 80
