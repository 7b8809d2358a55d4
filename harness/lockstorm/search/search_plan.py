"""What to search: a user's request, checked and completed to a plan before anything is started."""

import os
from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path

from lockstorm.application.application_file import read_application
from lockstorm.base.durations import duration_text
from lockstorm.base.errors import UsageError
from lockstorm.base.option_fields import check_range, check_ranges, choose, option, options_of
from lockstorm.locks.adapter import PREFIX, adapter_path, is_adapter
from lockstorm.locks.lock_names import APP_PREFIX, AS_ASKED, is_application, lock_named
from lockstorm.locks.waiting import noticed_ms, recovered_ms
from lockstorm.native.fault_names import choose_fault
from lockstorm.results.lock_entry import LockEntry
from lockstorm.results.properties import PROPERTIES, SORTS, property_of, with_capacity
from lockstorm.search.application_plan import application_budget, application_entry, application_properties
from lockstorm.search.campaign import SearchKey, Shard, parse_shard
from lockstorm.search.library_plan import (
    PERMITS_USUAL,
    drawn_forms,
    library_budget,
    library_lease_ms,
    required_promises,
)
from lockstorm.search.schedule_file import (
    CLIENTS_MOST,
    REPLICAS_MOST,
    VARIES_OPERATIONS,
    VARIES_PATIENCE,
    VARIES_TURNS,
    VARIES_WORK,
    ApplicationContext,
    HostedContext,
    LibraryContext,
    ScheduleContext,
    ServerKind,
    check_explorable,
)
from lockstorm.search.usual_search import USUAL, USUAL_TOTAL, steady_requirements, usual_faults, usual_requirements
from lockstorm.servers.lacking_commands import LACKING_HELP, lacking_commands
from lockstorm.trial.settings import LEASE_LIMIT_MS, PERMIT_LIMIT, SEED_LIMIT, SERVER_HELP, WAIT_FOR_EVER, TrialSettings

OF_REPLICAS = ("failover", "stall-replica")
LOSE_CONNECTIONS = ("failover", "crash-server", "crash-server-empty")
PORTFOLIO = "portfolio"
EXHAUSTIVE = "exhaustive"
NOVELTY = "novelty"
STRATEGIES = (PORTFOLIO, NOVELTY, "uniform", "pct", "usual", "exchange", EXHAUSTIVE)
USUALLY = ("mutual_exclusion", "integrity", "fencing")  # what is required of a search whose faults the user chose
LIVENESS = "liveness"  # judged only if it is required: schedules then end with a phase without faults
FAIRNESS = "fairness"  # judged only if it is required, in schedules in which no fault strikes
JUDGED = (*USUALLY, "ownership", "capacity", "lease", LIVENESS, FAIRNESS)
SET_CLOCKS = ("clock-jump", "client-clock-jump")
JUMP_LEASES = 3  # the furthest jump of a clock: STRATEGY draws half a lease to three
REPLY_LIMIT_MS = 1000  # of the explored environment
FAULTS_MOST = 16  # STRATEGY_FAULTS
SCHEDULES_MOST = 1 << 24
SECONDS_USUAL = 10
SECONDS_OF_LIBRARY = 60
SECONDS_MOST = 24 * 3600
TURNS_MOST = 1000
WORKERS_MOST = 64
CLIENTS_USUAL = 3
LEASE_USUAL_MS = 1000
LEASE_OF_USUAL_MS = 3000  # of usual faults: a reply is known to be lost before the lease ends (REPLY_LIMIT_MS)
DEVIATIONS_USUAL = 2
TURNS_OF_LOSS = 2  # the first command of a client after its connection was lost fails
TURNS_OF_ORDER = 2  # all clients ask at the same moment first, and only later one after the other
WORK_PARTS = 50  # a client works for this part of a lease between its read and its write
OPTIONS_OF_LIBRARIES = (
    *(
        "seed",
        "faults",
        "schedules",
        "seconds",
        "shard",
        "lease_ms",
        "permits",
        "require",
        "excepted",
        "forms",
        "server",
        "without",
        "one_node_cluster",
    ),
    *("workers", "keep_going", "strategy", "deviations"),
)
OPTIONS_OF_APPLICATIONS = tuple(
    name for name in OPTIONS_OF_LIBRARIES if name not in ("permits", "forms", "server", "without", "one_node_cluster")
)
WAIT_LEASES = 20  # how long a client waits for the lock, so that a schedule ends although nobody releases it


