"""The matrix as GitHub tables, and the pages of the project that show the table of expected verdicts.

`python -m harness.driver.matrix_pages` (make matrix) writes it into README.md and docs/matrix.md, between two marks; a
test holds that they say the same.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.driver import paths
from harness.driver.errors import UsageError
from harness.driver.matrix import told_matrix
from harness.driver.matrix_table import MARK, MEANING, NOT_PLAYED, UNFIT, grid_of
from harness.driver.scenario import scenarios

BEGIN, END = "<!-- matrix: begin, written by make matrix -->", "<!-- matrix: end -->"
COLUMNS_MOST = 8  # of a table, or it does not fit beside its scenarios
NAMES_MOST = 6  # of locks that share a reason
FAMOUS_SCENARIOS = (
    "gc-pause",
    "packet-delay",
    "pause-after-validity-check",
    "partition-holder",
    "failover-unreplicated",
    "restart-data-lost",
    "clock-jump-node",
    "crash-restart-node",
)
FAMOUS_LOCKS = {
    "setnx / open": "SETNX",
    "set-nx-px / open": "SET NX PX",
    "pubsub / open": "Redisson",
    "redlock / open": "Redlock",
    "set-nx-px-fenced / fence-reads-and-writes": "SET NX PX, fenced",
}


def tables(result: dict[str, Any]) -> str:
    """The whole matrix: scenarios down, locks across, in tables of a readable width, and what the marks mean."""
    grid, columns = grid_of(result["cells"])
    unfit = {(pair["scenario"], pair["lock"]) for pair in result["unfit"]}
    blocks = []
    for group in groups_of(columns):
        lines = ["| | " + " | ".join(f"`{column}`" for column in group) + " |", "|---|" + ":-:|" * len(group)]
        for scenario, row in grid.items():
            marks = [mark_of(row.get(column), (scenario, column.partition(" / ")[0]) in unfit) for column in group]
            lines.append(f"| {scenario} | " + " | ".join(marks) + " |")
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, legend(result)]) + "\n"


def groups_of(columns: list[str]) -> list[list[str]]:
    """Tables of about the same width, none too wide."""
    count = -(-len(columns) // COLUMNS_MOST)
    size = -(-len(columns) // count) if count else 0
    return [columns[start : start + size] for start in range(0, len(columns), size or 1)]


def mark_of(cell: dict[str, Any] | None, unfit: bool) -> str:
    if cell is None:
        return UNFIT if unfit else NOT_PLAYED
    control = "" if cell["control"] == "holds" else r"\*"
    return f"{MARK[cell['result']]}{control}{'' if cell['ok'] else ' !'}"


def legend(result: dict[str, Any]) -> str:
    cells = result["cells"]
    told = [f"{MARK[word]} {word}: {said}" for word, said in MEANING.items() if any(c["result"] == word for c in cells)]
    if any(cell["control"] != "holds" for cell in cells):
        told.append(r"\*: the control, which is the same without the fault, does not hold either")
    if any(not cell["ok"] for cell in cells):
        told.append("!: not as expected")
    if result["unfit"]:
        told.append(f"{UNFIT}: no story about this lock")
    if result["unplayed"]:
        told.append("empty: not known")
    return ". ".join(told) + "."


def famous(result: dict[str, Any]) -> str:
    """The cells that the articles are about, in words."""
    cells = {(cell["scenario"], f"{cell['lock']} / {cell['store']}"): cell for cell in result["cells"]}
    unfit = {(pair["scenario"], pair["lock"]) for pair in result["unfit"]}
    lines = ["| | " + " | ".join(FAMOUS_LOCKS.values()) + " |", "|---|" + "---|" * len(FAMOUS_LOCKS)]
    for scenario in FAMOUS_SCENARIOS:
        words = []
        for column in FAMOUS_LOCKS:
            cell = cells.get((scenario, column))
            no_story = (scenario, column.partition(" / ")[0]) in unfit
            words.append(f"{MARK[cell['result']]} {cell['result']}" if cell else UNFIT if no_story else "not known")
        lines.append(f"| `{scenario}` | " + " | ".join(words) + " |")
    return "\n".join(lines) + "\n"


def reasons(result: dict[str, Any]) -> str:
    """Every scenario: its story, its control, its source, and why its cells are what they are."""
    blocks = []
    for name, told in scenarios().items():
        lines = [f"### {name}", "", told.summary, f"Control: {told.control}. Source: {told.source}.", ""]
        lines += [*reasons_of(name, result), ""]
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def reasons_of(scenario: str, result: dict[str, Any]) -> Iterator[str]:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for cell in result["cells"]:
        if cell["scenario"] == scenario and cell["reason"]:
            by_reason.setdefault((cell["result"], cell["reason"]), []).append(f"`{cell['lock']}/{cell['store']}`")
    for (word, reason), columns in by_reason.items():
        yield f"- {MARK[word]} {in_short(columns)}: {reason}"
    by_unfit: dict[str, list[str]] = {}
    for pair in result["unfit"]:
        if pair["scenario"] == scenario:
            reason = pair["reason"].removeprefix(f"{pair['lock']} ")
            by_unfit.setdefault(reason, []).append(f"`{pair['lock']}`")
    for reason, names in by_unfit.items():
        yield f"- {UNFIT} {in_short(names)}: {reason}"


def in_short(names: list[str]) -> str:
    """The table has all of them."""
    return (
        ", ".join(names)
        if len(names) <= NAMES_MOST
        else f"{', '.join(names[:NAMES_MOST])} and {len(names) - NAMES_MOST} more"
    )


def pages() -> dict[Path, str]:
    """Every page that shows the matrix, as it has to be."""
    told = told_matrix()
    shown = {"README.md": famous(told), "docs/matrix.md": f"{tables(told)}\n## Why\n\n{reasons(told)}"}
    return {paths.ROOT / name: page_with(paths.ROOT / name, text, BEGIN, END) for name, text in shown.items()}


def page_with(page: Path, text: str, begin: str, end: str) -> str:
    """The page with this text between these marks."""
    said = page.read_text()
    if said.count(begin) != 1 or said.count(end) != 1:
        raise UsageError(f"{page}: there is no place between {begin} and {end}")
    return re.sub(
        f"({re.escape(begin)}\n).*({re.escape(end)})", lambda found: f"{found[1]}\n{text}\n{found[2]}", said, flags=re.S
    )


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text)
