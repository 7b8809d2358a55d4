"""dramatiq's ConcurrentRateLimiter with RedisBackend: a counter with a time to live. With the word mutex: of size 1."""

import sys
from contextlib import AbstractContextManager
from importlib.metadata import version

from lockstorm.adapter_program.asked_again import asked_again
from lockstorm.adapter_program.lines import Line, ThreadProgram

try:
    from dramatiq.errors import RateLimitExceeded
    from dramatiq.rate_limits import ConcurrentRateLimiter
    from dramatiq.rate_limits.backends import RedisBackend
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(69)

MUTEX = "mutex" in sys.argv
# Both try once. An actor that was refused is retried: so is a question that names no form.
RAISES, RETURNS = "acquire()", "acquire(raise_on_failure=False)"
HELLO = {
    "name": "dramatiq ConcurrentRateLimiter" + (" of size 1" if MUTEX else ""),
    "version": version("dramatiq"),
    "source": "dramatiq, rate_limits/concurrent.py",
    "lease": True,
    "semaphore": not MUTEX,
    "waits": "polling",
    "operations": [],
}
HELLO_2 = {
    "threads": 8,
    "owner": "object",
    "modes": ["exclusive" if MUTEX else "permits"],
    "forms": [{"form": form, "wait": ["none"], "lease": ["given"]} for form in (RAISES, RETURNS)],
    "of_object": ["lease_ms"],
    "keeps": ["{resource}"],  # a counter of 0, for a time to live
}


class Slots:  # a limiter, and what it has granted
    def __init__(self, limiter: ConcurrentRateLimiter) -> None:
        self.limiter, self.granted = limiter, list[AbstractContextManager[bool]]()


class Library:
    def __init__(self) -> None:
        self.made = list[Slots]()  # a context that is collected releases what it was granted

    def open(self, question: Line) -> None:
        path, once = question["nodes"][0]["unix"], Retry(NoBackoff(), 0)
        self.backend = RedisBackend(client=Redis(unix_socket_path=path, socket_timeout=1, retry=once))
        self.backend.client.ping()  # connects now, and not within the first acquire
        self.limit, self.lease_ms = 1 if MUTEX else question["permits"], question["lease_ms"]

    def make(self, resource: str, question: Line) -> Slots:
        lease_ms = question.get("lease_ms", self.lease_ms)
        self.made.append(Slots(ConcurrentRateLimiter(self.backend, resource, limit=self.limit, ttl=lease_ms)))
        return self.made[-1]

    def acquire(self, slots: Slots, question: Line) -> bool:
        return asked_again(lambda: self.is_granted(slots, question.get("form")), question.get("wait_ms"))

    def is_granted(self, slots: Slots, form: str | None) -> bool:
        try:
            context = slots.limiter.acquire(raise_on_failure=form == RAISES)
            if is_granted := context.__enter__():
                slots.granted.append(context)
            return is_granted
        except RateLimitExceeded:
            return False

    def release(self, slots: Slots, question: Line) -> bool:
        return bool(slots.granted) and not slots.granted.pop().__exit__(None, None, None)


ThreadProgram(Library(), (), HELLO, HELLO_2).serve()
