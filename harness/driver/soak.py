"""A soak: storms over all locks and all faults that fit, for a long time, and after each a look at what stayed behind.

    make soak SOAK_MINUTES=30

A lock that is broken is no failure here. What is: a process, a descriptor, a directory or a name in /dev/shm that a
trial left, a proxy that grows, and a storm that could not be played to its end.
"""

import gc
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import click

from harness.driver.errors import LockstormError
from harness.driver.library import locks_on
from harness.driver.play import Wish, lock_named
from harness.driver.process import PREFIX, zygotes
from harness.driver.storm import ALL, StormWish, blow, known_faults, plan, why_unfit
from harness.driver.storm_faults import BY_NAME
from harness.driver.trial import TIMES, Trial

SHM = Path("/dev/shm")
SECONDS_PER_MINUTE = 60
GROWTH_KB = 1024  # by so much a proxy may grow within a storm, and by GROWTH_PART of what it was
GROWTH_PART = 0.1
SAMPLES_LEAST = 12
LONG_PART = 0.2  # of the soak is one long storm, by the clock on the wall
LONG_LOCK = "pubsub"
CLIENTS = 3
REAL_LEASE_MS = 300
DURATION_MS = {"virtual": 4_000, "real": 2_000}
APART_EVERY = 20  # storms with faults that need a trial of their own kind are slow to start
LEFTOVERS_LIMIT_S = 10.0
# What check says of a storm that was played to its end and shows nothing.
EXPLAINED = ("none of the faults", "nobody was granted", "nobody wanted", "the history ended too early")


@dataclass
class Watch:
    """What is seen of one trial while it runs."""

    pids: set[int] = field(default_factory=set)
    proxy_kb: list[int] = field(default_factory=list)

    def look(self, trial: Trial) -> None:
        self.pids |= trial.pids
        if trial.proxy:
            self.proxy_kb.append(anonymous_kb(trial.proxy.process.pid))

    @property
    def growth_kb(self) -> int:
        """From the second quarter of the samples to the last."""
        if len(self.proxy_kb) < SAMPLES_LEAST:
            return 0
        quarter = len(self.proxy_kb) // 4
        early, late = self.proxy_kb[quarter : 2 * quarter], self.proxy_kb[-quarter:]
        return round(statistics.median(late) - statistics.median(early))


