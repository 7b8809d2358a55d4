"""User-supplied locks in C: correct ones, and the messages for every mistake that one can have."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.locks import plugin
from lockstorm.scenario.play import play
from lockstorm.trial import trial_scheduler
from lockstorm.trial.settings import TrialSettings
from scenarios import test_crashes, test_messages
from tests.helpers.planted_plugins import built_from, plant
from tests.helpers.support import lockstorm

GRANT = "    struct state *self = lock->state;\n    const struct lock_options"  # where an attempt begins
STDIO = "#include <stdio.h>\n"
CHECKPOINT = re.compile(r'env_checkpoint\([^,]*, "([^"]*)"\)')
STAYS = "    for (volatile int on = 1; on;) continue;\n"
Planter = Callable[..., str]


@pytest.fixture
def planted(tmp_path: Path) -> Planter:
    def make(changes: Mapping[str, str] | None = None, *more: str) -> str:
        return plant(tmp_path, changes, *more)

    return make


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shipped example, unchanged."""
    return plant(tmp_path_factory.mktemp("plugin"))


def result_of(file: str, *arguments: str) -> dict[str, Any]:
    done = lockstorm("run", "gc-pause", "--plugin", file, "--json", *arguments)
    assert done.returncode in (0, 1), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def status_of(result: dict[str, Any], name: str) -> str:
    return str(result["verdict"][name]["status"])


# --- a correct plug-in ---


def test_the_example_plays_in_virtual_time_and_its_difference_shows(example: str) -> None:
    """Its holder knows when the lease ends, so mutual exclusion of belief holds. A paused holder cannot check that, and
    its late write still arrives."""
    played = result_of(example)
    assert played["time"] == "virtual" and played["lock"] == f"plugin:{example}"
    assert status_of(played, "mutual_exclusion") == "holds"
    assert status_of(played, "integrity") == "violated"
    assert f"--plugin {example}" in played["replay"]
    pattern = json.loads(lockstorm("run", "gc-pause", "--lock", "set-nx-px", "--json").stdout)
    assert status_of(pattern, "mutual_exclusion") == "violated"


def test_the_example_without_its_difference_fails_as_the_pattern_does(planted: Planter) -> None:
    played = result_of(planted({", .valid_until_ns = valid_until_ns": "", "int64_t valid_until_ns": "(void)asked_ns;\n"
                                "    int64_t valid_until_ns __attribute__((unused))"}))  # fmt: skip
    assert status_of(played, "mutual_exclusion") == "violated"


def test_a_plugin_built_before_poll_ms_states_none(tmp_path: Path) -> None:
    """The field lies where the struct had padding."""
    headers = tmp_path / "include"
    shutil.copytree(paths.build() / "include", headers)
    table = headers / "harness" / "locks" / "common" / "lock.h"
    before = re.sub(r"\n    int poll_ms;.*", "", table.read_text())
    assert before != table.read_text()
    table.write_text(before)
    source = re.sub(r"\n    \.poll_ms.*", "", plugin.STARTER.read_text())
    old = built_from(source, tmp_path / "old", "old.so", "-I", str(headers))
    assert plugin.plugin_entry(old).poll_ms == 0
    assert plugin.plugin_entry(plant(tmp_path / "new")).poll_ms == 1500
    assert result_of(old, "--control")["exit"] == 0


def test_its_control_holds(example: str) -> None:
    played = result_of(example, "--control")
    assert played["exit"] == 0 and played["grants"] == 2


def test_the_same_seed_gives_the_same_history(example: str, tmp_path: Path) -> None:
    histories = []
    for each in range(2):
        path = tmp_path / f"{each}.history"
        lockstorm("run", "gc-pause", "--plugin", example, "--seed", "7", "-o", str(path))
        histories.append(path.read_bytes())
    assert histories[0] == histories[1]


def test_a_trial_says_which_build_it_was(example: str) -> None:
    digest = plugin.digest_of(example)
    assert re.fullmatch(r"sha256 [0-9a-f]{12}", digest)
    assert result_of(example)["versions"]["my-lock"] == digest


# --- the symbols that a plug-in may use ---


