"""The command line: answers, their form, and the exit status."""

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from lockstorm.base import paths
from lockstorm.base.errors import Inconclusive, UsageError
from lockstorm.cli import terminal
from lockstorm.cli.commands.doctor_command import find_programs
from lockstorm.cli.main import cli, tidy_end
from lockstorm.cli.terminal import check_new_file, status_line_to_the_end
from lockstorm.scenario.scenario import scenario, scenarios_in
from lockstorm.servers.services import missing
from lockstorm.trial.trial import Trial
from tests.helpers.command_list import COMMANDS
from tests.helpers.support import ENVIRONMENT, lockstorm


def as_json(*words: str, status: int = 0, **options: Any) -> dict[str, Any]:
    done = lockstorm(*words, "--json", **options)
    assert done.returncode == status, done.stderr + done.stdout
    assert done.stderr == ""
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def in_process(*words: str) -> str:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words: str, **options: Any) -> str:
    """Runs a command with bad input: exit status 2, an empty standard output, no traceback. Returns the message."""
    done = lockstorm(*words, **options)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


# --- run ---


def test_check_applies_the_policies_that_are_chosen(tmp_path: Path) -> None:
    saved = str(tmp_path / "gc.history")
    as_json("run", "gc-pause", "--lock", "set-nx-px", "-o", saved, status=1)
    answer = as_json("check", saved, "--release-policy", "unknown", "--all-policies", status=1)
    assert answer["policy"] == {"release": "unknown", "acquire_timeout": "not-happened"}
    assert answer["failed_releases"] == 1  # the late holder's: the lock is not its own any more
    assert len(answer["policies"]) == 6
    plain = lockstorm("check", saved, "--all-policies").stdout
    assert "read: a failed release as released (1 in this history)" in plain
    assert "not-happened" in plain
    assert lockstorm("check", saved, "--release-policy", "maybe").returncode == 2


def test_run_reports_what_the_pause_broke() -> None:
    result = as_json("run", "gc-pause", "--lock", "set-nx-px", status=1)
    assert (result["lock"], result["scenario"], result["store"]) == ("set-nx-px", "gc-pause", "open")
    assert (result["time"], result["seed"]) == ("virtual", 1)
    assert result["verdict"]["mutual_exclusion"]["status"] == "violated"
    assert result["verdict"]["mutual_exclusion"]["count"] == 1
    assert result["verdict"]["integrity"]["status"] == "violated"
    assert (
        result["verdict"]["integrity"]["sorts"]["stale_write"],
        result["verdict"]["integrity"]["sorts"]["lost_update"],
    ) == (1, 1)
    assert result["verdict"]["fencing"]["status"] == "inconclusive"
    assert "fencing" not in result["required"]
    assert result["faults"] == [{"name": "pause-client", "target": "client-1", "proved": True}]
    assert result["sentence"] == "Mutual exclusion violated, integrity violated (1 stale write, 1 lost update)"


def test_run_reports_what_the_fence_prevented() -> None:
    words = ("run", "gc-pause", "--lock", "set-nx-px-fenced", "--store", "fence-reads-and-writes")
    result = as_json(*words, status=1)
    found = {name: result["verdict"][name]["status"] for name in result["required"]}
    assert found == {"mutual_exclusion": "violated", "integrity": "holds", "fencing": "holds"}
    sentence = "Mutual exclusion violated, integrity holds (1 stale write fenced), fencing holds"
    assert result["sentence"] == sentence


def test_the_control_holds() -> None:
    assert as_json("run", "gc-pause", "--lock", "set-nx-px", "--control")["exit"] == 0


def test_require_decides_the_exit_status() -> None:
    words = ("run", "gc-pause", "--lock", "set-nx-px-fenced", "--store", "fence-writes", "--require")
    assert as_json(*words, "integrity,fencing")["required"] == ["integrity", "fencing"]
    assert as_json(*words, "mutual-exclusion", status=1)["required"] == ["mutual_exclusion"]
    assert as_json("run", "gc-pause", "--lock", "set-nx-px", "--control", "--require", "fencing", status=3)["exit"] == 3


