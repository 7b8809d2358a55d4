"""Bad input to `check` and `history`: one sentence that names the place, exit status 2, and never a verdict.

An empty history is inconclusive instead. The conversion from the binary form to JSON Lines and back loses nothing.
"""

import ctypes
import json
import random
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstorm.base import paths
from lockstorm.native.library import Message, Outcome, Record, Settings, library

HEADER_SIZE, RECORD_SIZE, CHUNK = 4096, 64, 56
VIRTUAL, REAL = 1, 2
ACQUIRE_RETURN, RELEASE_INVOKE, STORE_WRITE, NOTE = 6, 9, 16, 23
FIRST_LINE = '{"history": "lockstorm", "version": 1}\n'
GRANT = '{"kind": "acquire-return", "actor": "A", "name": "stock", "outcome": "ok"}\n'


def run(program: str, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([paths.program(program), *map(str, words)], capture_output=True, timeout=600)


def refusal(done: subprocess.CompletedProcess[bytes]) -> str:
    """The message of a program that refused its input; it must be one line."""
    message = done.stderr.decode(errors="replace")
    assert done.returncode == 2, (done.returncode, done.stdout[:500], message)
    assert message.count("\n") == 1, message
    return message


def check_refuses(path: Path, *words: str) -> str:
    done = run("check", *words, path)
    assert done.stdout == b"", done.stdout
    return refusal(done)


def check_is_inconclusive(path: Path) -> None:
    done = run("check", path)
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["exit"], verdict["records"], done.stderr) == (3, 3, 0, b"")
    assert {each["status"] for each in verdict["verdict"].values()} == {"inconclusive"}
    assert {each["reason"] for each in verdict["verdict"].values()} == {"the history is empty"}


# --- binary histories, written by the library ---


