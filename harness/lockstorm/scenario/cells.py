"""The result of a cell of the matrix as one word, from the verdicts of its trials."""

from collections.abc import Iterable, Mapping

# The results of a trial, or of all trials of a cell; the worst first.
WORST_FIRST = ("inconclusive", "violated", "stuck", "fenced", "holds")
MARK = {"holds": "✓", "fenced": "◇", "violated": "✗", "stuck": "∞", "inconclusive": "?"}

CellKey = tuple[str, str, str]  # scenario, lock, store


def cell_result(statuses: Mapping[str, str]) -> str:
    """The result of a trial, from the statuses of the required properties."""
    broken = {name for name, status in statuses.items() if status == "violated"}
    if broken == {"liveness"}:  # also where nobody came so far as to write
        return "stuck"
    if "inconclusive" in statuses.values():
        return "inconclusive"
    if "integrity" in broken:
        return "violated"
    if "mutual_exclusion" in broken:
        return "fenced" if statuses.get("integrity") == "holds" else "violated"
    return "violated" if broken else "holds"


def worst_cell(results: Iterable[str]) -> str:
    return min(results, key=WORST_FIRST.index)
