"""Schedules to the first violation, strategy by strategy, over the zoo: the median of many seeds for every bug that the
explorer can express.

    PYTHONPATH=harness:. .venv/bin/python -m bench.strategies -o build/strategies.json

A search that finds nothing up to the cap counts as the cap plus one. Results are kept in the file after each search, so
that a run that was stopped goes on where it was; -o with another file begins anew. The numbers of schedules do not
depend on the machine.
"""

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json
from lockstorm.search.explore import search_words
from lockstorm.search.explorer import Explorer, explorer_for
from lockstorm.search.search_plan import NOVELTY, SearchPlan, plan_search
from lockstorm.zoo.zoo_entries import Bug, bugs

STRATEGIES = ("portfolio", NOVELTY)
Counts = dict[str, dict[str, dict[str, int]]]  # schedules by bug, strategy and seed


def explored_bugs(names: Sequence[str]) -> list[Bug]:
    """Those that the explorer can express; all of them without names."""
    known = bugs()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"there is no bug {unknown[0]} in the zoo")
    return [bug for name, bug in known.items() if bug.explore is not None and (not names or name in names)]


def first_violation(explorer: Explorer, plan: SearchPlan) -> int:
    """The number of schedules up to the first violation; the cap plus one if it found none."""
    words = [*search_words(plan), "--shrink", "0"]
    outcome = explorer.search(words, plan.schedules, lambda _: None)
    return outcome.found.number if outcome.found else plan.schedules + 1


def missing(counts: Counts, bug: Bug, seeds: int) -> Iterator[tuple[int, str]]:
    for seed in range(1, seeds + 1):
        for strategy in STRATEGIES:
            if str(seed) not in counts.setdefault(bug.name, {}).setdefault(strategy, {}):
                yield seed, strategy


def measure(counts: Counts, bug: Bug, seeds: int, cap: int) -> Iterator[None]:
    """Adds what is missing; yields after each search."""
    request = replace(bug.search_for(bug.lock, schedules=cap), workers=1)
    left = list(missing(counts, bug, seeds))
    if not left:
        return
    with explorer_for(plan_search(request).context, 1) as explorer:
        for seed, strategy in left:
            plan = plan_search(replace(request, seed=seed, strategy=strategy))
            counts[bug.name][strategy][str(seed)] = first_violation(explorer, plan)
            yield


def shown(values: Sequence[int], cap: int) -> str:
    median = statistics.median(values)
    return f"over {cap:,}" if median > cap else f"{median:,g}"


def table(counts: Counts, seeds: int, cap: int) -> list[str]:
    """Lines of Markdown, the bugs in the order of the portfolio's median."""
    whole = {name: kinds for name, kinds in counts.items() if all(len(of) >= seeds for of in kinds.values())}
    lines = ["| bug | portfolio | novelty | portfolio / novelty |", "|---|---|---|---|"]
    rows = []
    for name, kinds in whole.items():
        values = [list(kinds[strategy].values()) for strategy in STRATEGIES]
        medians = [statistics.median(of) for of in values]
        rows.append((medians, name, [shown(of, cap) for of in values]))
    for medians, name, cells in sorted(rows):
        lines.append(f"| `{name}` | {' | '.join(cells)} | {medians[0] / medians[1]:.2f} |")
    return lines


def read(path: Path, cap: int) -> dict[str, Any]:
    if not path.exists():
        return {"cap": cap, "counts": {}}
    try:
        kept: dict[str, Any] = json.loads(path.read_text())
        if kept["cap"] != cap:
            raise click.UsageError(f"{path} was measured with --cap {kept['cap']}")
    except (ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{path} is not what this command writes: {error}") from None
    return kept


@click.command()
@click.option("--seeds", type=click.IntRange(1, 1000), default=20, show_default=True, help="Seeds: 1 to this one.")
@click.option("--cap", type=click.IntRange(1, 1 << 24), default=20_000, show_default=True, help="Most schedules.")
@click.option("--bug", "names", multiple=True, help="Only this bug of the zoo; may be repeated. Default: all.")
@click.option("-o", "output", type=click.Path(path_type=Path), default=paths.ROOT / "build" / "strategies.json")
def main(seeds: int, cap: int, names: tuple[str, ...], output: Path) -> None:
    """Measure, and print a table in Markdown."""
    results = read(output, cap)
    for bug in explored_bugs(names):
        for _ in measure(results["counts"], bug, seeds, cap):
            write_json(output, results)
    click.echo("\n".join(table(results["counts"], seeds, cap)))


if __name__ == "__main__":
    main()
