"""A cell of the matrix in one word, from what its trials came to."""

from collections.abc import Iterable, Mapping

# What a trial, or all trials of a cell, came to; the worst first.
WORST_FIRST = ("inconclusive", "violated", "stuck", "fenced", "holds")

Trio = tuple[str, str, str]  # scenario, lock, store


def result_of(statuses: Mapping[str, str]) -> str:
    """A trial in one word, from the statuses of the properties that count."""
    if "inconclusive" in statuses.values():
        return "inconclusive"
    if statuses.get("integrity") == "violated":
        return "violated"
    broken = {name for name, status in statuses.items() if status == "violated"}
    if broken == {"liveness"}:
        return "stuck"
    if "mutual_exclusion" in broken:
        return "fenced" if statuses.get("integrity") == "holds" else "violated"
    return "violated" if broken else "holds"


def worst_of(results: Iterable[str]) -> str:
    return min(results, key=WORST_FIRST.index)
