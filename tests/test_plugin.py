"""A lock of one's own in C: what becomes of a good one, and of everything that can be wrong with one."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.driver import paths, plugin
from harness.driver.errors import UsageError
from tests.planted_plugins import built_from, plant
from tests.support import lockstorm

GRANT = "    struct state *self = lock->state;\n    const struct lock_options"  # where an attempt begins
STDIO = "#include <stdio.h>\n"
Planter = Callable[..., str]


@pytest.fixture
def planted(tmp_path: Path) -> Planter:
    def make(changes: Mapping[str, str] | None = None, *more: str) -> str:
        return plant(tmp_path, changes, *more)

    return make


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shipped one, as it is."""
    return plant(tmp_path_factory.mktemp("plugin"))


def result_of(file: str, *words: str) -> dict[str, Any]:
    done = lockstorm("run", "gc-pause", "--plugin", file, "--json", *words)
    assert done.returncode in (0, 1), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def status_of(result: dict[str, Any], name: str) -> str:
    return str(result["verdict"][name]["status"])


# --- a good one ---


def test_the_example_plays_in_virtual_time_and_its_difference_shows(example: str) -> None:
    """Its holder is told when the lease ends, so nobody believes in two grants at once; but a holder that stands still
    cannot look, and its late write comes all the same."""
    played = result_of(example)
    assert played["time"] == "virtual" and played["lock"] == f"plugin:{example}"
    assert status_of(played, "mutual_exclusion") == "holds"
    assert status_of(played, "integrity") == "violated"
    assert f"--plugin {example}" in played["replay"]
    usual = json.loads(lockstorm("run", "gc-pause", "--lock", "set-nx-px", "--json").stdout)
    assert status_of(usual, "mutual_exclusion") == "violated"


def test_the_example_without_its_difference_fails_as_the_pattern_does(planted: Planter) -> None:
    played = result_of(planted({", .valid_until_ns = valid_until_ns": "", "int64_t valid_until_ns": "(void)asked_ns;\n"
                                "    int64_t valid_until_ns __attribute__((unused))"}))  # fmt: skip
    assert status_of(played, "mutual_exclusion") == "violated"


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


# --- what is lent ---


def test_programs_lend_what_the_headers_declare_and_nothing_else() -> None:
    declared = set()
    for header in (paths.build() / "include").rglob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        declared |= set(re.findall(r"^(?:_Noreturn )?(?:const )?(?:\w+ )+\**(\w+)\([^)]", text, re.MULTILINE))
        declared |= set(re.findall(r"^extern const struct poll_pace (\w+);", text, re.MULTILINE))
    own = {name for name in declared if name.startswith(("env_adapter_", "lock_"))}  # for the client itself
    own |= {"env_node_address", "env_give_up", "__attribute__"}
    lent = set(re.findall(r"^    (\w+);", (paths.ROOT / "harness" / "plugin.list").read_text(), re.MULTILINE))
    assert lent == declared - own


# --- bad ones ---


def refused(file: str, *sentences: str) -> None:
    """Whoever names it is told so, in words, with exit status 2."""
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
        plugin.path_of("here.so")


def test_what_is_no_shared_object_is_none(tmp_path: Path) -> None:
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
        ({'"set-nx-px whose holder is told when its lease ends"': "NULL"}, "its .summary is NULL"),
        ({'"set-nx-px whose holder is told when its lease ends"': '"\\xff"'}, "no UTF-8 text"),
        ({"    .acquire = acquire,\n": "    .is_held = release,\n", "static struct lock_grant acquire":
          "__attribute__((unused)) static struct lock_grant acquire"}, "its .acquire is NULL"),
        ({".traits = LOCK_TRAIT_LEASE": ".traits = 64"}, "its .traits are 0x40"),
        ({".capacity = 1": ".capacity = 0"}, "its .capacity is 0"),
        ({".waits = LOCK_WAITS_POLLING": ".waits = (enum lock_waiting)9"}, "its .waits is 9"),
        ({".capacity = 1,": ".capacity = 1, .service = (enum lock_service)9,"}, "its .service is 9"),
        ({".capacity = 1,": ".capacity = 1, .nodes = 8,"}, "its .nodes are 8"),
        ({".capacity = 1,": ".capacity = 1, .replicas = 3,"}, "its .replicas are 3"),
        ({".state_size = sizeof(struct state)": ".state_size = 1 << 21"}, "its .state_size is 2097152 bytes"),
        ({".capacity = 1,": '.capacity = 1, .fixed = "redlock",'}, "its .fixed is set"),
        ({GRANT: "    lock_find(lock->type->name);\n" + GRANT}, "it asks for lock_find"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_it_is_said(planted: Planter, changes: dict[str, str], sentence: str) -> None:
    refused(planted(changes), sentence)


def test_one_that_crashes_while_it_is_loaded_takes_nobody_with_it(tmp_path: Path) -> None:
    crashing = "#include <stdlib.h>\n__attribute__((constructor)) static void crash(void) { abort(); }\n"
    refused(built_from(crashing, tmp_path), "it ended by SIGABRT while it was loaded")
    leaving = "#include <stdlib.h>\n__attribute__((constructor)) static void leave(void) { exit(0); }\n"
    refused(built_from(leaving, tmp_path), "it ended with status 0 while it was loaded")


def test_one_that_never_comes_back_from_being_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "LOAD_LIMIT_S", 0.5)
    source = "__attribute__((constructor)) static void stay(void) { for (volatile int on = 1; on;) continue; }\n"
    with pytest.raises(UsageError, match=r"was not loaded within 0\.5 s"):
        plugin.entry_of(built_from(source, tmp_path))


# --- those that misbehave while they are played ---


def test_one_that_crashes_is_inconclusive_with_its_name(planted: Planter) -> None:
    file = planted({STDIO: STDIO + "#include <stdlib.h>\n", GRANT: "    abort();\n" + GRANT})
    done = lockstorm("run", "gc-pause", "--plugin", file, "--quiet")
    assert done.returncode == 3, done.stdout + done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert f"plugin:{file}: client-1, which hosts it, ended by SIGABRT" in said


def test_the_last_words_of_one_that_gives_up_are_told(planted: Planter) -> None:
    file = planted({STDIO: STDIO + "#include <stdlib.h>\n",
                    GRANT: '    fprintf(stderr, "no idea\\n");\n    exit(5);\n' + GRANT})  # fmt: skip
    done = lockstorm("run", "gc-pause", "--plugin", file, "--quiet")
    assert done.returncode == 3
    said = " ".join((done.stdout + done.stderr).split())
    assert "which hosts it, ended with status 5: no idea" in said
