"""Searching schedules of one lock: what was asked for, what was tried, what was found, and what finding nothing is
worth."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.driver.campaign import Campaign, Shard, joined, shard_named
from harness.driver.errors import Inconclusive, UsageError
from harness.driver.explorer import (
    NONE_VIOLATED,
    Explorer,
    Searched,
    Tell,
    bad_line,
    count_states,
    states_joined,
    sum_up,
)
from harness.driver.library import Message, library
from harness.driver.lock_names import lock_words
from harness.driver.play import PROPERTIES, Wish, check_range, choose, command_line, lock_named
from harness.driver.schedule_file import CLIENTS_MOST, NUMBERS, REPLICAS_MOST, WAIT_FOR_EVER, Found, explorable
from harness.driver.statistics import Rate
from harness.driver.trial import check, read_history

FAULTS = {
    "pause": "a client stands still for a while",
    "pause-before-send": "the same before it has sent what it was about to",
    "crash": "a client is killed",
    "failover": "a master is gone, its replica is promoted with what has arrived there",
    "stall-replica": "what a master writes takes a while to arrive at its replica",
    "clock-jump": "a server's clock jumps",
    "client-clock-jump": "a client's wall clock jumps",
    "restart": "a server is started again with its data: no connections, no scripts",
    "restart-empty": "the same without its data",
    "lose-message": "what a client is told by a channel does not reach it",
    "lose-reply": "a command is executed, its reply does not come back",
    "error-reply": "a server is busy: it answers a command with an error, and does nothing",
    "drop-request": "a command does not arrive",
    "hold-request": "a command is on its way for a while",
    "duplicate-request": "a command arrives a second time, later",
}
OF_REPLICAS = ("failover", "stall-replica")
LOSE_CONNECTIONS = ("failover", "restart", "restart-empty")
EXHAUSTIVE = "exhaustive"
STRATEGIES = ("portfolio", "uniform", "pct", "usual", EXHAUSTIVE)
USUALLY = ("mutual_exclusion", "integrity", "fencing")
LIVENESS = "liveness"  # only if it is required: then schedules end in a quiet
JUDGED = (*USUALLY, "ownership", "lease", LIVENESS)
BOUND_LEASES, BOUND_NAP_MS = 4, 2000  # how long a free lock may go unnoticed, as in storms
FAULTS_MOST = 16  # STRATEGY_FAULTS
DEPTH = 3  # STRATEGY_DEPTH
SCHEDULES_MOST = 1 << 24
SECONDS_USUAL = 10
SECONDS_MOST = 24 * 3600
CLIENTS_USUAL = 3
LEASE_USUAL_MS = 1000
BOUND_USUAL = 2
TURNS_OF_LOSS = 2  # what a client asks for first on a connection that is gone comes to nothing
WORK_PARTS = 50  # of a lease: how long a client works between its read and its write
WAIT_LEASES = 20  # how long a client waits for the lock: a schedule ends although nobody releases it
SHRINK_RUNS = 5000
SLICE_S = 20  # what is tried between two times that a campaign is kept


@dataclass(frozen=True)
class ExploreWish:
    """What the user asked for; None: what is usual."""

    lock: str
    store: str | None = None
    clients: int | None = None
    replicas: int | None = None
    faults: str | None = None
    schedules: int | None = None
    seconds: int | None = None
    seed: int = 1
    strategy: str = "portfolio"
    bound: int | None = None
    lease_ms: int | None = None
    turns: int | None = None
    work_ms: int | None = None
    wait_ms: int | None = None
    permits: int | None = None
    fixed_lease: bool = False
    extends: bool = False
    require: str | None = None
    jobs: int | None = None
    shard: str | None = None
    goes_on: bool = False
    build: str | None = None  # of a plug-in: which it has to be


@dataclass(frozen=True)
class Plan:
    """A search, ready to begin."""

    wish: ExploreWish
    lock: dict[str, Any]
    ground: Found  # what all its schedules have in common
    budget: dict[str, int]
    required: tuple[str, ...]
    schedules: int
    seconds: int  # 0: until all are tried
    jobs: int
    shard: Shard

    @property
    def key(self) -> dict[str, Any]:
        """What makes it this campaign: a wish without what it leaves open, or how much of it is tried where."""
        ground, wish = self.ground, self.wish
        bound = (wish.bound or BOUND_USUAL) if wish.strategy == EXHAUSTIVE else None
        faults = ",".join(f"{name}={most}" for name, most in self.budget.items())
        return {
            **{name: getattr(ground, name) for name in ("lock", "store", "clients", "replicas", "seed", "lease_ms")},
            "faults": faults or "none",
            "strategy": wish.strategy,
            "bound": bound,
            "turns": ground.turns,
            "work_ms": wish.work_ms,
            "wait_ms": wish.wait_ms,
            "permits": wish.permits,
            "fixed_lease": wish.fixed_lease,
            "extends": wish.extends,
            "require": ",".join(self.required),
            "goes_on": wish.goes_on,
            **({"build": self.lock["plugin"]["version"]} if "plugin" in self.lock else {}),
        }


# --- planning ---


def plan(wish: ExploreWish) -> Plan:
    """Checks everything that can be checked before anything is started."""
    lock, store = explorable(
        Wish("explore", wish.lock, wish.store, seed=wish.seed, lease_ms=wish.lease_ms, permits=wish.permits,
             fixed_lease=wish.fixed_lease)
    )  # fmt: skip
    now = lock["plugin"]["version"] if "plugin" in lock else None
    if wish.build not in (None, now):
        raise UsageError(f"{lock['name']} is another build now: {wish.build} was tried, and here is {now}")
    check_range("--clients", wish.clients, 1, CLIENTS_MOST)
    check_range("--replicas", wish.replicas, 0, REPLICAS_MOST)
    check_range("--schedules", wish.schedules, 1, SCHEDULES_MOST)
    check_range("--seconds", wish.seconds, 1, SECONDS_MOST)
    check_range("--turns", wish.turns, 1, 1000)
    check_range("--work-ms", wish.work_ms, *NUMBERS["work_ms"])
    check_range("--wait-ms", wish.wait_ms, *NUMBERS["wait_ms"])
    check_range("--jobs", wish.jobs, 1, 64)
    choose("strategy", wish.strategy, list(STRATEGIES))
    check_range("--bound", wish.bound, 1, FAULTS_MOST)
    exhaustive = wish.strategy == EXHAUSTIVE
    if wish.bound and not exhaustive:
        raise UsageError("--bound is for --strategy exhaustive")
    if exhaustive and wish.jobs and wish.jobs > 1:
        raise UsageError("--strategy exhaustive goes from one schedule to the next: --jobs 1")
    lease_ms = wish.lease_ms or LEASE_USUAL_MS
    budget = fault_budget(wish.faults)
    required = required_of(wish.require, lock)
    if wish.extends and not lock["renewable"]:
        raise UsageError(f"--extends is for locks that their holders can extend; {lock['name']} is none")
    if LIVENESS in required and wish.wait_ms == WAIT_FOR_EVER:
        raise UsageError("--wait-ms -1 with --require liveness: where somebody is forgotten, a schedule would not end")
    ground = Found(
        lock=lock["name"],
        store=store,
        clients=wish.clients or CLIENTS_USUAL,
        replicas=_replicas(wish, lock, budget),
        turns=wish.turns or (TURNS_OF_LOSS if {*budget} & {*LOSE_CONNECTIONS} else 1),
        permits=wish.permits or 1,
        fixed_lease=int(wish.fixed_lease),
        extends=int(wish.extends),
        lease_ms=lease_ms,
        wait_ms=WAIT_LEASES * lease_ms if wish.wait_ms is None else wish.wait_ms,
        bound_ms=BOUND_LEASES * lease_ms + BOUND_NAP_MS if LIVENESS in required else 0,
        work_ms=max(1, lease_ms // WORK_PARTS) if wish.work_ms is None else wish.work_ms,
        seed=wish.seed,
        number=0,
        violates=(),
        lines=(),
    )
    shard = shard_named(wish.shard) if wish.shard else Shard()
    if exhaustive and wish.shard:
        raise UsageError("--strategy exhaustive goes from one schedule to the next: it has no shards")
    if wish.schedules and shard.first >= wish.schedules:
        raise UsageError(f"--schedules {wish.schedules} leaves nothing to --shard {wish.shard}")
    unlimited = wish.schedules is None and wish.seconds is None and not exhaustive
    return Plan(
        wish=wish,
        lock=lock,
        ground=ground,
        budget=budget,
        required=required,
        schedules=wish.schedules or SCHEDULES_MOST,
        seconds=SECONDS_USUAL if unlimited else wish.seconds or 0,
        jobs=1 if exhaustive else wish.jobs or len(os.sched_getaffinity(0)),
        shard=shard,
    )


def _replicas(wish: ExploreWish, lock: dict[str, Any], budget: dict[str, int]) -> int:
    """Of each node: as many as are asked for, else as the lock or a fault needs."""
    of_replicas = [fault for fault in budget if fault in OF_REPLICAS]
    if wish.replicas == 0 and of_replicas:
        raise UsageError(f"--faults {of_replicas[0]} needs a replica")
    if wish.replicas is not None and wish.replicas < lock["replicas"]:
        raise UsageError(f"--replicas {wish.replicas}: {lock['name']} needs {lock['replicas']}")
    return max(lock["replicas"], int(bool(of_replicas))) if wish.replicas is None else wish.replicas


def fault_budget(faults: str | None) -> dict[str, int]:
    """ "pause,crash=2": at most so many of each in one schedule. None: one pause; "none": nothing goes wrong."""
    budget: dict[str, int] = {}
    for word in ("pause" if faults is None else faults).split(","):
        name, _, most = word.strip().partition("=")
        if name == "none" and faults == "none":
            continue
        choose("fault", name, [*FAULTS])
        if most and not most.isdecimal():
            raise UsageError(f"--faults {word}: {most!r} is not a number")
        budget[name] = int(most or 1)
        check_range(f"--faults {name}", budget[name], 1, FAULTS_MOST)
    if sum(budget.values()) > FAULTS_MOST:
        raise UsageError(f"--faults: {sum(budget.values())} in one schedule are too many, {FAULTS_MOST} at most")
    return budget


def required_of(require: str | None, lock: dict[str, Any]) -> tuple[str, ...]:
    """The properties that a schedule must not violate."""
    if not require:
        return tuple(name for name in USUALLY if name != "fencing" or lock["token"])
    names = tuple(choose("property", name.strip().replace("-", "_"), [*PROPERTIES]) for name in require.split(","))
    for name in names:
        if name not in JUDGED:
            raise UsageError(f"explore judges {', '.join(JUDGED)}; {name} is judged by lockstorm run and storm")
    return names


def words_for(ground: Found, required: Sequence[str]) -> list[str]:
    """What `explore` is told of a schedule's ground."""
    plugin = lock_named(ground.lock).get("plugin")
    words = ["--plugin", plugin["path"]] if plugin else ["--lock", ground.lock]
    words += ["--store", ground.store, "--clients", str(ground.clients)]
    words += ["--turns", str(ground.turns), "--permits", str(ground.permits), "--lease-ms", str(ground.lease_ms)]
    words += ["--wait-ms", str(ground.wait_ms), "--work-ms", str(ground.work_ms), "--seed", str(ground.seed)]
    words += ["--require", ",".join(required)]
    words += ["--bound-ms", str(ground.bound_ms)] if ground.bound_ms else []
    words += ["--replicas", str(ground.replicas)] if ground.replicas else []
    flags = {"--fixed-lease": ground.fixed_lease, "--extends": ground.extends}
    return words + [flag for flag, wanted in flags.items() if wanted]


