"""The program `supervisor` from outside: bad arguments, what cannot be started, exit statuses, trace, counts."""

import os
import subprocess
from pathlib import Path

import pytest

from lockstorm.base import paths
from tests.helpers.supervising import output_of, supervised

USAGE = "supervisor: usage: supervisor --alone [--seed N] [--counts] [--trace FILE] PROGRAM [ARGUMENT]...\n"
SUPERVISOR = paths.program("supervisor")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SUPERVISOR, *words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], ""),
        (["--alone"], ""),
        (["true"], ""),
        (["--alone", "--page", "/tmp/page", "true"], ""),
        (["--page", "/tmp/page", "true"], ""),
        (["--page", "/tmp/page", "--task", "0", "true"], ""),
        (["--page", "/tmp/page", "--task", "100000", "true"], ""),
        (["--alone", "--seed", "x", "true"], "supervisor: not a usable value: x\n"),
        (
            ["--alone", "--seed", "9" * 20, "true"],
            f"supervisor: not a usable value: {'9' * 20}\n",
        ),
        (["--alone", "--seed"], f"{SUPERVISOR}: option '--seed' requires an argument\n"),
        (["--alone", "--fast", "true"], f"{SUPERVISOR}: unrecognized option '--fast'\n"),
    ],
)
def test_bad_arguments(words: list[str], complaint: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", complaint + USAGE)


def test_a_page_that_does_not_exist(tmp_path: Path) -> None:
    done = run("--page", str(tmp_path / "page"), "--task", "1", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"supervisor: {tmp_path / 'page'}: No such file or directory\n"


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    for program, reason in (
        (tmp_path / "none", "No such file or directory"),
        (plain, "Permission denied"),
        (tmp_path, "Permission denied"),
    ):
        done = supervised(program)
        assert (done.returncode, done.stdout) == (127, "")
        assert done.stderr == f"supervisor: {program}: {reason}\n"
    assert supervised("no-such-program").stderr == "supervisor: no-such-program: No such file or directory\n"


def test_a_script_without_an_interpreter_is_one_of_the_shell(tmp_path: Path) -> None:
    """As execvp does it, and the shell: after an exec that has failed."""
    script = tmp_path / "script"
    script.write_text(f"sleep 5; echo $#; if [ $# = 0 ]; then {script} again; fi")
    script.chmod(0o755)
    assert output_of(script) == "0\n1\n"


def test_a_script_whose_interpreter_does_not_exist(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/shell\n")
    script.chmod(0o755)
    done = supervised(script)
    assert (done.returncode, done.stderr) == (127, f"supervisor: {script}: No such file or directory\n")


STATUSES = {"exit 0": 0, "exit 7": 7, "kill -9 $$": 137, "kill -TERM $$": 143}


@pytest.mark.parametrize(("code", "status"), STATUSES.items())
def test_the_status_is_the_programs(code: str, status: int) -> None:
    assert supervised("sh", "-c", code).returncode == status


def test_a_trace_that_cannot_be_written(tmp_path: Path) -> None:
    done = supervised("true", trace=tmp_path / "none" / "trace")
    assert (done.returncode, done.stderr) == (
        2, f"supervisor: {tmp_path / 'none' / 'trace'}: No such file or directory\n"
    )  # fmt: skip


STATIC = """
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    sleep(3600);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%ld %ld\\n", (long)now.tv_sec, (long)now.tv_nsec);
    return 0;
}
"""


def compiled(tmp_path: Path, *flags: str) -> Path:
    """The program STATIC, or a skipped test where the compiler does not know how."""
    program = tmp_path / "program"
    command = ["cc", "-x", "c", "-", "-o", str(program), *flags]
    if subprocess.run(command, input=STATIC, text=True, capture_output=True).returncode != 0:
        pytest.skip(f"cc cannot link with {flags}")
    return program


def test_a_static_program(tmp_path: Path) -> None:
    assert output_of(compiled(tmp_path, "-static")) == "4600 50000\n"  # a sleep ends 50 us late


def test_a_program_that_may_become_another_user_does_not(tmp_path: Path) -> None:
    """no_new_privs: its bit means nothing, and it runs as who has started it."""
    program = compiled(tmp_path)
    program.chmod(0o6755)
    assert output_of(program) == "4600 50000\n"


def test_descriptors_and_arguments_go_to_the_program() -> None:
    done = subprocess.run(
        [SUPERVISOR, "--alone", "--", "sh", "-c", 'cat; echo "$0 $1" >&2; ls /proc/self/fd | wc -l', "a", "--seed"],
        input="in", text=True, capture_output=True, timeout=60, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "in4\n", "a --seed\n")


def test_counts() -> None:
    done = run("--alone", "--counts", "sleep", "100")
    assert done.returncode == 0
    assert done.stderr.startswith("supervisor: ") and done.stderr.endswith(" calls, 0 spins\n")
