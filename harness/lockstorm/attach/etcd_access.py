"""etcd: the connections of clients to its HTTP gateway, what is there, and the keys and leases of a run."""

import base64
import contextlib
import http.client
import json
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping

from lockstorm.attach.run_names import PREFIX, key_prefixes
from lockstorm.attach.server_access import ANY_LEASE_MS, ServerAccess, ServerLine, ServerSurvey
from lockstorm.attach.server_address import ServerAddress, place
from lockstorm.attach.transport import CONNECT_LIMIT_S, Login, Seed, first_answer, not_answered_as
from lockstorm.base.errors import UsageError
from lockstorm.servers.etcd_server import EVERY_KEY, MS_PER_S, EtcdJson

GRANT, LEASES = "/v3/lease/grant", "/v3/lease/leases"
UNAUTHORIZED = b"HTTP/1.1 401"
NEEDS_LOGIN, WRONG_LOGIN, NOT_ENABLED = "user name is empty", "authentication failed", "not enabled"
NOT_PERMITTED = "permission denied"
PROBED_TTL_S = 1  # the shortest lease that can be asked for


class EtcdRefusal(Exception):
    """An error of etcd."""


class EtcdAccess(ServerAccess):
    """Several members of one cluster may be named: the first that answers is used. Each lease that a client asks for is
    noted before the request is passed on, so that it can be revoked."""

    def __init__(self, address: ServerAddress, run: str, login: Login) -> None:
        super().__init__(address, run, login)
        self._token = ""
        self._leases: set[str] = set()  # that clients may have
        self._lock = threading.Lock()

    def check(self) -> None:
        if self.address.user:
            self._log_in()
        self._ask("/v3/maintenance/status", {})

    def _log_in(self) -> None:
        said = {"name": self.address.user, "password": self.login.password}
        try:
            self._token = str(self._ask("/v3/auth/authenticate", said, token="")["token"])
        except UsageError as error:
            raise self._explain_login(str(error)) from None

    def _explain_login(self, refusal: str) -> UsageError:
        where, user, variable = self.address.shown, self.address.user, self.login.variable
        if NOT_ENABLED in refusal:
            return UsageError(f"{where} knows no users: leave {user}@ out of the URL")
        if WRONG_LOGIN in refusal and not self.login.password:
            return UsageError(f"{where} asks for a password: put it into the variable {variable}")
        if WRONG_LOGIN in refusal:
            return UsageError(f"{where} refuses the user {user} or the password of the variable {variable}: check both")
        return UsageError(refusal)

    def locate(self) -> Seed:
        return first_answer(self.address.seeds, self.transport.reach)

    def carry(self, client: socket.socket, seed: Seed) -> ServerLine:
        connected = self.transport.open(seed)
        if self.address.user and not self._token:
            self._log_in()
        return ServerLine(connected, translate=HttpFilter(place(*seed), self._token, self._note), is_over=self._is_over)

    def _note(self, path: str, body: bytes) -> None:
        if path == GRANT:
            with contextlib.suppress(ValueError, AttributeError), self._lock:
                self._leases.add(str(json.loads(body).get("ID", "")))

    def _is_over(self, data: bytes) -> bool:
        """A token has a limited life: then the client has to connect again."""
        if data.startswith(UNAUTHORIZED):
            self._token = ""
            return True
        return False

    def survey(self) -> ServerSurvey:
        version = str(self._ask("/v3/maintenance/status", {}).get("version", "unknown"))
        return ServerSurvey(version, "", self._count_keys())

    def _count_keys(self) -> int:
        """Those that the user may read: one who may only read keys of runs can touch no others."""
        try:
            found = self._ask("/v3/kv/range", {"key": EVERY_KEY, "range_end": EVERY_KEY, "count_only": True})
            return int(found.get("count", 0))
        except UsageError as refusal:
            if NOT_PERMITTED not in str(refusal):
                raise
        questions = ({**_range_of(each), "count_only": True} for each in key_prefixes(PREFIX))
        return sum(int(self._ask("/v3/kv/range", question).get("count", 0)) for question in questions)

    def lease_range_ms(self) -> tuple[int, int]:
        """Asks for a lease that is shorter than etcd grants, and revokes it."""
        lease = str(secrets.randbits(62) | 1)
        with self._lock:
            self._leases.add(lease)
        granted = self._ask(GRANT, {"ID": lease, "TTL": str(PROBED_TTL_S)})
        self._ask("/v3/lease/revoke", {"ID": lease})
        return int(granted["TTL"]) * MS_PER_S, ANY_LEASE_MS

    def remains(self) -> dict[str, int]:
        return {name: self._rest_ms(lease) for name, lease in self._keys()}

    def _keys(self) -> Iterator[tuple[str, str]]:
        """Those of the run, each with its lease, if it has one."""
        for prefix in key_prefixes(self.run):
            found = self._ask("/v3/kv/range", {**_range_of(prefix), "keys_only": True})
            for each in found.get("kvs", []):
                yield base64.b64decode(each["key"]).decode(errors="surrogateescape"), str(each.get("lease", ""))

    def _rest_ms(self, lease: str) -> int:
        if not lease:
            return -1
        left_s = int(self._ask("/v3/lease/timetolive", {"ID": lease}).get("TTL", 0))
        return max(0, left_s) * MS_PER_S  # below 0: it has expired, and its keys are about to be deleted

    def remove_once(self) -> int:
        """Revokes leases first: a key that is written later for one of them is refused."""
        with self._lock:
            ours = self._leases | {lease for _, lease in self._keys()}
        removed = len(list(self._keys()))
        for lease in ours & self._living(ours):
            with contextlib.suppress(EtcdRefusal):  # it has just ended
                self._ask_plainly("/v3/lease/revoke", {"ID": lease}, self._token)
        for prefix in key_prefixes(self.run):
            self._ask("/v3/kv/deleterange", _range_of(prefix))
        return removed

    def _living(self, ours: set[str]) -> set[str]:
        """The leases that exist; all of ours if the user may not know."""
        try:
            return {str(each["ID"]) for each in self._ask_plainly(LEASES, {}, self._token).get("leases", [])}
        except EtcdRefusal:
            return ours

    # --- requests ---

    def _ask(self, path: str, question: Mapping[str, object], token: str | None = None) -> EtcdJson:
        """The answer of the first member that gives one; raises UsageError."""
        if token is None and self.address.user and not self._token:
            self._log_in()
        try:
            return self._ask_plainly(path, question, self._token if token is None else token)
        except EtcdRefusal as refusal:
            if NEEDS_LOGIN in str(refusal) or "invalid auth token" in str(refusal):
                self._token = ""
            if NEEDS_LOGIN in str(refusal) and not self.address.user:
                raise UsageError(
                    f"{self.address.shown} asks for a user: write it before the host, etcd://USER@HOST:PORT"
                ) from None
            raise UsageError(f"{self.address.shown} refuses {path}: {refusal}") from None

    def _ask_plainly(self, path: str, question: Mapping[str, object], token: str) -> EtcdJson:
        return first_answer(self.address.seeds, lambda seed: self._ask_one(seed, path, question, token))

    def _ask_one(self, seed: Seed, path: str, question: Mapping[str, object], token: str) -> EtcdJson:
        with contextlib.closing(http.client.HTTPConnection(*seed, timeout=CONNECT_LIMIT_S)) as connection:
            connection.sock = self.transport.open(seed)
            with self.explained(seed, connection.sock):
                connection.request("POST", path, json.dumps(question), {"Authorization": token} if token else {})
                answer = connection.getresponse()
                text = answer.read()
        return _said_by(seed, answer.status, text)

    def explain(self, seed: Seed, error: Exception) -> str:
        is_no_http = isinstance(error, http.client.HTTPException) and not isinstance(error, OSError)
        return not_answered_as(seed, "etcd") if is_no_http else ""  # a lost connection can be both