def explorer_for(ground: Found, jobs: int) -> Explorer:
    return Explorer(lock_named(ground.lock)["nodes"] or 1, jobs, replicas=ground.replicas)


# --- searching ---


Keep = Callable[[dict[str, Any]], object]


def explore(
    planned: Plan,
    tell: Tell,
    story_to: list[dict[str, Any]] | None = None,
    campaign: Campaign | None = None,
    keep: Keep | None = None,
) -> dict[str, Any]:
    """Searches, and returns the result as `explore --json` prints it. `story_to` receives the history of the smallest
    schedule that violates something. `campaign`: what was tried before. `keep` gets the result with the campaign in it,
    now and then and at the end. A search that could not be run is inconclusive, with the reason."""
    campaign = campaign or Campaign(planned.key, planned.shard.of)
    try:
        with explorer_for(planned.ground, planned.jobs) as explorer:
            for searched in _searches(planned, explorer, campaign, tell, in_slices=keep is not None):
                campaign.add(planned.shard.number, searched)
                if campaign.found and not campaign.shown:
                    shown = _follow(explorer, found_of(planned.ground, campaign.found), planned.required, story_to)
                    campaign.shown = {name: shown[name] for name in ("steps", "sentence", "verdict")}
                if keep:
                    keep({**result_of(planned, campaign), "campaign": campaign.json})
    except Inconclusive as reason:
        return {**_asked(planned), "sentence": f"Inconclusive: {reason}", "exit": Inconclusive.exit_status}
    return result_of(planned, campaign)