def test_replay_repeats_the_trial() -> None:
    first = as_json("run", "contention", "--lock", "none", "--seed", "9", "--clients", "3", status=1)
    words = first["replay"].split()
    assert words[0] == "lockstorm"
    second = as_json(*words[1:], status=1)
    assert {**second, "elapsed_ms": None} == {**first, "elapsed_ms": None}


@pytest.mark.waits
def test_run_in_real_time() -> None:
    result = as_json("run", "gc-pause", "--lock", "set-nx-px", "--time", "real", "--lease", "900ms", status=1)
    assert (result["time"], result["lease_ms"]) == ("real", 900)
    assert result["verdict"]["mutual_exclusion"]["status"] == "violated"


def test_the_history_is_saved_and_judged_again(tmp_path: Path) -> None:
    saved = tmp_path / "gc.history"
    result = as_json("run", "gc-pause", "--lock", "set-nx-px", "-o", str(saved), status=1)
    again = as_json("check", str(saved), status=1)
    assert again["verdict"] == result["verdict"]
    assert (again["lock"], again["scenario"], again["seed"]) == ("set-nx-px", "gc-pause", 1)
    lines = lockstorm("history", "to-json", str(saved))
    (tmp_path / "gc.jsonl").write_text(lines.stdout)
    assert as_json("check", str(tmp_path / "gc.jsonl"), status=1)["verdict"] == result["verdict"]
    assert lockstorm("history", "from-json", str(tmp_path / "gc.jsonl"), "-o", str(tmp_path / "b")).returncode == 0
    assert (tmp_path / "b").read_bytes()[4096:] == saved.read_bytes()[4096:]
    message = refused("run", "gc-pause", "--lock", "set-nx-px", "-o", str(saved))
    assert "exists already" in message


# --- wrong input ---


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rum", "gc-pause"), "run"),
        (("run", "gc-pase", "--lock", "none"), "gc-pause"),
        (("run", "gc-pause", "--lock", "set-nx-p"), "set-nx-px"),
        (("run", "gc-pause", "--lock", ""), "there are: "),
        (("run", "gc-pause"), "--lock"),
        (("run", "gc-pause", "--lock", "none", "--sed", "3"), "--seed"),
        (("run", "gc-pause", "--lock", "none", "--store", "fence-write"), "fence-writes"),
        (("run", "gc-pause", "--lock", "none", "--time", "virtul"), "virtual"),
        (("run", "gc-pause", "--lock", "none", "--seed", "x"), "x"),
        (("run", "gc-pause", "--lock", "none", "--seed", "-1"), "--seed -1"),
        (("run", "gc-pause", "--lock", "none", "--seed", str(2**63)), "--seed"),
        (("run", "gc-pause", "--lock", "none", "--lease", "0ms"), "--lease 0ms"),
        (("run", "gc-pause", "--lock", "none", "--lease", "600h"), "--lease 600h: from 1ms to 576h"),
        (("run", "gc-pause", "--lock", "none", "--lease", "500"), "--lease 500: say the unit, as in 500ms"),
        (("run", "gc-pause", "--lock", "none", "--lease-ms", "500"), "--lease-ms is now --lease, with a unit"),
        (("explore", "--lock", "none", "--time-limit", "60"), "--time-limit 60: say the unit, as in 60s"),
        (("run", "contention", "--lock", "none", "--clients", "20001"), "--clients 20001: from 1 to 20000"),
        (("run", "contention", "--lock", "none", "--duration", "2"), "--duration 2: say the unit, as in 2ms"),
        (
            ("run", "contention", "--lock", "none", "--duration", "nans"),
            "'nans': a duration is a number and its unit",
        ),
        (("run", "contention", "--lock", "none", "--duration", "-2s"), "--duration"),
        (("run", "gc-pause", "--lock", "none", "--clients", "3"), "contention"),
        (("run", "gc-pause", "--lock", "pubsub", "--permits", "2"), "permit-semaphore, pg-skip-locked, semaphore"),
        (("run", "gc-pause", "--lock", "semaphore", "--permits", "65"), "--permits 65"),
        (("run", "gc-pause", "--lock", "semaphore", "--permits", "0"), "--permits 0"),
        (("run", "gc-pause", "--lock", "none", "--require", "integrety"), "integrity"),
        (("run", "gc-pause", "--lock", "set-nx-px", "--fixed-lease"), "set-nx-px never does"),
        (("run", "gc-pause", "--lock", "set-nx-px", "--store", "fence-writes"), "set-nx-px-fenced"),
        (("locks", "nune"), "none"),
        (("faults", "pause-clien"), "pause-client"),
        (("scenarios", "lost-credit"), "lost-credits"),
        (("check", "/nowhere/at-all"), "/nowhere/at-all"),
        (("check", "/"), "/"),
        (("history", "from-json", "x"), "-o"),
        (("locks", "--jsn"), "--json"),
        (("explore", "--lock", "none", "--jobs", "2"), "--jobs is now --workers"),
    ],
)
def test_wrong_input_is_named_with_the_way_out(words: tuple[str, ...], message: str) -> None:
    assert message in refused(*words)


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    assert "no-such" in refused("run", "gc-pause", "--lock", "none", "-o", str(tmp_path / "no-such" / "file"))


