"""The driver's own session at a PostgreSQL server, through libpq, which the clients need as well."""

import ctypes as c
from functools import cache
from typing import Any

from lockstorm.base.errors import Inconclusive, NotInstalled

LIBPQ = "libpq.so.5"
CONNECTION_OK = 0
COMMAND_OK, TUPLES_OK = 1, 2

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "PQconnectdb": (c.c_void_p, [c.c_char_p]),
    "PQstatus": (c.c_int, [c.c_void_p]),
    "PQerrorMessage": (c.c_char_p, [c.c_void_p]),
    "PQexec": (c.c_void_p, [c.c_void_p, c.c_char_p]),
    "PQresultStatus": (c.c_int, [c.c_void_p]),
    "PQntuples": (c.c_int, [c.c_void_p]),
    "PQnfields": (c.c_int, [c.c_void_p]),
    "PQgetvalue": (c.c_char_p, [c.c_void_p, c.c_int, c.c_int]),
    "PQclear": (None, [c.c_void_p]),
    "PQfinish": (None, [c.c_void_p]),
}


@cache
def _libpq() -> Any:
    try:
        loaded = c.CDLL(LIBPQ)
    except OSError:
        raise NotInstalled(f"{LIBPQ} is not installed: on Debian and Ubuntu it is in the package libpq5") from None
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


class PostgresSession:
    """A connection, made by the constructor. Raises Inconclusive when it fails or is lost."""

    def __init__(self, where: str) -> None:
        self._link = _libpq().PQconnectdb(where.encode())
        if _libpq().PQstatus(self._link) != CONNECTION_OK:
            reason = self._reason()
            self.close()
            raise Inconclusive(f"PostgreSQL: {reason}")

    def rows(self, statement: str) -> list[tuple[str, ...]]:
        """Runs a statement. Returns its rows as text, a NULL as an empty text."""
        libpq, result = _libpq(), None
        try:
            result = libpq.PQexec(self._link, statement.encode())
            if libpq.PQresultStatus(result) not in (COMMAND_OK, TUPLES_OK):
                raise Inconclusive(f"PostgreSQL: {self._reason()}")
            columns = range(libpq.PQnfields(result))
            return [
                tuple(libpq.PQgetvalue(result, row, column).decode() for column in columns)
                for row in range(libpq.PQntuples(result))
            ]
        finally:
            libpq.PQclear(result)

    def value(self, statement: str) -> str:
        """The first column of the only row."""
        ((first, *_),) = self.rows(statement)
        return first

    def close(self) -> None:
        if self._link:
            _libpq().PQfinish(self._link)
        self._link = None

    def _reason(self) -> str:
        message: bytes = _libpq().PQerrorMessage(self._link)
        return " ".join(message.decode(errors="replace").split())
