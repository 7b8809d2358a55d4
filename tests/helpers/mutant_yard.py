"""A copy of the tree in which mutants are built and tried."""

import ast
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.helpers.mutant_grounds import BUILT, ROOT, Ground, file_paths
from tests.helpers.mutation import Mutant, name_of

QUICKLY = "-w -Wno-error -O1 -g0"  # compiler flags: a mutant may have a warning, and is compiled once
LIMIT_S, LIMIT_FACTOR = 60, 5  # for the tests of a mutant: this, and that many times what the original takes
CPU_S, CPU_FACTOR = 20, 3  # for each of their processes, of CPU time: also of what all processes of the original take
PROGRAM_CPU_S = 4  # for a program that is asked first, which takes the original less than one
OUT_OF_TIME = "the limit of time"
MEMORY_KB, FILES = 8 << 20, "2g"
NO_TESTS = 5  # pytest's exit status

# A mutant of process handling may signal anything, and its tests may leave anything behind: in namespaces of its own it
# reaches no process outside, all of its processes end with the first one, and its files in memory are gone.
ISOLATED = ("unshare", "--fork", "--pid", "--kill-child", "--mount", "--mount-proc", "sh", "-c")
PRIVATE = f"mount -t tmpfs -o size={FILES} tmpfs /tmp && mount -t tmpfs -o size={FILES} tmpfs /dev/shm || exit 125"


@cache
def can_isolate() -> bool:
    return (
        shutil.which("unshare") is not None
        and subprocess.run([*ISOLATED, PRIVATE], capture_output=True).returncode == 0
    )


def limited(words: Sequence[str], cpu_s: int) -> list[str]:
    """A command that is killed beyond a limit of memory or CPU time, whose processes each have the same limits."""
    return ["sh", "-c", f'ulimit -v {MEMORY_KB}; ulimit -t {cpu_s}; exec "$@"', "sh", *words]


def private_command(words: Sequence[str], cpu_s: int) -> list[str]:
    script = f'ulimit -v {MEMORY_KB}; ulimit -t {cpu_s}; "$@"; exit $?'
    if can_isolate():
        return [*ISOLATED, f"{PRIVATE}; {script}", "sh", *words]
    return ["sh", "-c", script, "sh", *words]


@dataclass(frozen=True)
class Limits:
    """For the tests of a mutant. One that computes for ever meets the limit of CPU time, which is the same on a busy
    machine; the other one is for a mutant that waits for ever."""

    wall_s: float | None
    cpu_s: int


UNLIMITED = Limits(None, 3600)


