"""Checks of an adapter that speaks version 2 or 3 of the protocol: threads, lock objects, forms, and what its hello
says of them. As in adapter_check.py, the message of a failure tells the author what to correct."""

import itertools
import time

import msgspec
from msgspec import structs

from lockstorm.conformance.adapter_bench import (
    ANSWER_LIMIT_S,
    LEASE_MS,
    LONG_LEASE_MS,
    PROMPT_S,
    WAIT_MS,
    AdapterBench,
    Check,
    answer_text,
    must_answer,
)
from lockstorm.locks.adapter import AdapterProgram
from lockstorm.locks.adapter_lines import NEWEST, NOT_GIVEN, AcquireForm, AdapterAnswer, AdapterFacts, ProtocolError
from lockstorm.servers.services import lease_at_least

GIVEN_MS = 20_000  # a lease that differs from the lock's usual one


class CallProgram:
    """A copy of the program that speaks version 2. Asks for a thread and a lock object; `mode` is one that excludes."""

    def __init__(
        self, bench: AdapterBench, permits: int = 1, lease_ms: int = LONG_LEASE_MS, **more: dict[str, int | str]
    ) -> None:
        self.bench, self.facts = bench, bench_facts(bench)
        self.mode = next(mode for mode in ("exclusive", "write", "permits", "read") if mode in self.facts.modes)
        self.program: AdapterProgram = bench.start_bare()
        self.program.hello(NEWEST)
        self.try_ms = bench.try_ms
        self.lease_ms = lease_at_least(bench.entry, lease_ms)
        self.program.send("open", **bench.options(lease_ms, permits=permits), **more)
        must_answer(self.take(ANSWER_LIMIT_S, "open"), "ok", "the nodes are there")

    def send(self, verb: str, thread: int = 1, lock: int = 1, **more: object) -> int:
        """Returns the number of the request."""
        where = {"thread": thread, "lock": lock, "resource": self.bench.resource, "mode": self.mode}
        self.program.send(verb, **{**where, **more})
        return self.program.number

    def take(self, limit_s: float, verb: str, number: int = 0) -> AdapterAnswer:
        answer = self.program.receive_one(number or self.program.number, limit_s)
        if answer is None:
            raise ProtocolError(f"it did not answer {verb} within {limit_s:g} s")
        return answer

    def ask(self, verb: str, thread: int = 1, lock: int = 1, **more: object) -> AdapterAnswer:
        self.send(verb, thread, lock, **more)
        return self.take(ANSWER_LIMIT_S, verb)

    def acquire(self, thread: int = 1, lock: int = 1, **more: object) -> AdapterAnswer:
        return self.ask("acquire", thread, lock, **{"wait_ms": self.try_ms, **more})

    def granted(self, reason: str, thread: int = 1, lock: int = 1, **more: object) -> AdapterAnswer:
        return must_answer(self.acquire(thread, lock, **more), "ok", reason)

    def refused(self, reason: str, thread: int = 1, lock: int = 1, **more: object) -> None:
        """Of a library that can only wait without a limit it is not asked: its call would be granted later, and be in
        the way."""
        if self.try_ms is not None:
            must_answer(self.acquire(thread, lock, **more), "refused", reason)

    def is_silent_about(self, number: int, verb: str) -> bool:
        return self.program.receive_one(number, WAIT_MS / 1000) is None


def bench_facts(bench: AdapterBench) -> AdapterFacts:
    assert bench.facts
    return bench.facts


# --- threads, lock objects, owners ---


def hosts_threads(bench: AdapterBench) -> None:
    """version 2: while a call of one thread waits, those of others are answered"""
    one, two = CallProgram(bench), CallProgram(bench)
    one.granted("the lock is free")
    waiting = two.send("acquire", wait_ms=None)
    if not two.is_silent_about(waiting, "acquire"):
        if bench.only_tries:
            return
        raise ProtocolError("thread 1 asked for a lock that another program holds, without a limit, and did not wait")
    number = two.send("acquire", thread=2, lock=2, resource=f"{bench.resource}-other", wait_ms=two.try_ms)
    answer = two.program.receive_one(number, PROMPT_S)
    if answer is None:
        raise ProtocolError(
            "while thread 1 waited for a lock, thread 2 was not answered about another one: hand each question to its "
            "thread, and do not wait for its answer before you read the next question"
        )
    must_answer(answer, "ok", "thread 2 asked for a lock that is free")
    must_answer(one.ask("release"), "ok", "it had the lock")
    must_answer(
        two.take(ANSWER_LIMIT_S, "acquire", waiting), "ok", "the lock was released while thread 1 waited for it"
    )


