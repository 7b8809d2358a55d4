"""The style of C and Python: `make lint` and limits of length."""

import subprocess

import pytest

from lockstorm.base import paths


@pytest.mark.lengthy("reads every file that has changed with four tools")
def test_lint_passes() -> None:
    done = subprocess.run(["make", "-s", "lint"], cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_c_function_is_too_long() -> None:
    """A C function has at most 70 lines, from the line with its opening brace to its closing brace."""
    for folder in ("harness", "faults", "checkers"):
        for path in sorted((paths.ROOT / folder).rglob("*.c")):
            opened = 0
            for number, line in enumerate(path.read_text().splitlines(), 1):
                is_data = line.endswith("= {") or line.startswith(("struct", "enum", "union"))
                if line.endswith("{") and line[:1].isalpha() and not is_data:
                    opened = number
                if line == "}" and opened:
                    assert number - opened <= 70, f"{path.name}:{opened}"
                    opened = 0


def test_pattern_files_stay_small() -> None:
    for path in sorted((paths.ROOT / "harness" / "locks").rglob("*.c")):
        assert len(path.read_text().splitlines()) <= 200, path.name
