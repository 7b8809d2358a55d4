"""The history of a trial: what the driver records itself, and the file as a whole."""

import ctypes
from pathlib import Path

from lockstorm.base.errors import Inconclusive
from lockstorm.locks.adapter import is_adapter
from lockstorm.native.judgement import judge_in_process, read_history, save_history
from lockstorm.native.library import FLAG_TEXT, FULL, Kind, Message, Outcome, Record, Settings, TimeKind, library
from lockstorm.results.event import Event
from lockstorm.results.verdict import Verdict
from lockstorm.trial.settings import TrialSettings
from lockstorm.trial.trial_scheduler import TrialScheduler, must_succeed

# In virtual time nothing is in flight when time passes, so requests that are further apart arrive in their order. The
# margin is for a client that takes several steps until it stands in a queue.
ORDER_MS = 50


class TrialRecorder:
    """Makes the history at `path`; clients, store and proxy append to the same file."""

    def __init__(self, path: Path, scheduler: TrialScheduler, settings: TrialSettings) -> None:
        lib, message = library(), Message()
        self.path = path
        self.is_disturbed = False  # something was broken, or a client was held inside its lock
        self._scheduler = scheduler
        self._texts: dict[str, int] = {}
        head = Settings(time=TimeKind[settings.time.upper()], seed=settings.seed, capacity=settings.history_records)
        must_succeed(lib.history_create(bytes(path), head, message), message)
        self._history = must_succeed(lib.history_open(bytes(path), message), message)

    def close(self) -> None:
        library().history_close(self._history)

    def begin(self, settings: TrialSettings, *, store: str, service: str, lease_ms: int, bound_ms: int) -> None:
        """Writes the first records: the clock and the trial's parameters. `service`: of the lock; a reader assumes
        redis if nothing is recorded and the lock is not in the table."""
        self.record(Kind.CLOCK, outcome=Outcome.OK, value=self._scheduler.mono_ns)
        self.text("driver")
        words = {"scenario": settings.scenario, "lock": settings.lock, "store": store, "time": settings.time}
        if settings.topology != "single":
            words["topology"] = settings.topology
        if is_adapter(settings.lock) and service != "redis":
            words["service"] = service
        more = {"command": settings.command, "compared_with": settings.compared_with}
        words |= {key: word for key, word in more.items() if word}
        for key, word in words.items():
            self.record(Kind.PARAMETER, name=self.text(key), value=self.text(word), flags=FLAG_TEXT)
        numbers = {"seed": settings.seed, "control": int(settings.control), "lease_ms": lease_ms}
        numbers |= {"counter": settings.counter, "bound_ms": bound_ms}
        if settings.time == "virtual":
            numbers |= {"order_ms": ORDER_MS}
        for key, value in {**numbers, **settings.parameters}.items():
            self.number(key, value)

    def number(self, name: str, value: int) -> None:
        """Records a parameter; it holds from here on."""
        self.record(Kind.PARAMETER, name=self.text(name), value=value)

    def text(self, text: str) -> int:
        """The index by which records name this text."""
        if text not in self._texts:
            raw = text.encode("utf-8", "surrogateescape")
            mono_ns, wall_ns = self._scheduler.mono_ns, self._scheduler.wall_ns
            index = library().history_text(self._history, raw, len(raw), mono_ns, wall_ns)
            if index == 0:
                raise Inconclusive("the history is full")
            self._texts[text] = index
        return self._texts[text]

    def record(self, kind: Kind, **fields: int) -> int:
        """Appends a record, by the driver unless `actor` names another. Its index; 0 if the history is full."""
        fields = {"actor": self._texts.get("driver", 0), **fields}
        mono_ns, wall_ns = self._scheduler.mono_ns, self._scheduler.wall_ns
        record = Record(kind=kind, mono_ns=mono_ns, wall_ns=wall_ns, **fields)
        index = int(library().history_append(self._history, ctypes.byref(record)))
        return 0 if index == FULL else index

    def record_host_clock(self, page: int, task: int, client: int, lock_name: int, host_ns: int, stands: bool) -> None:
        """Records, for a client that is stopped, what its host's clock means for its grant: from now on the clock
        stands, or goes on. Nothing if it holds no grant that is valid."""
        library().validity_record_host_clock(self._history, page, task, client, lock_name, host_ns, stands)

    def note(self, text: str) -> None:
        """Records a remark for readers of the story."""
        self.record(Kind.NOTE, name=self.text(text))

    def phase(self, name: str) -> None:
        """Records that a phase of the trial begins: "storm", "quiet"."""
        self.record(Kind.PHASE, name=self.text(name))

    def end(self) -> None:
        library().history_end(self._history)

    def judge(self, require: str | None) -> Verdict:
        return judge_in_process(self.path, require)

    def read(self) -> list[Event]:
        return read_history(self.path)

    def save(self, path: Path) -> None:
        save_history(self.path, path)