@dataclass(frozen=True)
class SearchRequest:
    """What the user asked for; None: the default. The command that repeats a search has the options in this order."""

    lock: str
    seed: int = option(
        "--seed",
        "Seed; the same seed tries the same schedules. Default: 1.",
        "number",
        default=1,
        within=(0, SEED_LIMIT),
        is_repeated=True,
    )
    store: str | None = option(
        "--store",
        "What the resource checks: open (nothing), fence-writes, fence-reads-and-writes, compare-owner or "
        "compare-and-set. Default: open.",
        metavar="MODE",
    )
    clients: int | None = option("--clients", "Number of clients. Default: 3.", "number", within=(1, CLIENTS_MOST))
    replicas: int | None = option(
        "--replicas",
        "Replicas of each node, at most 2. Default: as the lock or a fault needs.",
        "number",
        within=(0, REPLICAS_MOST),
    )
    faults: str | None = option(
        "--faults",
        "Faults to inject, each at most N times (default 1) in a schedule (`lockstorm faults` lists them); or none; or "
        f"usual, the default: at most {USUAL_TOTAL} in all, of those that a right lock of this kind survives.",
        metavar="FAULT[=N],…",
    )
    schedules: int | None = option("--schedules", "Number of schedules to try.", "number", within=(1, SCHEDULES_MOST))
    seconds: int | None = option(
        "--time-limit",
        "Longest time to search, such as 2min. Default without --schedules: 10s; with --adapter 60s.",
        "duration",
        unit="s",
        within=(1, SECONDS_MOST),
    )
    shard: str | None = option(
        "--shard", "Try every N-th schedule, from the K-th on; `lockstorm merge` joins shards.", metavar="K/N"
    )
    strategy: str = option(
        "--strategy",
        "How steps are chosen: docs/explore.md describes each; novelty changes schedules that reached new states. "
        "Default: portfolio.",
        default=PORTFOLIO,
        metavar="|".join(STRATEGIES),
    )
    deviations: int | None = option(
        "--deviations",
        "Most deviations in a schedule of --strategy exhaustive. Default: 2.",
        "number",
        within=(1, FAULTS_MOST),
    )
    lease_ms: int | None = option(
        "--lease",
        f"Lease of the lock. Default: {duration_text(LEASE_USUAL_MS)}; with the usual faults "
        f"{duration_text(LEASE_OF_USUAL_MS)}.",
        "duration",
        within=(1, LEASE_LIMIT_MS),
    )
    bound_ms: int | None = option(
        "--bound",
        "Recovery, where liveness is required: how long a free lock may stay unclaimed. Default: as long as the lock's "
        "pattern promises, and what the faults may add to it.",
        "duration",
        within=(1, LEASE_LIMIT_MS),
    )
    turns: int | None = option(
        "--turns",
        "Times that each client acquires the lock. Default: 1; 2 if a fault loses connections or fairness is required.",
        "number",
        within=(1, TURNS_MOST),
    )
    work_ms: int | None = option(
        "--work",
        "Work between a client's read and its write. Default: lease / 50.",
        "duration",
        within=(0, LEASE_LIMIT_MS),
    )
    wait_ms: int | None = option(
        "--wait",
        "Time that a client waits for the lock; forever: as long as the lock itself waits. Default: 20 leases.",
        "duration",
        within=(WAIT_FOR_EVER, LEASE_LIMIT_MS),
    )
    permits: int | None = option(
        "--permits",
        "Permits of a semaphore. Default: 1; with the usual faults, or with --adapter, 2.",
        "number",
        within=(1, PERMIT_LIMIT),
    )
    require: str | None = option(
        "--require",
        f"Properties that a schedule must not violate, of {', '.join(JUDGED)} (the last one only with --faults none), "
        "or single sorts of their violations, as in "
        "lease/premature-grant (docs/verdicts.md); or usual, the default with --faults usual: what only a broken lock "
        "of this kind violates. Default otherwise: mutual_exclusion, integrity, and fencing if the lock gives tokens.",
        metavar="PROPERTY[/SORT],…",
    )
    excepted: str | None = option(
        "--except",
        "Of what is required by default or with --require, all but these: properties, sorts of their violations, or "
        "with --adapter promises. So that a finding that is known does not end the search before others are found.",
        metavar="PROPERTY[/SORT],…",
    )
    forms: str | None = option(
        "--forms",
        "With --adapter: draw acquires of these forms only, as the adapter's hello names them, separated by "
        "semicolons: 'lock(); tryLock()'. Default: all that it has.",
        metavar="FORM;…",
    )
    server: str | None = option("--server", SERVER_HELP, metavar="PROGRAM")
    without: str | None = option("--without", LACKING_HELP, "names", metavar="COMMAND")
    workers: int | None = option(
        "--workers", "Processes that search in parallel. Default: one per core.", "number", within=(1, WORKERS_MOST)
    )
    one_node_cluster: bool = option(
        "--one-node-cluster",
        "Let each redis-server be a cluster of one node, as behind a proxy or the one address of a hosted cluster: it "
        "refuses commands with keys of different slots (CROSSSLOT).",
        "flag",
    )
    fixed_lease: bool = option("--fixed-lease", "Disable the lock's watchdog.", "flag")
    extends: bool = option("--extends", "Let clients extend their lease in the middle of their work.", "flag")
    checks_validity: bool = option(
        "--checks-validity",
        "Let clients look at their clock before each write, and not write when the stated validity is over. With a "
        "lock that states none they always write.",
        "flag",
    )
    varied: bool = option(
        "--varied",
        "Draw from the seed what each client does: how long it works (up to 0.9 of a lease, 2.5 where the lock renews "
        "it), how often and how patiently it asks, renewals, re-entry. What another option fixes stays fixed.",
        "flag",
    )
    keep_going: bool = option(
        "--all", "Search on after a violation, and group violations by what they violate.", "flag"
    )
    build: str | None = None  # of a plug-in, or the release of a library, that a resumed campaign has tried


