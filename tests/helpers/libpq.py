"""libpq's extended protocol by ctypes: statements that are prepared, with parameters as text or binary."""

import ctypes
from collections.abc import Sequence

BINARY, TEXT = 1, 0


class PostgresClient:
    """Of a server on a unix socket in a directory. Refusals are left out of its answers: the recording has them."""

    def __init__(self, directory: str, user: str, database: str) -> None:
        self._pq = ctypes.CDLL("libpq.so.5")
        for name in ("PQconnectdb", "PQexec", "PQprepare", "PQexecPrepared", "PQgetvalue"):
            getattr(self._pq, name).restype = ctypes.c_void_p
        self._link = ctypes.c_void_p(
            self._pq.PQconnectdb(f"host={directory} user={user} dbname={database} sslmode=disable".encode())
        )
        assert self._pq.PQstatus(self._link) == 0

    def run(self, statements: str) -> None:
        """A simple query."""
        self._clear(self._pq.PQexec(self._link, statements.encode()))

    def prepare(self, name: str, statement: str, types: Sequence[int] = ()) -> None:
        oids = (ctypes.c_uint * len(types))(*types)
        self._clear(self._pq.PQprepare(self._link, name.encode(), statement.encode(), len(types), oids))

    def execute(self, name: str, values: Sequence[bytes | None], *, binary: bool = False) -> None:
        """`binary`: its parameters and its answer are."""
        count = len(values)
        texts = (ctypes.c_char_p * count)(*values)
        lengths = (ctypes.c_int * count)(*(len(value or b"") for value in values))
        formats = (ctypes.c_int * count)(*[BINARY if binary else TEXT] * count)
        result = self._pq.PQexecPrepared(
            self._link, name.encode(), count, texts, lengths, formats, BINARY if binary else TEXT
        )
        self._clear(result)

    def close(self) -> None:
        self._pq.PQfinish(self._link)

    def _clear(self, result: int | None) -> None:
        self._pq.PQclear(ctypes.c_void_p(result))