@dataclass
class Soak:
    """The sums of a soak, and what went wrong."""

    minutes: float
    seed: int
    say: Callable[[str], object]
    storms: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: {"holds": 0, "violated": 0, "inconclusive": 0})
    faults: dict[str, dict[str, int]] = field(default_factory=dict)
    failures: list[dict[str, str]] = field(default_factory=list)
    descriptors: int = 0
    proxy_kb: int = 0  # the most that was seen
    growth_kb: int = 0

    def run(self) -> None:
        began = said = time.monotonic()
        with private_tmpdir() as directory:
            for storm in self._storms(began):
                self._one(storm, directory)
                now = time.monotonic()
                if now - said >= SECONDS_PER_MINUTE:
                    said = now
                    self.say(f"{(now - began) / SECONDS_PER_MINUTE:.0f} min: {self.summary}")
                if now - began >= self.minutes * SECONDS_PER_MINUTE:
                    break
        self.say(f"{'FAILED' if self.failures else 'clean'}: {self.summary}")
        for failure in self.failures:
            self.say(f"  {failure['what']}; again: ./{failure['again']}")

    @property
    def summary(self) -> str:
        injected = sum(fault["injected"] for fault in self.faults.values())
        proved = sum(fault["proved"] for fault in self.faults.values())
        outcomes = ", ".join(f"{number} {name}" for name, number in self.outcomes.items())
        return (
            f"{self.storms} storms ({outcomes}), {injected} faults injected, {proved} proved, "
            f"{len(self.failures)} failures; {self.descriptors} descriptors, proxy {self.proxy_kb} kB at most, "
            f"grown by {max(0, self.growth_kb)} kB at most"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "minutes": self.minutes,
            "seed": self.seed,
            "storms": self.storms,
            "outcomes": self.outcomes,
            "faults": [{"name": name, **self.faults[name]} for name in sorted(self.faults)],
            "descriptors": self.descriptors,
            "proxy_kb": self.proxy_kb,
            "proxy_growth_kb": self.growth_kb,
            "failures": self.failures,
            "ok": not self.failures,
        }

    # --- which storms ---

    def _storms(self, began: float) -> Iterator[StormWish]:
        """A short one in each kind of time, then the long one, then all locks in turn, in alternating kinds of time."""
        names = [lock["name"] for lock in locks_on("redis")]
        for number in count():
            seed, time_ = self.seed + number, TIMES[number % 2]
            if number == len(TIMES):
                yield self._long(seed)
            elif number % APART_EVERY == APART_EVERY - 1:
                yield from self._apart(seed)
            else:
                lock = names[(number // 2) % len(names)]
                yield self._wish(lock, time_, ALL, seed, DURATION_MS[time_])

    def _long(self, seed: int) -> StormWish:
        duration_ms = max(DURATION_MS["real"], int(self.minutes * SECONDS_PER_MINUTE * 1000 * LONG_PART))
        return self._wish(LONG_LOCK, "real", ALL, seed, duration_ms)

    def _apart(self, seed: int) -> Iterator[StormWish]:
        """One fault that needs a trial of its own kind, with whatever fits beside it."""
        lock = lock_named(LONG_LOCK)
        apart = [name for name in sorted(known_faults()) if lock["service"] in BY_NAME[name].apart_on]
        if apart:
            name = apart[seed // APART_EVERY % len(apart)]
            time_ = next(time_ for time_ in TIMES if not why_unfit(BY_NAME[name], lock, time_))
            yield self._wish(lock["name"], time_, f"{name},pause-client,lose-reply", seed, 2 * DURATION_MS[time_])

    def _wish(self, lock: str, time_: str, faults: str, seed: int, duration_ms: int) -> StormWish:
        lease_ms = REAL_LEASE_MS if time_ == "real" else None
        wish = Wish("storm", lock, time=time_, seed=seed, duration_ms=duration_ms, clients=CLIENTS, lease_ms=lease_ms)
        return StormWish(wish, faults)

    # --- one of them ---

    def _one(self, storm: StormWish, directory: Path) -> None:
        watch, planned = Watch(), plan(storm)
        shm = names_in(SHM)
        result = blow(planned, watch=watch.look)
        self.storms += 1
        self.outcomes[{0: "holds", 1: "violated"}.get(result["exit"], "inconclusive")] += 1
        for fault in result["storm"]["faults"]:
            sums = self.faults.setdefault(fault["name"], {"meant": 0, "injected": 0, "proved": 0, "skipped": 0})
            for key in sums:
                sums[key] += fault[key]
        self.proxy_kb = max(self.proxy_kb, *watch.proxy_kb, 0)
        self.growth_kb = max(self.growth_kb, watch.growth_kb)
        problems = [unexplained(result), grown(watch), *left_behind(directory, watch.pids, shm), self._descriptors()]
        self.failures += [{"what": what, "again": result["replay"]} for what in problems if what]

    def _descriptors(self) -> str:
        """The driver's own; the first storms in both kinds of time open what stays open."""
        gc.collect()
        before, self.descriptors = self.descriptors, len(os.listdir("/proc/self/fd"))
        if self.storms > len(TIMES) and self.descriptors > before:
            return f"{self.descriptors - before} descriptors more than before"
        return ""


# --- what must not be ---


def unexplained(result: dict[str, Any]) -> str:
    """Why a storm says nothing, if that is not what check says of one that was played to its end."""
    if result["exit"] != 3:
        return ""
    said = (result["verdict"][name] for name in result["required"] or result["verdict"])
    reasons = [each["reason"] for each in said if each["status"] == "inconclusive"]
    odd = [reason for reason in reasons if not reason.startswith(EXPLAINED)]
    return f"inconclusive: {odd[0]}" if odd else ""


def grown(watch: Watch) -> str:
    allowed_kb = max(GROWTH_KB, GROWTH_PART * max([0, *watch.proxy_kb]))
    return f"the proxy grew by {watch.growth_kb} kB" if watch.growth_kb > allowed_kb else ""


def left_behind(directory: Path, pids: set[int], shm_before: set[str]) -> list[str]:
    """Processes, directories and shared memory that outlived their trial; they have a moment to go."""
    deadline = time.monotonic() + LEFTOVERS_LIMIT_S
    while True:
        left = [f"process {pid} is left" for pid in sorted(alive(pids) | children() | those_in(directory))]
        left += [f"the directory {entry.name} is left" for entry in directory.iterdir()]
        new = names_in(SHM) - shm_before
        left += [f"/dev/shm/{name} is left" for name in sorted(new) if any(name.endswith(f"_{pid}") for pid in pids)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.01)


def names_in(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()} if directory.is_dir() else set()


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


def children() -> set[int]:
    """Of this process, zombies too, but for those that stay for the next trial."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and parent_of(entry) == os.getpid():
            found.add(int(entry.name))
    return found - zygotes()


def parent_of(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def those_in(directory: Path) -> set[int]:
    """Processes that say the directory on their command lines."""
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
    """Of its own memory: the pages of the history that it has written to are not counted."""
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE") // 1024


@contextmanager
def private_tmpdir() -> Iterator[Path]:
    """Trials make their directories here: whatever is in it afterwards is theirs."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="ls-soak-") as directory:
        tempfile.tempdir = directory
        try:
            yield Path(directory)
        finally:
            tempfile.tempdir = before


# --- the command ---


@click.command()
@click.option("--minutes", type=click.FloatRange(0.1, 24 * 60), default=30.0, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the first storm.")
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the JSON object here.")
def main(minutes: float, seed: int, output: Path | None) -> None:
    """Storms over all locks for a long time; exit status 1 when something was left behind, grew or broke."""
    if output and not output.parent.is_dir():
        raise click.ClickException(f"-o {output}: its directory does not exist")
    soak = Soak(minutes, seed, click.echo)
    try:
        soak.run()
    except LockstormError as error:
        raise click.ClickException(str(error)) from None
    if output:
        output.write_text(json.dumps(soak.as_json(), indent=2) + "\n")
    raise SystemExit(1 if soak.failures else 0)


if __name__ == "__main__":
    main()
