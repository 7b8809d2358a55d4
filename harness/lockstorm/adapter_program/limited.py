"""Shared by the adapters of libraries that ask a silent server for ever."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Thread
from typing import Any


def within(limit_s: float, call: Callable[[], Any]) -> Any:
    """What the call returns or raises; unknown if it takes longer, and it then goes on in its thread."""
    done = Future[Any]()
    Thread(target=lambda: _finish(done, call), daemon=True).start()
    return _result(done, limit_s)


class OneThread:
    """As `within`, by one thread for all calls: for libraries whose objects belong to a thread."""

    def __init__(self) -> None:
        self.calls = SimpleQueue[tuple[Future[Any], Callable[[], Any]]]()
        Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            _finish(*self.calls.get())

    def within(self, limit_s: float, call: Callable[[], Any]) -> Any:
        done = Future[Any]()
        self.calls.put((done, call))
        return _result(done, limit_s)


def _result(done: Future[Any], limit_s: float) -> Any:
    if wait([done], limit_s).done:
        return done.result()
    return {"outcome": "unknown", "error": "the server does not answer"}


def _finish(done: Future[Any], call: Callable[[], Any]) -> None:
    try:
        done.set_result(call())
    except Exception as error:
        done.set_exception(error)
