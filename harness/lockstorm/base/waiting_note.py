"""Work that takes long says here what it waits for. Who shows its progress listens."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


def somebody_listens() -> bool:
    return _listener.get() is not None


def note_wait(text: str) -> None:
    if listener := _listener.get():
        listener(text)


@contextlib.contextmanager
def heard_by(listener: Callable[[str], object]) -> Iterator[None]:
    """Within it, in this thread, notes go to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
