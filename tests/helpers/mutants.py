"""`make mutants`: plants one mistake at a time in what decides, and sees whether the tests find it.

A mutant of the checkers judges the timelines and some thousand random histories, and its verdicts are compared with the
definitions; one that survives this must also pass tests/checkers/test_judgements.py. A mutant elsewhere must pass the
tests of its ground (mutant_grounds.py). Where a ground has programs and quick tests, these are asked first, and the
others only about what they leave. A mutant that does not compile, or gives the same machine code, does not count. Nor
does one whose tests run out of time without computing all the while: it is printed and counted apart, since the machine
may have been busy. One that survives is a gap in the tests, or does the same as the original:
tests/equivalent_mutants.txt lists those that are known to, with the reason; these are only asked about at first.
"""

import contextlib
import gc
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import click
import pytest

from tests.helpers.mutant_definitions import Definitions, is_true_apart
from tests.helpers.mutant_grounds import GROUNDS, ROOT, Ground, file_paths
from tests.helpers.mutant_yard import OUT_OF_TIME, UNLIMITED, Yard, can_isolate
from tests.helpers.mutation import Mutant, mutants_of, name_of

KNOWN = ROOT / "tests" / "equivalent_mutants.txt"
QUICK_CPU_S = 2  # of CPU time, for each program that the quick tests start
SURVIVED, UNDECIDED = "survived: ", "out of time: "


def equivalent_mutants() -> set[tuple[str, str]]:
    lines = KNOWN.read_text().splitlines() if KNOWN.exists() else []
    parts = [line.partition(" | ") for line in lines if line.strip() and not line.startswith("#")]
    return {(file, rest.rpartition(" | ")[0]) for file, _, rest in parts}


def survivors(log: Path) -> set[str]:
    """What an earlier run printed, without line numbers, which may have changed."""
    lines = [line for line in log.read_text().splitlines() if line.startswith((SURVIVED, UNDECIDED))]
    return {re.sub(r":\d+:", ":", line.partition(": ")[2], count=1) for line in lines}


def chosen_mutants(ground: Ground, files: tuple[str, ...], most: int, seed: int, again: Path | None) -> list[Mutant]:
    paths = [path for path in ground.paths if name_of(path) in (files or file_paths())]
    mutants = list(dict.fromkeys(each for path in paths for each in mutants_of(ROOT / path)))
    if again:
        wanted = survivors(again)
        mutants = [each for each in mutants if re.sub(r":\d+:", ":", str(each), count=1) in wanted]
    chosen = random.Random(seed).sample(mutants, min(most, len(mutants)))
    click.echo(f"{len(chosen)} of {len(mutants)}, seed {seed}")
    return sorted(chosen, key=lambda each: (str(file_paths()[each.file]), each.line))


def summed_up(counts: Counter[str]) -> str:
    killed, counted = counts["killed"], counts["killed"] + counts["survived"]
    others = [f"{count} {what}" for what, count in sorted(counts.items()) if what not in ("killed", "survived")]
    found = f"{killed} of {counted} planted mistakes found ({killed / max(1, counted):.1%})"
    return "; ".join([found, ", ".join(others)] if others else [found])


class Finder:
    """What finds a mutant that is built in the yard, after the original has passed: the name of a test, or nothing."""

    def __init__(self, yard: Yard) -> None:
        self.yard, self.ground = yard, yard.ground
        self.definitions: Definitions | None = None
        if not (self.ground.tests or self.ground.quick_tests):
            self.definitions = Definitions(yard.root / "build" / "tests" / "libjudge.so")
        self.order = QuickOrder(yard.root / "found-by")
        if self.ground.quick_tests:
            run_quick_tests(self.ground, self.order, "--collect-only")  # so that the children need not read them
        gc.freeze()  # so that the children do not copy the memory that they share
        failure = self.at_first()
        assert not failure, f"the original itself does not pass: {failure}"
        self.limits = yard.limits() if self.ground.tests else UNLIMITED

    def at_first(self) -> str:
        if self.definitions:
            return "the definitions" if self.definitions.find_mistake() else ""
        failure = self.yard.failed_program()
        if failure or not self.ground.quick_tests:
            return failure
        programs = str(self.yard.root / "build")
        wrong = is_true_apart(lambda: quick_tests_fail(self.ground, self.order), LOCKSTORM_PROGRAMS=programs)
        return self.order.note_found() if wrong else ""

    def with_all_tests(self) -> str:
        return self.yard.failure(self.ground.tests, self.limits) if self.ground.tests else ""


