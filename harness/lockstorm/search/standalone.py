"""A schedule of a library as a stand-alone program in the library's own language, against a plain server, for those
who maintain the library. The phrases of a library stand in `standalone.toml` beside its adapter; the frame of each
language in a template beside this file."""

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import msgspec

from lockstorm.base.errors import UsageError
from lockstorm.base.text_template import text_template
from lockstorm.locks.adapter import SHIPPED, adapter_facts, adapter_path
from lockstorm.results.call_event import BrokenPromise
from lockstorm.search.replay import ReplayedLibrary
from lockstorm.search.schedule_file import LibrarySchedule
from lockstorm.search.standalone_plan import Call, Plan, Proof, standalone_plan
from lockstorm.servers.lacking_commands import lacking_options

FILE = "standalone.toml"
LANGUAGES = ("python", "java", "js", "go")  # each has a template
PROGRAMS = {"python": "found.py", "java": "Found.java", "js": "found.mjs", "go": "found.go"}
COMMENTS = {"python": "#", "java": "//", "js": "//", "go": "//"}
NAMES = {"python": "client_{}_lock_{}"}  # of lock objects; the others write them in camel case


class Phrases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How calls of a library are written in its language. In each, `$client`, `$lock`, `$resource`, `$wait_ms`,
    `$wait_s`, `$lease_ms`, `$lease_s`, `$permits`, `$default_ms` and `$default_s` stand for what a call says; a wait
    without a limit and a lease that is not given are -1. `$wait` and `$lease` stand for a phrase of `waits` and
    `leases`. `$$` is a dollar."""

    language: str
    install: str  # a command; `$version` is the library's
    run: str  # a command; `$file` is the program
    imports: str
    client: str  # makes the library's client of one process
    lock: str  # makes a lock object
    acquire: dict[str, str]  # by the form, as the adapter's hello names it
    remaining: str  # how many ms the key `$key` remains; -1: for ever, -2: the key is gone
    made: str = ""  # what a new lock object needs
    waits: dict[str, str] = {}  # by "none", "time", "forever"
    leases: dict[str, str] = {}  # by "given", "renewed", "endless", "default"
    release: str = ""
    renew: str = ""
    renew_default: str = ""  # without a lease
    is_held: str = ""
    refused: str = ""  # a condition on `error`: it says "not granted" or "not yours"
    modes: dict[str, str] = {}  # the part of the lock object that a mode uses; without: `$lock`
    lock_type: str = ""
    client_type: str = ""


def phrases_of(adapter: str) -> Phrases:
    """The phrases of an adapter's library; UsageError if the file is missing or wrong."""
    file = adapter_path(adapter).parent / FILE
    if not file.is_file():
        raise UsageError(f"--as: {adapter} has no {FILE} beside its program, which says how its calls are written")
    values = _read(file)
    if like := values.pop("like", None):
        other = _read(SHIPPED / str(like) / FILE)
        values = {**other, **values, "acquire": {**other["acquire"], **values.get("acquire", {})}}
    try:
        phrases = msgspec.convert(values, Phrases)
    except msgspec.ValidationError as error:
        raise UsageError(f"{file}: {error}") from None
    if phrases.language not in LANGUAGES:
        raise UsageError(f"{file}: the language {phrases.language!r} is not one of {', '.join(LANGUAGES)}")
    return phrases


def _read(file: Path) -> dict[str, Any]:  # TOML, before two files are joined
    try:
        return tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: {error}") from None


def check_standalone(schedule: LibrarySchedule, language: str) -> Phrases:
    """The phrases of a schedule's library. UsageError when its language is another, or when the schedule does not
    consist of calls and their times alone."""
    phrases = phrases_of(schedule.adapter)
    if language != phrases.language:
        raise UsageError(f"--as {language}: {schedule.library} is a library for {phrases.language}")
    if schedule.servers.one_node_cluster:
        raise UsageError(f"--as {language}: a program is run against a plain server, and the schedule needs a cluster")
    if schedule.deviations:
        raise UsageError(
            f"--as {language}: a program against a plain server cannot bring about this deviation of the schedule: "
            f"{schedule.deviations[0]}"
        )
    return phrases


def standalone_program(schedule: LibrarySchedule, result: ReplayedLibrary, language: str) -> str:
    """The text of the program. `result`: of replay_library. UsageError as of check_standalone, and when timing alone
    does not show the promise that is broken."""
    phrases = check_standalone(schedule, language)
    broken = result.required_evidence
    plan = standalone_plan(result.events, broken[0] if broken else None)
    if language == "python" and any(step.cancels for step in plan.steps):
        raise UsageError("--as python: the schedule cancels a call, and Python ends no thread's call")
    facts = adapter_facts(str(adapter_path(schedule.adapter)))
    writer = _Writer(phrases, schedule, facts.lease_key if facts else "")
    return text_template(Path(__file__).with_suffix(f".{language}.j2")).render(
        head=_head(phrases, schedule, result, broken),
        sentence=re.sub(r"[\\\"]", "'", result.sentence),
        phrases=phrases,
        plan=plan,
        connecting=Template(phrases.client).substitute(default_ms=schedule.lease_ms).strip(),
        clients=sorted({client for client, _ in plan.threads}),
        writer=writer,
    )