def test_programs_lend_what_the_headers_declare_and_nothing_else() -> None:
    declared = set()
    for header in (paths.build() / "include").rglob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        text = re.sub(r"^(static inline|typedef) .*", "", text, flags=re.MULTILINE)
        declared |= set(re.findall(r"^(?:_Noreturn )?(?:const )?(?:\w+ )+\**(\w+)\([^)]", text, re.MULTILINE))
        declared |= set(re.findall(r"^extern const struct poll_pace (\w+);", text, re.MULTILINE))
    own = {name for name in declared if name.startswith(("env_adapter_", "lock_"))}  # for the client itself
    own |= {"env_answers_add"}  # inline
    own |= {"env_node_address", "env_give_up", "env_attempt_ns", "__attribute__"}
    lent = set(
        re.findall(r"^    (\w+);", (paths.ROOT / "harness" / "client" / "plugin.list").read_text(), re.MULTILINE)
    )
    assert lent == declared - own


# --- plug-ins that cannot be loaded ---


def refused(file: str, *sentences: str) -> None:
    """The command refuses the plug-in with a message and exit status 2."""
    done = lockstorm("run", "gc-pause", "--plugin", file, "--quiet")
    assert done.returncode == 2, done.stdout + done.stderr
    for sentence in sentences:
        assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_named() -> None:
    refused("./nowhere.so", "./nowhere.so: there is no such file")


def test_a_name_without_a_slash_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused("nowhere.so", "there is no plug-in called 'nowhere.so'", "a slash")
    (tmp_path / "here.so").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"did you mean \./here\.so\?"):
        plugin.plugin_path("here.so")


def test_a_file_that_is_no_shared_object_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("not a program\n")
    refused(str(text), "cannot be loaded as a shared object")
    text.write_text("")
    refused(str(text), "cannot be loaded as a shared object")
    refused(paths.program("store"), "cannot be loaded as a shared object")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;": ""}, "it has no lockstorm_lock_abi"),
        ({"lockstorm_lock_abi = LOCKSTORM_LOCK_ABI": "lockstorm_lock_abi = 77"}, "version 77 of a lock's layout"),
        ({"struct lock_type lockstorm_lock =": "struct lock_type another =", "enum outcome open": "enum outcome open"},
         "it has no lockstorm_lock:"),
        ({'"my-lock"': "NULL"}, "its .name is NULL"),
        ({'"my-lock"': '"My Lock"'}, "its .name is My Lock"),
        ({'"my-lock"': '"set-nx-px"'}, "set-nx-px, which is a lock of lockstorm's own"),
        ({'"my-lock"': '"aioredlock-46"'}, "aioredlock-46, which is a lock of lockstorm's own"),
        ({'"set-nx-px whose holder learns when its lease ends"': "NULL"}, "its .summary is NULL"),
        ({'"set-nx-px whose holder learns when its lease ends"': '"\\xff"'}, "no UTF-8 text"),
        ({"    .acquire = acquire,\n": "    .is_held = release,\n", "static struct lock_grant acquire":
          "__attribute__((unused)) static struct lock_grant acquire"}, "its .acquire is NULL"),
        ({".traits = LOCK_TRAIT_LEASE": ".traits = 64"}, "its .traits are 0x40"),
        ({".capacity = 1": ".capacity = 0"}, "its .capacity is 0"),
        ({".waits = LOCK_WAITS_POLLING": ".waits = (enum lock_waiting)9"}, "its .waits is 9"),
        ({".capacity = 1,": ".capacity = 1, .service = (enum lock_service)9,"}, "its .service is 9"),
        ({".capacity = 1,": ".capacity = 1, .nodes = 8,"}, "its .nodes are 8"),
        ({".poll_ms = 1500": ".poll_ms = -1"}, "its .poll_ms is -1"),
        ({".poll_ms = 1500": ".poll_ms = 86400001"}, "its .poll_ms is 86400001"),
        ({".capacity = 1,": ".capacity = 1, .replicas = 3,"}, "its .replicas are 3"),
        ({".state_size = sizeof(struct state)": ".state_size = 1 << 21"}, "its .state_size is 2097152 bytes"),
        ({".capacity = 1,": '.capacity = 1, .fixed = "redlock",'}, "its .fixed is set"),
        ({GRANT: "    lock_find(lock->type->name);\n" + GRANT}, "it asks for lock_find"),
    ],
)  # fmt: skip
def test_a_mistake_is_explained(planted: Planter, changes: dict[str, str], sentence: str) -> None:
    file = planted(changes)
    with pytest.raises(UsageError) as error:
        plugin.plugin_entry(file)
    assert str(error.value).startswith(f"{file}: it") and sentence in str(error.value)


def test_a_mistake_ends_the_command(planted: Planter) -> None:
    refused(planted({'"my-lock"': "NULL"}), "its .name is NULL")


