"""Does an adapter keep to its protocol, and to what it says of itself? Each check is a short talk with a few copies of
the program about a lock on real redis-servers; what is wrong is said so that its author can mend it."""

import contextlib
import itertools
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.driver.adapter import AdapterProgram, Wrong
from harness.driver.errors import Inconclusive
from harness.driver.process import Nursery
from harness.driver.redis_server import RedisServer
from harness.driver.services import lease_at_least

LEASE_MS = 1_000
LONG_LEASE_MS = 60_000
WAIT_MS = 300
ANSWER_LIMIT_S = 15.0
PROMPT_S = 5.0  # what needs no waiting takes no longer, on however busy a machine


@dataclass
class Bench:
    """What a check works with: the lock's entry, its servers, and a fresh resource for each."""

    entry: dict[str, Any]
    servers: list[RedisServer]
    resource: str = ""
    programs: list[AdapterProgram] = field(default_factory=list)

    def start(self, lease_ms: int = LONG_LEASE_MS, nodes: list[dict[str, Any]] | None = None) -> AdapterProgram:
        """One more copy, with its lock open."""
        program = self.start_bare()
        program.hello()
        asked = {"lease_ms": lease_at_least(self.entry, lease_ms), "permits": 1, "fixed_lease": False}
        where = self.nodes() if nodes is None else nodes
        answer = program.ask("open", ANSWER_LIMIT_S, resource=self.resource, nodes=where, **asked)
        if answer["outcome"] != "ok" and nodes is None:
            raise Wrong(f"it answered open with {said(answer)}: the nodes are there, and nobody has the lock")
        return program

    def start_bare(self) -> AdapterProgram:
        program = AdapterProgram(self.entry["adapter"]["path"])
        self.programs.append(program)
        return program

    def nodes(self) -> list[dict[str, Any]]:
        if self.entry["adapter"]["tcp"]:
            return [{"host": "127.0.0.1", "port": server.port} for server in self.servers]
        return [{"unix": str(server.socket)} for server in self.servers]

    def end(self) -> None:
        for program in self.programs:
            program.close()
        self.programs.clear()


def said(answer: dict[str, Any]) -> str:
    error = f" ({answer['error']})" if answer.get("error") else ""
    return f"{answer['outcome']}{error}"


def acquire(program: AdapterProgram, wait_ms: int | None = 0, limit_s: float = ANSWER_LIMIT_S) -> dict[str, Any]:
    return program.ask("acquire", limit_s, wait_ms=wait_ms)


def must(answer: dict[str, Any], outcome: str, words: str) -> dict[str, Any]:
    if answer["outcome"] != outcome:
        raise Wrong(f"it answered {said(answer)}: {words}")
    return answer


def granted(program: AdapterProgram, wait_ms: int | None = 0) -> dict[str, Any]:
    return must(acquire(program, wait_ms), "ok", "the lock was free, so it has to be granted")


# --- the checks ---


def grants(bench: Bench) -> None:
    """a free lock is granted, and released"""
    one = bench.start()
    answer = granted(one)
    if bench.entry["token"] and (type(answer.get("token")) is not int or answer["token"] < 1):
        raise Wrong('its hello says "token": true, so a grant has to carry "token", a whole number above 0')
    must(one.ask("release", ANSWER_LIMIT_S), "ok", "it had the lock, so it can release it")
    second = granted(one)
    if bench.entry["token"] and second["token"] <= answer["token"]:
        raise Wrong(f"its second grant has the token {second['token']}, its first had {answer['token']}: tokens rise")


def excludes(bench: Bench) -> None:
    """a lock that is taken is refused to others, at once if they do not wait"""
    one, two = bench.start(), bench.start()
    granted(one)
    began = time.monotonic()
    answer = acquire(two)
    if answer["outcome"] == "ok":
        raise Wrong(
            "two copies of it hold the lock at once: is the lock's key made of `resource`, do both use the nodes that "
            "open gives, and does nobody release in between?"
        )
    must(answer, "refused", "somebody else has the lock, and one try, with wait_ms 0, is refused")
    if time.monotonic() - began > PROMPT_S:
        raise Wrong(f'it took {time.monotonic() - began:.1f} s to refuse: "wait_ms": 0 is one try, without waiting')


