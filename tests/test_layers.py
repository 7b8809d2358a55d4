"""Dependencies run one way: who may include or import whom."""

import ast
import re
from pathlib import Path

import pytest

from harness.driver import paths

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^">]+)[">]', re.MULTILINE)
OWN = ("harness/", "faults/", "checkers/")

# Folder -> the only headers of ours, and of libraries, that its files may include.
ALLOWED = {
    "harness/locks": ("harness/locks/", "harness/env.h", "harness/outcome.h"),
    "harness/locks/zoo": ("harness/locks/", "harness/env.h"),
    "faults": ("faults/",),
    "faults/proxy": (
        "faults/proxy/",
        "harness/actor.h",
        "harness/clock.h",
        "harness/history.h",
        "harness/random.h",
        "harness/stage.h",
    ),
    "checkers": ("checkers/", "harness/history.h", "harness/history_json.h", "harness/outcome.h"),
    "harness/explorer": (
        "checkers/judge.h",
        "harness/client_work.h",
        "harness/clock.h",
        "harness/env_ops.h",
        "harness/env_reply.h",
        "harness/explorer/",
        "harness/plugin.h",
        "harness/preload/clock_page.h",
        "harness/random.h",
        "harness/resource.h",
    ),
    "harness/preload": ("harness/leash.h", "harness/preload/"),
}
LIBRARIES = {
    "harness/locks": ("jansson.h",),
    "harness/locks/zoo": (),
    "faults": ("hiredis/",),
    "faults/proxy": ("ev.h", "hiredis/"),
    "checkers": ("jansson.h",),
    "harness/explorer": ("hiredis/", "jansson.h"),
}
FORBIDDEN_IN_LOCKS = ("time.h", "sys/", "unistd.h", "pthread.h", "poll.h", "netinet/", "arpa/", "signal.h", "threads.h")
EXTERNAL = ("hiredis/", "jansson.h", "ev.h")

# Module -> what of ours it may import.
PYTHON = {"scenarios": ("harness.driver",), "harness": ("harness.driver", "scenarios")}


def c_files(folder: str) -> list[Path]:
    return sorted(path for path in (paths.ROOT / folder).iterdir() if path.suffix in (".c", ".h"))


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_c_includes_only_what_its_layer_may_know(folder: str) -> None:
    files = c_files(folder)
    assert files
    for path in files:
        for included in INCLUDE.findall(path.read_text()):
            if included.startswith(OWN):
                assert included.startswith(ALLOWED[folder]), f"{path.name} includes {included}"
            if included.startswith(EXTERNAL):
                assert included.startswith(LIBRARIES[folder] or "nothing"), f"{path.name} includes {included}"


def test_locks_take_time_randomness_and_sockets_only_from_their_environment() -> None:
    for path in (*c_files("harness/locks"), *c_files("harness/locks/zoo")):
        text = path.read_text()
        for included in INCLUDE.findall(text):
            assert not included.startswith(FORBIDDEN_IN_LOCKS), f"{path.name} includes {included}"
        for call in ("rand(", "random(", "usleep(", "nanosleep(", "clock_gettime(", "socket("):
            own = [match for match in re.findall(r"\b\w*" + re.escape(call), text) if not match.startswith("env_")]
            assert not own, f"{path.name} calls {own}"


def test_the_history_knows_nobody() -> None:
    for name in ("history.h", "history.c"):
        for included in INCLUDE.findall((paths.ROOT / "harness" / name).read_text()):
            assert not included.startswith(OWN) or included in ("harness/history.h", "harness/outcome.h")


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_scenarios_know_only_the_drivers_front() -> None:
    for path in sorted((paths.ROOT / "scenarios").glob("test_*.py")):
        assert imports_of(path) <= {"harness.driver"}, path.name


def test_the_driver_does_not_know_the_tests() -> None:
    for path in sorted((paths.ROOT / "harness").rglob("*.py")):
        assert not any(name.split(".")[0] in ("tests", "scenarios", "pytest") for name in imports_of(path)), path.name


def test_only_the_command_knows_the_report() -> None:
    for path in sorted((paths.ROOT / "harness" / "driver").glob("*.py")):
        known = any(name.startswith("harness.report") for name in imports_of(path))
        assert known == (path.name == "cli.py"), path.name


def test_the_report_runs_nothing() -> None:
    """It reads histories and verdicts; of the driver it knows how they are read and told."""
    known = {f"harness.driver.{name}" for name in ("errors", "library", "narrate", "play", "trial")} | {
        "harness.driver"
    }
    for path in sorted((paths.ROOT / "harness" / "report").glob("*.py")):
        ours = {
            name for name in imports_of(path) if name.startswith("harness.") and not name.startswith("harness.report")
        }
        assert ours <= known, path.name


def test_only_the_command_knows_the_gate() -> None:
    """What pipelines read is made of the driver's results; the driver does without it."""
    for path in sorted((paths.ROOT / "harness" / "driver").glob("*.py")):
        knows = any(name.startswith("harness.gate") for name in imports_of(path))
        assert knows == (path.name == "cli.py"), path.name


def test_what_writes_a_verdict_down_plays_nothing() -> None:
    writers = ("junit.py", "markdown.py", "sarif.py", "show.py", "verdict.py", "words.py")
    effects = {"harness.driver.trial", "harness.driver.crew", "harness.gate.player", "harness.gate.runs", "subprocess"}
    for name in writers:
        assert not imports_of(paths.ROOT / "harness" / "gate" / name) & effects, name