@dataclass
class Text:
    value: bytes

    @property
    def slots(self) -> int:
        return 1 + -(-len(self.value) // CHUNK)


@dataclass
class Plain:
    fields: dict[str, int] = field(default_factory=dict)
    torn: bool = False
    slots: int = 1


Item = Text | Plain


def write_history(path: Path, items: list[Item], time: int = VIRTUAL, seed: int = 0) -> None:
    """Writes items in order; the file has room for no more. A history whose first item is a text begins with a note."""
    message, lib = Message(), library()
    count = sum(item.slots for item in items) + bool(items and isinstance(items[0], Text))
    assert lib.history_create(str(path).encode(), Settings(time, seed, count), message), message
    history = lib.history_open(str(path).encode(), message)
    assert history, message
    torn = []
    for item in items:
        if isinstance(item, Text):
            assert lib.history_text(history, item.value, len(item.value), 7, 8)
        else:
            index = lib.history_append(history, ctypes.byref(Record(**item.fields)))
            assert index < count
            torn += [index] * item.torn
    lib.history_end(history)
    lib.history_close(history)
    with path.open("r+b") as file:
        for index in torn:
            file.seek(HEADER_SIZE + index * RECORD_SIZE)
            file.write(bytes(RECORD_SIZE))


def plain(kind: int, **fields: int) -> Plain:
    return Plain({"kind": kind, **fields})


def good_items() -> list[Item]:
    """Records of A and B in turn; their names are in the slots 1, 3 and 5."""
    items: list[Item] = [Text(b"A"), Text(b"B"), Text(b"stock")]
    for turn in range(4):
        grant, actor = 7 + 3 * turn, 1 + 2 * (turn % 2)
        items += [
            plain(ACQUIRE_RETURN, actor=actor, name=5, outcome=Outcome.OK, mono_ns=turn),
            plain(STORE_WRITE, name=actor, outcome=Outcome.OK, object=1, grant=grant, extra=turn),
            plain(RELEASE_INVOKE, actor=actor, name=5, grant=grant, mono_ns=turn),
        ]
    return items


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "history"
    write_history(path, good_items())
    return path.read_bytes()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "history"


def records_of(image: bytes) -> int:
    return (len(image) - HEADER_SIZE) // RECORD_SIZE


def flipped(image: bytes, offset: int, mask: int) -> bytes:
    return image[:offset] + bytes([image[offset] ^ mask]) + image[offset + 1 :]


def test_a_good_history_holds(good: bytes, place: Path) -> None:
    place.write_bytes(good)
    done = run("check", "--require", "mutual_exclusion,integrity", place)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["records"] == records_of(good) == 19


def test_what_cannot_be_read(tmp_path: Path) -> None:
    assert "nowhere: No such file or directory" in check_refuses(tmp_path / "nowhere")
    assert "Is a directory" in check_refuses(tmp_path)
    for verb in (("to-json", tmp_path), ("from-json", tmp_path, tmp_path / "out"), ("to-json", tmp_path / "nowhere")):
        refusal(run("history", *verb))
    assert not (tmp_path / "out").exists()


def test_nothing_is_inconclusive(good: bytes, place: Path) -> None:
    place.write_bytes(b"")
    check_is_inconclusive(place)
    place.write_text(FIRST_LINE)
    check_is_inconclusive(place)
    place.unlink()
    write_history(place, [])
    check_is_inconclusive(place)


def test_the_history_may_come_through_a_pipe() -> None:
    refused = GRANT.replace('"A"', '"B"').replace('"ok"', '"refused"')
    text = FIRST_LINE + GRANT + refused + '{"kind": "store-write", "object": "set", "outcome": "ok"}\n'
    for given_text, status in ((text, 0), ("", 3), ("x", 2)):
        words = [paths.program("check"), "/dev/stdin"]
        done = subprocess.run(words, input=given_text, capture_output=True, text=True, timeout=600)
        assert done.returncode == status, done


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes(seed: int, good: bytes, place: Path) -> None:
    noise = random.Random(seed)
    length = noise.choice((1, 63, 4095, 4096, 4097, 9000))
    place.write_bytes(noise.randbytes(length))
    check_refuses(place)
    place.write_bytes(good[:8] + noise.randbytes(length))
    check_refuses(place)
    refusal(run("history", "to-json", place))


@pytest.mark.parametrize("length", [1, 7, 8, 9, 40, 64, 72, 132, 4095])
def test_a_header_that_was_cut_short(length: int, good: bytes, place: Path) -> None:
    place.write_bytes(good[:length])
    check_refuses(place)
    refusal(run("history", "to-json", place))


@pytest.mark.parametrize("cut", [1, 32, 63, 64, 65, 5 * RECORD_SIZE, 19 * RECORD_SIZE])
def test_records_that_were_cut_short(cut: int, good: bytes, place: Path) -> None:
    place.write_bytes(good[:-cut])
    assert "cut short" in check_refuses(place)
    assert "cut short" in refusal(run("history", "to-json", place))


def test_a_flipped_bit_is_found_wherever_it_is(good: bytes, place: Path) -> None:
    rng = random.Random(1)
    for byte in range(2 * RECORD_SIZE):
        index = rng.randrange(records_of(good))
        start = HEADER_SIZE + index * RECORD_SIZE
        place.write_bytes(flipped(good, start + byte % RECORD_SIZE, 1 << rng.randrange(8)))
        assert f"damaged record {index} at byte {start}" in check_refuses(place), (index, byte)
        assert f"damaged record {index} at byte {start}" in refusal(run("history", "to-json", place))


def test_records_that_changed_places(good: bytes, place: Path) -> None:
    rng = random.Random(2)
    for _ in range(20):
        one, other = sorted(rng.sample(range(records_of(good)), 2))
        slots = [good[at : at + RECORD_SIZE] for at in range(HEADER_SIZE, len(good), RECORD_SIZE)]
        slots[one], slots[other] = slots[other], slots[one]
        place.write_bytes(good[:HEADER_SIZE] + b"".join(slots))
        assert f"damaged record {one} at byte" in check_refuses(place)


def test_a_slot_that_was_never_written_is_torn_not_damaged(place: Path) -> None:
    items = [*good_items(), Plain(torn=True)]
    write_history(place, items)
    done = run("check", place)
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["torn"], verdict["records"]) == (3, 1, 19)
    assert verdict["verdict"]["mutual_exclusion"]["reason"] == "1 records are torn"


