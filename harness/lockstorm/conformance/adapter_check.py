"""Checks whether an adapter follows its protocol and behaves as its hello claims. Each check talks to a few copies of
the program about a lock on real servers. The message of a failure tells the author what to correct."""

import contextlib
import time
from collections.abc import Callable

from lockstorm.base.errors import Inconclusive, Stalled
from lockstorm.conformance.adapter_bench import (
    ANSWER_LIMIT_S,
    LONG_LEASE_MS,
    PROMPT_S,
    WAIT_MS,
    AdapterBench,
    Check,
    bench_servers,
    must_answer,
    silent,
)
from lockstorm.conformance.adapter_calls_check import checks_of_calls
from lockstorm.conformance.check_result import AdapterChecks, DoneCheck
from lockstorm.locks.adapter import AdapterProgram, adapter_facts
from lockstorm.locks.adapter_lines import AdapterAnswer, ProtocolError
from lockstorm.locks.adapter_questions import TcpNode, UnixNode
from lockstorm.process.process import Sandbox
from lockstorm.results.lock_entry import LockEntry
from lockstorm.trial.stall_sentinel import explained_by_stalls, play_unstalled

NO_ANSWER, SILENT_MOST = "did not answer", 2
ELSEWHERE = "the lock does not use the servers of `open`, so faults on these say nothing about it"


def acquire(program: AdapterProgram, wait_ms: int | None = 0, limit_s: float = ANSWER_LIMIT_S) -> AdapterAnswer:
    return program.ask("acquire", limit_s, wait_ms=wait_ms)


def granted(bench: AdapterBench, program: AdapterProgram) -> AdapterAnswer:
    return must_answer(acquire(program, bench.try_ms), "ok", "the lock was free, so it has to be granted")


def is_granted(bench: AdapterBench, program: AdapterProgram) -> bool:
    """Whether it is granted a lock by a single try. One that can only wait without a limit goes on to wait."""
    if bench.try_ms is not None:
        return acquire(program, bench.try_ms).outcome == "ok"
    program.send("acquire", wait_ms=None)
    answer = program.receive_one(program.number, WAIT_MS / 1000)
    return answer is not None and answer.outcome == "ok"


def must_not_get(bench: AdapterBench, program: AdapterProgram, reason: str) -> None:
    if bench.try_ms is not None:
        must_answer(acquire(program, bench.try_ms), "refused", reason)
    elif is_granted(bench, program):
        raise ProtocolError(f"it answered ok: {reason}")


# --- the checks ---


def grants(bench: AdapterBench) -> None:
    """a free lock is granted, and released"""
    one = bench.start()
    answer = granted(bench, one)
    if bench.entry.token and answer.token is None:
        raise ProtocolError('its hello says "token": true, so a grant has to carry "token", a whole number above 0')
    must_answer(one.ask("release", ANSWER_LIMIT_S), "ok", "it had the lock, so it can release it")
    second = granted(bench, one)
    if bench.entry.token and (second.token or 0) <= (answer.token or 0):
        raise ProtocolError(
            f"its second grant has the token {second.token}, its first had {answer.token}: each has to be larger "
            "than the one before"
        )


def excludes(bench: AdapterBench) -> None:
    """a lock that is taken is refused to others, at once if they do not wait"""
    one, two = bench.start(), bench.start()
    granted(bench, one)
    began = time.monotonic()
    if bench.try_ms is None:
        is_excluded = not is_granted(bench, two)
    else:
        answer = acquire(two, bench.try_ms)
        is_excluded = answer.outcome != "ok"
    if not is_excluded:
        raise ProtocolError(
            "two copies of it hold the lock at once: is the lock's key made of `resource`, do both use the nodes that "
            "open gives, and is the lock not released in between?"
        )
    if bench.try_ms is None:
        return
    must_answer(answer, "refused", "another copy has the lock, and one try, with wait_ms 0, is refused")
    if time.monotonic() - began > PROMPT_S:
        raise ProtocolError(
            f'it took {time.monotonic() - began:.1f} s to refuse: "wait_ms": 0 is one try, without waiting'
        )


def waits_for_so_long(bench: AdapterBench) -> None:
    """a client that waits for a limited time is refused after it"""
    one, two = bench.start(), bench.start()
    granted(bench, one)
    began = time.monotonic()
    must_answer(acquire(two, WAIT_MS), "refused", f"the lock was taken for longer than it waited ({WAIT_MS} ms)")
    took_s = time.monotonic() - began
    # Some libraries give up as soon as the time left is too short for another try.
    if took_s < WAIT_MS / 1000 / 2 and not bench.only_tries:
        raise ProtocolError(f"it refused after {took_s * 1000:.0f} ms, and had to wait for {WAIT_MS} ms")
    if took_s > PROMPT_S + WAIT_MS / 1000:
        raise ProtocolError(f"it refused after {took_s:.1f} s, and had to wait for {WAIT_MS} ms only")


