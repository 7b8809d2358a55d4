"""The diagram's geometry: time goes down, a lane is a column, each event has a row, so that no texts overlap.

All rows have the same height: in virtual time most events take no time at all. Where time passes between two rows there
is a step, with its length beside it.
"""

import math
import textwrap
from bisect import bisect_left
from dataclasses import dataclass, field

from lockstorm.report.diagram import Arrow, Bar, Diagram, Row, lock_lane
from lockstorm.report.window import Gap, lines_of

# Lengths are in pixels.
GUTTER = 118  # width of the column of times and evidence numbers
CLOCK = GUTTER - 36  # right edge of the times
ROW = 26
TIME_STEP = 18  # height of a step
STEP_LEAST_NS = 1_000_000  # the shortest time that gets a step
GAP = 46  # height of a gap for rows that are left out
HEAD = 54
FOOT = 22
LANE_LEAST, LANE_MOST = 132, 262  # a lane is as wide as its longest text, within these limits
LIFELINE = 22  # from a lane's left edge to its lifeline
BAR = 10
TRACK = 13  # from one bar to the next one of the lane
LETTER = 6.7  # width of an average letter of 12 px, in a wide typeface
LETTER_BOLD = 7.7  # ... of the sentence in a callout
CALLOUT_LINE = 17
NOTES = {
    "client": "does and believes",
    "lock": "lease there, computed",
    "key": "lease there, as it was read",
    "node": "server",
    "store": "protected resource",
}


@dataclass
class Shape:
    """An SVG element."""

    tag: str
    attributes: dict[str, object]
    text: str = ""
    children: list["Shape"] = field(default_factory=list)


@dataclass
class Picture:
    width: int
    height: int
    shapes: list[Shape]
    head: list[Shape]  # the lanes' names, which a page keeps visible
    rows: list[int]  # the numbers of the rows that are shown


@dataclass
class Place:
    """The coordinates of lanes, rows and callouts."""

    edges: list[float]  # of the lanes: the left one of each, then the right one of the last
    y: dict[int, float] = field(default_factory=dict)  # row -> its middle
    gaps: list[tuple[Gap, float]] = field(default_factory=list)
    steps: list[tuple[float, int]] = field(default_factory=list)  # y, and the time that passes there in ns
    callouts: dict[int, float] = field(default_factory=dict)  # number of a piece of evidence -> the top of its callout
    bottom: float = HEAD

    @property
    def width(self) -> int:
        return math.ceil(self.edges[-1]) + 8

    def left(self, lane: int) -> float:
        return self.edges[lane]

    def lane_width(self, lane: int) -> float:
        return self.edges[lane + 1] - self.edges[lane]

    def life(self, lane: int) -> float:
        return self.left(lane) + LIFELINE

    def at(self, row: int) -> float:
        """The y of a row; for a row that is left out, the middle of its gap."""
        if row in self.y:
            return self.y[row]
        place = bisect_left(self.gaps, row, key=lambda each: each[0].last)
        return self.gaps[place][1]

    def is_shown(self, first: int, last: int) -> bool:
        """Whether any of the space between two rows is drawn: not if both are in the same gap."""
        return first in self.y or last in self.y or self.at(first) != self.at(last)


def draw(diagram: Diagram, shown: list[int]) -> Picture:
    """The `shown` rows of a diagram as shapes, from back to front."""
    place = lane_position(diagram, shown)
    shapes = [*lane_shapes(diagram, place), *gap_shapes(diagram, place)]
    end = len(diagram.rows) - 1
    for kind in ("gone", "fault", "wait", "lease", "transaction", "belief", "overlap"):
        for bar in diagram.bars:
            last = bar.last if bar.last >= 0 else end
            if bar.kind == kind and bar.lane >= 0 and place.is_shown(bar.first, last):
                shapes += bar_shapes(bar, place, place.at(bar.first), place.at(last))
    for arrow in diagram.arrows:
        if arrow.source >= 0 and arrow.target >= 0 and place.is_shown(arrow.first, arrow.last):
            shapes += arrow_shapes(arrow, diagram, place)
    previous = ""
    for number in shown:
        shapes.append(row_shape(number, diagram.rows[number], diagram, place, previous))
        previous = clock_text(diagram.rows[number].at_ns)
    for piece in diagram.evidence:
        if piece.number in place.callouts:
            shapes.append(callout_shape(piece.number, callout_lines(piece.property, piece.text, place), place))
    return Picture(place.width, math.ceil(place.bottom + FOOT), shapes, head_shapes(diagram, place), shown)