@dataclass(frozen=True)
class SearchPlan:
    """A search that can begin. The type of its context says whether it is of a C lock or of a library."""

    request: SearchRequest
    lock: LockEntry
    context: ScheduleContext | HostedContext
    budget: dict[str, int]  # the most faults of each kind in a schedule
    faults_total: int  # the most of all kinds together; 0: only the budget limits them
    required: tuple[str, ...]  # properties, and sorts of their violations as property/sort; promises of a library
    steadily: tuple[str, ...]  # properties that are required of schedules with one fault at most, and none that lasts
    schedules: int
    seconds: int  # 0: no time limit
    workers: int
    shard: Shard  # of schedules; of a library of sessions
    forms: tuple[str, ...] = ()  # of a library's acquires that are drawn; empty: all

    @property
    def required_names(self) -> tuple[str, ...]:
        """The properties that are required, whole or in part."""
        return tuple(dict.fromkeys(map(property_of, (*self.required, *self.steadily))))

    @property
    def is_usual(self) -> bool:
        """Whether the faults are those that the lock's traits choose."""
        return chooses_faults(self.request.faults)

    @property
    def of_lock(self) -> ScheduleContext:
        assert isinstance(self.context, ScheduleContext)
        return self.context

    @property
    def key(self) -> SearchKey:
        """What identifies a campaign: the request, completed, without how much of it is tried where."""
        request, context = self.request, self.context
        faults = ",".join(f"{name}={most}" for name, most in self.budget.items())
        key: SearchKey = {
            "lock": request.lock,
            "seed": request.seed,
            "lease_ms": context.lease_ms,
            "faults": USUAL if self.is_usual else faults or "none",
            "require": _required_key(self),
            "keep_going": request.keep_going,
            "excepted": request.excepted,
            "build": _build_of(self.lock),
            "server": request.server,
            "without": ",".join(context.servers.without) or None,
            "one_node_cluster": request.one_node_cluster or None,
        }
        if isinstance(context, HostedContext):
            if isinstance(context, LibraryContext):
                key |= {"permits": context.permits, "forms": "; ".join(self.forms) or None}
            if request.strategy != PORTFOLIO:
                key["strategy"] = request.strategy
        else:
            names = ("work_ms", "wait_ms", "permits", "bound_ms", "fixed_lease", "extends", "checks_validity", "varied")
            key |= {name: getattr(context, name) for name in ("store", "clients", "replicas")}
            key |= {name: getattr(request, name) for name in ("strategy", *names)}
            key["turns"] = request.turns if context.varied else context.turns
        if request.strategy == EXHAUSTIVE:
            key["deviations"] = request.deviations or DEVIATIONS_USUAL
        return {name: value for name, value in key.items() if value is not None}


