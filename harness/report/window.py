"""What of a long history is shown: the surroundings of what went wrong, with a line for all that was left out."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

from harness.report.diagram import Diagram

ROWS_USUAL = 400
AROUND_MOST = 60
SLIT = 6  # a gap of fewer rows is none
EDGE = 6  # rows of the beginning and of the end that always stand there
TROUBLE = ("fault-inject", "fault-heal", "actor-exit", "belief-over", "lease-over")


@dataclass(frozen=True)
class Gap:
    """Rows that are left out, from `first` to `last`."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1


def shown_rows(diagram: Diagram, limit: int = ROWS_USUAL, around: int | None = None) -> list[int]:
    """Which rows are shown, at most `limit` (and the edges). `around`: the index of the record that is looked for."""
    total = len(diagram.rows)
    if total <= limit:
        return list(range(total))
    edges = {*range(EDGE), *range(total - EDGE, total)}
    if around is not None:
        return sorted(edges | nearest_rows(diagram, around, limit))
    anchors = [row for blame in diagram.blames for row in blame.rows]
    anchors = anchors or [number for number, row in enumerate(diagram.rows) if row.kind in TROUBLE]
    anchors = sorted(set(anchors))[:limit]
    if not anchors:
        return sorted(edges | set(range(limit)))
    shown: set[int] = set()
    for reach in range(AROUND_MOST + 1):
        wider = {near for anchor in anchors for near in range(anchor - reach, anchor + reach + 1) if 0 <= near < total}
        wider = without_slits(edges | wider)
        if len(wider) > limit:
            break
        shown = wider
    return sorted(edges | shown)


def without_slits(rows: set[int]) -> set[int]:
    """A gap that would leave out next to nothing is filled."""
    ordered = sorted(rows)
    for row, following in pairwise(ordered):
        if 1 < following - row <= SLIT:
            rows |= set(range(row, following))
    return rows


def nearest_rows(diagram: Diagram, record: int, limit: int) -> set[int]:
    """`limit` rows around the one of a record, or of the next one after it that has a row."""
    numbers = [number for number, row in enumerate(diagram.rows) if row.record]
    at = bisect_left(numbers, record, key=lambda number: diagram.rows[number].index)
    middle = numbers[min(at, len(numbers) - 1)]
    first = max(0, min(middle - limit // 2, len(diagram.rows) - limit))
    return set(range(first, first + limit))


def lines_of(shown: list[int], total: int) -> list[int | Gap]:
    """The rows in order, with a gap wherever some are left out."""
    lines: list[int | Gap] = []
    expected = 0
    for row in [*shown, total]:
        if row > expected:
            lines.append(Gap(expected, row - 1))
        if row < total:
            lines.append(row)
        expected = row + 1
    return lines