@pytest.mark.parametrize(
    ("offset", "value", "what"),
    [
        (0, b"LCKSTORM", "neither a history nor its JSON Lines form"),
        (8, struct.pack("<I", 2), "another version (byte 8)"),
        (8, struct.pack("<I", 0), "another version (byte 8)"),
        (12, struct.pack("<I", 65), "record size (byte 12)"),
        (16, struct.pack("<Q", 1), "capacity (byte 16)"),
        (32, struct.pack("<I", 3), "kind of time (byte 32)"),
    ],
)
def test_a_header_of_something_else(offset: int, value: bytes, what: str, good: bytes, place: Path) -> None:
    place.write_bytes(good[:offset] + value + good[offset + len(value) :])
    assert what in check_refuses(place)


def test_records_without_room_make_it_inconclusive(good: bytes, place: Path) -> None:
    place.write_bytes(good[:64] + struct.pack("<Q", 19 + 5) + good[72:])
    done = run("check", place)
    assert (done.returncode, json.loads(done.stdout)["dropped"]) == (3, 5)


# --- JSON Lines ---

BAD_LINES = {
    "not JSON": ("grant", ""),
    "a JSON list": ("[]", "not a JSON object"),
    "a blank line": ("", ""),
    "a line cut short": ('{"kind": "note"', ""),
    "two objects": ('{"kind": "note"} {"kind": "note"}', ""),
    "no kind": ('{"actor": "A"}', '"kind"'),
    "an unknown kind": ('{"kind": "acquired"}', '"kind"'),
    "a kind of the wrong type": ('{"kind": true}', '"kind"'),
    "a kind that is too large": ('{"kind": 256}', '"kind"'),
    "an unknown key": ('{"kind": "note", "tokens": 1}', '"tokens"'),
    "an unknown key of a torn record": ('{"kind": "torn", "token": 1}', ""),
    "a duplicate key": ('{"kind": "note", "token": 1, "token": 2}', "duplicate"),
    "an unknown outcome": ('{"kind": "note", "outcome": "OK"}', '"outcome"'),
    "an unknown object": ('{"kind": "note", "object": "table"}', '"object"'),
    "a token as a string": ('{"kind": "note", "token": "1"}', '"token"'),
    "a token as a fraction": ('{"kind": "note", "token": 1.5}', '"token"'),
    "a token that is nothing": ('{"kind": "note", "token": null}', '"token"'),
    "a value as a list": ('{"kind": "note", "value": [1]}', '"value"'),
    "a stamp beyond 64 bits": ('{"kind": "note", "mono_ns": 9223372036854775808}', ""),
    "an op beyond 32 bits": ('{"kind": "note", "op": 4294967296}', '"op"'),
    "a negative grant": ('{"kind": "note", "grant": -1}', '"grant"'),
    "flags beyond 8 bits": ('{"kind": "note", "flags": 256}', '"flags"'),
    "an actor as a list": ('{"kind": "note", "actor": []}', '"actor"'),
    "an index that is too large": ('{"kind": "note", "index": 1}', "index 1 where 0 comes next"),
    "a negative index": ('{"kind": "note", "index": -1}', "index -1 where 0 comes next"),
    "an index as a string": ('{"kind": "note", "index": "0"}', '"index"'),
    "an index as a fraction": ('{"kind": "note", "index": 0.0}', '"index"'),
    "a name that nothing defines": ('{"kind": "note", "index": 0, "name": "A"}', '"name"'),
    "a name with a zero byte": ('{"kind": "note", "name": "A\\u0000B"}', '"name"'),
    "hex that is invalid": ('{"kind": "text", "hex": "0g"}', '"hex"'),
    "half a byte of hex": ('{"kind": "text", "hex": "0"}', '"hex"'),
    "hex as a number": ('{"kind": "text", "hex": 10}', '"hex"'),
    "a text as a number": ('{"kind": "text", "text": 10}', '"text"'),
    "a piece of text that is too short": ('{"kind": "text-more", "hex": "00"}', '"hex"'),
    "half a surrogate": ('{"kind": "note", "name": "\\ud800"}', ""),
    "deep nesting": ('{"kind": ' + "[" * 100_000, ""),
    "a text beyond 1 MiB": ('{"kind": "text", "text": "' + "x" * (2**20 + 1) + '"}', '"text"'),
    "a line beyond 4 MiB": ('{"kind": "note"' + " " * 2**22 + "}", "longer than 4 MiB"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line(case: str, place: Path, tmp_path: Path) -> None:
    line, what = BAD_LINES[case]
    place.write_text(FIRST_LINE + line + "\n")
    message = check_refuses(place)
    assert "line 2" in message and what in message, message
    message = refusal(run("history", "from-json", place, tmp_path / "out"))
    assert "line 2" in message and what in message, message
    assert not (tmp_path / "out").exists()


def test_the_line_of_a_fault_is_counted_from_the_first(place: Path) -> None:
    place.write_text(FIRST_LINE + GRANT * 40 + '{"kind": "note", "tokens": 1}\n' + GRANT)
    assert 'line 42: unknown key "tokens"' in check_refuses(place)


@pytest.mark.parametrize("raw", [b'{"kind": "note", "name": "\xff"}', b'{"kind": "note", "name": "\xc0\xaf"}', b"\x00"])
def test_a_line_that_is_not_utf8(raw: bytes, place: Path) -> None:
    place.write_bytes(FIRST_LINE.encode() + GRANT.encode() + raw + b"\n")
    assert "line 3" in check_refuses(place)


@pytest.mark.parametrize(
    "line",
    [
        '{"history": "lockstorm", "version": 2}',
        '{"history": "lockstorm"}',
        '{"history": "jepsen", "version": 1}',
        '{"history": "lockstorm", "version": "1"}',
        '{"history": "lockstorm", "version": 1, "records": 5}',
        '{"history": "lockstorm", "version": 1, "version": 1}',
        '{"history": "lockstorm", "version": 1, "time": "logical"}',
        '{"history": "lockstorm", "version": 1, "seed": 0.5}',
        "[]",
        GRANT.strip(),
    ],
)
def test_a_bad_first_line(line: str, place: Path) -> None:
    place.write_text(line + "\n" + GRANT)
    assert "line 1" in check_refuses(place)


def test_a_written_file_is_not_overwritten(place: Path, tmp_path: Path) -> None:
    place.write_text(FIRST_LINE + GRANT)
    out = tmp_path / "out"
    out.write_text("precious")
    assert "exists" in refusal(run("history", "from-json", place, out))
    assert out.read_text() == "precious"


# --- words of the command line ---


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--require", "safety"), "safety"),
        (("--require", "integrity,safety"), "safety"),
        (("--require=mutual exclusion",), "mutual exclusion"),
        (("--requires", "integrity"), "requires"),
        (("--require",), ""),
        (("other",), "usage"),
    ],
)
def test_bad_words(words: tuple[str, ...], what: str, good: bytes, place: Path) -> None:
    place.write_bytes(good)
    assert what in check_refuses(place, *words)


