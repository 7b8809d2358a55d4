"""The C library as Python sees it. Made from the C headers by ci/seam.py, which `make` runs: do not edit."""

import ctypes as c
from enum import IntEnum, IntFlag
from typing import Any


class Outcome(IntEnum):
    """enum outcome: OUTCOME_*"""

    UNKNOWN = 0
    OK = 1
    REFUSED = 2


class TimeKind(IntEnum):
    """enum history_time: HISTORY_TIME_*"""

    VIRTUAL = 1
    REAL = 2


class Kind(IntEnum):
    """enum history_kind: HISTORY_*"""

    NONE = 0
    TEXT = 1
    TEXT_MORE = 2
    PARAMETER = 3
    LOCK_OPEN = 4
    ACQUIRE_INVOKE = 5
    ACQUIRE_RETURN = 6
    RENEW_INVOKE = 7
    RENEW_RETURN = 8
    RELEASE_INVOKE = 9
    RELEASE_RETURN = 10
    READ_INVOKE = 11
    READ_RETURN = 12
    WRITE_INVOKE = 13
    WRITE_RETURN = 14
    STORE_READ = 15
    STORE_WRITE = 16
    FAULT_INJECT = 17
    FAULT_PROVE = 18
    FAULT_HEAL = 19
    CHECKPOINT = 20
    CLOCK = 21
    ACTOR_EXIT = 22
    NOTE = 23
    VALIDITY = 24
    RULE = 25
    RELEASED = 26
    PHASE = 27
    SERVER_RENEWAL = 28
    ANSWERS = 29
    IS_HELD = 30
    RESIDUE = 32


class Object(IntEnum):
    """enum history_object: HISTORY_OBJECT_*"""

    NONE = 0
    REGISTER = 1
    COUNTER = 2
    SET = 3


class Flag(IntFlag):
    """enum history_flag: HISTORY_FLAG_*"""

    TEXT = 1
    ATOMIC = 2
    FENCED = 4
    MADE = 8
    MARKED = 16


class ReaderState(IntEnum):
    """enum history_state: HISTORY_*"""

    RECORD = 0
    TORN = 1
    WAIT = 2
    DAMAGED = 3
    END = 4


class TaskState(IntEnum):
    """enum task_state: TASK_*"""

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
    """enum step_kind: STEP_*"""

    NONE = 0
    ACQUIRE = 1
    RELEASE = 2
    RENEW = 3
    READ = 4
    WRITE = 5
    ADD = 6
    SLEEP = 7
    WORKLOAD = 8
    EXIT = 9
    HOLD = 10
    IS_HELD = 11


class Varied(IntFlag):
    """enum step_varied: STEP_VARIES_*"""

    NOTHING = 0
    WORK = 1
    PATIENCE = 2
    RENEWAL = 4
    REENTRY = 8


class RunResult(IntEnum):
    """enum scheduler_result: SCHEDULER_*"""

    DONE = 0
    TIME = 1
    QUIET = 2
    STUCK = 3
    INTERRUPTED = 4
    DIED = 5
    FAILED = 6
    LATE = 7


class StallKind(IntEnum):
    """enum stall_kind: STALL_*"""

    NONE = 0
    MACHINE = 1
    THREAD = 2
    WALL_CLOCK = 3


class Moment(IntEnum):
    """enum fault_moment: FAULT_*"""

    AT_ONCE = 0
    BEFORE_HEAL = 1
    AFTER_HEAL = 2


class Record(c.Structure):
    """struct history_record"""


class Settings(c.Structure):
    """struct history_settings"""


class Message(c.Structure):
    """struct fault_report"""

    def __str__(self) -> str:
        return bytes(self.text).decode(errors="replace")


class Step(c.Structure):
    """struct step"""


class StepResult(c.Structure):
    """struct step_result"""


class TaskSlot(c.Structure):
    """struct task_slot"""