def hosts_objects(bench: AdapterBench) -> None:
    """version 2: a lock object is for its resource, and excludes other objects"""
    one, two, facts = CallProgram(bench), CallProgram(bench), bench_facts(bench)
    other = f"{bench.resource}-other"
    one.granted("the lock is free")
    if facts.threads > 1 or facts.owner != "thread":
        thread = min(2, facts.threads)
        one.refused("lock object 1 holds the resource, and lock object 2 is another one", thread, lock=2)
    another = f"{other} is another lock, which nobody holds: a question says which resource its lock object is for"
    one.granted(another, lock=3, resource=other)
    two.refused(f"the first program's lock object 3 holds {other}", resource=other)
    must_answer(one.ask("release", lock=3, resource=other), "ok", "lock object 3 holds its resource")
    two.refused(f"the first program holds this lock: it has released only {other}, which is another one", lock=2)
    must_answer(one.ask("release"), "ok", "lock object 1 holds its resource")
    two.granted("lock object 1 was released", lock=2)


STRANGERS = {"thread": [(2, 1)], "object": [(1, 2)], "thread-object": [(2, 1), (1, 2)]}  # thread and lock object
OWNERS = {"thread": (1, 2), "object": (2, 1), "thread-object": (1, 1)}  # beside thread 1 with lock object 1


def knows_owners(bench: AdapterBench) -> None:
    """version 2: a hold belongs to the owner that hello says"""
    one, two, facts = CallProgram(bench), CallProgram(bench), bench_facts(bench)
    one.granted("the lock is free")
    owner = OWNERS[facts.owner] if OWNERS[facts.owner][0] <= facts.threads else (1, 1)
    said = f'its hello says "owner": "{facts.owner}", and thread 1 holds the lock by lock object 1'
    for thread, lock in STRANGERS[facts.owner]:
        if thread > facts.threads:
            continue
        who = f"thread {thread} with lock object {lock}"
        if "is_held" in facts.operations and one.ask("is_held", thread, lock).outcome == "ok":
            raise ProtocolError(f"it answered is_held of {who} with ok: {said}")
        if one.ask("release", thread, lock).outcome == "ok" and not facts.lenient_release:
            raise ProtocolError(f"it answered a release by {who} with ok: {said}")
        two.refused(f"{who} was asked to release the lock, and does not hold it: {said}")
    who = f"thread {owner[0]} with lock object {owner[1]}"
    if "is_held" in facts.operations:
        must_answer(one.ask("is_held", *owner), "ok", f"is_held of {who}: {said}")
    must_answer(one.ask("release", *owner), "ok", f"a release by {who}: {said}")
    two.granted(f"{who} released the lock")


def forgets(bench: AdapterBench) -> None:
    """version 2: forget ends threads and lock objects, and keeps connections"""
    one, two, facts = CallProgram(bench), CallProgram(bench), bench_facts(bench)
    one.granted("the lock is free")
    one.program.send("forget")
    must_answer(one.take(ANSWER_LIMIT_S, "forget"), "ok", "no call was under way")
    if one.ask("release").outcome == "ok" and not facts.lenient_release:
        one.granted("the lock was released")
        if two.ask("release").outcome == "ok":
            raise ProtocolError("a program that holds nothing released the lock: a release has to compare the owner")
        raise ProtocolError(
            "it released what a lock object held that it was told to forget: make new ones, and threads"
        )
    two.refused("its holder was told to forget its lock objects, which gives nothing back")
    one.program.send("forget")
    must_answer(one.take(ANSWER_LIMIT_S, "forget"), "ok", "no call was under way")
    other = f"{bench.resource}-other"
    one.granted(f"after forget, a new lock object was asked for {other}, which nobody holds", resource=other)
    two.refused(f"the first program was granted {other} after forget, and holds it", resource=other)


