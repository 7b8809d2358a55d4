"""The C library of the driver's side - conductor, history, faults, tables - as Python sees it.

Only declarations and thin wrappers; what the functions do stands in the headers (harness/conductor.h,
harness/history.h, faults/fault.h).
"""

import ctypes as c
import json
from enum import IntEnum
from functools import cache
from typing import Any

from harness.driver import paths
from harness.driver.errors import Inconclusive

FLAG_TEXT = 1  # of a parameter: its value is the index of a text
FOREVER = 2**63 - 1
FULL = 2**64 - 1


class Outcome(IntEnum):
    """harness/outcome.h"""

    UNKNOWN = 0
    OK = 1
    REFUSED = 2


class Object(IntEnum):
    """What the store holds (enum history_object)."""

    REGISTER = 1
    COUNTER = 2
    SET = 3


class Kind(IntEnum):
    """The kinds of record that the driver appends or looks at (enum history_kind)."""

    PARAMETER = 3
    ACQUIRE_INVOKE = 5
    ACQUIRE_RETURN = 6
    RELEASE_INVOKE = 9
    FAULT_INJECT = 17
    FAULT_PROVE = 18
    FAULT_HEAL = 19
    CHECKPOINT = 20
    CLOCK = 21
    ACTOR_EXIT = 22
    NOTE = 23
    VALIDITY = 24
    PHASE = 27
    RESIDUE = 32


class StrandState(IntEnum):
    """enum strand_state"""

    ABSENT = 0
    IDLE = 1
    READY = 2
    RUNNING = 3
    SLEEPING = 4
    WAITING = 5
    PROBING = 6
    HELD = 7
    GONE = 8


class StepKind(IntEnum):
    """enum step_kind"""

    ACQUIRE = 1
    RELEASE = 2
    RENEW = 3
    READ = 4
    WRITE = 5
    ADD = 6
    SLEEP = 7
    WORKLOAD = 8
    EXIT = 9
    IS_HELD = 11
    HOLD = 10


class ReaderState(IntEnum):
    """enum history_state"""

    RECORD = 0
    TORN = 1
    WAIT = 2
    DAMAGED = 3
    END = 4


class RunResult(IntEnum):
    """enum conductor_result"""

    DONE = 0
    TIME = 1
    QUIET = 2
    STUCK = 3
    INTERRUPTED = 4
    DIED = 5
    FAILED = 6
    LATE = 7


class Record(c.Structure):
    """struct history_record"""

    _fields_ = (
        ("check", c.c_uint32),
        ("kind", c.c_uint8),
        ("outcome", c.c_uint8),
        ("object", c.c_uint8),
        ("flags", c.c_uint8),
        ("actor", c.c_uint32),
        ("name", c.c_uint32),
        ("mono_ns", c.c_int64),
        ("wall_ns", c.c_int64),
        ("op", c.c_uint32),
        ("grant", c.c_uint32),
        ("token", c.c_int64),
        ("value", c.c_int64),
        ("extra", c.c_int64),
    )


class Settings(c.Structure):
    """struct history_settings"""

    _fields_ = (("time", c.c_int), ("seed", c.c_uint64), ("capacity", c.c_uint64))


class Step(c.Structure):
    """struct step"""

    _fields_ = (
        ("kind", c.c_uint32),
        ("object", c.c_uint32),
        ("wait_ms", c.c_int64),
        ("value", c.c_int64),
        ("work_ms", c.c_int64),
        ("think_ms", c.c_int64),
        ("duration_ms", c.c_int64),
        ("turns", c.c_int64),
        ("pace_us", c.c_int64),
        ("token", c.c_int64),
    )


class StepResult(c.Structure):
    """struct step_result"""

    _fields_ = (
        ("outcome", c.c_uint32),
        ("turns", c.c_uint32),
        ("token", c.c_int64),
        ("value", c.c_int64),
        ("version", c.c_int64),
        ("error", c.c_char * 128),
    )


class Message(c.Structure):
    """struct history_error, struct fault_report: a sentence (the larger of the two)."""

    _fields_ = (("text", c.c_char * 256),)

    def __str__(self) -> str:
        return bytes(self.text).decode(errors="replace")


OneServer = c.CFUNCTYPE(c.c_bool, c.c_int)
OneServerLost = c.CFUNCTYPE(None, c.c_int)
TwoServers = c.CFUNCTYPE(c.c_bool, c.c_int, c.c_int)
ClientRestart = c.CFUNCTYPE(c.c_bool, c.c_int)
ServerQuery = c.CFUNCTYPE(c.c_int64, c.c_int, c.c_char_p)
ServerTime = c.CFUNCTYPE(c.c_int64, c.c_int)
ProcessEnded = c.CFUNCTYPE(None, c.c_void_p, c.c_int)
HostSuspended = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_bool)