def lane_position(diagram: Diagram, shown: list[int]) -> Place:
    place = Place(lane_edges(diagram, shown))
    y, before = float(HEAD + 4), None
    for line in lines_of(shown, len(diagram.rows)):
        if isinstance(line, Gap):
            place.gaps.append((line, y + GAP / 2))
            y += GAP
            before = None
            continue
        at_ns = diagram.rows[line].at_ns
        if before is not None and at_ns - before >= STEP_LEAST_NS:
            place.steps.append((y + TIME_STEP / 2, at_ns - before))
            y += TIME_STEP
        before = at_ns
        y += ROW
        place.y[line] = y - 4
        for piece in diagram.evidence:
            if piece.rows and piece.rows[-1] == line:
                place.callouts[piece.number] = y + 8
                y += len(callout_lines(piece.property, piece.text, place)) * CALLOUT_LINE + 20
    place.bottom = y
    return place


def lane_edges(diagram: Diagram, shown: list[int]) -> list[float]:
    """The left edge of each lane, and the right edge of the last one."""
    longest = [max(len(NOTES[lane.kind]) * LETTER, len(lane.name) * LETTER_BOLD) - LIFELINE for lane in diagram.lanes]
    for number in shown:
        row = diagram.rows[number]
        if row.lane >= 0:
            longest[row.lane] = max(longest[row.lane], len(row.text) * LETTER * (1.1 if row.evidence else 1))
    edges = [float(GUTTER)]
    for width in longest:
        edges.append(edges[-1] + min(max(width + LIFELINE + 22, LANE_LEAST), LANE_MOST))
    return edges if len(edges) > 1 else [*edges, edges[0] + LANE_MOST]


# --- words ---


def clock_text(at_ns: int) -> str:
    """A moment of the trial, to the millisecond."""
    return f"{at_ns / 1e9:.3f} s"


def span_text(span_ns: int) -> str:
    """A length of time, in s or ms."""
    unit, size = ("s", 1e9) if span_ns >= 1e9 else ("ms", 1e6)
    return f"+{span_ns / size:.3g} {unit}"


def fitting(text: str, width: float) -> str:
    """A text, cut to a width in pixels."""
    most = max(4, int(width / LETTER))
    return text if len(text) <= most else text[: most - 1] + "…"


def callout_lines(name: str, text: str, place: Place) -> list[str]:
    most = max(20, int((place.edges[-1] - GUTTER - 56) / LETTER_BOLD))
    return textwrap.wrap(f"{name[:1].upper()}{name[1:]}: {text}.", most) or [""]


# --- shapes ---


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Shape:
    return Shape("line", {"x1": f"{x1:g}", "y1": f"{y1:g}", "x2": f"{x2:g}", "y2": f"{y2:g}", "class": style})


def box(x: float, y: float, width: float, height: float, style: str, radius: float = 0) -> Shape:
    rounded = {"rx": f"{radius:g}"} if radius else {}
    size = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{max(height, 2):g}"}
    return Shape("rect", {**size, **rounded, "class": style})


def word(x: float, y: float, text: str, style: str, anchor: str = "start") -> Shape:
    turned = {} if anchor == "start" else {"text-anchor": anchor}
    return Shape("text", {"x": f"{x:g}", "y": f"{y:g}", **turned, "class": style}, text)


def path(data: str, style: str) -> Shape:
    return Shape("path", {"d": data, "class": style})


def lane_shapes(diagram: Diagram, place: Place) -> list[Shape]:
    """The background of every other lane, and the lifeline of each."""
    shapes = []
    for number, lane in enumerate(diagram.lanes):
        if number % 2 == 0:
            ground = box(place.left(number), HEAD, place.lane_width(number), place.bottom + FOOT - HEAD, "ground")
            shapes.append(ground)
        shapes.append(line(place.life(number), HEAD, place.life(number), place.bottom + FOOT - 6, f"life {lane.kind}"))
    return shapes


