"""The style of C and Python, as `make lint` sees it."""

import subprocess

from harness.driver import paths


def test_lint_has_nothing_to_say() -> None:
    done = subprocess.run(["make", "-s", "lint"], cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_function_is_longer_than_one_can_see() -> None:
    """At most 70 lines from the line that opens a C function to the brace that closes it."""
    folders = ("harness", "harness/locks", "harness/driver", "harness/explorer", "faults", "faults/proxy", "checkers")
    for folder in folders:
        for path in sorted((paths.ROOT / folder).glob("*.c")):
            opened = 0
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if line.endswith("{") and line[:1].isalpha() and not line.startswith(("struct", "enum", "union")):
                    opened = number
                if line == "}" and opened:
                    assert number - opened <= 70, f"{path.name}:{opened}"
                    opened = 0


def test_pattern_files_stay_small() -> None:
    for path in sorted((paths.ROOT / "harness" / "locks").glob("*.c")):
        assert len(path.read_text().splitlines()) <= 200, path.name
