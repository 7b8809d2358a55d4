"""Connections to servers that lockstorm did not start: made, and encrypted. What fails is one sentence (UsageError)."""

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lockstorm.attach.server_address import ServerAddress, place
from lockstorm.base.errors import UsageError

Seed = tuple[str, int]
Answer = TypeVar("Answer")
CONNECT_LIMIT_S = 3.0  # of an attempt to connect, and of each answer before the connection is given to a client
SEEDS_MOST = 3  # that are tried, so that an answer comes within 10 s


@dataclass(frozen=True)
class Login:
    """What the environment says; never shown. `variable`: where the password was, or would have been. `ca`: the file
    with the certificates of who signs the servers'. `certificate`, `key`: the files with a client's own."""

    password: str = ""
    sentinel_password: str = ""
    ca: str = ""
    variable: str = ""
    certificate: str = ""
    key: str = ""


class Transport:
    """Makes connections as the URL says. Raises UsageError for a file of certificates that cannot be read."""

    def __init__(self, address: ServerAddress, login: Login) -> None:
        self._address, self._has_own = address, bool(login.certificate)
        self._tls = self._make_tls(login) if address.tls else None

    def _make_tls(self, login: Login) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=login.ca or None)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"--ca {login.ca} cannot be read: {reason_of(error)}") from None
        if login.certificate:
            _load_own(context, login)
        if not self._address.is_checked and not login.ca:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def open(self, seed: Seed) -> socket.socket:
        return self.encrypt(seed, self.connect(seed))

    def connect(self, seed: Seed) -> socket.socket:
        """Not encrypted yet."""
        try:
            plain = socket.create_connection(seed, CONNECT_LIMIT_S)
        except OSError as error:
            raise UsageError(f"no server answers at {place(*seed)}: {reason_of(error)}") from None
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain

    def reach(self, seed: Seed) -> Seed:
        """The server, if it accepts connections."""
        self.connect(seed).close()
        return seed

    @contextlib.contextmanager
    def explained(self, seed: Seed, connected: socket.socket, explain: Callable[[Exception], str]) -> Iterator[None]:
        """Closes the connection if something fails, and says what in one sentence: what `explain` returns for the
        error. If that is empty, the end of a connection has a sentence, and another error stays as it is."""
        try:
            yield
        except Exception as error:
            text = explain(error) or (self.explain_end(seed, error) if isinstance(error, OSError) else "")
            if not text:
                raise
            connected.close()
            raise UsageError(text) from None

    def explain_end(self, seed: Seed, error: OSError) -> str:
        if isinstance(error, TimeoutError):
            return f"{place(*seed)} accepts connections but does not answer within {CONNECT_LIMIT_S:g} s"
        text, scheme = f"{place(*seed)} closes the connection ({reason_of(error)})", self._address.with_tls
        if not self._tls:
            return f"{text}: use {scheme} if it expects TLS"
        return text if self._has_own else f"{text}: if it asks for a certificate of yours, name that by --client-cert"

    def encrypt(self, seed: Seed, plain: socket.socket) -> socket.socket:
        """The same connection, by TLS if the URL says so."""
        if not self._tls:
            return plain
        try:
            return self._tls.wrap_socket(plain, server_hostname=seed[0])
        except ssl.SSLCertVerificationError as error:
            plain.close()
            raise UsageError(
                f"{place(*seed)} has a certificate that is not trusted ({error.verify_message}): name the "
                "file of its certificate authority by --ca FILE"
            ) from None
        except OSError as error:
            plain.close()
            raise UsageError(
                f"{place(*seed)} does not speak TLS ({reason_of(error)}): use {self._address.without_tls} if it "
                "expects none"
            ) from None


def first_answer(seeds: Sequence[Seed], ask: Callable[[Seed], Answer]) -> Answer:
    """The answer of the first of these servers that gives one."""
    failure = UsageError("")
    for seed in seeds[:SEEDS_MOST]:
        try:
            return ask(seed)
        except UsageError as error:
            failure = error
    raise failure


def not_answered_as(seed: Seed, server: str) -> str:
    return f"{place(*seed)} answers, but not as {server} does: check the host and the port"


def _load_own(context: ssl.SSLContext, login: Login) -> None:
    """Nobody is asked for the password of a key: then it cannot be read."""
    try:
        context.load_cert_chain(login.certificate, login.key or None, password=lambda: "")
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        files = f"{login.certificate}{f' with --client-key {login.key}' if login.key else ''}"
        raise UsageError(
            f"--client-cert {files} cannot be read: {reason}: a certificate and its key without a password, as PEM"
        ) from None


def reason_of(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_LIMIT_S:g} s"
    return (error.strerror or str(error) or type(error).__name__).lower()