def _cancel_waiting(one: CallProgram, two: CallProgram) -> tuple[int, int, str]:
    """Cancels a call of `two` that waits for what `one` holds, by the first form that the library lets somebody end.
    Returns its id, the number of the lock object, and its resource."""
    ways: list[dict[str, object]] = [{"wait_ms": None}]
    ways += [
        structs.asdict(form_words(form, "forever", form.lease[0])) for form in two.facts.forms if "forever" in form.wait
    ]
    for number, way in enumerate(ways, 1):
        resource = f"{one.bench.resource}-cancel-{number}"
        one.granted("the lock is free", lock=number, resource=resource)
        waiting = two.send("acquire", 1, number, resource=resource, **way)
        if not two.is_silent_about(waiting, "acquire"):
            raise ProtocolError("it did not wait for a lock that another program holds, so nothing can be cancelled")
        two.program.send("cancel", call=waiting)
        answer = two.take(ANSWER_LIMIT_S, "cancel")
        if answer.error is None:
            must_answer(answer, "ok", f"request {waiting} is under way, so it can be cancelled")
            return waiting, number, resource
        must_answer(one.ask("release", lock=number, resource=resource), "ok", "it had the lock")
        must_answer(two.take(ANSWER_LIMIT_S, "acquire", waiting), "ok", "the lock was released while it waited")
    raise ProtocolError('its hello says "cancel": true, and no form that waits without a limit can be cancelled')


def cancels(bench: AdapterBench) -> None:
    """version 2: a cancelled call ends, and leaves nothing"""
    if bench.only_tries:
        return  # no call waits for long enough to be cancelled
    one, two, three = CallProgram(bench), CallProgram(bench), CallProgram(bench)
    waiting, number, resource = _cancel_waiting(one, two)
    answer = two.program.receive_one(waiting, ANSWER_LIMIT_S)
    if answer is None:
        raise ProtocolError(f"it cancelled a call, which did not answer within {ANSWER_LIMIT_S:g} s")
    if answer.outcome == "ok" or not answer.cancelled:
        raise ProtocolError(
            f"its cancelled call answered {answer_text(answer)}: the lock was taken, so it is refused or unknown, with "
            '"cancelled": true'
        )
    must_answer(one.ask("release", lock=number, resource=resource), "ok", "it had the lock")
    released = "its holder released it, and the waiter before was cancelled"
    three.granted(released, lock=number, resource=resource, wait_ms=WAIT_MS * 10)
    two.program.send("cancel", call=waiting)
    must_answer(two.take(ANSWER_LIMIT_S, "cancel"), "refused", "that call is not under way any more")


def asks_after_an_end(bench: AdapterBench) -> None:
    """version 3: a call whose context has ended leaves nothing, or can be asked once more"""
    one, two = CallProgram(bench), CallProgram(bench)
    for number, verb in enumerate(one.facts.over, 1):
        resource = f"{bench.resource}-over-{verb}"
        if verb == "acquire":
            answer = one.acquire(lock=number, resource=resource, over=True)
        else:
            one.granted("the lock is free", lock=number, resource=resource)
            answer = one.ask(verb, lock=number, resource=resource, over=True)
        what = f"{verb} with a context that had ended was answered {answer_text(answer)}"
        if answer.outcome != "ok" and not answer.cancelled:
            raise ProtocolError(f'{what}, without "cancelled": true')
        if verb == "renew" or (verb == "acquire") == (answer.outcome == "ok"):
            again = one.ask("release", lock=number, resource=resource)
            what += f", and the release after it {answer_text(again)}"
        two.granted(what, lock=number, resource=resource, wait_ms=WAIT_MS * 10)


def tells_of_a_loss(bench: AdapterBench) -> None:
    """version 3: a notice comes when a lock that it renews is lost"""
    one = CallProgram(bench, lease_ms=LEASE_MS)
    form = next((form for form in one.facts.forms if "renewed" in form.lease), None)
    if form is None:
        raise ProtocolError('its hello says "loss_notice", and no form has the lease "renewed"')
    words = form_words(form, form.wait[0], "renewed")
    one.granted("the lock is free", form=words.form, wait_ms=words.wait_ms, lease_ms=None)
    bench.delete_key(one.facts.key_of(bench.resource))
    if one.program.next_notice(ANSWER_LIMIT_S) is None:
        raise ProtocolError(f"its lock was taken away, and no notice came within {ANSWER_LIMIT_S:g} s")


def opens_with_settings(bench: AdapterBench) -> None:
    """version 3: it opens with each value of its settings"""
    for setting in bench_facts(bench).settings:
        for value in setting.values:
            one = CallProgram(bench, settings={setting.name: value})
            one.granted(f"the lock is free, and {setting.name} is {value}")
            must_answer(one.ask("release"), "ok", f"it had the lock, and {setting.name} is {value}")


# --- forms, leases, modes ---