def _searches(
    planned: Plan, explorer: Explorer, campaign: Campaign, tell: Tell, *, in_slices: bool
) -> Iterator[Searched]:
    words, shard, left_s = search_words(planned), planned.shard, planned.seconds
    while not campaign.is_over:
        first = shard.first + campaign.done(shard.number) * shard.of
        if first >= planned.schedules:
            return
        seconds = min(left_s or SLICE_S, SLICE_S) if in_slices else left_s
        yield explorer.search(
            words,
            planned.schedules,
            lambda told: tell(_so_far(campaign, told)),
            first=first,
            stride=shard.of,
            seconds=seconds,
            known=campaign.found["number"] if campaign.found else NONE_VIOLATED,
        )
        left_s = max(0, left_s - seconds)
        if not in_slices or (planned.seconds and not left_s):
            return


def _so_far(campaign: Campaign, told: dict[str, Any]) -> dict[str, Any]:
    """Sums, and how many states were seen."""
    states = states_joined(campaign.states, told.pop("states"))
    return {**sum_up([campaign.tally, told]), "states": count_states(states)}


def planned_again(name: str, campaign: Campaign, **limits: Any) -> Plan:
    """The plan of a campaign that was read from a file."""
    try:
        return plan(ExploreWish(**campaign.key, **limits))
    except TypeError as error:
        raise UsageError(f"{name}: its key is not one: {error}") from None