def test_an_empty_history_is_inconclusive(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    answer = as_json("check", str(tmp_path / "empty"), status=3)
    assert {found["status"] for found in answer["verdict"].values()} == {"inconclusive"}


def test_a_damaged_history_is_refused(tmp_path: Path) -> None:
    saved = tmp_path / "history"
    lockstorm("run", "gc-pause", "--lock", "none", "-o", str(saved))
    content = bytearray(saved.read_bytes())
    content[4096 + 64 * 20 + 30] ^= 1
    saved.write_bytes(content)
    assert f"byte {4096 + 64 * 20}" in refused("check", str(saved))


# --- servers that are not there or do not start ---


def fake_server(directory: Path, script: str) -> dict[str, str]:
    server = directory / "redis-server"
    server.write_text(f"#!/bin/sh\n{script}\n")
    server.chmod(server.stat().st_mode | stat.S_IXUSR)
    return {**ENVIRONMENT, "LOCKSTORM_REDIS_SERVER": str(server)}


def test_a_server_that_cannot_start_gives_its_own_reason(tmp_path: Path) -> None:
    environment = fake_server(tmp_path, 'exec /usr/bin/redis-server "$@" --maxmemory lots')
    result = as_json("run", "gc-pause", "--lock", "none", status=3, env=environment)
    assert "redis-server did not start" in result["sentence"]
    assert "maxmemory" in result["sentence"]


def test_a_server_that_is_missing_names_its_package() -> None:
    environment = {**ENVIRONMENT, "LOCKSTORM_REDIS_SERVER": "no-such-redis-server"}
    assert "package redis-server" in as_json("run", "gc-pause", "--lock", "none", status=3, env=environment)["sentence"]


@pytest.mark.slow("one more program that is missing", seconds=5)
def test_without_libfaketime_there_is_no_virtual_time_for_postgresql_and_doctor_names_the_package() -> None:
    environment = {**ENVIRONMENT, "LOCKSTORM_LIBFAKETIME": "/nowhere/libfaketime.so"}
    assert "libfaketime" in as_json("run", "gc-pause", "--lock", "pg-lease", status=3, env=environment)["sentence"]
    findings = {found["name"]: found for found in as_json("doctor", status=3, env=environment)["findings"]}
    assert {name for name, found in findings.items() if not found["ok"]} == {"libfaketime"}
    needs = "install the package libfaketime; without it the locks on PostgreSQL have real time only"
    assert findings["libfaketime"]["help"] == needs
    assert as_json("run", "gc-pause", "--lock", "set-nx-px", status=1, env=environment)["time"] == "virtual"
    words = ("run", "gc-pause", "--lock", "pg-lease", "--time", "real")
    assert as_json(*words, status=1, env=environment)["time"] == "real"


def test_a_clock_that_cannot_be_set_is_inconclusive(tmp_path: Path) -> None:
    """The library that sets the server's clock is not loaded: TIME shows that, and no verdict is given."""
    environment = fake_server(tmp_path, 'unset LD_PRELOAD; exec /usr/bin/redis-server "$@"')
    result = as_json("run", "gc-pause", "--lock", "set-nx-px", status=3, env=environment)
    assert "the clock of redis-1 stands at" in result["sentence"]


def test_no_privilege_is_needed() -> None:
    """Pause, virtual time and store work without any capability, as in a container that has dropped all of them."""
    command = [sys.executable, "-m", "lockstorm", "run", "gc-pause", "--lock", "set-nx-px", "--json"]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *command]
    done = subprocess.run(command, capture_output=True, text=True, cwd=paths.ROOT, env=ENVIRONMENT)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["faults"][0]["proved"]


