"""Plays storms with all locks and all faults that apply to them, for a long time, and checks after each for leftovers.

    make soak SOAK_MINUTES=30

A violation by a lock is no failure of the soak. Failures are: a process, a descriptor, a directory or a name in
/dev/shm that a trial left behind, a proxy whose memory grows, and a storm that could not be completed.
"""

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import click
import msgspec

from lockstorm.base.atomic_file import write_json
from lockstorm.base.durations import UNITS_MS
from lockstorm.base.errors import LockstormError
from lockstorm.base.hang_limit import HangLimit
from lockstorm.base.paths import runnable
from lockstorm.cli.options import duration_option
from lockstorm.locks.lock_names import lock_named
from lockstorm.native.library import locks_on
from lockstorm.process.process import PREFIX, lasting_processes
from lockstorm.results.storm_result import FaultCount
from lockstorm.results.verdict import TrialResult
from lockstorm.storm.storm import run_storm
from lockstorm.storm.storm_faults import BY_NAME
from lockstorm.storm.storm_plan import ALL, StormRequest, fault_inapplicable_reason, known_faults, plan_storm
from lockstorm.trial.settings import TIMES, TrialSettings
from lockstorm.trial.stall_sentinel import TOO_LONG
from lockstorm.trial.trial import Trial

SHM = Path("/dev/shm")
SECONDS_PER_MINUTE = 60
GROWTH_KB = 1024  # a proxy may grow in a storm by this or by GROWTH_PART of its size, whichever is more
GROWTH_PART = 0.1
SAMPLES_LEAST = 12
LONG_PART = 0.2  # share of the soak that one long storm takes, in real time
LONG_LOCK = "pubsub"
CLIENTS = 3
REAL_LEASE_MS = 300
DURATION_MS = {"virtual": 4_000, "real": 2_000}
APART_EVERY = 20  # one storm in this many has a fault that needs a trial of its own kind; those start slowly
LEFTOVERS_LIMIT_S = 30.0
# Beginnings of the reasons for which `check` finds a completed storm inconclusive.
EXPLAINED = ("none of the faults", "nobody was granted", "nobody wanted", "the history ended too early")


@dataclass
class Watch:
    """Observes one trial while it runs."""

    pids: set[int] = field(default_factory=set)
    proxy_kb: list[int] = field(default_factory=list)

    def sample(self, trial: Trial) -> None:
        self.pids |= {process.pid for process in trial.sandbox.processes}
        if trial.links.proxy:
            self.proxy_kb.append(anonymous_kb(trial.links.proxy.process.pid))

    @property
    def growth_kb(self) -> int:
        """Growth of the proxy from the second quarter of the samples to the last quarter (medians)."""
        if len(self.proxy_kb) < SAMPLES_LEAST:
            return 0
        quarter = len(self.proxy_kb) // 4
        early, late = self.proxy_kb[quarter : 2 * quarter], self.proxy_kb[-quarter:]
        return round(statistics.median(late) - statistics.median(early))


class SoakFailure(msgspec.Struct, frozen=True):
    what: str
    again: str  # the command that repeats the storm


class SoakResult(msgspec.Struct, frozen=True, kw_only=True):
    minutes: float
    seed: int
    storms: int
    outcomes: dict[str, int]
    faults: list[FaultCount]
    descriptors: int
    proxy_kb: int  # largest size of a proxy
    proxy_growth_kb: int
    failures: list[SoakFailure]
    ok: bool