def resumed(name: str, campaign: Campaign, **limits: Any) -> Plan:
    """The plan of what is left of it."""
    if len(campaign.digests) != 1:
        raise UsageError(f"{name}: it has {len(campaign.digests)} shards in it; resume each by itself, and merge then")
    if campaign.key["strategy"] == EXHAUSTIVE:
        raise UsageError(f"{name}: --strategy exhaustive goes from one schedule to the next, and begins anew")
    (shard,) = campaign.digests
    whole = campaign.shards > 1
    planned = planned_again(name, campaign, shard=f"{shard}/{campaign.shards}" if whole else None, **limits)
    first = shard - 1 + campaign.done(shard) * campaign.shards
    if campaign.is_over or first >= planned.schedules:
        raise UsageError(f"{name}: nothing is left to try: {result_of(planned, campaign)['sentence']}")
    return planned


def search_words(planned: Plan) -> list[str]:
    """What `explore` is told of a search."""
    words = words_for(planned.ground, planned.required)
    words += ["--strategy", planned.wish.strategy, "--shrink", str(SHRINK_RUNS)]
    if planned.wish.strategy == EXHAUSTIVE:
        words += ["--bound", str(planned.wish.bound or BOUND_USUAL)]
    if planned.wish.goes_on:
        words.append("--goes-on")
    for name, most in planned.budget.items():
        words += ["--fault", f"{name}={most}"]
    return words