def test_no_words() -> None:
    assert "usage" in refusal(run("check"))
    assert "usage" in refusal(run("history"))
    assert "usage" in refusal(run("history", "convert", "x"))


# --- binary to JSON Lines and back ---

NUMBER = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 40))
INDEX = st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 40))
BYTE = st.integers(0, 255)
TEXTS = st.one_of(
    st.sampled_from((b"", b"A", b"A", b"stock", b"\0", b"A\0B", b"\xff\xfe", b"\xc3\x28", "Grüße ☃".encode())),
    st.binary(max_size=130),
    st.sampled_from((1, 55, 56, 57, 111, 112, 113)).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
    st.sampled_from((55, 56, 57, 112)).map(lambda size: b"x" * size),
)
RECORDS = st.fixed_dictionaries(
    {"kind": st.one_of(st.integers(1, 23), st.integers(24, 255))},
    optional={
        "outcome": st.one_of(st.integers(0, 2), BYTE),
        "object": st.one_of(st.integers(0, 3), BYTE),
        "flags": BYTE,
        **dict.fromkeys(("actor", "name", "op", "grant"), INDEX),
        **dict.fromkeys(("mono_ns", "wall_ns", "token", "value", "extra"), NUMBER),
    },
)
ITEMS = st.lists(
    st.one_of(TEXTS.map(Text), RECORDS.map(Plain), RECORDS.map(lambda fields: Plain(fields, torn=True))),
    min_size=1,
    max_size=12,
)