# --- lists, help, demo, doctor ---


@pytest.mark.parametrize("kind", ["locks", "faults", "scenarios"])
def test_lists(kind: str) -> None:
    """Of the many entries, the first is shown by the command as users call it, and each in this process."""
    entries = as_json(kind)[kind]
    listed = lockstorm(kind).stdout
    assert as_json(kind, entries[0]["name"]) == entries[0]
    for entry in entries:
        assert all(entry[key] for key in ("name", "summary", "source")), entry
        assert json.loads(in_process(kind, entry["name"], "--json")) == entry
        assert entry["name"] in in_process(kind, entry["name"])
        assert entry["name"] in listed
    assert [entry["name"] for entry in entries] == sorted(entry["name"] for entry in entries)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_an_example(command: tuple[str, ...]) -> None:
    help_text = in_process(*command, "--help")
    example = help_text.partition("Example: ")[2]
    assert f"lockstorm {' '.join(command)}" in example.splitlines()[0]


def test_a_command_of_its_own_process_has_its_help() -> None:
    done = lockstorm("run", "--help")
    assert done.returncode == 0 and "Example: lockstorm run" in done.stdout


def test_help_names_every_command_once() -> None:
    text = lockstorm("--help").stdout
    assert all(text.count(f"\n  {name} ") == 1 for name in {command[0] for command in COMMANDS})


def test_every_command_has_a_module_and_every_module_a_command() -> None:
    modules = (paths.PACKAGE / "cli" / "commands").glob("*_command.py")
    assert {path.stem.removesuffix("_command") for path in modules} == {command[0] for command in COMMANDS}


def test_docs_lists_and_shows_every_page() -> None:
    pages = as_json("docs")["docs"]
    assert {page["name"] for page in pages} == {path.stem for path in (paths.ROOT / "docs").glob("*.md")} - {"README"}
    for page in pages:
        assert as_json("docs", page["name"])["title"] == page["title"]
    assert in_process("docs", "docs/gate.md") == (paths.ROOT / "docs" / "gate.md").read_text()


def test_docs_suggests_the_nearest_page() -> None:
    done = lockstorm("docs", "gatte")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no page called 'gatte': did you mean gate?" in done.stderr


def test_a_page_that_a_command_names_is_there() -> None:
    """In help texts and messages."""
    named = {
        name
        for path in sorted(paths.PACKAGE.rglob("*.py"))
        for name in re.findall(r"`lockstorm docs ([a-z-]+)`", path.read_text())
    }
    assert named and named <= {path.stem for path in (paths.ROOT / "docs").glob("*.md")}


@pytest.mark.lengthy("plays the whole demo")
def test_demo_has_the_announced_results_and_their_reasons() -> None:
    done = lockstorm("demo")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout, "colour only on a terminal"
    for text in (
        "client-1's lease has run out",
        "Mutual exclusion violated, integrity violated (1 stale write, 1 lost update)",
        "Mutual exclusion violated, integrity holds (1 stale write fenced), fencing holds",
        "fencing violated (1 repeated token)",
    ):
        assert text in done.stdout
    answer = as_json("demo")
    assert answer["ok"]
    assert len(answer["trials"]) == (12 if not missing("zookeeper") else 10)
    assert all(each["as_announced"] for each in answer["trials"])