def head_shapes(diagram: Diagram, place: Place) -> list[Shape]:
    shapes = [box(0, 0, place.width, HEAD, "head"), line(0, HEAD, place.width, HEAD, "rule")]
    shapes.append(word(CLOCK, 30, "time", "under", "end"))
    for number, lane in enumerate(diagram.lanes):
        name = fitting(lane.name, (place.lane_width(number) - 14) * LETTER / LETTER_BOLD)
        title = Shape("title", {}, lane.name)
        shapes.append(Shape("g", {}, "", [title, word(place.left(number) + 10, 25, name, "name")]))
        note = fitting(NOTES[lane.kind], place.lane_width(number) - 14)
        shapes.append(word(place.left(number) + 10, 42, note, "under"))
    return shapes


def gap_shapes(diagram: Diagram, place: Place) -> list[Shape]:
    shapes = []
    for gap, y in place.gaps:
        zigzag = "".join(f" l6 {4 if each % 2 else -4}" for each in range(math.ceil((place.width - GUTTER) / 6)))
        shapes.append(path(f"M{GUTTER} {y - 12:g}{zigzag}", "tear"))
        shapes.append(path(f"M{GUTTER} {y + 12:g}{zigzag}", "tear"))
        shapes.append(word(GUTTER + 10, y + 4, gap.text, "under"))
    for y, span_ns in place.steps:
        shapes.append(line(CLOCK + 6, y - 5, CLOCK + 6, y + 8, "passes"))
        shapes.append(word(CLOCK, y + 5, span_text(span_ns), "span", "end"))
    return shapes


def bar_shapes(bar: Bar, place: Place, top: float, bottom: float) -> list[Shape]:
    if bar.kind in ("fault", "gone"):
        around = place.left(bar.lane) + 2, top - ROW + 9, place.lane_width(bar.lane) - 4, bottom - top + ROW - 3
        return [box(*around, f"{bar.kind} shade"), box(*around, bar.kind)]
    if bar.kind == "wait":
        return [line(place.life(bar.lane), top, place.life(bar.lane), bottom, "wait")]
    left = place.life(bar.lane) - BAR / 2 + bar.track * TRACK
    shapes = [box(left, top, BAR, bottom - top, bar.kind, 4)]
    if bar.kind == "overlap":
        shapes = [*shapes, box(left, top, BAR, bottom - top, "stripes", 4)]
    if bar.kind == "lease":
        label = fitting(bar.label, place.lane_width(bar.lane) - 50)
        shapes.append(word(left + BAR + 8, top + 4, label, "word"))
    shapes[0].children.append(Shape("title", {}, bar_title(bar)))
    return shapes


def bar_title(bar: Bar) -> str:
    titles = {
        "belief": "believed hold",
        "overlap": "more clients believe than the lock has permits for",
        "lease": "lease at the server",
        "transaction": "transaction",
    }
    until = f", until: {bar.ended}" if bar.ended else ""
    return f"{titles[bar.kind]}{f', {bar.label}' if bar.label else ''}{until}"


def arrow_shapes(arrow: Arrow, diagram: Diagram, place: Place) -> list[Shape]:
    """A line with a head; a lost one ends at a cross, a held one has two strokes, an unheard one a question mark."""
    way = 1 if arrow.target > arrow.source else -1
    x1, y1 = place.life(arrow.source) + 7 * way, place.at(arrow.first)
    x2, y2 = place.life(arrow.target) - 8 * way, place.at(arrow.last)
    style = f"arrow {arrow.state}"
    if diagram.lanes[arrow.source].kind == "store":
        style += " reply"
    elif diagram.rows[arrow.last].evidence and arrow.state != "unheard":
        style += " bad"
    middle_x, middle_y = (x1 + x2) / 2, (y1 + y2) / 2
    if arrow.state == "lost":
        cross = f"M{middle_x - 5:g} {middle_y - 5:g} l10 10 m0 -10 l-10 10"
        return [line(x1, y1, middle_x, middle_y, style), path(cross, "cross")]
    if arrow.state == "unheard":
        end = x1 + 34 * way
        return [line(x1, y1, end, y1, style), word(end + 7 * way, y1 + 4, "?", "mark", "middle")]
    shapes = [line(x1, y1, x2, y2, style), arrow_head(x1, y1, x2, y2, style)]
    if arrow.state == "held":
        shapes.append(path(f"M{middle_x - 3:g} {middle_y - 7:g} v14 m6 -14 v14", "cross"))
    if arrow.state == "twice":
        shapes.append(word(middle_x, middle_y - 5, "twice", "mark", "middle"))
    return shapes


