"""Shared by the adapters of libraries that ask a silent server for ever."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any


def within(limit_s: float, call: Callable[[], Any]) -> Any:
    """What the call returns or raises; unknown if it takes longer, and it then goes on in its thread."""
    done = Future[Any]()
    Thread(target=lambda: _finish(done, call), daemon=True).start()
    if wait([done], limit_s).done:
        return done.result()
    return {"outcome": "unknown", "error": "the server does not answer"}


def _finish(done: Future[Any], call: Callable[[], Any]) -> None:
    try:
        done.set_result(call())
    except Exception as error:
        done.set_exception(error)
