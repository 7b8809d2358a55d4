"""The matrix as a table: for a terminal and as Markdown."""

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

STYLE = {"holds": "green", "fenced": "cyan", "violated": "bold red", "stuck": "magenta", "inconclusive": "yellow"}
MARK = {"holds": "holds", "fenced": "fenced", "violated": "**violated**", "stuck": "*stuck*", "inconclusive": "?"}
LEGEND = (
    "holds: all that was required. fenced: mutual exclusion violated, the store refused the damage. violated: damage, "
    "or two holders where nothing refuses it. stuck: somebody was left waiting. A control that does not hold stands "
    "behind a slash. !: not as expected."
)


def word_of(cell: dict[str, Any]) -> str:
    """The cell in words: its result, its control's if that did not hold, and a mark if it was expected otherwise."""
    control = "" if cell["control"] == "holds" else f" / {cell['control']}"
    return f"{cell['result']}{control}{'' if cell['ok'] else ' !'}"


def rows_of(result: dict[str, Any]) -> tuple[list[str], list[tuple[str, dict[str, dict[str, Any]]]]]:
    """The scenarios, and a row for each lock and store mode."""
    scenarios = list(dict.fromkeys(cell["scenario"] for cell in result["cells"]))
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for cell in result["cells"]:
        name = cell["lock"] if cell["store"] == "open" else f"{cell['lock']} / {cell['store']}"
        rows.setdefault(name, {})[cell["scenario"]] = cell
    return scenarios, list(rows.items())


def show(console: Console, result: dict[str, Any]) -> None:
    """Scenarios across, locks down; below them the cells that are not as expected, each with the command for it."""
    scenarios, rows = rows_of(result)
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("lock / store", no_wrap=True)
    for scenario in scenarios:
        table.add_column(scenario)
    for name, cells in rows:
        said = [cells.get(scenario) for scenario in scenarios]
        texts = [Text(word_of(cell), STYLE[cell["result"]]) if cell else Text("-", "dim") for cell in said]
        table.add_row(Text(name, "bold"), *texts)
    console.print(table)
    console.print()
    console.print(Text(LEGEND, "dim"))
    wrong = [cell for cell in result["cells"] if not cell["ok"]]
    for cell in wrong:
        words = f"{cell['scenario']} with {cell['lock']}/{cell['store']}: expected {cell['expected']}, "
        words += f"control {cell['control_expected']}; found {cell['result']}, control {cell['control']}. "
        console.print(Text(f"{words}{cell['sentence']}", "bold red"))
        console.print(Text(f"  again: ./{cell['replay']}", "dim"))
    count = len(result["cells"])
    summary = f"{count} cells, all as expected" if not wrong else f"{len(wrong)} of {count} cells are not as expected"
    console.print(Text(summary, "bold red" if wrong else "bold green"))


def markdown(result: dict[str, Any]) -> str:
    """The same as a GitHub table."""
    scenarios, rows = rows_of(result)
    lines = ["| lock | " + " | ".join(scenarios) + " |", "|---|" + "---|" * len(scenarios)]
    for name, cells in rows:
        words = []
        for scenario in scenarios:
            cell = cells.get(scenario)
            control = f" / {cell['control']}" if cell and cell["control"] != "holds" else ""
            words.append(f"{MARK[cell['result']]}{control}{'' if cell['ok'] else ' !'}" if cell else "-")
        lines.append(f"| `{name}` | " + " | ".join(words) + " |")
    return "\n".join([*lines, "", LEGEND]) + "\n"