def waits_for_so_long(bench: Bench) -> None:
    """who waits for a time is refused after it"""
    one, two = bench.start(), bench.start()
    granted(one)
    began = time.monotonic()
    must(acquire(two, WAIT_MS), "refused", f"the lock was taken for longer than it waited ({WAIT_MS} ms)")
    took_s = time.monotonic() - began
    # Some give up when there is no time for another try.
    if took_s < WAIT_MS / 1000 / 2 and bench.entry["waits"] != "not":
        raise Wrong(f"it refused after {took_s * 1000:.0f} ms, and was to wait for {WAIT_MS} ms")
    if took_s > PROMPT_S + WAIT_MS / 1000:
        raise Wrong(f"it refused after {took_s:.1f} s, and was to wait for {WAIT_MS} ms only")


def is_served(bench: Bench) -> None:
    """who waits without a limit is granted the lock when it is released"""
    one, two = bench.start(LEASE_MS), bench.start(LEASE_MS)
    granted(one)
    two.tell("acquire", wait_ms=None)
    if not two.heard_nothing(WAIT_MS / 1000):
        raise Wrong('it did not wait, and "wait_ms": null is to wait as long as the library does by itself')
    must(one.ask("release", ANSWER_LIMIT_S), "ok", "it had the lock, so it can release it")
    must(two.hear(ANSWER_LIMIT_S, "acquire"), "ok", "the lock was released while it waited for it")


def releases_its_own(bench: Bench) -> None:
    """only the holder can release"""
    one, two, three = bench.start(), bench.start(), bench.start()
    granted(one)
    acquire(two)
    answer = two.ask("release", ANSWER_LIMIT_S)
    if acquire(three)["outcome"] == "ok":
        raise Wrong("who was refused the lock released it all the same: a release has to compare the owner first")
    must(answer, "refused", "it released a lock that another holds, which changes nothing: refused")


def tells_whose(bench: Bench) -> None:
    """is_held asks the servers whose the lock is"""
    one, two = bench.start(), bench.start()
    must(one.ask("is_held", ANSWER_LIMIT_S), "refused", "nobody holds the lock yet")
    granted(one)
    must(one.ask("is_held", ANSWER_LIMIT_S), "ok", "it holds the lock")
    must(two.ask("is_held", ANSWER_LIMIT_S), "refused", "another holds the lock: is it this one's?")
    for server in bench.servers:
        server.link.flushall()
    must(one.ask("is_held", ANSWER_LIMIT_S), "refused", "the servers have forgotten the lock; ask them, not a variable")


def tells_what_it_believes(bench: Bench) -> None:
    """status says what the library believes"""
    one = bench.start()
    granted(one)
    answer = must(one.ask("status", ANSWER_LIMIT_S), "ok", "to say what it believes cannot fail")
    if answer.get("held", False) not in (True, None):
        raise Wrong('it was granted the lock, and its status says "held": false: true, or null if it does not know')


def renews(bench: Bench) -> None:
    """a renewal makes the lease longer, and is refused when the lock is lost"""
    one, two = bench.start(LEASE_MS), bench.start(LEASE_MS)
    lease_s = lease_at_least(bench.entry, LEASE_MS) / 1000
    granted(one)
    began = time.monotonic()
    time.sleep(lease_s * 0.6)
    must(one.ask("renew", ANSWER_LIMIT_S), "ok", "it holds the lock, so it can renew it")
    renewed = time.monotonic()
    time.sleep(max(0.0, began + lease_s * 1.2 - time.monotonic()))
    answer = acquire(two)
    if time.monotonic() < renewed + lease_s * 0.9:  # a machine that was busy for so long proves nothing
        must(answer, "refused", "the lock was renewed, and was free when its first lease was over")
    for server in bench.servers:
        server.link.flushall()
    must(one.ask("renew", ANSWER_LIMIT_S), "refused", "the lock was lost: a renewal must not take it again")


def expires(bench: Bench) -> None:
    """the lock of a holder that is dead comes free after its lease"""
    one, two = bench.start(LEASE_MS), bench.start(LEASE_MS)
    granted(one)
    one.close()
    must(acquire(two, None, 3 * ANSWER_LIMIT_S), "ok", 'its holder was killed, and its hello says "lease": true')