def arrow_head(x1: float, y1: float, x2: float, y2: float, style: str) -> Shape:
    angle = math.atan2(y2 - y1, x2 - x1)
    corners = [(x2, y2)]
    corners += [(x2 - 9 * math.cos(angle + turn), y2 - 9 * math.sin(angle + turn)) for turn in (0.4, -0.4)]
    return path("M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "Z", f"{style} tip")


def row_shape(number: int, row: Row, diagram: Diagram, place: Place, previous: str) -> Shape:
    """One event: the strip that a pointer selects, time, mark and text."""
    y = place.y[number]
    lane = diagram.lanes[row.lane].name if row.lane >= 0 else "all"
    bad = " bad" if row.evidence else ""
    label = f"{clock_text(row.at_ns)}, {lane}: {row.text}" + (", evidence of a violation" if bad else "")
    shape = Shape(
        "g",
        {"class": f"event {row.tone}{bad}", "data-row": number, "role": "button", "tabindex": -1, "aria-label": label},
    )
    shape.children.append(box(0, y - ROW / 2 - 3, place.width, ROW - 1, "strip", 3))
    if clock_text(row.at_ns) != previous:
        shape.children.append(word(CLOCK, y, clock_text(row.at_ns), "clock", "end"))
    if row.lane < 0:
        shape.children.append(line(GUTTER, y + 3, place.width, y + 3, "across"))
        shape.children.append(word(GUTTER + 10, y - 2, row.text, "word"))
        return shape
    if row.kind == "acquire-return" and row.tone == "good":
        lock = next((at for at, each in enumerate(diagram.lanes) if each.name == lock_lane(row.lock)), None)
        if lock is not None:
            shape.children.append(line(place.life(row.lane) + 8, y, place.life(lock) - 6, y, "granted"))
    shape.children.append(mark_shape(row, place.life(row.lane), y))
    beside = LIFELINE + 12 + (2 if row.evidence else 0)
    words = fitting(row.text, place.lane_width(row.lane) - beside - 4)
    shape.children.append(word(place.left(row.lane) + beside, y - 4, words, "word"))
    for count, evidence in enumerate(reversed(row.evidence[:2])):
        x = GUTTER - 8 - 15 * count
        shape.children += [box(x - 7, y - 8, 14, 14, "badge", 7), word(x, y + 3, str(evidence), "number", "middle")]
    return shape


def mark_shape(row: Row, x: float, y: float) -> Shape:
    """Each kind of event has a mark of its own, so that no reader needs the colours."""
    kind, good = row.kind, row.tone == "good" or bool(row.record and row.record.outcome == "ok")
    if kind.startswith("fault-") or kind == "actor-exit":
        return path(f"M{x:g} {y - 7:g} l7 12 h-14 z", "mark warn")
    if kind in ("rule", "released"):
        return path(f"M{x:g} {y - 6:g} l6 6 l-6 6 l-6 -6 z", "mark warn")
    if kind.endswith("-over"):
        return path(f"M{x - 7:g} {y:g} h14", "mark end")
    if kind.startswith("store-"):
        square = f"M{x - 5:g} {y - 5:g} h10 v10 h-10 z"
        return path(square if good else square + f" M{x - 5:g} {y - 5:g} l10 10", f"mark {'full' if good else 'no'}")
    if kind == "acquire-return" and good:
        return path(circle(x, y, 6), "mark grant")
    if kind.endswith("-return") and (row.tone == "warn" if not row.record else not good):
        return path(f"M{x - 5:g} {y - 5:g} l10 10 m0 -10 l-10 10", "mark no")
    return path(circle(x, y, 3), "mark full")


def circle(x: float, y: float, radius: float) -> str:
    half = f"a{radius:g} {radius:g} 0 1 0"
    return f"M{x - radius:g} {y:g} {half} {2 * radius:g} 0 {half} {-2 * radius:g} 0 z"


def callout_shape(number: int, lines: list[str], place: Place) -> Shape:
    top, height = place.callouts[number], len(lines) * CALLOUT_LINE + 10
    shape = Shape("g", {"class": "callout", "data-evidence": number})
    shape.children.append(box(GUTTER + 4, top - 4, place.edges[-1] - GUTTER - 8, height, "callout", 5))
    shape.children += [
        box(GUTTER + 12, top + 2, 14, 14, "badge", 7),
        word(GUTTER + 19, top + 13, str(number), "number", "middle"),
    ]
    for each, text in enumerate(lines):
        shape.children.append(word(GUTTER + 36, top + 14 + each * CALLOUT_LINE, text, "explanation"))
    return shape
