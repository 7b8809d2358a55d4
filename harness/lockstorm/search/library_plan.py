"""What to search of a library: a user's request, checked and completed to a plan before anything is started."""

import dataclasses
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lockstorm.base.durations import duration_text
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import check_range, choose, options_of
from lockstorm.locks.adapter import PREFIX, adapter_facts, adapter_path
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.fault_names import choose_fault, fault_names
from lockstorm.results.lock_entry import HostedLibrary, Service
from lockstorm.results.properties import current_name
from lockstorm.search.campaign import Shard, parse_shard
from lockstorm.search.library_schedule_file import LEASE_LIMIT_MS
from lockstorm.search.search_plan import SearchRequest
from lockstorm.servers.hosted_server import LEASE_LEAST_MS

PROMISES = {  # promise_name in checkers/promises; docs/promises.md defines each
    "mutual_exclusion": "a lock is never held by two owners at once, and a semaphore never by more than it has permits",
    "ownership": "who holds the lock can release and renew it, and nobody else can",
    "lease-too-short": "a lease lasts at least as long as was asked for",
    "lease-too-long": "a lease lasts no longer than was asked for",
    "lease-endless": "a lease has an end",
    "renewal": "the watchdog renews the lease as long as the lock is held, and no longer",
    "validity": "a grant is not spent when it is handed over",
    "wait": "an acquire answers within the time that it was given, and waits for as long",
    "token": "fencing tokens are there, unique, and rise",
    "refusal": "an acquire that was refused leaves nothing behind",
    "cancel": "an acquire that was cancelled leaves nothing behind",
    "liveness": "who waits for a lock that is free gets it",
    "residue": "nothing is left at the servers when everything has ended",
    "answer": "every call is answered",
}
USUAL = ("pause-client", "hold-request", "hold-reply", "drop-request", "lose-reply", "error-reply")
ONLY_REDIS = ("error-reply", "crash-server", "crash-server-empty")
USUAL_TOTAL, TOTAL_MOST = 2, 4  # LIBRARY_FAULTS_MOST
LEASE_USUAL_MS, PERMITS_USUAL = 2000, 2
SECONDS_USUAL = 60
SHRINK_RUNS = 300
SCHEDULES_MOST = 1 << 24
OPTIONS = (
    *("seed", "faults", "schedules", "seconds", "shard", "lease_ms", "permits", "require", "forms", "server"),
    *("workers", "keep_going"),
)


@dataclass(frozen=True)
class LibraryPlan:
    """A search that can begin."""

    adapter: str  # as --adapter names it
    library: HostedLibrary
    service: Service
    nodes: int
    seed: int
    faults: tuple[str, ...]
    faults_total: int
    schedules: int
    seconds: int  # 0: no limit
    lease_ms: int
    permits: int
    required: tuple[str, ...]
    forms: tuple[str, ...]  # of acquires that are drawn; empty: all
    server: str | None
    workers: int
    keep_going: bool
    shard: Shard  # of sessions
    said: tuple[str, ...]  # the options that were given, as words of a command

    @property
    def command(self) -> str:
        """The command that repeats this search."""
        return shlex.join(["lockstorm", "explore", "--adapter", self.adapter, *self.said])

    def command_without_clock(self, schedules: int) -> str:
        """The command that tries this many schedules, in place of a time limit: the same on a slower machine."""
        if not self.seconds or self.shard.of > 1:
            return self.command
        words = list(self.said)
        for limit in ("--schedules", "--time-limit"):
            if limit in words:
                del words[words.index(limit) : words.index(limit) + 2]
        at = 2 * sum(earlier in words for earlier in ("--seed", "--faults"))  # where `said` has it
        words[at:at] = ["--schedules", str(schedules)]
        return dataclasses.replace(self, said=tuple(words)).command

    @property
    def key(self) -> dict[str, Any]:
        """What identifies a campaign: the library, and the options that say what its schedules are."""
        faults = ",".join(self.faults) + (f"={self.faults_total - len(self.faults) + 1}" if self.faults else "none")
        return {
            "adapter": self.adapter,
            "library": f"{self.library.name} {self.library.version}".strip(),
            "seed": self.seed,
            "faults": "usual" if (self.faults, self.faults_total) == (usual_on(self.service), USUAL_TOTAL) else faults,
            "lease_ms": self.lease_ms,
            "permits": self.permits,
            "require": ",".join(self.required),
            "keep_going": self.keep_going,
            **({"forms": "; ".join(self.forms)} if self.forms else {}),
            **({"server": self.server} if self.server else {}),
        }