def keeps(bench: Bench) -> None:
    """a lease that the library renews by itself does not run out while the program runs"""
    one, two = bench.start(LEASE_MS), bench.start(LEASE_MS)
    granted(one)
    time.sleep(lease_at_least(bench.entry, LEASE_MS) / 1000 * 2.5)
    must(acquire(two), "refused", 'its hello says "renews": true, and another got the lock after two leases and a half')


def goes_where_it_is_told(bench: Bench) -> None:
    """it connects to the nodes of open, and nowhere else"""
    program = bench.start_bare()
    program.hello()
    nowhere = {"host": "127.0.0.1", "port": 1} if bench.entry["adapter"]["tcp"] else {"unix": "/nowhere/redis.sock"}
    asked = {"lease_ms": LONG_LEASE_MS, "permits": 1, "fixed_lease": False}
    answer = program.ask(
        "open", 2 * ANSWER_LIMIT_S, resource=bench.resource, nodes=[nowhere] * len(bench.servers), **asked
    )
    if answer["outcome"] == "ok" and acquire(program)["outcome"] == "ok":
        raise Wrong("open gave nodes that do not exist, and it was granted the lock: connect to those, nowhere else")


def survives_silence(bench: Bench) -> None:
    """without an answer of its servers it says unknown, in time"""
    one = bench.start(LEASE_MS)  # some wait for a lease's time before they give up
    with silent(bench.servers):
        answer = acquire(one)
        if answer["outcome"] == "ok":
            raise Wrong("its servers stood still, and it was granted the lock: who granted it?")
        must(answer, "unknown", "its servers stood still, so nobody knows whether they carried it out")


def ends(bench: Bench) -> None:
    """it ends when its input ends"""
    status = bench.start().end_input()
    if status is None:
        raise Wrong("its input has ended, and it goes on: leave the loop at the end of standard input")


@contextlib.contextmanager
def silent(servers: list[RedisServer]) -> Iterator[None]:
    for server in servers:
        server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for server in servers:
            server.process.send_signal(signal.SIGCONT)


Check = Callable[[Bench], None]


def checks_for(entry: dict[str, Any]) -> list[Check]:
    """Those that its hello asks for."""
    claimed: list[tuple[bool, Check]] = [
        (entry["renewable"], renews),
        ("is_held" in entry["adapter"]["operations"], tells_whose),
        ("status" in entry["adapter"]["operations"], tells_what_it_believes),
        (entry["lease"], expires),
        (entry["renews"], keeps),
    ]
    always = [grants, excludes, waits_for_so_long, is_served, releases_its_own]
    last = [goes_where_it_is_told, survives_silence, ends]
    return [*always, *(check for is_claimed, check in claimed if is_claimed), *last]


def check_adapter(entry: dict[str, Any], tell: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Does every check, tells of each, and gives them all."""
    done: list[dict[str, Any]] = []
    with contextlib.closing(Nursery()) as nursery:
        servers = [RedisServer(nursery, f"redis-{each + 1}", clock=None) for each in range(entry["nodes"])]
        for server in servers:
            server.ready()
            if entry["adapter"]["tcp"]:
                server.listen()
        for number, check in zip(itertools.count(1), checks_for(entry)):
            done.append(one_check(Bench(entry, servers, f"check-{number}"), check))
            tell(done[-1])
        for server in servers:
            server.close()
    wrong = sum(not each["ok"] for each in done)
    return {"adapter": entry["adapter"]["path"], "library": entry["summary"], "checks": done, "ok": wrong == 0}


def one_check(bench: Bench, check: Check) -> dict[str, Any]:
    name = (check.__doc__ or "").strip()
    try:
        check(bench)
    except Wrong as wrong:
        words = str(wrong).removeprefix(f"{bench.entry['adapter']['path']}: ")
        return {"name": name, "ok": False, "wrong": words}
    except OSError as error:
        raise Inconclusive(f"the check could not be made ({name}): {error}") from None
    finally:
        bench.end()
    return {"name": name, "ok": True, "wrong": ""}