class QuickOrder:
    """A plug-in of pytest: tests that have found mistakes before come first, since mistakes in a file are alike. The
    process that runs the tests leaves the name of the one that failed in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.finds = Counter[str]()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: -self.finds[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.file.write_text(report.nodeid)

    def note_found(self) -> str:
        """The name of the test that has just failed; a crash or a hang has no name."""
        name = self.file.read_text() if self.file.exists() else ""
        self.file.unlink(missing_ok=True)
        self.finds[name] += 1
        return name or "the quick tests"


def run_quick_tests(ground: Ground, order: QuickOrder, *options: str) -> bool:
    """In this process. False: one failed."""
    words = ["-q", "-x", "-p", "no:cacheprovider", *options, *ground.quick_tests]
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        return pytest.main(words, plugins=[order]) == pytest.ExitCode.OK


def quick_tests_fail(ground: Ground, order: QuickOrder) -> bool:
    """The tests themselves go on at the limit of CPU time, which the programs that they start inherit."""
    signal.signal(signal.SIGXCPU, lambda *_: allow_cpu(int(time.process_time()) + QUICK_CPU_S))
    allow_cpu(QUICK_CPU_S)
    return not run_quick_tests(ground, order)


def allow_cpu(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


def tried(yard: Yard, mutant: Mutant, finder: Finder, known: bool, verbose: bool) -> str:
    """killed, survived, or why the mutant does not count. Of one that is known to survive the tests are not asked."""
    try:
        why_not = yard.plant(mutant)
        if why_not:
            return why_not
        found = finder.at_first()
        if not found and known:
            return "are equivalent"
        found = found or finder.with_all_tests()
        if found == OUT_OF_TIME:
            click.echo(f"{UNDECIDED}{mutant}")
            return "ran out of time"
        if not found:
            click.echo(f"{SURVIVED}{mutant}")
        elif verbose:
            click.echo(f"killed: {mutant}  by {found}")
        return "killed" if found else "survived"
    finally:
        yard.restore(mutant)


def try_all(ground: Ground, chosen: list[Mutant], quick: bool, verbose: bool) -> dict[str, Counter[str]]:
    """The results, counted by folder."""
    ground = replace(ground, tests=()) if quick else ground
    equivalent, by_folder = equivalent_mutants(), dict[str, Counter[str]]()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=ROOT / "build") as directory:
        yard = Yard(Path(directory), ground)
        finder = Finder(yard)
        for file, mutants in groupby(chosen, key=lambda each: each.file):
            counts = Counter[str]()
            for mutant in mutants:
                known = (mutant.file, mutant.mutated) in equivalent
                counts[tried(yard, mutant, finder, known, verbose)] += 1
            click.echo(f"{file}: {summed_up(counts)}")
            by_folder.setdefault(str(file_paths()[file].parent), Counter()).update(counts)
        if ground.tests:
            yard.is_built(*ground.targets)
            yard.limits()  # it still passes: nothing was counted as found because the machine was busy
    return by_folder


@click.command()
@click.option("--most", type=int, default=100, show_default=True, help="Number of mutants per ground, drawn at random.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--ground", "grounds", multiple=True, type=click.Choice(tuple(GROUNDS)), help="Only here; repeatable.")
@click.option("--file", "files", multiple=True, help="Plant only in this file (without .c or .py); repeatable.")
@click.option(
    "--again",
    type=click.Path(path_type=Path, exists=True),
    help="Try only the mutants that survived in this output of an earlier run.",
)
@click.option("--quick", is_flag=True, help="Ask only what is asked first; what is left can be tried --again.")
@click.option("--verbose", is_flag=True, help="Print also the mutants that were found, and by which test.")
def main(
    most: int,
    seed: int,
    grounds: tuple[str, ...],
    files: tuple[str, ...],
    again: Path | None,
    quick: bool,
    verbose: bool,
) -> None:
    """Plants mistakes in what decides and counts those that the tests find."""
    unknown = set(files) - set(file_paths())
    if unknown:
        raise click.UsageError(f"no mistakes are planted in {', '.join(sorted(unknown))}")
    if not can_isolate():
        click.echo("without namespaces of their own (unshare, root): mutants run beside everything else")
    began, by_folder = time.monotonic(), dict[str, Counter[str]]()
    for name in grounds or GROUNDS:
        chosen = chosen_mutants(GROUNDS[name], files, most, seed, again)
        if chosen:
            by_folder |= try_all(GROUNDS[name], chosen, quick and bool(GROUNDS[name].quick_tests), verbose)
    for folder, counts in by_folder.items():
        click.echo(f"{folder}: {summed_up(counts)}")
    total = sum(by_folder.values(), Counter[str]())
    click.echo(f"all: {summed_up(total)}; {time.monotonic() - began:.0f} s")
    sys.exit(1 if total["survived"] else 0)


if __name__ == "__main__":
    main()