def test_without_postgresql_nothing_needs_libfaketime() -> None:
    nowhere = {"LOCKSTORM_LIBFAKETIME": "/nowhere/libfaketime.so", "LOCKSTORM_POSTGRES": "/nowhere"}
    findings = {found["name"]: found for found in as_json("doctor", env={**ENVIRONMENT, **nowhere})["findings"]}
    said = "not installed, and only the locks on PostgreSQL need it, in virtual time"
    assert findings["libfaketime"] == {"name": "libfaketime", "ok": True, "found": said, "help": ""}
    said = "a redis-server was set a day ahead and made to run twice as fast, read back from its TIME"
    assert findings["clock faults in real time"]["found"] == said


def test_demo_without_redis_is_inconclusive() -> None:
    environment = {**ENVIRONMENT, "LOCKSTORM_REDIS_SERVER": "no-such-redis-server"}
    assert as_json("demo", status=3, env=environment)["exit"] == 3


def test_doctor_finds_nothing_wrong_here() -> None:
    answer = as_json("doctor")
    assert answer["ok"]
    assert {found["name"] for found in answer["findings"]} >= {"redis-server", "libfaketime", "virtual time"}


@pytest.mark.parametrize("missing_one", paths.PROGRAMS)
def test_doctor_misses_every_program(missing_one: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    for program in (paths.build() / "bin").iterdir():
        if program.name != missing_one:
            (tmp_path / "bin" / program.name).symlink_to(program)
    monkeypatch.setenv("LOCKSTORM_PROGRAMS", str(tmp_path))
    with pytest.raises(Inconclusive, match=f"bin/{missing_one} is not built"):
        find_programs()


def test_the_help_of_a_fresh_checkout_is_the_help() -> None:
    """`make help-text` writes the file that the launcher shows before anything is installed."""
    assert lockstorm("--help").stdout == (paths.ROOT / "harness" / "lockstorm" / "cli" / "help.txt").read_text()


def test_doctor_knows_the_programs_that_are_built() -> None:
    made = re.search(r"^PROGRAMS\s*=.*bin/,([^)]*)\)", (paths.ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made and sorted(made[1].split()) == sorted(paths.PROGRAMS)


def test_colour_on_a_terminal() -> None:
    """With a short output: the test reads the terminal only at the end, and its buffer is small."""
    master, slave = os.openpty()
    words = ("locks", "set-nx-px")
    try:
        done = lockstorm(*words, stdout=slave, stderr=slave, capture_output=False, env={**ENVIRONMENT, "TERM": "xterm"})
        assert done.returncode == 0
        assert b"\x1b[" in os.read(master, 65536)
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("words", [("scenarios",), ("scenarios", "--json"), ("scenarios", "--help")])
def test_a_reader_that_has_gone_is_no_crash(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = lockstorm(*words, stdout=writing, stderr=subprocess.PIPE, capture_output=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_pipe_to_a_process_that_breaks_is_an_error(tmp_path: Path) -> None:
    """A reaper that ends at once: the trial says so, and does not end silently as if its own reader had gone."""
    shutil.copytree(paths.build() / "bin", tmp_path / "bin")
    (tmp_path / "bin" / "reaper").unlink()
    (tmp_path / "bin" / "reaper").write_text("#!/bin/sh\nread it && mkdir $it\nexec <&-\necho ready\n")
    (tmp_path / "bin" / "reaper").chmod(0o755)
    environment = {**ENVIRONMENT, "LOCKSTORM_PROGRAMS": str(tmp_path), "TMPDIR": str(tmp_path)}
    result = as_json("run", "gc-pause", "--lock", "none", status=3, env=environment)
    assert "the reaper has ended" in result["sentence"]


def test_an_unexpected_error_is_no_verdict(capfd: pytest.CaptureFixture[str]) -> None:
    """Exit status 1 would say that a property is violated, 141 that the reader of the output has gone."""
    for error in (BrokenPipeError("a server"), ZeroDivisionError()):
        with pytest.raises(SystemExit) as ended, tidy_end():
            raise error
        assert ended.value.code == 3
        assert type(error).__name__ in capfd.readouterr().err


def test_the_command_that_repeats_a_trial_works_where_it_is_printed(tmp_path: Path) -> None:
    """In the checkout it is short; elsewhere it has the launcher's path."""
    words = [sys.executable, "-m", "lockstorm", "run", "gc-pause", "--lock", "none", "-q"]
    for directory, launcher in ((paths.ROOT, "./lockstorm"), (tmp_path, str(paths.ROOT / "lockstorm"))):
        done = subprocess.run(words, capture_output=True, text=True, cwd=directory, env=ENVIRONMENT)
        command = shlex.split(done.stdout.splitlines()[-1].removeprefix("again: "))
        assert command[:3] == [launcher, "run", "gc-pause"]
        assert os.access(directory / command[0], os.X_OK)


def test_run_from_another_directory(tmp_path: Path) -> None:
    """Relative paths are relative to the user's directory, not to the checkout."""
    command = [sys.executable, "-m", "lockstorm", "run", "gc-pause", "--lock", "none", "-q", "-o", "mine"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT)
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "mine").stat().st_size > 4096


def test_two_scenarios_of_one_name_are_refused() -> None:
    def module_with_scenario(module: str) -> ModuleType:
        @scenario("twice", summary="s", source="s", control="c")
        def play(trial: Trial) -> None:
            """Nothing."""

        play.__module__ = module
        made = ModuleType(module)
        made.play = play  # type: ignore[attr-defined]
        return made

    one, two = module_with_scenario("scenarios.one"), module_with_scenario("scenarios.two")
    assert list(scenarios_in([one, one])) == ["twice"]  # imported by another
    with pytest.raises(UsageError, match=r"called twice, in scenarios\.one and scenarios\.two: rename one"):
        scenarios_in([one, two])


def test_what_a_search_has_tried_is_said_when_it_is_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), status_line_to_the_end(lambda: "keep it") as show:
        show("2 schedules")
        show("7 schedules, 3 a second")
        raise KeyboardInterrupt
    assert capsys.readouterr() == ("", "until now: 7 schedules, 3 a second; keep it\n")


def test_an_interrupt_while_a_dataclass_is_made_has_the_exit_status_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        "from lockstorm.cli.main import tidy_end\n"
        "with tidy_end():\n"
        "    exec('import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(60)')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((paths.python_path(), str(tmp_path)))}
    done = subprocess.run([sys.executable, "-m", "interrupted"], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (130, "lockstorm: interrupted\n")


def test_the_readme_shows_what_the_command_prints() -> None:
    """Some of its lines, as they are."""
    readme = (paths.ROOT / "README.md").read_text()
    command, *lines = readme.partition("```\n$ ./lockstorm ")[2].partition("\n```")[0].splitlines()
    shown = [line.rstrip() for line in lockstorm(*command.split()).stdout.splitlines()]
    assert [line for line in lines if line] == [line for line in shown if line and line in lines]
    assert len(readme.splitlines()) <= 110


def test_a_directory_that_may_not_be_written_is_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_new_file("-o", tmp_path / "new")
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(UsageError, match=r"^-o .*new: you may not write to its directory$"):
        check_new_file("-o", tmp_path / "new")


def test_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress_of_done(3) as report:
        report("at once")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(terminal, "LINE_EVERY_S", 0.0)
    with terminal.progress_of_done(3) as report:
        report("gc-pause with redlock")
    assert capsys.readouterr() == ("", "1 of 3 done: gc-pause with redlock\n")


@pytest.mark.parametrize("command", ["run gc-pause --lock fair", "explore --lock fair", "explore --adapter redis-py"])
def test_a_directory_whose_path_is_too_long_for_sockets_is_named(tmp_path: Path, command: str) -> None:
    place = tmp_path / ("long" * 25)
    place.mkdir()
    done = lockstorm(*command.split(), env={**ENVIRONMENT, "TMPDIR": str(place)})
    assert done.returncode == 3
    assert "is too long for a unix socket: set TMPDIR to a shorter path" in done.stdout and "Trace" not in done.stderr