def found_of(ground: Found, done: dict[str, Any]) -> Found:
    """The smallest schedule, as a file has it."""
    said = {**vars(ground), "clients": done["clients"], "number": done["origin"]}
    return Found(**{**said, "violates": tuple(done["violated"]), "lines": tuple(done["schedule"])})


def replay(
    found: Found, name: str, story_to: list[dict[str, Any]] | None = None, save: Path | None = None
) -> dict[str, Any]:
    """Runs a schedule again and judges its history: what `check` says, and what is known of the schedule."""
    required = (*required_of(None, lock_named(found.lock)), *([LIVENESS] if found.bound_ms else []))
    with explorer_for(found, 1) as explorer:
        verdict = _follow(explorer, found, required, story_to, name)
        if save:
            message = Message()
            if not library().history_save(bytes(explorer.history), bytes(save), message):
                raise UsageError(f"the history was not saved: {message}")
    verdict.pop("parameters", None)
    return {"file": name, **_ground(found), **verdict}


def _follow(
    explorer: Explorer,
    found: Found,
    required: Sequence[str],
    story_to: list[dict[str, Any]] | None,
    name: str = "the schedule",
) -> dict[str, Any]:
    said = explorer.follow(words_for(found, required), found.lines, found.number)
    wrong = bad_line(said, found.line_numbers or range(1, len(found.lines) + 1), name)
    if wrong:
        raise wrong
    if story_to is not None:
        story_to += read_history(explorer.history)
    return {"steps": said["steps"], **check(explorer.history, ",".join(required))}


# --- the result ---


def merged(named: Sequence[tuple[str, Campaign]]) -> dict[str, Any]:
    """What several parts of a campaign say together, with the campaign in it."""
    campaign = joined(named)
    try:
        return {**result_of(planned_again(named[0][0], campaign), campaign), "campaign": campaign.json}
    except (KeyError, TypeError) as error:
        raise UsageError(f"{named[0][0]}: it was changed by hand: {error}") from None


def _ground(ground: Found) -> dict[str, Any]:
    keys = ("lock", "store", "clients", "replicas", "turns", "lease_ms", "work_ms", "seed")
    return {key: getattr(ground, key) for key in keys}


def _asked(planned: Plan) -> dict[str, Any]:
    return {
        **_ground(planned.ground),
        "scenario": "explore",
        "time": "virtual",
        "faults": planned.budget,
        "strategy": planned.wish.strategy,
        "required": [*planned.required],
    }


def result_of(planned: Plan, searched: Campaign) -> dict[str, Any]:
    """One object: what was tried and what it says."""
    found = found_of(planned.ground, searched.found) if searched.found else None
    shown = searched.shown
    tally = searched.tally
    judged = (*USUALLY, *(name for name in JUDGED if name in planned.required and name not in USUALLY))
    verdict = {name: _verdict_on(tally["verdicts"][name], shown, name) for name in judged}
    statuses = {verdict[name]["status"] for name in planned.required}
    # A lock without tokens is not asked for them: of such a property nothing can be known.
    exit_status = 1 if found else 3 if "inconclusive" in statuses else 0
    tasks, steps = planned.ground.clients, max(1, searched.horizon)
    return {
        **_asked(planned),
        "schedules": searched.schedules,
        "tried": tally["schedules"],
        "schedules_per_s": round(tally["schedules"] / searched.elapsed_s) if searched.elapsed_s else 0,
        "steps": tally["steps"],
        "commands": tally["commands"],
        "distinct": searched.distinct,
        "states": count_states(searched.states),
        "checkpoints": tally["checkpoints"],
        "exhausted": searched.exhausted,
        "cut_short": tally["cut_short"],
        "unfit": tally["unfit"],
        "injected": {name: tally["faults"][name] for name in FAULTS},
        "history_sha256": searched.history_sha256,
        "pct": {"depth": DEPTH, "tasks": tasks, "steps": steps, "bound": _pct_bound(planned, steps)},
        "verdict": verdict,
        "groups": searched.groups,
        "sentence": _sentence(planned, searched, found, exit_status),
        "found": found and _found_json(found, searched, shown),
        "replay": replay_command(planned, searched),
        "elapsed_ms": round(searched.elapsed_s * 1000),
        "exit": exit_status,
    }