def _required_key(plan: SearchPlan) -> str | None:
    request = plan.request
    if requires_usual(request) and isinstance(plan.context, ScheduleContext):
        return USUAL  # what is required of steady schedules has no other name
    return request.require or (None if request.excepted else ",".join(plan.required))


def plan_search(request: SearchRequest) -> SearchPlan:
    """Checks everything that can be checked before anything is started."""
    if is_application(request.lock):
        return _application_plan(request)
    return _library_plan(request) if is_adapter(request.lock) else _lock_plan(request)


def _application_plan(request: SearchRequest) -> SearchPlan:
    check_ranges(request)
    _check_applies(request, OPTIONS_OF_APPLICATIONS, "--app")
    _check_strategy(request)
    file = request.lock.removeprefix(APP_PREFIX)
    application = read_application(Path(file))
    budget, total = application_budget(request.faults, application)
    required, excepted = application_properties(request.require), request.excepted
    return SearchPlan(
        request=request,
        lock=application_entry(application),
        context=ApplicationContext(
            app=file,
            application=application.name,
            lease_ms=request.lease_ms or application.lease_ms,
            seed=request.seed,
        ),
        budget=budget,
        faults_total=total,
        required=_all_but(required, application_properties(excepted) if excepted else ()),
        steadily=(),
        schedules=request.schedules or SCHEDULES_MOST,
        seconds=request.seconds or (0 if request.schedules else SECONDS_OF_LIBRARY),
        workers=_workers(request),
        shard=parse_shard(request.shard) if request.shard else Shard(),
    )


def _library_plan(request: SearchRequest) -> SearchPlan:
    check_ranges(request)
    _check_applies(request, OPTIONS_OF_LIBRARIES, "--adapter")
    _check_strategy(request)
    adapter = request.lock.removeprefix(PREFIX)
    lock = lock_named(request.lock)
    adapter_path(adapter)
    of_redis = ("server", "without", "one_node_cluster")
    for flag, given in ((options_of(request)[name].flag, getattr(request, name)) for name in of_redis):
        if given and lock.service != "redis":
            raise UsageError(f"{flag} is about redis-servers, and {adapter} lives on {lock.service}")
    _check_build(request, lock)
    budget, total = library_budget(request.faults, lock)
    return SearchPlan(
        request=request,
        lock=lock,
        context=LibraryContext(
            adapter=adapter,
            library=_build_of(lock) or "",
            lease_ms=library_lease_ms(lock, request.lease_ms),
            permits=request.permits or PERMITS_USUAL,
            seed=request.seed,
            servers=_servers(request, lock),
        ),
        budget=budget,
        faults_total=total,
        required=_all_but(required_promises(request.require), _excepted_promises(request.excepted)),
        steadily=(),
        schedules=request.schedules or SCHEDULES_MOST,
        seconds=request.seconds or (0 if request.schedules else SECONDS_OF_LIBRARY),
        workers=_workers(request),
        shard=parse_shard(request.shard) if request.shard else Shard(),
        forms=drawn_forms(request.forms, adapter),
    )