def is_served(bench: AdapterBench) -> None:
    """a client that waits without a limit is granted the lock when it is released"""
    one, two = bench.start(bench.lease_ms), bench.start(bench.lease_ms)
    asked = time.monotonic()
    granted(bench, one)
    two.send("acquire", wait_ms=None)
    refused = two.receive_one(two.number, WAIT_MS / 1000)
    if refused and not bench.only_tries:
        raise ProtocolError('it did not wait, and "wait_ms": null means waiting as long as the library does by itself')
    answer, took_s = one.ask("release", ANSWER_LIMIT_S), time.monotonic() - asked
    if took_s > bench.lease_ms / 1000:
        raise Stalled(f"a release was answered {took_s:.2f} s after the lock was asked for, with a lease of less")
    must_answer(answer, "ok", "it had the lock, so it can release it")
    if refused:
        must_answer(refused, "refused", "another copy had the lock, and it does not wait")
        granted(bench, two)
    else:
        must_answer(two.receive(ANSWER_LIMIT_S, "acquire"), "ok", "the lock was released while it waited for it")


def releases_its_own(bench: AdapterBench) -> None:
    """only the holder can release"""
    one, two, three = bench.start(), bench.start(), bench.start()
    granted(bench, one)
    if bench.try_ms is not None:
        acquire(two, bench.try_ms)
    answer = two.ask("release", ANSWER_LIMIT_S)
    if is_granted(bench, three):
        raise ProtocolError(
            "a copy that was refused the lock released it all the same: a release has to compare the owner first"
        )
    must_answer(answer, "refused", "it released a lock that another copy holds, which changes nothing: refused")


def is_held_asks_servers(bench: AdapterBench) -> None:
    """is_held asks the servers which client holds the lock"""
    one, two = bench.start(), bench.start()
    must_answer(one.ask("is_held", ANSWER_LIMIT_S), "refused", "the lock is free")
    granted(bench, one)
    must_answer(one.ask("is_held", ANSWER_LIMIT_S), "ok", "it holds the lock")
    must_answer(
        two.ask("is_held", ANSWER_LIMIT_S), "refused", "another copy holds the lock: does is_held compare the owner?"
    )
    for server in bench.servers:
        server.flush()
    must_answer(
        one.ask("is_held", ANSWER_LIMIT_S), "refused", "the servers have forgotten the lock; ask them, not a variable"
    )


def status_reports_belief(bench: AdapterBench) -> None:
    """status says what the library believes"""
    one = bench.start()
    granted(bench, one)
    answer = must_answer(one.ask("status", ANSWER_LIMIT_S), "ok", "a status cannot fail")
    if answer.held is False:
        raise ProtocolError(
            'it was granted the lock, and its status says "held": false: true, or null if it does not know'
        )


def renews(bench: AdapterBench) -> None:
    """a renewal makes the lease longer, and is refused when the lock is lost"""
    one, two = bench.start(bench.lease_ms), bench.start(bench.lease_ms)
    lease_s = bench.lease_ms / 1000
    asked = time.monotonic()
    granted(bench, one)
    began = time.monotonic()
    time.sleep(lease_s * 0.6)
    answer = one.ask("renew", ANSWER_LIMIT_S)
    renewed = time.monotonic()
    if renewed > asked + lease_s:
        raise Stalled(
            f"a renewal was answered {renewed - asked:.2f} s after the lock was asked for, with a lease of that"
        )
    must_answer(answer, "ok", "it holds the lock, so it can renew it")
    time.sleep(max(0.0, began + lease_s * 1.2 - time.monotonic()))
    if bench.try_ms is not None:  # later, on a busy machine, the renewed lease may have ended too
        answer = acquire(two, bench.try_ms)
        if time.monotonic() < renewed + lease_s * 0.9:
            must_answer(answer, "refused", "the lock was renewed, and was free when its first lease was over")
    for server in bench.servers:
        server.flush()
    must_answer(one.ask("renew", ANSWER_LIMIT_S), "refused", "the lock was lost: a renewal must not take it again")


def expires(bench: AdapterBench) -> None:
    """the lock of a holder that is dead comes free after its lease"""
    one, two = bench.start(bench.lease_ms), bench.start(bench.lease_ms)
    granted(bench, one)
    one.close()
    until, limit_s = time.monotonic() + 3 * ANSWER_LIMIT_S, 3 * ANSWER_LIMIT_S
    answer = acquire(two, None, limit_s)
    while bench.only_tries and answer.outcome == "refused" and time.monotonic() < until:
        time.sleep(WAIT_MS / 1000)
        answer = acquire(two, None, limit_s)
    must_answer(answer, "ok", 'its holder was killed, and its hello says "lease": true')


def keeps(bench: AdapterBench) -> None:
    """a lease that the library renews by itself does not run out while the program runs"""
    one, two = bench.start(bench.lease_ms), bench.start(bench.lease_ms)
    granted(bench, one)
    time.sleep(bench.lease_ms / 1000 * 2.5)
    must_not_get(bench, two, 'its hello says "renews": true, and another copy got the lock after two leases and a half')