def _pct_bound(planned: Plan, steps: int) -> float:
    """How often a schedule finds an error of that depth at least: of a portfolio every other is drawn so."""
    share = {"pct": 1.0, "portfolio": 0.5}.get(planned.wish.strategy, 0.0)
    return share / float(planned.ground.clients * steps ** (DEPTH - 1))


def _verdict_on(counts: dict[str, int], shown: dict[str, Any] | None, name: str) -> dict[str, Any]:
    """Of a property in all schedules that were tried. The evidence is that of the smallest schedule."""
    status = "violated" if counts["violated"] else "holds" if counts["holds"] else "inconclusive"
    evidence = shown["verdict"][name]["evidence"] if shown and status == "violated" else []
    return {"status": status, "count": counts["violated"], "evidence": evidence, "schedules": counts}


def _found_json(found: Found, searched: Campaign, shown: dict[str, Any] | None) -> dict[str, Any]:
    assert searched.found and shown
    return {
        "number": searched.found["number"],
        "violates": [*found.violates],
        "clients": found.clients,
        "choices": [*found.lines],
        "choices_before_shrinking": len(searched.found["found"]),
        "steps": shown["steps"],
        "sentence": shown["sentence"],
        "file": found.text,
    }


def _sentence(planned: Plan, searched: Campaign, found: Found | None, exit_status: int) -> str:
    tried = searched.schedules
    if searched.found and planned.wish.goes_on:
        hits = sum(group["schedules"] for group in searched.groups if {*group["violates"]} & {*planned.required})
        first = f"; schedule {searched.found['number']:,} is the first"
        if searched.exhausted:  # no sample: these are all
            return f"{hits:,} of all {searched.tally['schedules']:,} schedules within the bound violate it{first}"
        return f"{Rate(hits, searched.tally['schedules'])}{first}"
    if searched.found and found:
        broken = " and ".join(name.replace("_", " ") for name in found.violates if name in planned.required)
        count = len(found.lines)
        why = "the usual course does" if not count else f"{count} surprise{'s make' if count > 1 else ' makes'} it so"
        return f"Schedule {searched.found['number']:,} of seed {planned.ground.seed} violates {broken}: {why}"
    if exit_status:
        reason = searched.tally["unfit_reason"] or "no schedule could be judged"
        return f"Inconclusive after {tried:,} schedules: {reason}"
    if searched.exhausted:
        bound = planned.wish.bound or BOUND_USUAL
        return f"0 violations in all {tried:,} schedules that differ from the usual course at most {bound} times"
    untried = [name for name in FAULTS if not searched.tally["faults"][name]]
    found_by_pct = _pct_bound(planned, max(1, searched.horizon))
    worth = [f"{searched.distinct:,} of them distinct: {Rate(0, tried).said}"]
    if found_by_pct:
        worth.append(f"one in {1 / found_by_pct:,.0f} finds an error of depth {DEPTH} at least (PCT)")
    if untried:
        worth.append(f"not tried: {', '.join(untried)}")
    return f"0 violations in {tried:,} schedules, {'; '.join(worth)}"


def replay_command(planned: Plan, searched: Campaign) -> str:
    """The command that repeats the search up to here."""
    wish = planned.wish
    words = ["lockstorm", "explore", *lock_words(planned.ground.lock), "--seed", str(planned.ground.seed)]
    options = {
        "--store": wish.store,
        "--clients": wish.clients,
        "--replicas": wish.replicas,
        "--faults": wish.faults,
        "--schedules": None if searched.exhausted else searched.until,
        "--shard": wish.shard,
        "--strategy": wish.strategy if wish.strategy != "portfolio" else None,
        "--bound": wish.bound,
        "--lease-ms": wish.lease_ms,
        "--turns": wish.turns,
        "--work-ms": wish.work_ms,
        "--wait-ms": wish.wait_ms,
        "--permits": wish.permits,
        "--require": wish.require,
    }
    return command_line(
        words, options, {"--fixed-lease": wish.fixed_lease, "--extends": wish.extends, "--all": wish.goes_on}
    )