def _check_applies(request: SearchRequest, allowed: Collection[str], flag: str) -> None:
    """UsageError for an option that a search of a library, or of an application, has no use for."""
    known = options_of(request)
    for each in fields(request):
        if each.name in known and each.name not in allowed and getattr(request, each.name) != each.default:
            raise UsageError(f"{known[each.name].flag} is not allowed with {flag}: such a search draws it, or has none")


def _lock_plan(request: SearchRequest) -> SearchPlan:
    lock, store = check_explorable(
        TrialSettings(
            request.lock,
            "explore",
            store=request.store,
            seed=request.seed,
            lease_ms=request.lease_ms,
            permits=request.permits,
            fixed_lease=request.fixed_lease,
            server=request.server,
        )
    )
    _check_build(request, lock)
    check_ranges(request)
    if request.forms is not None:
        raise UsageError(
            "--forms: what a library can be asked for has forms, a lock has one; --adapter names a library"
        )
    _check_strategy(request)
    by_traits = chooses_faults(request.faults)
    budget = dict.fromkeys(usual_faults(lock), USUAL_TOTAL) if by_traits else fault_budget(str(request.faults))
    required, steadily = _required(request, lock, store)
    if request.extends and not lock.renewable:
        raise UsageError(f"--extends is for locks that their holders can extend, and {lock.name} is not one")
    names = {*map(property_of, required)}
    if LIVENESS in names and request.wait_ms == WAIT_FOR_EVER:
        raise UsageError("--wait forever with --require liveness: a schedule with a forgotten waiter would not end")
    if request.bound_ms and LIVENESS not in names:
        raise UsageError("--bound is for a search that requires liveness: --require liveness")
    if FAIRNESS in names and not requires_usual(request):
        _check_order(lock, budget)
    context = _context(request, lock, store, budget, names)
    shard = parse_shard(request.shard) if request.shard else Shard()
    if request.schedules and shard.first >= request.schedules:
        raise UsageError(f"--schedules {request.schedules} leaves nothing to --shard {request.shard}")
    unlimited = request.schedules is None and request.seconds is None and request.strategy != EXHAUSTIVE
    return SearchPlan(
        request=request,
        lock=lock,
        context=context,
        budget=budget,
        faults_total=USUAL_TOTAL if by_traits else 0,
        required=required,
        steadily=steadily,
        schedules=request.schedules or SCHEDULES_MOST,
        seconds=SECONDS_USUAL if unlimited else request.seconds or 0,
        workers=_workers(request),
        shard=shard,
    )


def _check_build(request: SearchRequest, lock: LockEntry) -> None:
    now = _build_of(lock)
    if request.build not in (None, now):
        raise UsageError(f"{lock.name} is another build now: {request.build} was tried, and here is {now}")


def _build_of(lock: LockEntry) -> str | None:
    """What a campaign of a lock that is not of this project depends on."""
    if lock.adapter:
        return f"{lock.adapter.name} {lock.adapter.version}".strip()
    return lock.plugin.version if lock.plugin else None


def _check_strategy(request: SearchRequest) -> None:
    choose("strategy", request.strategy, list(STRATEGIES))
    exhaustive = request.strategy == EXHAUSTIVE
    if request.deviations and not exhaustive:
        raise UsageError("--deviations is for --strategy exhaustive")
    if exhaustive and request.shard:
        raise UsageError("--strategy exhaustive goes from one schedule to the next: it has no shards")
    if request.strategy == NOVELTY and request.shard:
        raise UsageError("--strategy novelty learns from one schedule to the next: it has no shards")
    if exhaustive and request.workers and request.workers > 1:
        raise UsageError("--strategy exhaustive goes from one schedule to the next: --workers 1")


def _workers(request: SearchRequest) -> int:
    return 1 if request.strategy == EXHAUSTIVE else request.workers or len(os.sched_getaffinity(0))


def _check_order(lock: LockEntry, budget: dict[str, int]) -> None:
    if not lock.fair:
        raise UsageError(f"--require fairness is for locks that promise an order; {lock.name} does not")
    if budget:
        raise UsageError("--require fairness needs --faults none: a fault may keep a waiter out of its queue")


