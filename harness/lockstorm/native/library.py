"""Declarations of the C library for Python: scheduler, history, faults, tables of locks and faults.

The headers document the functions: harness/scheduler/scheduler.h, harness/history/history.h, faults/common/fault.h.
"""

import ctypes as c
from enum import IntEnum, IntFlag
from functools import cache
from typing import Any, TypeVar

import msgspec

from lockstorm.base import paths, shared_objects
from lockstorm.base.errors import Inconclusive
from lockstorm.results.fault_entry import FaultEntry
from lockstorm.results.lock_entry import LockEntry

Entry = TypeVar("Entry")

FLAG_TEXT = 1  # of a parameter: its value is the index of a text
FLAG_MADE = 8  # HISTORY_FLAG_MADE
FOREVER = 2**63 - 1
FULL = 2**64 - 1


class Outcome(IntEnum):
    """harness/history/outcome.h"""

    UNKNOWN = 0
    OK = 1
    REFUSED = 2


class Object(IntEnum):
    """An object in the store (enum history_object)."""

    REGISTER = 1
    COUNTER = 2
    SET = 3


class Kind(IntEnum):
    """The kinds of record that Python appends or reads (enum history_kind)."""

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


class TaskState(IntEnum):
    """enum task_state"""

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
    """enum scheduler_result"""

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
        ("checksum", c.c_uint32),
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


class Varied(IntFlag):
    """enum step_varied: what a workload draws for each client, and for each of its turns"""

    NOTHING = 0
    WORK = 1
    PATIENCE = 2
    RENEWAL = 4
    REENTRY = 8


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
        ("lease_ms", c.c_int64),
        ("varied", c.c_uint32),
        ("renews", c.c_uint32),
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
    """struct history_error and struct fault_report: a sentence, in the size of the larger one."""

    _fields_ = (("text", c.c_char * 256),)

    def __str__(self) -> str:
        return bytes(self.text).decode(errors="replace")


class StallKind(IntEnum):
    """enum stall_kind"""

    NONE = 0
    MACHINE = 1
    THREAD = 2
    WALL_CLOCK = 3