def test_a_crash_while_loading_ends_no_other_process(tmp_path: Path) -> None:
    crashing = "#include <stdlib.h>\n__attribute__((constructor)) static void crash(void) { abort(); }\n"
    refused(built_from(crashing, tmp_path), "it ended by SIGABRT while it was loaded")
    leaving = "#include <stdlib.h>\n__attribute__((constructor)) static void leave(void) { exit(0); }\n"
    refused(built_from(leaving, tmp_path), "it ended with status 0 while it was loaded")


def test_a_plug_in_that_hangs_while_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "LOAD_LIMIT_S", 0.5)
    source = "__attribute__((constructor)) static void stay(void) { for (volatile int on = 1; on;) continue; }\n"
    with pytest.raises(UsageError, match=r"was not loaded within 0\.5 s"):
        plugin.plugin_entry(built_from(source, tmp_path))


# --- plug-ins that fail in a trial ---


def test_one_that_crashes_is_inconclusive_with_its_name(planted: Planter) -> None:
    file = planted({STDIO: STDIO + "#include <stdlib.h>\n", GRANT: "    abort();\n" + GRANT})
    done = lockstorm("run", "gc-pause", "--plugin", file, "--quiet")
    assert done.returncode == 3, done.stdout + done.stderr
    output = " ".join((done.stdout + done.stderr).split())
    assert f"plugin:{file}: client-1, which hosts it, ended by SIGABRT" in output


def test_the_last_output_of_a_plug_in_that_exits_is_reported(planted: Planter) -> None:
    file = planted({STDIO: STDIO + "#include <stdlib.h>\n",
                    GRANT: '    fprintf(stderr, "no idea\\n");\n    exit(5);\n' + GRANT})  # fmt: skip
    done = lockstorm("run", "gc-pause", "--plugin", file, "--quiet")
    assert done.returncode == 3
    output = " ".join((done.stdout + done.stderr).split())
    assert "which hosts it, ended with status 5: no idea" in output


def test_a_checkpoint_that_is_not_there_is_named_with_the_way_out(planted: Planter) -> None:
    file = planted({'    env_checkpoint(lock->env, "before-release");\n': ""})
    result = play(TrialSettings(f"plugin:{file}", "release-delayed"))
    assert result.exit == 3
    assert 'before-release: a plug-in marks it with env_checkpoint(env, "before-release")' in result.sentence


def test_the_page_lists_the_checkpoints_that_scenarios_use() -> None:
    """docs/test-your-own-lock.md, against what the locks mark and the scenarios name. Of one lock only are the places
    between two of its commands."""
    marked = {name for file in paths.ROOT.glob("harness/locks/**/*.c") for name in CHECKPOINT.findall(file.read_text())}
    told = "".join(file.read_text() for file in paths.ROOT.glob("scenarios/test_*.py"))
    of_one = {*test_crashes.AFTER_GRANT.values(), *test_messages.LAST_STEP.values()}
    used = {name for name in marked if f'"{name}"' in told} - of_one
    page = (paths.ROOT / "docs" / "test-your-own-lock.md").read_text()
    assert set(re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)) == used


def test_one_that_never_comes_back_is_inconclusive_with_its_name(
    planted: Planter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_scheduler, "TURN_LIMIT_MS", 1000)
    file = planted({GRANT: STAYS + GRANT})
    result = play(TrialSettings(f"plugin:{file}", "gc-pause"))
    assert result.exit == 3
    assert f"plugin:{file}: client-1 did not come back within 1 s" in result.sentence


# --- explored ---