def _usual_turns(budget: dict[str, int], required: Collection[str]) -> int:
    return max(
        TURNS_OF_LOSS if {*budget} & {*LOSE_CONNECTIONS} else 1,
        TURNS_OF_ORDER if FAIRNESS in required else 1,
    )


def _context(
    request: SearchRequest, lock: LockEntry, store: str, budget: dict[str, int], required: Collection[str]
) -> ScheduleContext:
    lease_ms = request.lease_ms or (LEASE_OF_USUAL_MS if chooses_faults(request.faults) else LEASE_USUAL_MS)
    return ScheduleContext(
        lock=lock.name,
        store=store,
        clients=request.clients or CLIENTS_USUAL,
        replicas=_replicas(request, lock, budget),
        turns=request.turns or _usual_turns(budget, required),
        permits=_permits(request, lock),
        fixed_lease=int(request.fixed_lease),
        extends=int(request.extends),
        checks_validity=int(request.checks_validity),
        in_order=int(FAIRNESS in required),
        varied=_varied(request) if request.varied or chooses_faults(request.faults) else 0,
        lease_ms=lease_ms,
        wait_ms=WAIT_LEASES * lease_ms if request.wait_ms is None else request.wait_ms,
        bound_ms=(request.bound_ms or _bound_ms(lock, lease_ms, budget)) if LIVENESS in required else 0,
        calm_bound_ms=_calm_bound_ms(request, lock) if LIVENESS in required else 0,
        work_ms=lease_ms // WORK_PARTS if request.work_ms is None else request.work_ms,
        seed=request.seed,
        servers=_servers(request, lock),
    )


def _servers(request: SearchRequest, lock: LockEntry) -> ServerKind:
    if request.one_node_cluster and lock.adapter and lock.adapter.topology == "sentinel":
        raise UsageError("--one-node-cluster: the nodes of a cluster have no sentinels")
    return ServerKind(lacking_commands(request.without, request.server), request.one_node_cluster)


def _permits(request: SearchRequest, lock: LockEntry) -> int:
    """A semaphore that counts wrong may be right with one permit."""
    several = chooses_faults(request.faults) and lock.capacity == AS_ASKED
    return request.permits or (PERMITS_USUAL if several else 1)


def _varied(request: SearchRequest) -> int:
    """What is drawn for each client: all that the user has not fixed."""
    return (
        VARIES_OPERATIONS
        + (VARIES_WORK if request.work_ms is None else 0)
        + (VARIES_TURNS if request.turns is None else 0)
        + (VARIES_PATIENCE if request.wait_ms is None else 0)
    )


def _bound_ms(lock: LockEntry, lease_ms: int, budget: dict[str, int]) -> int:
    """How long a free lock may stay unclaimed: what its pattern promises, and what the faults of the search may add to
    it. A clock that jumped may have made an expiry longer by as much."""
    promised_ms = noticed_ms(lock)
    if not budget and promised_ms is not None:
        return promised_ms
    jumps = sum(budget.get(fault, 0) for fault in SET_CLOCKS)
    return recovered_ms(lock, lease_ms, REPLY_LIMIT_MS) + jumps * JUMP_LEASES * lease_ms


def _calm_bound_ms(request: SearchRequest, lock: LockEntry) -> int:
    """The same of schedules in which none of the usual faults strikes."""
    promised_ms = noticed_ms(lock) or 0
    return 0 if request.bound_ms or not chooses_faults(request.faults) else promised_ms


def _replicas(request: SearchRequest, lock: LockEntry, budget: dict[str, int]) -> int:
    """Replicas of each node: as many as the user asked for, else as the lock or a fault needs."""
    of_replicas = [fault for fault in budget if fault in OF_REPLICAS]
    if request.replicas == 0 and of_replicas:
        raise UsageError(f"--faults {of_replicas[0]} needs a replica")
    if request.replicas is not None and request.replicas < lock.replicas:
        raise UsageError(f"--replicas {request.replicas}: {lock.name} needs {lock.replicas}")
    return max(lock.replicas, int(bool(of_replicas))) if request.replicas is None else request.replicas