class SharedPage(c.Structure):
    """struct shared_page"""


class Stall(c.Structure):
    """struct stall"""


class FaultMeans(c.Structure):
    """struct fault_means"""


class FaultOption(c.Structure):
    """struct fault_option"""


class FaultTarget(c.Structure):
    """struct fault_target"""


class FaultTable(c.Structure):
    """struct fault"""


class JudgingPolicy(c.Structure):
    """struct policy"""


Record._fields_ = (
    ("checksum", c.c_uint32), ("kind", c.c_uint8), ("outcome", c.c_uint8), ("object", c.c_uint8), ("flags", c.c_uint8),
    ("actor", c.c_uint32), ("name", c.c_uint32), ("mono_ns", c.c_int64), ("wall_ns", c.c_int64), ("op", c.c_uint32),
    ("grant", c.c_uint32), ("token", c.c_int64), ("value", c.c_int64), ("extra", c.c_int64),
)
Settings._fields_ = (
    ("time", c.c_int), ("seed", c.c_uint64), ("capacity", c.c_uint64),
)
Message._fields_ = (
    ("text", c.c_char * 256),
)
Step._fields_ = (
    ("kind", c.c_uint32), ("object", c.c_uint32), ("wait_ms", c.c_int64), ("value", c.c_int64), ("work_ms", c.c_int64),
    ("think_ms", c.c_int64), ("duration_ms", c.c_int64), ("turns", c.c_int64), ("pace_us", c.c_int64),
    ("token", c.c_int64), ("lease_ms", c.c_int64), ("varied", c.c_uint32), ("renews", c.c_uint32),
)
StepResult._fields_ = (
    ("outcome", c.c_uint32), ("turns", c.c_uint32), ("token", c.c_int64), ("value", c.c_int64), ("version", c.c_int64),
    ("error", c.c_char * 128),
)
TaskSlot._fields_ = (
    ("state", c.c_uint32), ("stopped", c.c_uint32), ("standing", c.c_uint32), ("moves", c.c_uint64),
    ("appends", c.c_uint32), ("deadline_ns", c.c_int64), ("armed_countdown", c.c_uint32), ("pid", c.c_int32),
    ("last_turn", c.c_uint32), ("wall_offset_ns", c.c_int64), ("wall_drift_ppm", c.c_int64),
    ("wall_since_ns", c.c_int64), ("suspended_ns", c.c_int64), ("valid_until_ns", c.c_int64),
    ("armed_at", c.c_char * 32), ("held_at", c.c_char * 32), ("step", Step), ("result", StepResult),
    ("_pad", c.c_char * 40),
)
SharedPage._fields_ = (
    ("version", c.c_uint32), ("time", c.c_uint32), ("seed", c.c_uint64), ("wall_epoch_ns", c.c_int64),
    ("mono_ns", c.c_int64), ("unreliable", c.c_uint32), ("task_count", c.c_uint32), ("proxy_deadline_ns", c.c_int64),
    ("traffic", c.c_uint64), ("unawaited", c.c_uint64), ("tasks", TaskSlot * 256),
)
Stall._fields_ = (
    ("length_ns", c.c_int64), ("kind", c.c_int32), ("process", c.c_char * 20),
)
FaultMeans._fields_ = (
    ("scheduler", c.c_void_p), ("virtual_time", c.c_bool),
    ("process_stopped", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_bool)),
    ("process_catch_up", c.CFUNCTYPE(None, c.c_void_p, c.c_int)),
    ("stop_between_records", c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int)),
    ("process_ended", c.CFUNCTYPE(None, c.c_void_p, c.c_int)),
    ("task_stopped", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_bool)),
    ("task_stands", c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int)),
    ("task_moves", c.CFUNCTYPE(c.c_uint64, c.c_void_p, c.c_int)),
    ("server_silent", c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_bool)),
    ("server_answers", c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int)),
    ("server_busy", c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_bool)),
    ("server_works", c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int)), ("settle", c.CFUNCTYPE(c.c_bool, c.c_void_p)),
    ("server_replicas", c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_int)),
    ("server_clock", c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int, c.c_int64, c.c_int64)),
    ("server_wall_us", c.CFUNCTYPE(c.c_int64, c.c_void_p, c.c_int)),
    ("server_clock_error", c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int, c.POINTER(c.c_int64), c.POINTER(c.c_int64))),
    ("host_clock", c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int, c.c_int64, c.c_int64)),
    ("host_clock_error", c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int, c.POINTER(c.c_int64), c.POINTER(c.c_int64))),
    ("host_wall_ns", c.CFUNCTYPE(c.c_int64, c.c_void_p, c.c_int)),
    ("host_mono_ns", c.CFUNCTYPE(c.c_int64, c.c_void_p, c.c_int)),
    ("host_suspended", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_bool)),
    ("mono_ns", c.CFUNCTYPE(c.c_int64, c.c_void_p)), ("wall_ns", c.CFUNCTYPE(c.c_int64, c.c_void_p)),
    ("unreliable", c.CFUNCTYPE(None, c.c_void_p)), ("server_restart", c.CFUNCTYPE(c.c_bool, c.c_int)),
    ("replica_lost", c.CFUNCTYPE(None, c.c_int)), ("clients_lead", c.CFUNCTYPE(c.c_bool, c.c_int, c.c_int)),
    ("server_follow", c.CFUNCTYPE(c.c_bool, c.c_int, c.c_int)), ("client_restart", c.CFUNCTYPE(c.c_bool, c.c_int)),
    ("server_query", c.CFUNCTYPE(c.c_int64, c.c_int, c.c_char_p)), ("server_time_us", c.CFUNCTYPE(c.c_int64, c.c_int)),
)
FaultOption._fields_ = (
    ("name", c.c_char_p), ("value", c.c_char_p),
)
FaultTarget._fields_ = (
    ("fault", c.POINTER(FaultTable)), ("name", c.c_char_p), ("pid", c.c_int), ("server", c.c_int), ("task", c.c_int),
    ("shares_process", c.c_bool), ("service", c.c_char_p), ("clock_step_us", c.c_int64), ("socket", c.c_char_p),
    ("directory", c.c_char_p), ("proxy", c.c_char_p), ("links", c.c_char_p), ("probe", c.c_char_p),
    ("other", c.POINTER(FaultTarget)), ("next", c.POINTER(FaultTarget)), ("options", c.POINTER(FaultOption)),
    ("option_count", c.c_size_t), ("means", c.POINTER(FaultMeans)), ("state", c.c_char * 512),
)
FaultTable._fields_ = (
    ("row", c.c_void_p), ("explanation", c.c_char_p), ("target", c.c_char_p), ("options", c.c_void_p),
    ("moment", c.c_int), ("times", c.c_uint),
    ("prepare", c.CFUNCTYPE(c.c_bool, c.POINTER(FaultTarget), c.POINTER(Message))),
    ("inject", c.CFUNCTYPE(c.c_bool, c.POINTER(FaultTarget), c.POINTER(Message))),
    ("prove", c.CFUNCTYPE(c.c_bool, c.POINTER(FaultTarget), c.POINTER(Message))),
    ("heal", c.CFUNCTYPE(c.c_bool, c.POINTER(FaultTarget), c.POINTER(Message))),
)
JudgingPolicy._fields_ = (
    ("release", c.c_int), ("acquire", c.c_int),
)

SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "history_create": (c.c_bool, [c.c_char_p, c.POINTER(Settings), c.POINTER(Message)]),
    "history_open": (c.c_void_p, [c.c_char_p, c.POINTER(Message)]),
    "history_prefault": (None, [c.c_void_p]),
    "history_append": (c.c_uint64, [c.c_void_p, c.POINTER(Record)]),
    "history_text": (c.c_uint32, [c.c_void_p, c.c_void_p, c.c_size_t, c.c_int64, c.c_int64]),
    "history_count": (c.c_uint64, [c.c_void_p]),
    "history_rewind": (None, [c.c_void_p, c.c_uint64]),
    "history_end": (None, [c.c_void_p]),
    "history_close": (None, [c.c_void_p]),
    "history_reader_open": (c.c_void_p, [c.c_char_p, c.POINTER(Message)]),
    "history_reader_map": (c.c_void_p, [c.c_int, c.c_char_p, c.POINTER(Message)]),
    "history_reader_memory": (c.c_void_p, [c.c_void_p, c.c_size_t, c.POINTER(Message)]),
    "history_reader_next": (c.c_int, [c.c_void_p, c.c_bool, c.POINTER(Record)]),
    "history_reader_batch": (c.c_uint64, [c.c_void_p, c.c_void_p]),
    "history_reader_at": (c.c_bool, [c.c_void_p, c.c_uint64, c.POINTER(Record)]),
    "history_reader_index": (c.c_uint64, [c.c_void_p]),
    "history_reader_rewind": (None, [c.c_void_p]),
    "history_reader_text": (c.c_char_p, [c.c_void_p, c.c_uint32, c.POINTER(c.c_size_t)]),
    "history_reader_settings": (Settings, [c.c_void_p]),
    "history_reader_count": (c.c_uint64, [c.c_void_p]),
    "history_reader_dropped": (c.c_uint64, [c.c_void_p]),
    "history_reader_close": (None, [c.c_void_p]),
    "history_save": (c.c_bool, [c.c_char_p, c.c_char_p, c.POINTER(Message)]),
    "history_header_fill": (None, [c.c_void_p, c.POINTER(Settings), c.c_uint64]),
    "history_checksum": (c.c_uint32, [c.POINTER(Record), c.c_uint64]),
    "history_kind_name": (c.c_char_p, [c.c_uint]),
    "history_object_name": (c.c_char_p, [c.c_uint]),
    "shared_page_create": (c.c_bool, [c.c_char_p, c.c_int, c.c_uint64, c.POINTER(Message)]),
    "shared_page_create_large": (c.c_bool, [c.c_char_p, c.c_int, c.c_uint64, c.c_int, c.POINTER(Message)]),
    "shared_page_open": (c.POINTER(SharedPage), [c.c_char_p, c.POINTER(Message)]),
    "shared_page_close": (None, [c.POINTER(SharedPage)]),
    "shared_page_mono_ns": (c.c_int64, [c.POINTER(SharedPage)]),
    "shared_page_wall_ns": (c.c_int64, [c.POINTER(SharedPage)]),
    "shared_page_host_mono_ns": (c.c_int64, [c.POINTER(SharedPage), c.POINTER(TaskSlot)]),
    "shared_page_host_wall_ns": (c.c_int64, [c.POINTER(SharedPage), c.POINTER(TaskSlot)]),
    "shared_page_stamp": (None, [c.POINTER(SharedPage), c.POINTER(TaskSlot), c.POINTER(c.c_int64), c.POINTER(c.c_int64)]),
    "shared_page_suspended_ns": (c.c_int64, [c.POINTER(TaskSlot)]),
    "shared_page_trial_ns": (c.c_int64, [c.POINTER(TaskSlot), c.c_int64]),
    "shared_page_drift_ns": (c.c_int64, [c.c_int64, c.c_int64]),
    "scheduler_open": (c.c_void_p, [c.c_char_p, c.POINTER(Message)]),
    "scheduler_close": (None, [c.c_void_p]),
    "scheduler_set_signal_fd": (None, [c.c_void_p, c.c_int]),
    "scheduler_set_patience": (None, [c.c_void_p, c.c_int64]),
    "scheduler_set_proxy": (c.c_bool, [c.c_void_p, c.c_char_p, c.POINTER(Message)]),
    "scheduler_set_tcp": (None, [c.c_void_p]),
    "scheduler_set_unreliable": (None, [c.c_void_p]),
    "scheduler_mono_ns": (c.c_int64, [c.c_void_p]),
    "scheduler_wall_ns": (c.c_int64, [c.c_void_p]),
    "scheduler_add_server": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.POINTER(Message)]),
    "scheduler_set_server_process": (None, [c.c_void_p, c.c_int, c.c_int]),
    "scheduler_set_server_timer": (None, [c.c_void_p, c.c_int, c.c_int, c.c_char_p]),
    "scheduler_set_server_replicas": (None, [c.c_void_p, c.c_int, c.c_int]),
    "scheduler_set_server_silent": (None, [c.c_void_p, c.c_int, c.c_bool]),
    "scheduler_set_server_busy": (None, [c.c_void_p, c.c_int, c.c_bool]),
    "scheduler_server_answers": (c.c_bool, [c.c_void_p, c.c_int]),
    "scheduler_server_works": (c.c_bool, [c.c_void_p, c.c_int]),
    "scheduler_set_server_clock": (c.c_bool, [c.c_void_p, c.c_int, c.c_int64, c.c_int64]),
    "scheduler_server_clock_error": (c.c_bool, [c.c_void_p, c.c_int, c.POINTER(c.c_int64), c.POINTER(c.c_int64)]),
    "scheduler_server_wall_us": (c.c_int64, [c.c_void_p, c.c_int]),
    "scheduler_set_host_clock": (c.c_bool, [c.c_void_p, c.c_int, c.c_int64, c.c_int64]),
    "scheduler_host_clock_error": (c.c_bool, [c.c_void_p, c.c_int, c.POINTER(c.c_int64), c.POINTER(c.c_int64)]),
    "scheduler_host_wall_ns": (c.c_int64, [c.c_void_p, c.c_int]),
    "scheduler_host_mono_ns": (c.c_int64, [c.c_void_p, c.c_int]),
    "scheduler_set_host_suspended": (c.c_int, [c.c_void_p, c.c_int, c.c_bool]),
    "scheduler_page": (c.POINTER(SharedPage), [c.c_void_p]),
    "scheduler_yield_fd": (c.c_int, [c.c_void_p]),
    "scheduler_add_task": (c.c_int, [c.c_void_p]),
    "scheduler_add_group": (c.c_int, [c.c_void_p, c.c_int]),
    "scheduler_turn_fd": (c.c_int, [c.c_void_p, c.c_int]),
    "scheduler_expect": (None, [c.c_void_p, c.c_int]),
    "scheduler_watch": (c.c_bool, [c.c_void_p, c.c_int, c.c_int]),
    "scheduler_forget_process": (None, [c.c_void_p, c.c_int]),
    "scheduler_reuse_task": (None, [c.c_void_p, c.c_int]),
    "scheduler_step": (None, [c.c_void_p, c.c_int, c.POINTER(Step)]),
    "scheduler_continue": (None, [c.c_void_p, c.c_int]),
    "scheduler_arm": (None, [c.c_void_p, c.c_int, c.c_char_p, c.c_uint32]),
    "scheduler_wind_down": (None, [c.c_void_p, c.c_int]),
    "scheduler_set_process_stopped": (c.c_int, [c.c_void_p, c.c_int, c.c_bool]),
    "scheduler_set_task_stalled": (c.c_int, [c.c_void_p, c.c_int, c.c_bool]),
    "scheduler_stop_between_records": (c.c_bool, [c.c_void_p, c.c_int]),
    "scheduler_catch_up": (None, [c.c_void_p, c.c_int]),
    "scheduler_task_stands": (c.c_bool, [c.c_void_p, c.c_int]),
    "scheduler_task_moves": (c.c_uint64, [c.c_void_p, c.c_int]),
    "scheduler_state": (c.c_int, [c.c_void_p, c.c_int]),
    "scheduler_held_at": (c.c_char_p, [c.c_void_p, c.c_int]),
    "scheduler_result_of": (StepResult, [c.c_void_p, c.c_int]),
    "scheduler_run": (c.c_int, [c.c_void_p, c.POINTER(c.c_int), c.c_int, c.c_int64, c.c_int]),
    "scheduler_run_to_first": (c.c_int, [c.c_void_p, c.POINTER(c.c_int), c.c_int, c.c_int64, c.c_int]),
    "scheduler_dead": (c.c_int, [c.c_void_p]),
    "scheduler_settle": (c.c_bool, [c.c_void_p]),
    "scheduler_unanswered": (c.c_char_p, [c.c_void_p]),
    "stall_sentinel_start": (c.c_void_p, [c.c_int64]),
    "stall_sentinel_longest": (None, [c.c_void_p, c.POINTER(Stall)]),
    "stall_sentinel_stop": (None, [c.c_void_p]),
    "validity_begin": (None, [c.c_void_p, c.c_int64]),
    "validity_end": (None, [c.c_void_p]),
    "validity_trial_ns": (c.c_int64, [c.c_void_p, c.c_int64]),
    "validity_announce": (None, [c.c_void_p, c.c_uint32, c.c_int64]),
    "validity_record_host_clock": (c.c_bool, [c.c_void_p, c.POINTER(SharedPage), c.c_int, c.c_uint32, c.c_uint32, c.c_int64, c.c_bool]),
    "spawn_bind": (c.c_bool, [c.c_int, c.c_bool]),
    "spawn_process": (c.c_int, [c.POINTER(c.c_char_p), c.POINTER(c.c_char_p), c.c_int, c.POINTER(c.c_int), c.c_int, c.c_bool]),
    "fault_id_named": (c.c_int, [c.c_char_p]),
    "fault_find": (c.POINTER(FaultTable), [c.c_char_p]),
    "fault_check_options": (c.c_bool, [c.POINTER(FaultTable), c.POINTER(FaultTarget), c.POINTER(Message)]),
    "fault_option_text": (c.c_char_p, [c.POINTER(FaultTarget), c.c_char_p]),
    "fault_option_number": (c.c_bool, [c.POINTER(FaultTarget), c.c_char_p, c.c_int64, c.c_int64, c.POINTER(c.c_int64), c.POINTER(Message)]),
    "fault_option_choice": (c.c_bool, [c.POINTER(FaultTarget), c.c_char_p, c.POINTER(c.c_char_p), c.POINTER(c.c_int), c.POINTER(Message)]),
    "is_postgres": (c.c_bool, [c.POINTER(FaultTarget)]),
    "postgres_query": (c.c_bool, [c.POINTER(FaultTarget), c.c_char_p, c.POINTER(c.c_int64), c.POINTER(Message)]),
    "postgres_answers": (c.c_bool, [c.POINTER(FaultTarget), c.c_int]),
    "postgres_stop": (c.c_bool, [c.POINTER(FaultTarget), c.POINTER(c.c_bool), c.POINTER(Message)]),
    "postgres_continue": (c.c_bool, [c.POINTER(FaultTarget), c.POINTER(c.c_bool), c.POINTER(Message)]),
    "postgres_prove_stopped": (c.c_bool, [c.POINTER(FaultTarget), c.POINTER(Message)]),
    "postgres_end": (c.c_bool, [c.c_int, c.POINTER(Message)]),
    "describe_locks": (c.c_void_p, []),
    "describe_zoo": (c.c_void_p, []),
    "describe_faults": (c.c_void_p, []),
    "describe_free": (None, [c.c_void_p]),
    "trial_verdict": (c.c_void_p, [c.c_char_p, c.c_char_p, c.POINTER(Message)]),
}
