"""A port of the loopback interface that is kept for a server until it listens there, and while it is down.

A port that the kernel has only named as free may be anybody's a moment later: the local end of a connection that some
process opens, or another server's. A socket that is bound and does not listen keeps it: the kernel gives the port to
nobody who asks for any, and refuses it to a process that asks for this one, unless that sets SO_REUSEADDR. Servers
do, so the server that is given the port can listen there. Decision 0046.
"""

import socket
from typing import Self


class HeldPort:
    """Keeps a port, `number`, until it is closed."""

    def __init__(self) -> None:
        self._keeper = socket.socket()
        self._keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._keeper.bind(("127.0.0.1", 0))
        self.number: int = self._keeper.getsockname()[1]

    def close(self) -> None:
        self._keeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