def _said_by(seed: Seed, status: int, text: bytes) -> EtcdJson:
    try:
        said: EtcdJson = json.loads(text)
        if status == http.client.OK and isinstance(said, dict):
            return said
        refusal = str(said.get("error") or said["message"])
    except (ValueError, KeyError, AttributeError):
        raise UsageError(not_answered_as(seed, "etcd")) from None
    raise EtcdRefusal(refusal)


def _range_of(prefix: str) -> dict[str, str]:
    """All keys that begin so."""
    after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return {
        "key": base64.b64encode(prefix.encode()).decode(),
        "range_end": base64.b64encode(after.encode()).decode(),
    }


END_OF_HEAD = b"\r\n\r\n"
HEAD_MOST = 16_000
LENGTH = re.compile(rb"(?im)^content-length:[ \t]*(\d+)[ \t]*\r?$")
OWN_HEADERS = re.compile(rb"(?im)^(host|authorization):[^\n]*\n")


class HttpFilter:
    """Replaces a request's Host and Authorization, and shows its path and body. A request whose head is too long, or
    whose body has no length, is a ConnectionError."""

    def __init__(self, host: str, token: str, watch: Callable[[str, bytes], object]) -> None:
        self._headers = f"Host: {host}\r\n" + (f"Authorization: {token}\r\n" if token else "")
        self._watch = watch  # of each request: its path and body, before it is passed on
        self._unread = b""

    def __call__(self, data: bytes) -> bytes:
        """What is to be sent now, after these bytes of the client have arrived."""
        self._unread += data
        ready = b""
        while request := self._next():
            ready += request
        return ready

    def _next(self) -> bytes:
        """The next complete request; empty until it is complete."""
        head, end, rest = self._unread.partition(END_OF_HEAD)
        if not end:
            if len(head) > HEAD_MOST:
                raise ConnectionError("the head of a request is too long")
            return b""
        line, _, headers = (head + b"\r\n").partition(b"\r\n")
        if b"chunked" in headers.lower():
            raise ConnectionError("a request without the length of its body")
        found = LENGTH.search(headers)
        length = int(found[1]) if found else 0
        if len(rest) < length:
            return b""
        body, self._unread = rest[:length], rest[length:]
        words = line.split(b" ")
        self._watch(words[1].decode(errors="replace") if len(words) > 1 else "", body)
        return line + b"\r\n" + self._headers.encode() + OWN_HEADERS.sub(b"", headers) + b"\r\n" + body