class FaultMeans(c.Structure):
    """struct fault_means"""

    _fields_ = (
        ("conductor", c.c_void_p),
        ("virtual_time", c.c_bool),
        ("process_stopped", c.c_void_p),
        ("process_catch_up", c.c_void_p),
        ("stop_between_records", c.c_void_p),
        ("process_ended", ProcessEnded),
        ("strand_stopped", c.c_void_p),
        ("strand_stands", c.c_void_p),
        ("strand_moves", c.c_void_p),
        ("server_silent", c.c_void_p),
        ("server_answers", c.c_void_p),
        ("server_busy", c.c_void_p),
        ("server_works", c.c_void_p),
        ("settle", c.c_void_p),
        ("server_replicas", c.c_void_p),
        ("server_clock", c.c_void_p),
        ("server_wall_us", c.c_void_p),
        ("server_clock_error", c.c_void_p),
        ("host_clock", c.c_void_p),
        ("host_clock_error", c.c_void_p),
        ("host_wall_ns", c.c_void_p),
        ("host_mono_ns", c.c_void_p),
        ("host_suspended", HostSuspended),
        ("mono_ns", c.c_void_p),
        ("wall_ns", c.c_void_p),
        ("unreliable", c.c_void_p),
        ("server_restart", OneServer),
        ("replica_lost", OneServerLost),
        ("clients_lead", TwoServers),
        ("server_follow", TwoServers),
        ("client_restart", ClientRestart),
        ("server_query", ServerQuery),
        ("server_time_us", ServerTime),
    )


class FaultOption(c.Structure):
    """struct fault_option"""

    _fields_ = (("name", c.c_char_p), ("value", c.c_char_p))


class FaultTarget(c.Structure):
    """struct fault_target"""


FaultTarget._fields_ = (
    ("name", c.c_char_p),
    ("pid", c.c_int),
    ("server", c.c_int),
    ("strand", c.c_int),
    ("service", c.c_char_p),
    ("clock_step_us", c.c_int64),
    ("socket", c.c_char_p),
    ("directory", c.c_char_p),
    ("proxy", c.c_char_p),
    ("links", c.c_char_p),
    ("probe", c.c_char_p),
    ("other", c.POINTER(FaultTarget)),
    ("next", c.POINTER(FaultTarget)),
    ("options", c.POINTER(FaultOption)),
    ("option_count", c.c_size_t),
    ("means", c.POINTER(FaultMeans)),
    ("state", c.c_char * 512),
)


_FAULT_ACTION = c.CFUNCTYPE(c.c_bool, c.POINTER(FaultTarget), c.POINTER(Message))


class FaultTable(c.Structure):
    """struct fault"""

    _fields_ = (
        ("name", c.c_char_p),
        ("summary", c.c_char_p),
        ("proof", c.c_char_p),
        ("explanation", c.c_char_p),
        ("source", c.c_char_p),
        ("target", c.c_char_p),
        ("options", c.c_void_p),
        ("moment", c.c_int),
        ("times", c.c_uint),
        ("prepare", _FAULT_ACTION),
        ("inject", _FAULT_ACTION),
        ("prove", _FAULT_ACTION),
        ("heal", _FAULT_ACTION),
    )