def lasts(bench: AdapterBench) -> None:
    """a lock without a lease stays with a holder that lives"""
    one, two = bench.start(bench.lease_ms), bench.start(bench.lease_ms)
    granted(bench, one)
    time.sleep(bench.lease_ms / 1000 * 1.5)
    reason = "and another copy got the lock after a lease and a half while its holder lived: it has a lease"
    must_not_get(bench, two, f'its hello says "lease": false, {reason}')


def connects_where_open_says(bench: AdapterBench) -> None:
    """it connects to the nodes of open, and nowhere else"""
    program = bench.start_bare()
    program.hello()
    missing_node = TcpNode("127.0.0.1", 1) if bench.entry.library.tcp else UnixNode("/nowhere/redis.sock")
    options = bench.options(LONG_LEASE_MS, [missing_node] * len(bench.nodes()))
    answer = program.ask("open", 2 * ANSWER_LIMIT_S, **options)
    if answer.outcome == "ok" and is_granted(bench, program):
        raise ProtocolError(
            f"{ELSEWHERE}: `open` gave nodes that do not exist, and it was granted the lock: connect to those, nowhere "
            "else"
        )


def survives_silence(bench: AdapterBench) -> None:
    """without an answer of its servers it says unknown, in time"""
    one = bench.start(bench.lease_ms)  # short, as some libraries wait for a lease before they give up
    with silent(bench.servers):
        one.send("acquire", wait_ms=bench.try_ms)
        answer = one.receive_one(one.number, ANSWER_LIMIT_S)
        if answer is None and bench.try_ms is None:
            return  # it waits for as long as it takes
        if answer is None:
            raise ProtocolError(f"it did not answer acquire within {ANSWER_LIMIT_S:g} s")
        if answer.outcome == "ok":
            raise ProtocolError(
                f"{ELSEWHERE}: they were stopped, and it was granted the lock. Which server granted it?"
            )
        must_answer(answer, "unknown", "its servers were stopped, so it is unknown whether they carried it out")


def ends(bench: AdapterBench) -> None:
    """it ends when its input ends"""
    status = bench.start().end_input()
    if status is None:
        raise ProtocolError("its input has ended, and it still runs: leave the loop at the end of standard input")


def checks_for(entry: LockEntry) -> list[Check]:
    """The checks for what its hello claims, in version 1 and, if it knows that, in version 2."""
    claimed: list[tuple[bool, Check]] = [
        (entry.renewable, renews),
        ("is_held" in entry.library.operations, is_held_asks_servers),
        ("status" in entry.library.operations, status_reports_belief),
        (entry.lease, expires),
        (entry.renews, keeps),
        (not entry.lease and not entry.renews, lasts),
    ]
    facts = adapter_facts(entry.library.path)
    waits = {wait for form in facts.forms for wait in form.wait} if facts else {"none", "time", "forever"}
    always = [connects_where_open_says, survives_silence, grants, excludes]
    always += [*([waits_for_so_long] if waits != {"forever"} else []), is_served, releases_its_own]
    calls = checks_of_calls(facts) if facts else []
    return [*always, *(check for is_claimed, check in claimed if is_claimed), ends, *calls]


def check_adapter(
    entry: LockEntry, report: Callable[[DoneCheck], object], begun: Callable[[str], object]
) -> AdapterChecks:
    """Performs every check, calls `begun` with its name, and `report` with its result. Two without an answer suffice:
    each of the others would wait as long."""
    done: list[DoneCheck] = []
    with contextlib.closing(Sandbox()) as sandbox:
        keeping, known = bench_servers(entry, sandbox)
        checks = checks_for(entry)
        for number, check in enumerate(checks, 1):
            begun(check_name(check))
            done.append(one_check(AdapterBench(entry, keeping, f"check-{number}", known=known), check))
            report(done[-1])
            if sum(NO_ANSWER in each.wrong for each in done) == SILENT_MOST and number < len(checks):
                left_out = f"{len(checks) - number} more checks"
                done.append(DoneCheck(left_out, False, f"left out, as two had no answer: {done[-1].wrong}"))
                report(done[-1])
                break
        for server in dict.fromkeys([*keeping, *known]):
            server.close()
    ok = all(each.ok for each in done)
    return AdapterChecks(adapter=entry.library.path, library=entry.summary, checks=done, ok=ok)


def anew(bench: AdapterBench, check: Check, pace: int) -> None:
    """Makes a check, once more after the machine stood still: with copies of its own, and the lock is free. What fails
    beside a stall says nothing of the adapter."""
    bench.end()
    bench.pace = pace
    for server in bench.servers:
        server.flush()
    with explained_by_stalls(bench.lease_ms, "lease", ProtocolError):
        check(bench)


def check_name(check: Check) -> str:
    return (check.__doc__ or "").strip()


def one_check(bench: AdapterBench, check: Check) -> DoneCheck:
    name = check_name(check)
    try:
        play_unstalled(lambda pace: anew(bench, check, pace))
    except ProtocolError as wrong:
        message = str(wrong).removeprefix(f"{bench.entry.library.path}: ")
        return DoneCheck(name, False, message)
    except OSError as error:
        raise Inconclusive(f"the check could not be made ({name}): {error}") from None
    finally:
        bench.end()
    return DoneCheck(name, True, "")