class Yard:
    """The copy, with the targets of a ground built from it."""

    def __init__(self, directory: Path, ground: Ground, flags: str = QUICKLY) -> None:
        """With flags of its own all is compiled anew; with none, what the tree has built is used."""
        self.root, self.ground, self.flags = directory / "tree", ground, flags
        ignored = shutil.ignore_patterns("build", ".git", ".venv", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, self.root, ignore=ignored)
        (self.root / ".venv").symlink_to((ROOT / ".venv").resolve())
        (self.root / "build").mkdir()
        if (ROOT / "build" / "adapters").is_dir():
            (self.root / "build" / "adapters").symlink_to(ROOT / "build" / "adapters")
        for part in () if flags else ("o", "bin", "lib", "tests", "include"):
            shutil.copytree(ROOT / "build" / part, self.root / "build" / part)
        if not flags:
            shutil.copy2(ROOT / "build" / "flags", self.root / "build" / "flags")
        assert self.is_built(*{*BUILT, *ground.targets} if ground.tests else ground.targets), (
            "the original cannot be built"
        )
        self.text = {name_of(path): (self.root / path).read_text() for path in ground.paths}
        self.original: dict[str, bytes | str] = {}
        self.files = self.found_files()

    @property
    def environment(self) -> dict[str, str]:
        python_path = os.pathsep.join([str(self.root / "harness"), str(self.root)])
        own = {"EXTRA": self.flags, "PYTHONPATH": python_path, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": "/tmp"}
        return {key: value for key, value in os.environ.items() if key != "CI"} | own

    def is_built(self, *targets: str) -> bool:
        command = ["make", "-s", "-j", str(os.cpu_count() or 1), *targets]
        return subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True).returncode == 0

    def object(self, file: str) -> Path:
        return Path("build", "o", file_paths()[file].with_suffix(".o"))

    def code(self, file: str) -> bytes | str:
        """The machine code of a C file, or of all that may include a header, without line numbers; the syntax tree of a
        Python file."""
        path = self.root / file_paths()[file]
        if path.suffix == ".py":
            return ast.dump(ast.parse(path.read_text()))
        objects = sorted(self.root.glob("build/o/**/*.o")) if path.suffix == ".h" else [self.root / self.object(file)]
        bare = self.root / "bare.o"
        codes = b""
        for each in objects:
            subprocess.run(["objcopy", "--strip-debug", each, bare], check=True)
            codes += bare.read_bytes()
        return codes

    def compiles(self, file: str) -> bool:
        path = self.root / file_paths()[file]
        if path.suffix != ".py":
            return self.is_built(*self.ground.targets)
        try:
            compile(path.read_text(), path, "exec")
        except SyntaxError:
            return False
        return True

    def plant(self, mutant: Mutant) -> str:
        """Why the mutant does not count, or nothing: then the targets of the ground are built of it."""
        if mutant.file not in self.original:
            self.is_built(*self.ground.targets)  # without what was planted in a header before
            self.original[mutant.file] = self.code(mutant.file)
        lines = self.text[mutant.file].splitlines(keepends=True)
        lines[mutant.line - 1] = mutant.after + "\n"
        (self.root / file_paths()[mutant.file]).write_text("".join(lines))
        if not self.compiles(mutant.file):
            return "do not compile"
        if self.code(mutant.file) == self.original[mutant.file]:
            return "come to the same code"
        return ""

    def restore(self, mutant: Mutant) -> None:
        (self.root / file_paths()[mutant.file]).write_text(self.text[mutant.file])
        for path in self.found_files() - self.files:
            path.unlink()  # a test that failed may have left it, and later tests would read it

    def found_files(self) -> set[Path]:
        """The files of the tree, without what is built and cached."""
        found: set[Path] = set()
        for directory, folders, files in os.walk(self.root):
            folders[:] = [each for each in folders if each not in ("build", ".pytest_cache", "__pycache__")]
            found |= {Path(directory, each) for each in files}
        return found

    def failure(self, tests: Sequence[str], limits: Limits = UNLIMITED) -> str:
        """Which of some tests fails first; nothing if all pass, and OUT_OF_TIME if they run into the limit of time."""
        words = [sys.executable, "-m", "pytest", "-x", "-q", "--ff", "--tb=no", "-p", "xdist", "-n0", *tests]
        running = subprocess.Popen(
            private_command(words, limits.cpu_s),
            cwd=self.root,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said = running.communicate(timeout=limits.wall_s)[0]
        except subprocess.TimeoutExpired:
            return OUT_OF_TIME
        finally:
            end_session(running)
        assert running.returncode != NO_TESTS, f"no tests: {tests}"
        failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return "" if running.returncode == 0 else failed[0] if failed else said[-1000:]

    def failed_program(self) -> str:
        """Which of the ground's programs fails first; nothing if none does."""
        for words in self.ground.programs:
            command = limited(words, PROGRAM_CPU_S)
            if subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True).returncode != 0:
                return " ".join(words)
        return ""

    def limits(self) -> Limits:
        """By what the tests of the ground take; the original must pass all of them."""
        began, cpu_s = time.monotonic(), children_cpu_s()
        failure = self.failure(self.ground.tests)
        assert not failure, f"the original itself does not pass: {failure}"
        wall_s, cpu_s = time.monotonic() - began, children_cpu_s() - cpu_s
        return Limits(LIMIT_S + LIMIT_FACTOR * wall_s, CPU_S + int(CPU_FACTOR * cpu_s))


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def end_session(running: subprocess.Popen[str]) -> None:
    """Also what a mutant's tests left behind, as far as it stayed in their session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()