@dataclass
class Soak:
    """The totals and the failures of a soak."""

    duration_ms: int
    seed: int
    report: Callable[[str], object]
    storms: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: {"holds": 0, "violated": 0, "inconclusive": 0})
    faults: dict[str, FaultCount] = field(default_factory=dict)
    failures: list[SoakFailure] = field(default_factory=list)
    descriptors: int = 0
    proxy_kb: int = 0  # largest size of a proxy
    growth_kb: int = 0

    def run(self) -> None:
        began = reported = time.monotonic()
        with private_tmpdir() as directory:
            for storm in self._storms(began):
                self._one(storm, directory)
                now = time.monotonic()
                if now - reported >= SECONDS_PER_MINUTE:
                    reported = now
                    self.report(f"{(now - began) / SECONDS_PER_MINUTE:.0f} min: {self.summary}")
                if (now - began) * 1000 >= self.duration_ms:
                    break
        self.report(f"{'FAILED' if self.failures else 'clean'}: {self.summary}")
        for failure in self.failures:
            self.report(f"  {failure.what}; again: {runnable(failure.again)}")

    @property
    def summary(self) -> str:
        injected = sum(fault.injected for fault in self.faults.values())
        proved = sum(fault.proved for fault in self.faults.values())
        outcomes = ", ".join(f"{number} {name}" for name, number in self.outcomes.items())
        return (
            f"{self.storms} storms ({outcomes}), {injected} faults injected, {proved} proved, "
            f"{len(self.failures)} failures; {self.descriptors} descriptors, proxy {self.proxy_kb} kB at most, "
            f"grown by {max(0, self.growth_kb)} kB at most"
        )

    def result(self) -> SoakResult:
        return SoakResult(
            minutes=self.duration_ms / UNITS_MS["min"],
            seed=self.seed,
            storms=self.storms,
            outcomes=self.outcomes,
            faults=[self.faults[name] for name in sorted(self.faults)],
            descriptors=self.descriptors,
            proxy_kb=self.proxy_kb,
            proxy_growth_kb=self.growth_kb,
            failures=self.failures,
            ok=not self.failures,
        )

    # --- the sequence of storms ---

    def _storms(self, began: float) -> Iterator[StormRequest]:
        """A short storm in each kind of time, then the long one, then all locks in turn, alternating kinds of time."""
        names = [lock.name for lock in locks_on("redis")]
        for number in count():
            seed, time_ = self.seed + number, TIMES[number % 2]
            if number == len(TIMES):
                yield self._long(seed)
            elif number % APART_EVERY == APART_EVERY - 1:
                yield from self._apart(seed)
            else:
                lock = names[(number // 2) % len(names)]
                yield self._request(lock, time_, ALL, seed, DURATION_MS[time_])

    def _long(self, seed: int) -> StormRequest:
        duration_ms = max(DURATION_MS["real"], int(self.duration_ms * LONG_PART))
        return self._request(LONG_LOCK, "real", ALL, seed, duration_ms)

    def _apart(self, seed: int) -> Iterator[StormRequest]:
        """A storm with one fault that needs a trial of its own kind, and two others."""
        lock = lock_named(LONG_LOCK)
        apart = [name for name in sorted(known_faults()) if lock.service in BY_NAME[name].explicit_on]
        if apart:
            name = apart[seed // APART_EVERY % len(apart)]
            time_ = next(time_ for time_ in TIMES if not fault_inapplicable_reason(BY_NAME[name], lock, time_))
            yield self._request(lock.name, time_, f"{name},pause-client,lose-reply", seed, 2 * DURATION_MS[time_])

    def _request(self, lock: str, time_: str, faults: str, seed: int, duration_ms: int) -> StormRequest:
        lease_ms = REAL_LEASE_MS if time_ == "real" else None
        request = TrialSettings(
            lock, "storm", time=time_, seed=seed, duration_ms=duration_ms, clients=CLIENTS, lease_ms=lease_ms
        )
        return StormRequest(request, faults)

    # --- one storm ---

    def _one(self, storm: StormRequest, directory: Path) -> None:
        watch, planned = Watch(), plan_storm(storm)
        shm = names_in(SHM)
        result = run_storm(planned, watch=watch.sample)
        self.storms += 1
        self.outcomes[{0: "holds", 1: "violated"}.get(result.exit, "inconclusive")] += 1
        for fault in result.of_storm.faults:
            self.faults.setdefault(fault.name, FaultCount(fault.name)).add(fault)
        self.proxy_kb = max(self.proxy_kb, *watch.proxy_kb, 0)
        self.growth_kb = max(self.growth_kb, watch.growth_kb)
        problems = [unexplained(result), grown(watch), *left_behind(directory, watch.pids, shm), self._descriptors()]
        self.failures += [SoakFailure(what, result.replay) for what in problems if what]

    def _descriptors(self) -> str:
        """Descriptors of this process. The first storm in each kind of time opens some that stay open."""
        gc.collect()
        before, self.descriptors = self.descriptors, len(os.listdir("/proc/self/fd"))
        if self.storms > len(TIMES) and self.descriptors > before:
            return f"{self.descriptors - before} descriptors more than before"
        return ""


# --- failures ---


def unexplained(result: TrialResult) -> str:
    """Why a storm is inconclusive; empty for one of EXPLAINED, and where the machine stood still."""
    if result.exit != 3:
        return ""
    verdicts = (result.properties[name] for name in result.required or result.properties)
    reasons = [each.reason or "" for each in verdicts if each.status == "inconclusive"]
    odd = [reason for reason in reasons if not reason.startswith(EXPLAINED) and TOO_LONG not in reason]
    return f"inconclusive: {odd[0]}" if odd else ""


def grown(watch: Watch) -> str:
    allowed_kb = max(GROWTH_KB, GROWTH_PART * max([0, *watch.proxy_kb]))
    return f"the proxy grew by {watch.growth_kb} kB" if watch.growth_kb > allowed_kb else ""


def left_behind(directory: Path, pids: set[int], shm_before: set[str]) -> list[str]:
    """Processes, directories and shared memory that are left LEFTOVERS_LIMIT_S after their trial."""
    limit = HangLimit(LEFTOVERS_LIMIT_S)
    while True:
        found = (alive(pids) | children() | those_in(directory)) - lasting_processes()
        left = [f"process {pid} is left" for pid in sorted(found)]
        left += [f"the directory {entry.name} is left" for entry in directory.iterdir()]
        new = names_in(SHM) - shm_before
        left += [f"/dev/shm/{name} is left" for name in sorted(new) if any(name.endswith(f"_{pid}") for pid in pids)]
        if not left or limit.is_over():
            return left
        time.sleep(0.01)


def names_in(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()} if directory.is_dir() else set()


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


def children() -> set[int]:
    """The children of this process, including zombies."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and parent_of(entry) == os.getpid():
            found.add(int(entry.name))
    return found


def parent_of(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def those_in(directory: Path) -> set[int]:
    """Processes whose command lines name a trial's directory in this one."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"{directory}/{PREFIX}".encode() in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


def anonymous_kb(pid: int) -> int:
    """Private memory of a process in kB, without shared pages such as those of the history."""
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE") // 1024


@contextmanager
def private_tmpdir() -> Iterator[Path]:
    """A temporary directory in which trials create their directories, so that leftovers in it are theirs."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="ls-soak-") as directory:
        tempfile.tempdir = directory
        try:
            yield Path(directory)
        finally:
            tempfile.tempdir = before


# --- the command ---


@click.command()
@duration_option("--duration", "duration_ms", "Time to play storms.", 6_000, 24 * UNITS_MS["h"], "30min")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Seed of the first storm; each further storm uses the next seed.",
)
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the JSON object into this file.")
def main(duration_ms: int, seed: int, output: Path | None) -> None:
    """Play storms with all locks for a long time. Exit status: 1 a storm left something behind, grew or failed."""
    if output and not output.parent.is_dir():
        raise click.ClickException(f"-o {output}: its directory does not exist")
    soak = Soak(duration_ms, seed, click.echo)
    try:
        soak.run()
    except LockstormError as error:
        raise click.ClickException(str(error)) from None
    if output:
        write_json(output, soak.result())
    raise SystemExit(1 if soak.failures else 0)


if __name__ == "__main__":
    main()