def explored(file: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return lockstorm("explore", "--plugin", file, "--workers", "1", *arguments)


def test_the_explorer_finds_how_the_example_breaks_and_replay_shows_it(example: str, tmp_path: Path) -> None:
    found = tmp_path / "found.schedule"
    done = explored(example, "--faults", "pause-client", "--schedules", "1000", "--json", "-o", str(found))
    result = json.loads(done.stdout)
    assert done.returncode == 1 and result["found"]["violates"][0] == "integrity"
    assert f"lock plugin:{example}" in found.read_text()
    assert f"--plugin {example}" in result["replay"]
    replayed = json.loads(lockstorm("replay", str(found), "--json").stdout)
    assert status_of(replayed, "integrity") == "violated" and status_of(replayed, "mutual_exclusion") == "holds"


def test_the_same_seed_explores_the_same_histories(example: str) -> None:
    results = [json.loads(explored(example, "--schedules", "200", "--all", "--json").stdout) for _ in range(2)]
    assert results[0]["history_sha256"] == results[1]["history_sha256"]
    assert results[0]["schedules"] == results[1]["schedules"] == 200


def test_the_pattern_as_a_plug_in_is_explored_like_the_pattern(tmp_path: Path) -> None:
    """The explorer treats a plug-in like a lock of the table: the same code gives the same number of violations of the
    same kinds, first found in the same schedules."""
    source = (paths.ROOT / "harness" / "locks" / "redis" / "set_nx_px_renew.c").read_text()
    source = '#include "lockstorm.h"\n' + source.replace("LOCK_SET_NX_PX_RENEW", "lockstorm_lock")
    source = source.replace('"set-nx-px-renew"', '"the-same"')
    file = built_from(source + "const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;\n", tmp_path)
    arguments = ("--faults", "pause-client,kill-client", "--schedules", "500", "--all", "--workers", "1", "--json")
    ours = json.loads(lockstorm("explore", "--lock", "set-nx-px-renew", *arguments).stdout)
    theirs = json.loads(lockstorm("explore", "--plugin", file, *arguments).stdout)
    assert ours["groups"] and ours["groups"] == theirs["groups"]
    assert ours["steps"] == theirs["steps"]


def test_a_plug_in_that_writes_static_variables_cannot_be_explored(planted: Planter) -> None:
    """In the explorer all clients share one process. In a trial each has its own, where static variables do no harm."""
    file = planted({GRANT: "    static volatile int tries;\n    tries++;\n" + GRANT})
    done = explored(file, "--schedules", "10", "--quiet")
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"plugin:{file}: it has written to a static variable" in done.stderr
    address = int(re.search(r"at (0x[0-9a-f]+) by", done.stderr)[1], 16)  # type: ignore[index]
    names = subprocess.run(["nm", file], capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^0*{address:x} b tries", names, re.MULTILINE)
    assert result_of(file, "--control")["exit"] == 0


def test_a_plug_in_that_calls_clocks_or_rand_itself_is_for_real_time_only(planted: Planter) -> None:
    file = planted({STDIO: STDIO + "#include <stdlib.h>\n", "(unsigned long long)env_random(lock->env),":
                    "(unsigned long long)rand(),"})  # fmt: skip
    reason = "it calls rand itself: env_random is there for that"
    assert reason in explored(file).stderr
    virtual = lockstorm("run", "gc-pause", "--plugin", file, "--time", "virtual")
    assert virtual.returncode == 2 and reason in virtual.stderr
    assert result_of(file, "--control")["time"] == "real"


def test_a_plug_in_that_links_a_library_is_for_real_time_only() -> None:
    assert plugin.taken_elsewhere([], ["libc.so.6", "libm.so.6"]) == []
    assert plugin.taken_elsewhere(["printf"], ["libhiredis.so.1.1.0"]) == ["it is linked with libhiredis.so.1.1.0"]


def test_one_that_crashes_in_the_explorer_is_inconclusive_with_its_name(planted: Planter) -> None:
    file = planted({STDIO: STDIO + "#include <stdlib.h>\n", GRANT: "    abort();\n" + GRANT})
    done = explored(file)
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"plugin:{file}: the explorer, which hosts it, ended by SIGABRT" in done.stdout


def test_a_plug_in_that_asks_for_a_service_that_is_not_simulated_is_refused(planted: Planter) -> None:
    """The explorer has Redis nodes only. Other calls of the environment return an error, and the search goes on."""
    calls = "".join(
        f"    if ({each}) abort();\n"
        for each in (
            'env_post(lock->env, 0, 100, "/v3/kv/txn", "{}")->kind != ENV_REPLY_ERROR',
            'strncmp(env_post(lock->env, 0, 100, "/", "")->text, "501 ", 4) != 0',
            'env_query(lock->env, 0, "SELECT 1", NULL, 0)->kind != ENV_REPLY_ERROR',
            'env_query_blocking(lock->env, 0, "SELECT 1", NULL, 0)->kind != ENV_REPLY_ERROR',
            'env_stream(lock->env, 0, "/v3/watch", "{}") != OUTCOME_REFUSED',
            "env_stream_line(lock->env, 0, 100)->kind != ENV_REPLY_ERROR",
            "env_session_open(lock->env, 1000, NULL, NULL) != OUTCOME_REFUSED",
            "env_session_state(lock->env) != ENV_SESSION_LOST",
            'env_tree(lock->env, ENV_TREE_CHILDREN, "/")->kind != ENV_REPLY_ERROR',
            "env_tree_news(lock->env, 0)",
        )
    )
    calls += "    env_stream_end(lock->env, 0);\n    env_session_end(lock->env);\n"
    file = planted({STDIO: STDIO + "#include <stdlib.h>\n#include <string.h>\n", GRANT: calls + GRANT})
    done = explored(file, "--faults", "none", "--schedules", "10", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["schedules"] == 10


@pytest.mark.slow("waits until a plug-in is given up", seconds=8)
def test_one_that_never_comes_back_in_the_explorer_is_given_up(planted: Planter) -> None:
    file = planted({GRANT: STAYS + GRANT})
    done = explored(file)
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"plugin:{file}: the explorer, which hosts it, ended early: it did not come back within 10 s" in done.stdout


def test_a_campaign_does_not_go_on_with_another_build(planted: Planter, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    arguments = ("--faults", "none", "--quiet")
    done = explored(planted(), *arguments, "--schedules", "10", "--result", str(kept))
    assert done.returncode == 0, done.stderr
    assert lockstorm("explore", "--resume", str(kept), "--schedules", "20", "--quiet").returncode == 0
    planted({"most_ms = 1000": "most_ms = 900"})
    done = lockstorm("explore", "--resume", str(kept), "--schedules", "30", "--quiet")
    assert done.returncode == 2 and "is another build now" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--lock", "setnx"), "name one lock: "),
        (("--resume", "kept.json"), "the file kept.json names the plugin"),
        (("--save",), "-o FILE saves it"),
    ],
)
def test_options_that_contradict_a_plug_in_are_refused(example: str, arguments: tuple[str, ...], sentence: str) -> None:
    done = explored(example, *arguments)
    assert done.returncode == 2 and sentence in done.stderr


# --- other commands that take a lock ---


def test_the_gate_plays_it_from_its_policy(example: str, tmp_path: Path) -> None:
    (tmp_path / "lock.so").write_bytes(Path(example).read_bytes())
    policy = tmp_path / "lockstorm.toml"
    policy.write_text(
        '[[lock]]\nplugin = "./lock.so"\nrequire = ["mutual_exclusion"]\n[scenarios]\nplay = ["gc-pause"]\n'
    )
    done = lockstorm("gate", "-f", str(policy), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (case,) = json.loads(done.stdout)["cells"]
    assert case["lock"] == f"plugin:{tmp_path}/lock.so" and case["time"] == "virtual"
    policy.write_text('[[lock]]\nplugin = "./gone.so"\n')
    done = lockstorm("gate", "-f", str(policy))
    assert done.returncode == 2 and f"{policy}:2: {tmp_path}/gone.so: there is no such file" in done.stderr
    policy.write_text('[[lock]]\nplugin = "./lock.so"\nadapter = "redis-py"\n')
    done = lockstorm("gate", "-f", str(policy))
    assert done.returncode == 2 and "a lock has a name, or an adapter or a plug-in in its place" in done.stderr


def test_a_storm_passes_over_it(example: str) -> None:
    arguments = (
        "--faults",
        "pause-client",
        "--duration",
        "3s",
        "--seed",
        "3",
        "--require",
        "mutual-exclusion,liveness",
    )
    done = lockstorm("storm", "--plugin", example, *arguments, "--json")
    result = json.loads(done.stdout)
    assert result["exit"] == 0 and result["time"] == "virtual" and result["grants"] > 1
    assert f"--plugin {example}" in result["replay"]


@pytest.mark.slow("a measurement of costs", seconds=2)
def test_its_cost_is_measured_beside_the_others(example: str) -> None:
    arguments = ("--waiters", "1", "--rate", "none", "--duration", "200ms", "--json")
    done = lockstorm("compare", "--lock", "set-nx-px", "--plugin", example, *arguments)
    cells = json.loads(done.stdout)["cells"]
    assert [cell["lock"] for cell in cells] == ["set-nx-px", f"plugin:{example}"]
    if reason := next((cell["reason"] for cell in cells if not cell["measured"] and cell["played_again"]), None):
        raise Inconclusive(reason)
    for cell in cells:  # a request at either end of the window belongs to a grant that is outside it
        apart = 1.5 / cell["grants"] + 0.0005  # it has three decimals
        assert cell["requests_per_grant"] == pytest.approx(2, abs=apart), cell["reason"]


def test_a_lock_is_named_once(example: str) -> None:
    done = lockstorm("run", "gc-pause", "--plugin", example, "--lock", "setnx")
    assert done.returncode == 2 and "name one lock" in done.stderr


@pytest.mark.lengthy("searches a thousand schedules")
def test_the_search_as_it_comes_does_not_accuse_the_example(example: str) -> None:
    done = explored(example, "--schedules", "1000", "--json")
    assert done.returncode == 0, json.loads(done.stdout)["sentence"]