def _head(phrases: Phrases, schedule: LibrarySchedule, result: ReplayedLibrary, broken: Sequence[BrokenPromise]) -> str:
    version = result.library.version
    file = PROGRAMS[phrases.language]
    lacking = shlex.join(lacking_options(schedule.servers.without))
    lines = [
        f"{schedule.library}, on an empty redis-server{f' {lacking}' if lacking else ''} and without any fault:",
        result.sentence,
        "",
        "The calls, with their times, are those of a schedule that lockstorm found. Exit status: 1 if this run shows",
        f"that {broken[0].promise.replace('_', ' ') if broken else 'a promise'} is broken, otherwise 0.",
        "",
        f"install: {Template(phrases.install).substitute(version=version)}",
        f"run:     {Template(phrases.run).substitute(file=file)} [PORT ...]    (of redis-servers here; 6379)",
    ]
    return "\n".join(f"{COMMENTS[phrases.language]} {line}".rstrip() for line in lines)


class _Writer:
    """Writes calls in the language of a library."""

    def __init__(self, phrases: Phrases, schedule: LibrarySchedule, lease_key: str) -> None:
        self.phrases, self.schedule, self.lease_key = phrases, schedule, lease_key
        self.made = set[str]()

    def lock(self, call: Call) -> str:
        """The name of the variable with the lock object."""
        pattern = NAMES.get(self.phrases.language, "client{}Lock{}")
        return pattern.format(call.ask.client, call.ask.lock)

    def locks(self, plan: Plan) -> list[tuple[str, str]]:
        """The variables with lock objects, and their types."""
        return sorted({(self.lock(call), self.phrases.lock_type) for call in plan.calls})

    def condition(self, conditions: Mapping[str, str], proof: Proof | None) -> str:
        """The expression that is true when the promise is broken. `conditions`: of the language, by Proof.kind."""
        number = proof.number if proof else 0
        kind = f"{proof.kind} before" if proof and proof.before else proof.kind if proof else "kept"
        return Template(conditions[kind]).substitute(
            number=number,
            before=proof.before if proof else 0,
            outcome=proof.outcome if proof else "",
            limit=proof.limit_ms if proof else 0,
        )

    def making(self, call: Call) -> str:
        """The expression that makes the lock object of a call; empty if an earlier call has made it."""
        if self.lock(call) in self.made:
            return ""
        self.made.add(self.lock(call))
        return self.filled(self.phrases.lock, call)

    def call(self, call: Call) -> str:
        verb = call.ask.call
        if verb == "renew" and call.ask.lease != "given":
            return self.filled(self.phrases.renew_default, call)
        if verb != "acquire":
            return self.filled(getattr(self.phrases, verb), call)
        form = call.ask.form
        if form not in self.phrases.acquire:
            raise UsageError(f"--as {self.phrases.language}: {FILE} does not say how {form!r} is written")
        return self.filled(self.phrases.acquire[form], call)

    def remaining(self, resource: int, client: str) -> str:
        key = self.lease_key.replace("{resource}", f"resource-{resource}")
        return Template(self.phrases.remaining).substitute(client=client, key=key)

    def filled(self, phrase: str, call: Call) -> str:
        ask, default_ms = call.ask, self.schedule.lease_ms
        wait, lease = ask.wait or "none", ask.lease or "default"
        wait_ms = ask.wait_ms if wait == "time" else {"none": 0}.get(wait, -1)
        lease_ms = default_ms if lease == "default" else ask.lease_ms or -1
        values = {
            "client": NAMES.get(self.phrases.language, "client{}").replace("_lock_{}", "").format(ask.client),
            "lock": Template(self.phrases.modes.get(ask.mode, "$lock")).substitute(lock=self.lock(call)),
            "resource": f"resource-{ask.resource}",
            "wait_ms": wait_ms,
            "wait_s": _seconds(wait_ms),
            "lease_ms": lease_ms,
            "lease_s": _seconds(lease_ms),
            "default_ms": default_ms,
            "default_s": _seconds(default_ms),
            "permits": self.schedule.permits,
        }
        values["wait"] = Template(self.phrases.waits.get(wait, "")).substitute(values)
        leases = self.phrases.leases
        values["lease"] = Template(leases.get(lease) or leases.get("given", "")).substitute(values)
        return Template(phrase).substitute(values)


def _seconds(ms: int) -> str:
    return f"{ms / 1000:g}" if ms >= 0 else "-1"