def chooses_faults(faults: str | None) -> bool:
    """Whether the lock's traits choose the faults."""
    return faults in (None, USUAL)


def fault_budget(faults: str) -> dict[str, int]:
    """ "pause-client,kill-client=2": at most one pause and two kills in a schedule; "none": no faults."""
    budget: dict[str, int] = {}
    for word in faults.split(","):
        name, _, most = word.strip().partition("=")
        if name == "none" and faults == "none":
            continue
        name = choose_fault(name, "simulation")
        if most and not most.isdecimal():
            raise UsageError(f"--faults {word}: {most!r} is not a number")
        budget[name] = int(most or 1)
        check_range(f"--faults {name}", budget[name], 1, FAULTS_MOST)
    if sum(budget.values()) > FAULTS_MOST:
        raise UsageError(f"--faults: {sum(budget.values())} in one schedule are too many, {FAULTS_MOST} at most")
    return budget


def replayed_properties(lock: LockEntry, permits: int | None) -> tuple[str, ...]:
    """The properties that one schedule, or a search with faults of the user's choice, must not violate by default."""
    return tuple(name for name in with_capacity(USUALLY, permits) if name != "fencing" or lock.token)


def requires_usual(request: SearchRequest) -> bool:
    """Whether the lock's traits choose what is required."""
    return request.require == USUAL or (request.require is None and chooses_faults(request.faults))


def required_properties(request: SearchRequest, lock: LockEntry, store: str) -> tuple[str, ...]:
    """The properties that a schedule must not violate, and sorts of their violations as property/sort."""
    if requires_usual(request):
        return usual_requirements(lock, _permits(request, lock), store)
    if request.require is None:
        return replayed_properties(lock, request.permits)
    return tuple(_required_word(word.strip().replace("-", "_")) for word in request.require.split(","))


def _excepted_promises(text: str | None) -> tuple[str, ...]:
    return required_promises(text) if text else ()


def _excepted_properties(text: str | None) -> tuple[str, ...]:
    return tuple(_required_word(word.strip().replace("-", "_")) for word in text.split(",")) if text else ()


def _required(request: SearchRequest, lock: LockEntry, store: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is required of each schedule, and besides of the steady ones."""
    excepted, steadily = _excepted_properties(request.excepted), _steadily(request, lock)
    required = _all_but(required_properties(request, lock, store), excepted, steadily)
    return required, tuple(name for name in steadily if name not in excepted)


def _all_but(required: tuple[str, ...], excepted: tuple[str, ...], steadily: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What is required without these. Of a property that is required as a whole, its other sorts are left. UsageError
    if one of them is not required, or nothing is left. `steadily`: what is required besides."""
    parted = {property_of(word) for word in excepted if property_of(word) != word} & {*required}
    each = [
        part for name in required for part in ([f"{name}/{sort}" for sort in SORTS[name]] if name in parted else [name])
    ]
    for word in excepted:
        if word not in (*each, *map(property_of, each), *steadily):
            raise UsageError(f"--except {word}: it is not required, only {', '.join((*required, *steadily))}")
    kept = tuple(word for word in each if word not in excepted and property_of(word) not in excepted)
    if not kept:
        raise UsageError(f"--except {','.join(excepted)} leaves nothing that is required")
    return kept


def _steadily(request: SearchRequest, lock: LockEntry) -> tuple[str, ...]:
    renews = lock.renews and not request.fixed_lease
    return steady_requirements(lock, _permits(request, lock), renews=renews) if requires_usual(request) else ()


def _required_word(word: str) -> str:
    """ "property" or "property/sort"."""
    name, slash, sort = word.partition("/")
    choose("property", name, [*PROPERTIES])
    if name not in JUDGED:
        raise UsageError(f"explore judges {', '.join(JUDGED)}; {name} is reported by lockstorm run, never judged")
    if slash:
        choose(f"sort of {name}", sort, [*SORTS.get(name, ())])
    return word
