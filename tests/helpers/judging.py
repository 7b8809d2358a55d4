"""The checkers in this process, for tests that judge many small histories."""

import ctypes
import json
import os
import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

from lockstorm.native.seam import JudgingPolicy, Kind
from tests.helpers.building import make
from tests.helpers.checker_oracle import ACQUIRE_POLICIES, RELEASE_POLICIES, History, Json, OracleRecord

TEXT, TEXT_MORE, NOTE = Kind.TEXT, Kind.TEXT_MORE, Kind.NOTE
KINDS = {kind.name.lower().replace("_", "-"): kind for kind in Kind if kind > TEXT_MORE}
OUTCOMES = {"unknown": 0, "ok": 1, "refused": 2}
OBJECTS = {"": 0, "register": 1, "counter": 2, "set": 3}
LAYOUT = struct.Struct("<IBBBBIIqqIIqqq")


@dataclass(frozen=True)
class Asked:
    """How to judge a history: the policy, and the properties that decide (none: as without --require)."""

    release: str = "released"
    acquire: str = "not-happened"
    required: tuple[str, ...] = ()

    def words(self) -> tuple[JudgingPolicy, bytes]:
        policy = JudgingPolicy(RELEASE_POLICIES.index(self.release), ACQUIRE_POLICIES.index(self.acquire))
        return policy, ",".join(self.required).encode()


USUAL = Asked()


@cache
def judge_library() -> Any:
    """build/tests/libjudge.so, built if necessary; or the library that LOCKSTORM_JUDGE names."""
    path = os.environ.get("LOCKSTORM_JUDGE") or make("judge") / "tests" / "libjudge.so"
    judge = ctypes.CDLL(str(path))
    judge.judge_records.restype = ctypes.c_void_p
    judge.judge_records.argtypes = (ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, JudgingPolicy, ctypes.c_char_p)
    libc = ctypes.CDLL(None)
    libc.free.argtypes = (ctypes.c_void_p,)
    return judge.judge_records, libc.free


def packed(record: OracleRecord, names: dict[str, int]) -> bytes:
    if record.kind == "torn":
        return bytes(64)
    return LAYOUT.pack(
        0,
        KINDS[record.kind],
        OUTCOMES[record.outcome],
        OBJECTS[record.object],
        record.flags,
        names.get(record.actor, 0),
        names.get(record.name, 0),
        record.mono_ns,
        0,
        record.op,
        record.grant,
        record.token,
        record.value,
        record.extra,
    )


def image(names: list[str], records: History) -> bytes:
    """Slots: a note, the names from 1 on with two each, and the records, whose indices must go on from there."""
    slots = [LAYOUT.pack(0, NOTE, *[0] * 12)]
    for name in names:
        text = name.encode()
        slots += [LAYOUT.pack(0, TEXT, *[0] * 10, len(text), 0)]
        slots += [struct.pack("<IBBBB", 0, TEXT_MORE, 0, 0, 0) + text.ljust(56, b"\0")]
    assert not records or records[0].index == len(slots)
    numbers = {name: 1 + 2 * place for place, name in enumerate(names)}
    return b"".join(slots) + b"".join(packed(record, numbers) for record in records)


def judged_text(slots: bytes, asked: Asked = USUAL, dropped: int = 0) -> bytes:
    """What `check --all-policies` prints for an image; empty if a record is damaged. `dropped`: number of records that
    found no room."""
    judge_records, free = judge_library()
    text = judge_records(slots, len(slots) // 64, dropped, *asked.words())
    said = ctypes.string_at(text) if text else b""
    free(text)
    return said


def judge(names: list[str], records: History, asked: Asked = USUAL, dropped: int = 0) -> Json:
    """What `check --all-policies` says of a history."""
    said: Json = json.loads(judged_text(image(names, records), asked, dropped))
    return said