def check_remaining_lease(what: str, found_ms: int, expected_ms: int, unit_ms: int, asked: float) -> None:
    """`asked`: when the lease was asked for, by time.monotonic(). The library may round to its unit."""
    passed_ms = (time.monotonic() - asked) * 1000
    if not expected_ms - passed_ms - unit_ms - 1 <= found_ms <= expected_ms + unit_ms + 1:
        raise ProtocolError(f"{what}: its key has {found_ms} ms left, and should have {expected_ms} ms: wrong unit?")


def offers_forms(bench: AdapterBench) -> None:
    """version 2: each form waits and leases as its hello says"""
    one, two = CallProgram(bench), CallProgram(bench)
    numbers = itertools.count(1)
    for form in bench_facts(bench).forms:
        for wait, lease in itertools.product(form.wait, form.lease):
            grants_by_form(two, form, wait, lease, next(numbers))
        for wait in form.wait:
            waits_by_form(one, two, form, wait, next(numbers))


class FormWords(msgspec.Struct, frozen=True):
    """The keys of an acquire by a form."""

    form: str
    wait_ms: int | None
    lease_ms: int | None


def form_words(form: AcquireForm, wait: str, lease: str) -> FormWords:
    wait_ms = {"none": 0, "time": -(-WAIT_MS // form.wait_unit_ms) * form.wait_unit_ms, "forever": None}[wait]
    lease_ms = None if lease in NOT_GIVEN else -(-GIVEN_MS // form.lease_unit_ms) * form.lease_unit_ms
    return FormWords(form.form, wait_ms, lease_ms)


def grants_by_form(program: CallProgram, form: AcquireForm, wait: str, lease: str, number: int) -> None:
    facts, resource = program.facts, f"{program.bench.resource}-form-{number}"
    asked = form_words(form, wait, lease)
    what = f"form {form.form!r} with wait {wait} and lease {lease}"
    began = time.monotonic()
    answer = program.granted(f"{what}: the lock is free", lock=number, resource=resource, **structs.asdict(asked))
    if facts.token and answer.token is None:
        raise ProtocolError(f'{what}: its hello says "token": true, and its grant has no "token"')
    if facts.validity and answer.valid_until_ms is None:
        raise ProtocolError(f'{what}: its hello says "validity": true, and its grant has no "valid_until_ms"')
    if facts.lease_key:
        expected_ms = None if lease == "endless" else asked.lease_ms or program.lease_ms
        check_grant_lease(program.bench, what, resource, expected_ms, form.lease_unit_ms, began)
    must_answer(program.ask("release", lock=number, resource=resource), "ok", f"{what}: it had the lock")


def check_grant_lease(
    bench: AdapterBench, what: str, resource: str, expected_ms: int | None, unit_ms: int, asked: float
) -> None:
    """Of a grant; None: it has no end."""
    facts = bench_facts(bench)
    found_ms = bench.lease_left_ms(facts.key_of(resource))
    if found_ms == -2:
        raise ProtocolError(f"{what}: there is no key {facts.key_of(resource)!r}, whose lease its hello says it is")
    if expected_ms is not None:
        check_remaining_lease(what, found_ms, expected_ms, unit_ms, asked)
    elif found_ms != -1:
        raise ProtocolError(f"{what}: its key has {found_ms} ms left, and should have no end")


def waits_by_form(one: CallProgram, two: CallProgram, form: AcquireForm, wait: str, number: int) -> None:
    """What the form does if another program has the lock."""
    resource, asked = f"{one.bench.resource}-form-{number}", form_words(form, wait, form.lease[0])
    what = f"form {form.form!r} with wait {wait}"
    one.granted("the lock is free", lock=number, resource=resource)
    began = time.monotonic()
    waiting = two.send("acquire", lock=number, resource=resource, **structs.asdict(asked))
    if wait == "forever":
        if not two.is_silent_about(waiting, "acquire"):
            raise ProtocolError(f"{what}: it did not wait for a lock that another program holds")
        must_answer(one.ask("release", lock=number, resource=resource), "ok", "it had the lock")
        must_answer(
            two.take(ANSWER_LIMIT_S, "acquire", waiting), "ok", f"{what}: the lock was released while it waited"
        )
        return
    answer = two.take(ANSWER_LIMIT_S + (asked.wait_ms or 0) / 1000, "acquire", waiting)
    must_answer(answer, "refused", f"{what}: another program has the lock")
    took_s, wait_s = time.monotonic() - began, (asked.wait_ms or 0) / 1000
    if took_s > wait_s + PROMPT_S:
        raise ProtocolError(f"{what}: it refused after {took_s:.1f} s, and had to wait for {wait_s:g} s")
    if took_s < wait_s / 2 and one.bench.entry.waits != "not":
        raise ProtocolError(f"{what}: it refused after {took_s * 1000:.0f} ms, and had to wait for {wait_s:g} s")


def renews_for_a_time(bench: AdapterBench) -> None:
    """version 2: a renewal with a lease makes it the remaining time"""
    one, facts = CallProgram(bench), bench_facts(bench)
    unit_ms = max(form.lease_unit_ms for form in facts.forms)
    one.granted("the lock is free")
    lease_ms, began = -(-GIVEN_MS // unit_ms) * unit_ms, time.monotonic()
    must_answer(one.ask("renew", lease_ms=lease_ms), "ok", "it holds the lock")
    left_ms = bench.lease_left_ms(facts.key_of(bench.resource))
    check_remaining_lease("a renewal with lease_ms", left_ms, lease_ms, unit_ms, began)


def answers_token(bench: AdapterBench) -> None:
    """version 2: token is that of the grant"""
    one = CallProgram(bench)
    granted, answer = one.granted("the lock is free"), must_answer(one.ask("token"), "ok", "it holds the lock")
    if answer.token != granted.token or answer.token is None:
        raise ProtocolError(f"it answered token with {answer.token}, and its grant had {granted.token}")


def reenters_as_said(bench: AdapterBench) -> None:
    """version 2: what re-enters holds until its last release"""
    one, two, facts = CallProgram(bench), CallProgram(bench), bench_facts(bench)
    pairs = [(mode, mode) for mode in facts.modes if mode != "permits" and "same" in facts.reenters]
    if "write-read" in facts.reenters:
        pairs.append(("write", "read"))
    rival = "write" if "write" in facts.modes else two.mode
    for number, (outer, inner) in enumerate(pairs, 1):
        resource = f"{bench.resource}-{number}"
        what = f"{inner} inside {outer}"
        one.granted(f"{what}: the lock is free", mode=outer, lock=number, resource=resource)
        one.granted(
            f"{what}: its hello says that it re-enters ({', '.join(facts.reenters)})",
            mode=inner,
            lock=number,
            resource=resource,
        )
        must_answer(one.ask("release", mode=inner, lock=number, resource=resource), "ok", f"{what}: the inner release")
        two.refused(f"{what}: the outer hold was not released", mode=rival, lock=number, resource=resource)
        must_answer(one.ask("release", mode=outer, lock=number, resource=resource), "ok", f"{what}: the outer release")
        two.granted(f"{what}: both were released", mode=rival, lock=number, resource=resource)


def shares_reads(bench: AdapterBench) -> None:
    """version 2: readers share the lock, and exclude a writer"""
    one, two, three = CallProgram(bench), CallProgram(bench), CallProgram(bench)
    one.granted("the lock is free", mode="read")
    two.granted("only a reader has the lock", mode="read")
    if "write" in one.facts.modes:
        three.refused("two readers have the lock", mode="write")
        must_answer(one.ask("release", mode="read"), "ok", "it reads")
        must_answer(two.ask("release", mode="read"), "ok", "it reads")
        three.granted("the readers have released the lock", mode="write")
        one.refused("a writer has the lock", mode="read")


def counts_permits(bench: AdapterBench) -> None:
    """version 2: as many hold it as there are permits"""
    programs = [CallProgram(bench, permits=2) for _ in range(3)]
    for program in programs[:2]:
        program.granted("a permit of two is free", mode="permits")
    programs[2].refused("both permits are taken", mode="permits")
    must_answer(programs[0].ask("release", mode="permits"), "ok", "it has a permit")
    programs[2].granted("a permit was given back", mode="permits")


def checks_of_calls(facts: AdapterFacts) -> list[Check]:
    claimed: list[tuple[bool, Check]] = [
        (facts.threads > 1, hosts_threads),
        (True, hosts_objects),
        (facts.modes != ("permits",), knows_owners),  # a permit may be given back by anybody
        (True, offers_forms),
        (facts.renew_lease and "renew" in facts.operations and facts.lease_key != "", renews_for_a_time),
        ("token" in facts.operations, answers_token),
        (len(facts.reenters) > 0, reenters_as_said),
        ("read" in facts.modes, shares_reads),
        ("permits" in facts.modes, counts_permits),
        (facts.cancel, cancels),
        (len(facts.over) > 0, asks_after_an_end),
        (len(facts.settings) > 0, opens_with_settings),
        (facts.loss_notice != "never" and facts.lease_key != "", tells_of_a_loss),
        (True, forgets),
    ]
    return [check for is_claimed, check in claimed if is_claimed]
