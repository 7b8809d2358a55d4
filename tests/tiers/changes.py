"""What has changed, and which files of tests have slow tests that concern it."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

# Folder or file -> the tests whose slow part it concerns. Tests that have changed are always among them.
CONCERNS: dict[str, tuple[str, ...]] = {
    "adapters/": ("tests/conformance/", "tests/libraries/"),
    "checkers/": ("tests/checkers/",),
    "checkers/formats/": ("tests/project/test_fuzz.py",),
    "ci/": ("tests/project/test_ci.py", "tests/project/test_launcher.py"),
    "faults/": ("tests/faults/", "tests/storm/"),
    "faults/proxy/": ("tests/project/test_fuzz.py", "tests/project/test_sanitized.py", "tests/proxy/"),
    "findings/": ("tests/libraries/",),
    "harness/client/": ("tests/project/test_sanitized.py", "tests/conformance/test_plugin.py"),
    "harness/environment/": ("tests/project/test_sanitized.py", "tests/locks/"),
    "harness/explore/": ("tests/explore/", "tests/library_search/"),
    "harness/history/": (
        "tests/history/",
        "tests/checkers/test_memory.py",
        "tests/project/test_fuzz.py",
        "tests/project/test_sanitized.py",
    ),
    "harness/locks/": ("tests/locks/", "tests/project/test_sanitized.py", "scenarios/test_gc_pause.py"),
    "harness/library/": ("tests/library_search/", "tests/libraries/"),
    "harness/search/": ("tests/explore/", "tests/library_search/", "tests/zoo/", "tests/project/test_fuzz.py"),
    "harness/lockstorm/attach/": ("tests/attach/",),
    "harness/lockstorm/cli/": ("tests/cli/",),
    "harness/lockstorm/compare/": ("tests/cli/test_compare.py",),
    "harness/lockstorm/conformance/": ("tests/conformance/",),
    "harness/lockstorm/search/": ("tests/explore/", "tests/library_search/"),
    "harness/lockstorm/gate/": ("tests/gate/", "tests/project/test_example.py"),
    "harness/lockstorm/matrix/": ("tests/matrix/",),
    "harness/lockstorm/report/": ("tests/report/",),
    "harness/lockstorm/servers/": ("tests/servers/", "tests/locks/"),
    "harness/lockstorm/storm/": ("tests/storm/",),
    "harness/lockstorm/testing/": ("tests/testing/", "tests/project/test_installed.py"),
    "harness/lockstorm/trial/": ("tests/trial/", "scenarios/test_gc_pause.py"),
    "harness/library_service/": ("tests/library_search/", "tests/project/test_fuzz.py"),
    "harness/lockstorm/zoo/": ("tests/zoo/",),
    "harness/process/": ("tests/trial/",),
    "harness/recogniser/": ("tests/recogniser/", "tests/project/test_fuzz.py"),
    "harness/resource/": ("tests/trial/",),
    "harness/resp_service/": ("tests/proxy/", "tests/trial/"),
    "harness/scheduler/": ("tests/trial/", "tests/project/test_sanitized.py"),
    "harness/simulation/": ("tests/explore/", "tests/zoo/"),
    "harness/supervisor/": ("tests/supervisor/",),
    "lockstorm": ("tests/project/test_launcher.py",),
    "tests/fuzz/": ("tests/project/test_fuzz.py",),
    "tests/soak/": ("tests/matrix/", "tests/storm/", "tests/explore/"),
    "tests/tiers/": ("tests/project/test_tiers.py",),
    "tests/porcupine/": ("tests/checkers/test_porcupine.py",),
    "tests/programs/": ("tests/supervisor/",),
}


def changed_files(root: Path) -> list[str]:
    """Of the working tree, since the branch left the one that origin offers, or else since the last first parent. None
    without git or without history, as in a shallow clone."""
    base = os.environ.get("LOCKSTORM_BASE") or branch_point(root)
    listed = git(root, "diff", "--name-only", base) if base else ""
    return [*listed.splitlines(), *git(root, "ls-files", "--others", "--exclude-standard").splitlines()]


def branch_point(root: Path) -> str:
    point = git(root, "merge-base", "HEAD", "refs/remotes/origin/HEAD")
    return (
        point
        if point and point != git(root, "rev-parse", "HEAD")
        else git(root, "rev-parse", "-q", "--verify", "HEAD^")
    )


def git(root: Path, *words: str) -> str:
    """Its output; empty if it fails or is not installed."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def needed_tests(changed: Iterable[str]) -> tuple[str, ...]:
    """Beginnings of names of tests."""
    found: set[str] = set()
    for path in changed:
        if path.startswith(("tests/", "scenarios/")) and path.endswith(".py"):
            found.add(path)
        for concern, tests in CONCERNS.items():
            if path.startswith(concern):
                found.update(tests)
    return tuple(sorted(found))
