"""Makes the picture of what many waiters cost, from a comparison:

lockstorm compare --lock set-nx-px,pubsub,blpop,fair --waiters 200,1000,9800 --work 10ms --duration 20s --rate none \\
    -o costs.json
.venv/bin/python bench/plot_waiters.py costs.json bench/results/waiters.svg

Panels side by side, waiters to the right and a cost upwards, both logarithmic; a line for each lock."""

import json
import math
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

Cell = dict[str, Any]

PANEL_WIDTH, PANEL_HEIGHT, LEFT, TOP, GAP, FOOT = 230, 240, 64, 58, 76, 48  # pixels
COLOURS = ("#b3261e", "#1f6feb", "#1a7f37", "#8250df", "#9a6700", "#57606a")
MARKS = ("circle", "square", "triangle", "diamond")
OUTLINES = {  # where it begins, from its middle, and how it goes on
    "square": ((-4, -4), "h8v8h-8z"),
    "triangle": ((0, -5), "l5 9h-10z"),
    "diamond": ((0, -5.5), "l5.5 5.5l-5.5 5.5l-5.5 -5.5z"),
}
PANELS: tuple[tuple[str, Callable[[Cell], float | None]], ...] = (
    ("server CPU per grant, ms", lambda cell: cell["server_cpu_us_per_grant"] / 1000),
    ("requests per grant", lambda cell: cell["requests_per_grant"]),
    (
        "hand-over, median, ms",
        lambda cell: (cell["hand_over_us"] or {}).get("p50") and cell["hand_over_us"]["p50"] / 1000,
    ),
)


class Axis:
    """A logarithmic scale over whole decades."""

    def __init__(self, values: list[float], begin: float, end: float) -> None:
        self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        self.high = max(self.high, self.low + 1)
        self._begin, self._end = begin, end

    def at(self, value: float) -> float:
        return self._begin + (math.log10(value) - self.low) / (self.high - self.low) * (self._end - self._begin)

    def decades(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def draw(cells: list[Cell]) -> str:
    """The picture as SVG."""
    cells = [cell for cell in cells if cell["measured"] and cell["rate"] is None]
    locks = list(dict.fromkeys(cell["lock"] for cell in cells))
    width, height = LEFT + len(PANELS) * (PANEL_WIDTH + GAP), TOP + PANEL_HEIGHT + FOOT
    shapes = [f'<rect width="{width}" height="{height}" fill="#ffffff"/>', *legend(locks)]
    for number, (title, cost) in enumerate(PANELS):
        shapes += panel(cells, locks, title, cost, LEFT + number * (PANEL_WIDTH + GAP))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    style = 'font-family="system-ui, sans-serif" font-size="12" fill="#24292f" role="img"'
    return f"{head} {style}><title>What many waiters cost</title>\n" + "\n".join(shapes) + "\n</svg>\n"


def legend(locks: list[str]) -> list[str]:
    shapes = []
    for number, lock in enumerate(locks):
        x = LEFT + number * 120
        shapes += [mark(x, 18, number), f'<text x="{x + 12}" y="22">{escape(lock)}</text>']
    return shapes


def panel(
    cells: list[Cell], locks: list[str], title: str, cost: Callable[[Cell], float | None], left: float
) -> list[str]:
    points = {
        lock: [(cell["clients"], value) for cell in cells if cell["lock"] == lock and (value := cost(cell))]
        for lock in locks
    }
    every = [point for line in points.values() for point in line]
    bottom = TOP + PANEL_HEIGHT
    across = Axis([x for x, _ in every], left, left + PANEL_WIDTH)
    upwards = Axis([y for _, y in every], bottom, TOP)
    shapes = [f'<text x="{left}" y="{TOP - 12}" font-weight="600">{escape(title)}</text>']
    shapes += grid(across, upwards, left, bottom)
    for number, lock in enumerate(locks):
        line = [(across.at(x), upwards.at(y)) for x, y in sorted(points[lock])]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="2"/>'
        )
        shapes += [mark(x, y, number) for x, y in line]
    return shapes


def grid(across: Axis, upwards: Axis, left: float, bottom: float) -> list[str]:
    shapes = []
    for value in upwards.decades():
        y = upwards.at(value)
        shapes.append(f'<path d="M{left:.1f} {y:.1f}h{PANEL_WIDTH}" stroke="#d0d7de"/>')
        shapes.append(f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>')
    for value in across.decades():
        x = across.at(value)
        shapes.append(f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="#d0d7de"/>')
        shapes.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{value:,.0f}</text>')
    shapes.append(f'<text x="{left + PANEL_WIDTH / 2:.1f}" y="{bottom + 36}" text-anchor="middle">waiters</text>')
    return shapes


def mark(x: float, y: float, number: int) -> str:
    """The point of a lock: its colour, and a shape for those who do not see colours."""
    colour, kind = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    (dx, dy), rest = OUTLINES[kind]
    return f'<path d="M{x + dx:.1f} {y + dy:.1f}{rest}" fill="{colour}"/>'


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: {sys.argv[0]} COMPARISON.json PICTURE.svg")
    Path(sys.argv[2]).write_text(draw(json.loads(Path(sys.argv[1]).read_text())["cells"]))


if __name__ == "__main__":
    main()