def plan_library_search(adapter: str, chosen: dict[str, Any]) -> LibraryPlan:
    """`chosen`: the options of `lockstorm explore` by their names; None: not given. UsageError for what does not apply
    to a library."""
    for name, value in chosen.items():
        if name not in OPTIONS and value not in (None, False):
            flag = options_of(SearchRequest)[name].flag
            raise UsageError(f"{flag} is not allowed with --adapter: a search of a library draws it, or has none")
    lock = lock_named(PREFIX + adapter)
    assert lock.adapter
    adapter_path(adapter)
    if chosen.get("server") and lock.service != "redis":
        raise UsageError(f"--server names a redis-server, and {adapter} lives on {lock.service}")
    faults, total = _faults(chosen.get("faults"), lock.service)
    schedules, seconds = chosen.get("schedules"), chosen.get("seconds")
    unit_ms = lock.lease_unit_ms or 1
    lease_ms = _usual_lease_ms(unit_ms) if chosen.get("lease_ms") is None else chosen["lease_ms"]
    least_ms = LEASE_LEAST_MS.get(lock.service, 1)
    if not least_ms <= lease_ms <= LEASE_LIMIT_MS or lease_ms % unit_ms:
        given, least, most, unit = map(duration_text, (lease_ms, least_ms, LEASE_LIMIT_MS, unit_ms))
        raise UsageError(f"--lease {given}: from {least} to {most}, a multiple of {unit}")
    for name in ("schedules", "seconds", "workers"):
        options_of(SearchRequest)[name].check(chosen.get(name))
    check_range("--permits", chosen.get("permits"), 1, 1000)
    return LibraryPlan(
        adapter=adapter,
        library=lock.adapter,
        service=lock.service,
        nodes=lock.nodes or 1,
        seed=1 if chosen.get("seed") is None else chosen["seed"],
        faults=faults,
        faults_total=total,
        schedules=schedules or SCHEDULES_MOST,
        seconds=seconds or (0 if schedules else SECONDS_USUAL),
        lease_ms=lease_ms,
        permits=chosen.get("permits") or PERMITS_USUAL,
        required=_required(chosen.get("require")),
        forms=_forms(chosen.get("forms"), adapter),
        server=chosen.get("server"),
        workers=chosen.get("workers") or os.cpu_count() or 1,
        keep_going=bool(chosen.get("keep_going")),
        shard=parse_shard(chosen["shard"]) if chosen.get("shard") else Shard(),
        said=tuple(_said(chosen)),
    )


def _usual_lease_ms(unit_ms: int) -> int:
    return -(-LEASE_USUAL_MS // unit_ms) * unit_ms


def faults_on(service: str) -> tuple[str, ...]:
    """The kinds of faults that can strike a library whose servers are of this service."""
    return tuple(name for name in fault_names("library") if service == "redis" or name not in ONLY_REDIS)


def usual_on(service: str) -> tuple[str, ...]:
    """Those of them that strike without --faults."""
    return tuple(name for name in USUAL if name in faults_on(service))


def _faults(text: str | None, service: str) -> tuple[tuple[str, ...], int]:
    """The kinds that may strike, and how many of all together at most."""
    if text in (None, "usual"):
        return usual_on(service), USUAL_TOTAL
    if text == "none":
        return (), 0
    kinds, total = [], 0
    for word in text.split(","):
        name, has_number, number = word.partition("=")
        if has_number and not number.isdecimal():
            raise UsageError(f"--faults {word}: a fault is NAME or NAME=N")
        kind = choose_fault(name, "library")
        if kind not in faults_on(service):
            raise UsageError(f"--faults {word}: on {service} there are {', '.join(faults_on(service))}")
        kinds.append(kind)
        total += int(number) if has_number else 1
    if not 1 <= total <= TOTAL_MOST:
        raise UsageError(f"--faults {text}: from 1 to {TOTAL_MOST} in all")
    return tuple(dict.fromkeys(kinds)), total


def _required(text: str | None) -> tuple[str, ...]:
    if text in (None, "usual"):
        return tuple(PROMISES)
    return tuple(choose("promise", current_name(name), list(PROMISES)) for name in text.split(","))


def _forms(text: str | None, adapter: str) -> tuple[str, ...]:
    """The forms of acquires to draw, each once; empty: all."""
    if text is None:
        return ()
    facts = adapter_facts(str(adapter_path(adapter)))
    known = [form.form for form in facts.forms] if facts else []
    return tuple(dict.fromkeys(choose(f"form of {adapter}", name.strip(), known) for name in text.split(";")))


def _said(chosen: dict[str, Any]) -> list[str]:
    """The options that were given, as words of a command."""
    words = []
    for name in OPTIONS:
        option, value = options_of(SearchRequest)[name], chosen.get(name)
        if value not in (None, False):
            words += [option.flag] if value is True else [option.flag, option.text(value)]
    return words


def context_words(adapter: str, lease_ms: int, permits: int, seed: int) -> list[str]:
    """The arguments of the program that searches and replays."""
    words = ["--adapter", str(adapter_path(adapter)), "--lease-ms", str(lease_ms), "--permits", str(permits)]
    return [*words, "--seed", str(seed)]


def search_words(plan: LibraryPlan) -> list[str]:
    words = context_words(plan.adapter, plan.lease_ms, plan.permits, plan.seed)
    for fault in plan.faults:
        words += ["--fault", fault]
    for form in plan.forms:
        words += ["--form", form]
    words += ["--faults-total", str(plan.faults_total)] if plan.faults_total else []
    words += ["--require", ",".join(plan.required), "--shrink", str(SHRINK_RUNS)]
    return [*words, "--keep-going"] if plan.keep_going else words


def required_of(promises: Sequence[str]) -> tuple[str, ...]:
    """The promises that a replay is judged by: those that the schedule was said to break, or all."""
    return tuple(name for name in promises if name in PROMISES) or tuple(PROMISES)
