"""Selects the rows of a long history that are shown: those around evidence or faults, with a gap for the others."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

from lockstorm.report.diagram import Diagram

ROWS_USUAL = 400
AROUND_MOST = 60
GAP_LEAST = 6  # rows; a smaller gap is filled
EDGE = 6  # rows at the beginning and at the end that are always shown
TROUBLE = ("fault-inject", "fault-heal", "actor-exit", "belief-over", "lease-over")


@dataclass(frozen=True)
class Gap:
    """Rows that are left out, from `first` to `last`."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def text(self) -> str:
        return f"{self.count:,} event{'s' if self.count > 1 else ''} left out"


def shown_rows(diagram: Diagram, limit: int = ROWS_USUAL, around: int | None = None) -> list[int]:
    """The rows to show, at most `limit` and the edges. `around`: the index of the record to show."""
    total = len(diagram.rows)
    if total <= limit:
        return list(range(total))
    edges = {*range(EDGE), *range(total - EDGE, total)}
    if around is not None:
        return sorted(edges | nearest_rows(diagram, around, limit))
    anchors = [row for piece in diagram.evidence for row in piece.rows]
    anchors = anchors or [number for number, row in enumerate(diagram.rows) if row.kind in TROUBLE]
    anchors = sorted(set(anchors))[:limit]
    if not anchors:
        return sorted(edges | set(range(limit)))
    shown: set[int] = set()
    for reach in range(AROUND_MOST + 1):
        wider = {near for anchor in anchors for near in range(anchor - reach, anchor + reach + 1) if 0 <= near < total}
        wider = without_small_gaps(edges | wider)
        if len(wider) > limit:
            break
        shown = wider
    return sorted(edges | shown)


def without_small_gaps(rows: set[int]) -> set[int]:
    """Fills the gaps that would leave out only a few rows."""
    ordered = sorted(rows)
    for row, following in pairwise(ordered):
        if 1 < following - row <= GAP_LEAST:
            rows |= set(range(row, following))
    return rows


def nearest_rows(diagram: Diagram, record: int, limit: int) -> set[int]:
    """`limit` rows around a record; around the next record that has a row, if it has none itself."""
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