def there_and_back(directory: Path, items: list[Item], **header: Any) -> tuple[bytes, bytes, list[bytes]]:
    """The binary form, the binary form after a conversion to JSON Lines and back, and the lines."""
    before, lines, after = directory / "before", directory / "lines", directory / "after"
    write_history(before, items, **header)
    done = run("history", "to-json", before)
    assert (done.returncode, done.stderr) == (0, b"")
    lines.write_bytes(done.stdout)
    back = run("history", "from-json", lines, after)
    assert (back.returncode, back.stderr) == (0, b""), (back.stderr, done.stdout)
    return before.read_bytes(), after.read_bytes(), done.stdout.splitlines()


@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(items=ITEMS, time=st.sampled_from((VIRTUAL, REAL)), seed=st.integers(0, 2**64 - 1))
@pytest.mark.lengthy("writes 250 histories as JSON Lines and back")
def test_nothing_is_lost_on_the_way_through_json(items: list[Item], time: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        before, after, lines = there_and_back(Path(directory), items, time=time, seed=seed)
    assert before == after, lines
    for line in lines:
        assert line.isascii()
        json.loads(line)


def test_a_torn_piece_of_a_text_is_kept_torn(tmp_path: Path) -> None:
    """A text with a missing piece, the first or a later one, is not guessed."""
    for place, torn in enumerate((1, 2, 3)):
        directory = tmp_path / str(place)
        directory.mkdir()
        path = directory / "torn"
        write_history(path, [Text(b"y" * 100), plain(NOTE, name=1)])
        image = bytearray(path.read_bytes())
        at = HEADER_SIZE + torn * RECORD_SIZE
        image[at : at + RECORD_SIZE] = bytes(RECORD_SIZE)
        path.write_bytes(image)
        lines = run("history", "to-json", path)
        (directory / "lines").write_bytes(lines.stdout)
        done = run("history", "from-json", directory / "lines", directory / "back")
        assert done.returncode == 0, (done, lines.stdout)
        assert (directory / "back").read_bytes() == bytes(image), lines.stdout
        assert json.loads(lines.stdout.splitlines()[1 + torn]) == {"index": torn, "kind": "torn"}


def test_a_name_stands_as_a_string_where_it_can(tmp_path: Path) -> None:
    items: list[Item] = [Text(b"A"), Text(b"A"), Text(b"\xff"), *(plain(NOTE, name=name) for name in (1, 3, 5, 2, 99))]
    _, _, lines = there_and_back(tmp_path, items)
    assert [json.loads(line).get("name") for line in lines[-5:]] == ["A", 3, 5, 2, 99]