_P, _I, _B, _S, _I64, _U32, _U64 = c.c_void_p, c.c_int, c.c_bool, c.c_char_p, c.c_int64, c.c_uint32, c.c_uint64
_MESSAGE = c.POINTER(Message)

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "history_create": (_B, [_S, c.POINTER(Settings), _MESSAGE]),
    "history_open": (_P, [_S, _MESSAGE]),
    "history_append": (_U64, [_P, c.POINTER(Record)]),
    "history_text": (_U32, [_P, _S, c.c_size_t, _I64, _I64]),
    "history_end": (None, [_P]),
    "history_close": (None, [_P]),
    "history_reader_open": (_P, [_S, _MESSAGE]),
    "history_reader_next": (_I, [_P, _B, c.POINTER(Record)]),
    "history_reader_dropped": (_U64, [_P]),
    "history_reader_close": (None, [_P]),
    "history_save": (_B, [_S, _S, _MESSAGE]),
    "stage_create": (_B, [_S, _I, _U64, _MESSAGE]),
    "conductor_open": (_P, [_S, _MESSAGE]),
    "conductor_close": (None, [_P]),
    "conductor_set_patience": (None, [_P, _I64]),
    "conductor_set_signal_fd": (None, [_P, _I]),
    "conductor_yield_fd": (_I, [_P]),
    "conductor_add_strand": (_I, [_P]),
    "conductor_turn_fd": (_I, [_P, _I]),
    "conductor_expect": (None, [_P, _I]),
    "conductor_watch": (_B, [_P, _I, _I]),
    "conductor_forget": (None, [_P, _I]),
    "conductor_add_server": (_I, [_P, _S, _S, _MESSAGE]),
    "conductor_set_process": (None, [_P, _I, _I]),
    "conductor_set_timer": (None, [_P, _I, _I, c.c_char_p]),
    "conductor_set_replicas": (None, [_P, _I, _I]),
    "conductor_reuse_strand": (None, [_P, _I]),
    "conductor_set_silent": (None, [_P, _I, _B]),
    "conductor_answers": (_B, [_P, _I]),
    "conductor_set_busy": (None, [_P, _I, _B]),
    "conductor_server_works": (_B, [_P, _I]),
    "conductor_calibrate": (_B, [_P, _I]),
    "conductor_set_clock": (_B, [_P, _I, _I64, _I64]),
    "conductor_set_host_clock": (_B, [_P, _I, _I64, _I64]),
    "conductor_run_to_first": (_I, [_P, c.POINTER(_I), _I, _I64, _I]),
    "conductor_clock_error": (_B, [_P, _I, c.POINTER(_I64), c.POINTER(_I64)]),
    "conductor_host_clock_error": (_B, [_P, _I, c.POINTER(_I64), c.POINTER(_I64)]),
    "conductor_host_wall_ns": (_I64, [_P, _I]),
    "conductor_host_mono_ns": (_I64, [_P, _I]),
    "conductor_host_validity_ns": (_I64, [_P, _I]),
    "conductor_set_proxy": (_B, [_P, _S, _MESSAGE]),
    "conductor_wind_down": (None, [_P, _I]),
    "conductor_settle": (_B, [_P]),
    "conductor_set_unreliable": (None, [_P]),
    "conductor_set_tcp": (None, [_P]),
    "conductor_set_stalled": (_I, [_P, _I, _B]),
    "conductor_stands": (_B, [_P, _I]),
    "conductor_moves": (_U64, [_P, _I]),
    "conductor_catch_up": (None, [_P, _I]),
    "conductor_unanswered": (c.c_char_p, [_P]),
    "conductor_stop_between_records": (_B, [_P, _I]),
    "conductor_set_suspended": (_I, [_P, _I, _B]),
    "conductor_server_wall_us": (_I64, [_P, _I]),
    "conductor_step": (None, [_P, _I, c.POINTER(Step)]),
    "conductor_continue": (None, [_P, _I]),
    "conductor_arm": (None, [_P, _I, _S, _U32]),
    "conductor_set_stopped": (_I, [_P, _I, _B]),
    "conductor_run": (_I, [_P, c.POINTER(_I), _I, _I64, _I]),
    "conductor_dead": (_I, [_P]),
    "conductor_state": (_I, [_P, _I]),
    "conductor_held_at": (_S, [_P, _I]),
    "conductor_result_of": (StepResult, [_P, _I]),
    "conductor_mono_ns": (_I64, [_P]),
    "conductor_wall_ns": (_I64, [_P]),
    "leash_start": (_I, [c.POINTER(_S), c.POINTER(_S), _I, c.POINTER(_I), _I, _B]),
    "fault_find": (c.POINTER(FaultTable), [_S]),
    "fault_check_options": (_B, [c.POINTER(FaultTable), c.POINTER(FaultTarget), _MESSAGE]),
    "postgres_end": (_B, [_I, _MESSAGE]),
    "describe_locks": (_P, []),
    "describe_zoo": (_P, []),
    "describe_faults": (_P, []),
    "describe_free": (None, [_P]),
}


@cache
def library() -> Any:
    """The library, loaded once."""
    path = paths.build() / "lib" / "liblockstorm.so"
    try:
        loaded = c.CDLL(str(path), use_errno=True)
    except OSError as error:
        raise Inconclusive(f"{path} cannot be loaded ({error}): run ./lockstorm (or make build)") from None
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded


def _described(name: str) -> list[dict[str, Any]]:
    text = getattr(library(), name)()
    try:
        described: list[dict[str, Any]] = json.loads(c.string_at(text).decode())
        return described
    finally:
        library().describe_free(text)


@cache
def locks() -> list[dict[str, Any]]:
    """Every lock of the table: name, summary, explanation, source, traits. Not to be changed."""
    return _described("describe_locks")


@cache
def zoo_locks() -> list[dict[str, Any]]:
    """Those of the bug zoo, which are in no list of locks: the same, and `fixed`, the lock without the bug. Not to be
    changed."""
    return _described("describe_zoo")


@cache
def locks_on(service: str) -> list[dict[str, Any]]:
    """Those whose nodes are servers of this kind. Not to be changed."""
    return [lock for lock in locks() if lock["service"] == service]


@cache
def faults() -> list[dict[str, Any]]:
    """Every fault: name, summary, target, proof, options, times, explanation, source. Not to be changed."""
    return _described("describe_faults")
