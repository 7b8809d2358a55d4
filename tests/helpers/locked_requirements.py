"""Locks the Python packages of ci/requirements*.txt in exact versions with their hashes: `make requirements`."""

import subprocess
import sys

from lockstorm.base import paths

LOCKED = {  # file in ci/ -> what it is made from, and the words of uv for that
    "requirements.txt": ("pyproject.toml", ()),
    "requirements-campaign.txt": ("pyproject.toml", ("--extra", "campaign")),
    "requirements-test.txt": (
        "ci/requirements-test.in",
        ("-c", "ci/requirements.txt", "-c", "ci/requirements-campaign.txt"),
    ),
}
# For every Python from 3.11 on; no address of a registry.
USUAL = ("--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url", "--no-annotate")


def header(source: str, words: tuple[str, ...]) -> str:
    extra = f" (the extra {words[1]})" if words[:1] == ("--extra",) else ""
    return f"# Written by `make requirements` from {source}{extra}: exact versions with their hashes.\n"


def lock(name: str) -> None:
    source, words = LOCKED[name]
    command = [sys.executable, "-m", "uv", "pip", "compile", "-q", "--no-header", *USUAL, *words, source]
    done = subprocess.run(command, cwd=paths.ROOT, stdout=subprocess.PIPE, text=True, check=True)
    (paths.ROOT / "ci" / name).write_text(header(source, words) + done.stdout)


if __name__ == "__main__":
    for each in LOCKED:
        lock(each)
