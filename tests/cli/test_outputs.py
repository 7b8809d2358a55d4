"""Files that commands write: each is whole or not there, however the command ends."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from lockstorm.base import paths
from lockstorm.base.atomic_file import new_file, write_bytes, write_json, write_text
from tests.helpers.support import ENVIRONMENT, lockstorm

# Modules that write only into a trial's private directory, or beside the servers' prepared data.
PRIVATE = (
    *("search/explorer.py", "process/process.py", "servers/"),
    "trial/trial_clients.py",
    "campaigns/case_journal.py",  # its file grows by lines: a part of one is dropped when it is read
)
WRITES = re.compile(r"(\w+)\.(?:write_text|write_bytes|open\(\"[wax])|\bopen\([^)]*\"[wax]")


def killed_half_way(directory: Path) -> dict[str, str]:
    """An environment in which the program `history` is killed when half of its output is written."""
    programs = directory / "programs" / "bin"
    programs.mkdir(parents=True)
    for program in (paths.build() / "bin").iterdir():
        (programs / program.name).symlink_to(program)
    (programs / "history").unlink()
    script = 'case $1 in from-json) echo half >"$3" ;; *) echo half ;; esac\nkill -KILL $$\n'
    (programs / "history").write_text(f"#!/bin/sh\n{script}")
    (programs / "history").chmod(0o755)
    return {**ENVIRONMENT, "LOCKSTORM_PROGRAMS": str(programs.parent)}


@pytest.mark.parametrize("form", ["to-json", "from-json"])
def test_a_program_that_is_killed_leaves_no_output(tmp_path: Path, form: str) -> None:
    environment = killed_half_way(tmp_path)
    done = lockstorm("history", form, "any", "-o", str(tmp_path / "out"), env=environment)
    assert done.returncode == 128 + signal.SIGKILL
    assert "out was not written" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["programs"]


def test_what_is_being_written_has_no_name_yet(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with new_file(path) as temporary:
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    with pytest.raises(FileExistsError), new_file(path) as temporary:
        temporary.write_text("other")
    with pytest.raises(KeyboardInterrupt), new_file(tmp_path / "never") as temporary:
        temporary.write_text("ha")
        raise KeyboardInterrupt
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("out", "whole")]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path, link = tmp_path / "out", tmp_path / "link"
    link.symlink_to("out")
    write_text(path, "old")
    path.chmod(0o640)
    write_json(link, {"new": 1})
    assert link.is_symlink() and json.loads(path.read_text()) == {"new": 1}
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(TypeError):
        write_json(path, {"new": object()})
    assert json.loads(path.read_text()) == {"new": 1}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "out"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_bytes(pipe, b"whole")
    assert os.read(reader, 100) == b"whole" and pipe.is_fifo()
    os.close(reader)


def test_every_output_goes_through_one_module() -> None:
    """What writes to the final name can leave a part of a file there."""
    package = paths.ROOT / "harness" / "lockstorm"
    direct = [
        f"{path.relative_to(package)}: {line.strip()}"
        for path in sorted(package.rglob("*.py"))
        for line in path.read_text().splitlines()
        if (found := WRITES.search(line)) and found[1] != "temporary"
        if not str(path.relative_to(package)).startswith((*PRIVATE, "base/atomic_file.py"))
    ]
    assert direct == []
