"""What the lock of a trial protects: the store's process, and the PostgreSQL server behind it if the resource is a
table."""

from lockstorm.base import paths
from lockstorm.process.process import Process, flag_words
from lockstorm.servers.postgres_server import PostgresServer, conninfo
from lockstorm.servers.services import TABLE, is_table
from lockstorm.trial.trial_context import TrialContext

START_NAP_S = 0.0003


class TrialStore:
    """`start_table`, `start`, then `ready`; the lock's own servers start in between."""

    def __init__(self, trial: TrialContext, mode: str) -> None:
        self._trial, self._mode = trial, mode
        self._process: Process | None = None
        self.socket = trial.sandbox.directory / "store.sock"
        self.table: PostgresServer | None = None

    def start_table(self) -> None:
        """Starts the server of the table, if the resource is one. It goes by the machine's clock, for it never reads
        it; and it is no node of the lock, so that no fault strikes it."""
        if is_table(self._mode):
            self.table = PostgresServer(self._trial.sandbox, "postgres-store", clock=None)
            self._trial.on_exit.callback(self.table.close)

    def start(self) -> None:
        trial, recorder = self._trial, self._trial.recorder
        options: dict[str, object] = {
            "history": recorder.path,
            "page": trial.scheduler.page,
            "socket": self.socket,
            "mode": self._mode.removeprefix(TABLE),
            "actor": recorder.text("store"),
            "stranger": recorder.text("stranger"),
            "counter": trial.settings.counter,
        }
        if self.table:
            self.table.ready()
            options["table"] = conninfo(self.table.sockets)
        program = paths.program("store-table" if self.table else "store")
        self._process = trial.sandbox.start_program("store", [program, *flag_words(options)])
        trial.scheduler.add_server(None, self.socket)

    def ready(self) -> None:
        assert self._process
        self._trial.sandbox.await_start("the store", "store", self._process, self.socket.exists, nap_s=START_NAP_S)
