"""The history as one file between processes: followed live, full, and stamped by the true time under libfaketime."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lockstorm.base import paths
from lockstorm.native.library import FULL, Kind, Message, Record, Settings, library
from tests.helpers.support import ENVIRONMENT, lockstorm, trial


@contextmanager
def history(path: Path, capacity: int) -> Iterator[Any]:
    message = Message()
    settings = Settings(time=1, seed=5, capacity=capacity)
    assert library().history_create(bytes(path), settings, message), message
    opened = library().history_open(bytes(path), message)
    assert opened, message
    yield opened
    library().history_close(opened)


def append(opened: Any, value: int) -> int:
    return int(library().history_append(opened, ctypes.byref(Record(kind=Kind.CLOCK, value=value))))


def test_a_reader_follows_live_and_stops_at_the_end(tmp_path: Path) -> None:
    with history(tmp_path / "h", 100) as opened:
        command = [paths.program("history"), "follow", str(tmp_path / "h")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout
            assert json.loads(reader.stdout.readline())["seed"] == 5
            for value in range(1, 4):
                append(opened, value)
                assert json.loads(reader.stdout.readline())["value"] == value
            assert reader.poll() is None, "it waits for more"
            library().history_end(opened)
            assert reader.stdout.read() == ""
            assert reader.wait() == 0


def reserved_bytes(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_a_short_history_in_memory_is_reserved_in_part_and_has_room_for_all_its_records() -> None:
    capacity, size = 1 << 16, 4096 + (1 << 16) * 64
    memory = os.statvfs("/dev/shm")
    is_roomy = memory.f_bavail * memory.f_frsize >= 256 << 20
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory, history(Path(directory) / "h", capacity) as opened:
        assert (Path(directory) / "h").stat().st_size == size
        assert (reserved_bytes(Path(directory) / "h") < size / 8) == is_roomy
        assert [append(opened, value) for value in range(capacity + 1)] == [*range(capacity), FULL]


def test_a_long_history_is_reserved() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory, history(Path(directory) / "h", 1 << 17):
        assert reserved_bytes(Path(directory) / "h") >= 4096 + (1 << 17) * 64


def test_a_history_on_a_disk_is_reserved(tmp_path: Path) -> None:
    with history(tmp_path / "h", 1 << 16):
        assert reserved_bytes(tmp_path / "h") >= 4096 + (1 << 16) * 64


def test_a_full_history_counts_what_it_dropped_and_is_inconclusive(tmp_path: Path) -> None:
    with history(tmp_path / "h", 3) as opened:
        assert [append(opened, 1) for _ in range(5)] == [0, 1, 2, FULL, FULL]
    done = lockstorm("check", str(tmp_path / "h"), "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["dropped"], answer["records"]) == (3, 2, 3)
    assert "2 records found no room" in answer["verdict"]["integrity"]["reason"]
    lines = lockstorm("history", "to-json", str(tmp_path / "h")).stdout
    assert json.loads(lines.splitlines()[0])["dropped"] == 2
    (tmp_path / "h.jsonl").write_text(lines)
    again = lockstorm("check", str(tmp_path / "h.jsonl"), "--json")
    assert (again.returncode, json.loads(again.stdout)["dropped"]) == (3, 2), "not a pass in its other form"


def test_a_counter_that_hides_records_is_damage(tmp_path: Path) -> None:
    with history(tmp_path / "h", 8) as opened:
        for value in range(6):
            append(opened, value)
    content = bytearray((tmp_path / "h").read_bytes())
    content[64:72] = (3).to_bytes(8, "little")
    (tmp_path / "h").write_bytes(content)
    done = lockstorm("check", str(tmp_path / "h"))
    assert (done.returncode, "byte 64" in done.stderr) == (2, True)


def test_a_text_that_does_not_fit_is_not_half_there(tmp_path: Path) -> None:
    with history(tmp_path / "h", 4) as opened:
        append(opened, 1)
        assert library().history_text(opened, b"x" * 200, 200, 0, 0) == 0
    assert lockstorm("check", str(tmp_path / "h")).returncode == 3


def test_a_history_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "h").write_text("mine")
    message = Message()
    assert not library().history_create(bytes(tmp_path / "h"), Settings(time=1, seed=1, capacity=9), message)
    assert "File exists" in str(message)
    assert (tmp_path / "h").read_text() == "mine"


def test_room_that_is_not_there_is_said_at_once_and_nothing_is_left(tmp_path: Path) -> None:
    """A file-size limit stands for a disk that is too small: the space is reserved when the history is made."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "from lockstorm.native.library import library, Settings, Message; said = Message();"
        "print(library().history_create(sys.argv[1].encode(), Settings(time=1, seed=1, capacity=10_000), said), said)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "h")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert done.stdout.startswith("False")
    assert "File too large" in done.stdout
    assert not (tmp_path / "h").exists()


def test_no_preloaded_library_can_touch_the_stamps() -> None:
    """libfaketime shifts every clock of the process by a century; the history's stamps stay true."""
    code = (
        "import ctypes, time, sys; lib = ctypes.CDLL(sys.argv[1]);"
        "lib.clock_real_mono_ns.restype = lib.clock_real_wall_ns.restype = ctypes.c_int64;"
        "print(lib.clock_real_mono_ns(), lib.clock_real_wall_ns(), time.time_ns())"
    )
    command = [sys.executable, "-c", code, str(paths.build() / "lib" / "liblockstorm.so")]
    lied_to = {**ENVIRONMENT, "LD_PRELOAD": paths.libfaketime(), "FAKETIME": "+100y"}

    def clocks(environment: dict[str, str]) -> list[int]:
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return [int(word) for word in done.stdout.split()]

    before, lied, after = clocks(dict(ENVIRONMENT)), clocks(lied_to), clocks(dict(ENVIRONMENT))
    assert lied[2] > after[2] + 10**18, "the lie works"
    assert before[0] <= lied[0] <= after[0]
    assert before[1] <= lied[1] <= after[1]


def test_records_of_a_killed_client_stay() -> None:
    with trial("set-nx-px") as running:
        (one,) = running.clients(1)
        one.acquire()
        assert one.process
        one.process.kill()
        one.process.wait()
        kinds = [record.kind for record in running.story()]
        assert kinds[-2:] == ["acquire-invoke", "acquire-return"]