class Stall(c.Structure):
    """struct stall"""

    _fields_ = (("length_ns", c.c_int64), ("kind", c.c_int32), ("process", c.c_char * 20))


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
        ("scheduler", c.c_void_p),
        ("virtual_time", c.c_bool),
        ("process_stopped", c.c_void_p),
        ("process_catch_up", c.c_void_p),
        ("stop_between_records", c.c_void_p),
        ("process_ended", ProcessEnded),
        ("task_stopped", c.c_void_p),
        ("task_stands", c.c_void_p),
        ("task_moves", c.c_void_p),
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
    ("fault", c.c_void_p),
    ("name", c.c_char_p),
    ("pid", c.c_int),
    ("server", c.c_int),
    ("task", c.c_int),
    ("shares_process", c.c_bool),
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
    "shared_page_create": (_B, [_S, _I, _U64, _MESSAGE]),
    "shared_page_create_large": (_B, [_S, _I, _U64, _I, _MESSAGE]),
    "scheduler_open": (_P, [_S, _MESSAGE]),
    "stall_sentinel_start": (_P, [_I64]),
    "stall_sentinel_longest": (None, [_P, c.POINTER(Stall)]),
    "stall_sentinel_stop": (None, [_P]),
    "scheduler_close": (None, [_P]),
    "scheduler_set_patience": (None, [_P, _I64]),
    "scheduler_set_signal_fd": (None, [_P, _I]),
    "scheduler_yield_fd": (_I, [_P]),
    "scheduler_add_task": (_I, [_P]),
    "scheduler_add_group": (_I, [_P, _I]),
    "scheduler_turn_fd": (_I, [_P, _I]),
    "scheduler_expect": (None, [_P, _I]),
    "scheduler_watch": (_B, [_P, _I, _I]),
    "scheduler_forget_process": (None, [_P, _I]),
    "scheduler_add_server": (_I, [_P, _S, _S, _MESSAGE]),
    "scheduler_set_server_process": (None, [_P, _I, _I]),
    "scheduler_set_server_timer": (None, [_P, _I, _I, c.c_char_p]),
    "scheduler_set_server_replicas": (None, [_P, _I, _I]),
    "scheduler_reuse_task": (None, [_P, _I]),
    "scheduler_set_server_silent": (None, [_P, _I, _B]),
    "scheduler_server_answers": (_B, [_P, _I]),
    "scheduler_set_server_busy": (None, [_P, _I, _B]),
    "scheduler_server_works": (_B, [_P, _I]),
    "scheduler_set_server_clock": (_B, [_P, _I, _I64, _I64]),
    "scheduler_set_host_clock": (_B, [_P, _I, _I64, _I64]),
    "scheduler_run_to_first": (_I, [_P, c.POINTER(_I), _I, _I64, _I]),
    "scheduler_server_clock_error": (_B, [_P, _I, c.POINTER(_I64), c.POINTER(_I64)]),
    "scheduler_host_clock_error": (_B, [_P, _I, c.POINTER(_I64), c.POINTER(_I64)]),
    "scheduler_host_wall_ns": (_I64, [_P, _I]),
    "scheduler_host_mono_ns": (_I64, [_P, _I]),
    "scheduler_page": (_P, [_P]),
    "validity_record_host_clock": (_B, [_P, _P, _I, _U32, _U32, _I64, _B]),
    "scheduler_set_proxy": (_B, [_P, _S, _MESSAGE]),
    "scheduler_wind_down": (None, [_P, _I]),
    "scheduler_settle": (_B, [_P]),
    "scheduler_set_unreliable": (None, [_P]),
    "scheduler_set_tcp": (None, [_P]),
    "scheduler_set_task_stalled": (_I, [_P, _I, _B]),
    "scheduler_task_stands": (_B, [_P, _I]),
    "scheduler_task_moves": (_U64, [_P, _I]),
    "scheduler_catch_up": (None, [_P, _I]),
    "scheduler_unanswered": (c.c_char_p, [_P]),
    "scheduler_stop_between_records": (_B, [_P, _I]),
    "scheduler_set_host_suspended": (_I, [_P, _I, _B]),
    "scheduler_server_wall_us": (_I64, [_P, _I]),
    "scheduler_step": (None, [_P, _I, c.POINTER(Step)]),
    "scheduler_continue": (None, [_P, _I]),
    "scheduler_arm": (None, [_P, _I, _S, _U32]),
    "scheduler_set_process_stopped": (_I, [_P, _I, _B]),
    "scheduler_run": (_I, [_P, c.POINTER(_I), _I, _I64, _I]),
    "scheduler_dead": (_I, [_P]),
    "scheduler_state": (_I, [_P, _I]),
    "scheduler_held_at": (_S, [_P, _I]),
    "scheduler_result_of": (StepResult, [_P, _I]),
    "scheduler_mono_ns": (_I64, [_P]),
    "scheduler_wall_ns": (_I64, [_P]),
    "spawn_process": (_I, [c.POINTER(_S), c.POINTER(_S), _I, c.POINTER(_I), _I, _B]),
    "fault_find": (c.POINTER(FaultTable), [_S]),
    "fault_check_options": (_B, [c.POINTER(FaultTable), c.POINTER(FaultTarget), _MESSAGE]),
    "postgres_end": (_B, [_I, _MESSAGE]),
    "describe_locks": (_P, []),
    "describe_zoo": (_P, []),
    "describe_faults": (_P, []),
    "describe_free": (None, [_P]),
    "trial_verdict": (_P, [_S, _S, _MESSAGE]),
}


@cache
def library() -> Any:
    """The library, loaded at the first call. Raises Inconclusive if it is not built."""
    path = paths.build() / "lib" / "liblockstorm.so"
    try:
        loaded = c.CDLL(str(path), use_errno=True)
    except OSError as error:
        if lacking := shared_objects.missing_in(str(error)):
            lacking = shared_objects.missing_for_files([path]) or lacking  # the linker names the first one only
            raise Inconclusive(shared_objects.missing_sentence(lacking)) from None
        raise Inconclusive(f"{path} cannot be loaded ({error}): {paths.HOW_TO_BUILD}") from None
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded


def _described(name: str, entry: type[Entry]) -> list[Entry]:
    text = getattr(library(), name)()
    try:
        return msgspec.json.decode(c.string_at(text), type=list[entry])  # type: ignore[valid-type]
    finally:
        library().describe_free(text)


@cache
def locks() -> list[LockEntry]:
    """Every lock of the table. Callers must not change the list."""
    return _described("describe_locks", LockEntry)


@cache
def zoo_locks() -> list[LockEntry]:
    """The locks of the bug zoo, which locks() does not include. Callers must not change the list."""
    return _described("describe_zoo", LockEntry)


@cache
def locks_on(service: str) -> list[LockEntry]:
    """The locks of the table whose nodes are servers of this kind. Callers must not change the list."""
    return [lock for lock in locks() if lock.service == service]


@cache
def faults() -> list[FaultEntry]:
    """Every fault of the table. Callers must not change the list."""
    return _described("describe_faults", FaultEntry)
