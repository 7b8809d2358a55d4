"""The C programs under the sanitizers: AddressSanitizer with UndefinedBehaviorSanitizer, and ThreadSanitizer."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks, locks_on
from lockstorm.scenario.play import play, usual_time
from lockstorm.servers.services import missing
from lockstorm.trial.settings import TrialSettings
from tests.helpers.building import SANITIZERS, built, make, need_clang
from tests.helpers.support import trial
from tests.project.test_c_programs import assert_each_had_its_turns, contend, redis_with_virtual_clock, run_program

REPORTED = 99  # exit status
PROXY_TESTS = ["tests/proxy"]

PLANTED = {
    "asan": "#include <stdlib.h>\nint main(int n, char **v) { char *p = malloc(4); p[n + 3] = 1; return p[0] + !v; }",
    "asan-undefined": "int main(int n, char **v) { (void)v; return 0x7fffffff + n > 0; }",
    "asan-leak": "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(4); p = 0; return p != 0; }",
    # Many times: ThreadSanitizer does not see two accesses that happen at the very same moment.
    "tsan": "#include <pthread.h>\nstatic int n;\n"
    "static void *add(void *p) { for (int i = 0; i < 1000; i++) n++; return p; }\n"
    "int main(void) { pthread_t t; pthread_create(&t, 0, add, 0); add(0); return pthread_join(t, 0); }",
}


# The programs are built once for each sanitizer, in build/asan and build/tsan; a test alone takes 2 s.
SANITIZED = pytest.mark.slow("builds all programs with a sanitizer", seconds=4)


@pytest.fixture(scope="session", params=sorted(SANITIZERS))
def sanitizer(request: pytest.FixtureRequest) -> str:
    need_clang()
    name = str(request.param)
    make("programs", "test-programs", sanitizer=name)
    return name


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that receives every report of a sanitizer, from any process."""
    directory = tmp_path / "reports"
    directory.mkdir()
    for variable in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"):
        monkeypatch.setenv(variable, f"exitcode={REPORTED}:log_path={directory}/{variable}")
    return directory


def assert_no_report(reports: Path) -> None:
    assert not [path.read_text() for path in reports.iterdir()]


def not_randomised() -> list[str]:
    """A prefix for ThreadSanitizer, which on some kernels cannot place its shadow memory unless addresses are fixed."""
    prefix = ["setarch", "-R"]
    works = shutil.which(prefix[0]) and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0
    return prefix if works else []


@pytest.mark.parametrize("planted", sorted(PLANTED))
def test_the_alarm_rings(planted: str, reports: Path, tmp_path: Path) -> None:
    need_clang()
    flags = SANITIZERS[planted.split("-")[0]].split()
    program = tmp_path / "planted"
    command = ["clang", *flags, "-O0", "-pthread", "-x", "c", "-", "-o", str(program)]
    subprocess.run(command, input=PLANTED[planted], text=True, check=True, capture_output=True)
    done = subprocess.run([*not_randomised(), str(program)], capture_output=True)
    assert done.returncode != 0
    assert list(reports.iterdir())


@SANITIZED
def test_history_writers(sanitizer: str, reports: Path, tmp_path: Path) -> None:
    program = built(sanitizer) / "tests" / "history_writers"
    run_program(*not_randomised(), program, tmp_path / "history", 3, 3000)
    run_program(*not_randomised(), program, "--kill", tmp_path / "killed", 3, 3000)
    assert_no_report(reports)


@SANITIZED
def test_announcements(sanitizer: str, reports: Path, tmp_path: Path) -> None:
    run_program(*not_randomised(), built(sanitizer) / "tests" / "announcements", tmp_path)
    assert_no_report(reports)


@SANITIZED
def test_blocking_call(sanitizer: str, reports: Path) -> None:
    with redis_with_virtual_clock() as (server, directory):
        program = built(sanitizer) / "tests" / "blocking_call"
        run_program(*not_randomised(), program, server.socket, server.clock, directory / "page")
    assert_no_report(reports)


@SANITIZED
@pytest.mark.parametrize("lock", ["set-nx-px", "pubsub", "blpop", "redlock"])
def test_lock_threads(sanitizer: str, lock: str, reports: Path, tmp_path: Path) -> None:
    """A lock for each way of waiting, and one on several nodes; pubsub starts a watchdog for every grant."""
    program = built(sanitizer) / "tests" / "lock_threads"
    assert_each_had_its_turns(contend(program, lock, tmp_path, prefix=not_randomised()))
    assert_no_report(reports)


@SANITIZED
def test_proxy(reports: Path) -> None:
    """All of the proxy's own tests; it has one thread, so tsan has no race to find."""
    need_clang()
    programs = make("programs", sanitizer="asan")
    environment = {**os.environ, "LOCKSTORM_PROGRAMS": str(programs)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PROXY_TESTS]
    done = subprocess.run(command, cwd=paths.ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:]
    assert_no_report(reports)


@SANITIZED
@pytest.mark.parametrize("lock", [lock.name for lock in locks_on("redis") if lock.renews])
def test_a_watchdog_renews_beside_its_worker(
    sanitizer: str, lock: str, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In real time, where the two threads run in parallel."""
    monkeypatch.setenv("LOCKSTORM_PROGRAMS", str(built(sanitizer)))
    with trial(lock, time="real", lease_ms=150) as running:
        (one,) = running.clients(1)
        for _ in range(3):
            one.acquire()
            one.work(310)
            one.release()
    assert_no_report(reports)


@SANITIZED
@pytest.mark.parametrize("lock", [lock.name for lock in locks() if not missing(lock.service) and not lock.once])
def test_gc_pause_comes_to_the_same_verdict(
    sanitizer: str, lock: str, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = TrialSettings(lock, "gc-pause", time=usual_time(lock_named(lock)))
    plain = play(request)
    monkeypatch.setenv("LOCKSTORM_PROGRAMS", str(built(sanitizer)))
    sanitized = play(request)
    assert sanitized.sentence == plain.sentence
    if request.time == "virtual":  # in real time a slow program may have asked once more, or less
        assert sanitized.records == plain.records
    assert_no_report(reports)
