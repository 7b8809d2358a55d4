"""`make mutants`: plants one mistake at a time in what decides, and sees whether the tests find it.

A mutant of the checkers judges the timelines and some thousand random histories, and its verdicts are compared with the
definitions; one that survives this must also pass tests/checkers/test_judgements.py. A mutant elsewhere must pass the
tests of its ground (mutant_grounds.py); taking too long counts as failing. A mutant that does not compile, or gives the
same machine code, does not count. One that survives is a gap in the tests, or does the same as the original:
tests/equivalent_mutants.txt lists those that are known to, with the reason.
"""

import gc
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import click

from tests.helpers.mutant_definitions import Definitions
from tests.helpers.mutant_grounds import GROUNDS, ROOT, Ground, file_paths
from tests.helpers.mutant_yard import LIMIT_FACTOR, LIMIT_S, Yard, can_isolate
from tests.helpers.mutation import Mutant, mutants_of, name_of

KNOWN = ROOT / "tests" / "equivalent_mutants.txt"
SURVIVED = "survived: "


def equivalent_mutants() -> set[tuple[str, str]]:
    lines = KNOWN.read_text().splitlines() if KNOWN.exists() else []
    parts = [line.partition(" | ") for line in lines if line.strip() and not line.startswith("#")]
    return {(file, rest.rpartition(" | ")[0]) for file, _, rest in parts}


def survivors(log: Path) -> set[str]:
    """What an earlier run printed, without line numbers, which may have changed."""
    lines = [line.removeprefix(SURVIVED) for line in log.read_text().splitlines() if line.startswith(SURVIVED)]
    return {re.sub(r":\d+:", ":", line, count=1) for line in lines}


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


def finder(yard: Yard) -> Callable[[], str]:
    """What finds a mutant that is built in the yard, after the original has passed: the name of a test, or nothing."""
    if not yard.ground.tests:
        definitions = Definitions(yard.root / "build" / "tests" / "libjudge.so")
        gc.freeze()  # so that the children do not copy the memory that they share
        return lambda: "the definitions" if definitions.find_mistake() else ""
    limit_s = LIMIT_S + LIMIT_FACTOR * yard.original_takes_s()
    return lambda: yard.failure(yard.ground.tests, limit_s)


def tried(yard: Yard, mutant: Mutant, find: Callable[[], str], verbose: bool) -> str:
    """killed, survived, or why the mutant does not count."""
    try:
        why_not = yard.plant(mutant)
        if why_not:
            return why_not
        found = find()
        if verbose and found:
            click.echo(f"killed: {mutant}  by {found}")
        return "killed" if found else "survived"
    finally:
        yard.restore(mutant)


def try_all(ground: Ground, chosen: list[Mutant], verbose: bool) -> dict[str, Counter[str]]:
    """The results, counted by folder."""
    equivalent, by_folder = equivalent_mutants(), dict[str, Counter[str]]()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=ROOT / "build") as directory:
        yard = Yard(Path(directory), ground)
        find = finder(yard)
        for file, mutants in groupby(chosen, key=lambda each: each.file):
            counts = Counter[str]()
            for mutant in mutants:
                result = tried(yard, mutant, find, verbose)
                if result == "survived" and (mutant.file, mutant.mutated) in equivalent:
                    result = "are equivalent"
                if result == "survived":
                    click.echo(f"{SURVIVED}{mutant}")
                counts[result] += 1
            click.echo(f"{file}: {summed_up(counts)}")
            by_folder.setdefault(str(file_paths()[file].parent), Counter()).update(counts)
        if ground.tests:
            yard.is_built(*ground.targets)
            yard.original_takes_s()  # it still passes: nothing was counted as found because the machine was busy
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
@click.option("--verbose", is_flag=True, help="Print also the mutants that were found, and by which test.")
def main(
    most: int, seed: int, grounds: tuple[str, ...], files: tuple[str, ...], again: Path | None, verbose: bool
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
            by_folder |= try_all(GROUNDS[name], chosen, verbose)
    for folder, counts in by_folder.items():
        click.echo(f"{folder}: {summed_up(counts)}")
    total = sum(by_folder.values(), Counter[str]())
    click.echo(f"all: {summed_up(total)}; {time.monotonic() - began:.0f} s")
    sys.exit(1 if total["survived"] else 0)


if __name__ == "__main__":
    main()
