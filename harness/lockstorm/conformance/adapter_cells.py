"""The page's table of the expected verdicts of the shipped adapters. `python -m lockstorm.conformance.adapter_cells`
writes it to docs/adapter-cells.md."""

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_text
from lockstorm.base.marked_pages import page_with
from lockstorm.locks.adapter import PREFIX, shipped_adapters
from lockstorm.scenario.cells import MARK, cell_result
from lockstorm.scenario.expected import ExpectedCell, expected
from lockstorm.scenario.library_expected import adapters_in_trials, library_cell, library_cells, library_tables, port_of

# Informative scenarios, in which the locks differ; the tests play them every day.
SCENARIOS_SHOWN = ("connection-closed", "gc-pause", "packet-delay", "partition-holder")
# The columns: a scenario, or scenario/store.
COLUMNS = (
    "contention",
    "gc-pause",
    "gc-pause/fence-writes",
    "packet-delay",
    "slow-network-replies",
    "release-reply-lost",
    "connection-closed",
    "partition-holder",
    "crash-holder",
    "failover-unreplicated",
    "restart-data-lost",
)
PAGE = paths.ROOT / "docs" / "adapter-cells.md"
BEGIN, END = "<!-- cells: begin, written by make matrix -->", "<!-- cells: end -->"


def result_of(cell: ExpectedCell, *, control: bool = False) -> str:
    """In words."""
    statuses = cell.control if control else cell.fault
    broken = [name.replace("_", " ") for name, status in statuses.items() if status == "violated"]
    return ", ".join(broken) + " violated" if broken else "holds"


def differing_cells(adapter: str) -> list[ExpectedCell]:
    """Those in which the library is expected to do something else than its port, each with the reason."""
    pairs = [key.partition("/") for key in library_tables()[adapter] if key not in ("port", "not_played", "played")]
    cells = [library_cell((scenario, PREFIX + adapter, store or "open")) for scenario, _, store in pairs]
    return [cell for cell in cells if cell]


def note_of(cell: ExpectedCell, adapter: str) -> str:
    port = port_of(adapter)
    of_port = expected().get((cell.scenario, port, cell.store))
    where = f"`{adapter}`, `{cell.scenario}`" + (f" with the store {cell.store}" if cell.store != "open" else "")
    if of_port and cell.fault == of_port.fault:
        return f"- {where} without its fault: {result_of(cell, control=True)}: {cell.reason}."
    theirs = f"unlike `{port}` ({result_of(of_port)})" if of_port else f"to which `{port}` is not put"
    return f"- {where}: {result_of(cell)}, {theirs}: {cell.reason}."


def _mark(adapter: str, column: str) -> str:
    scenario, _, store = column.partition("/")
    lock = PREFIX + adapter
    if scenario not in library_tables()[adapter].get("played", (scenario,)):
        return ""
    cell = library_cells(lock).get((scenario, lock, store or "open"))
    return MARK[cell_result(cell.fault)] + (" \\*" if cell.reason else "") if cell else "·"


def adapter_table() -> str:
    """The table in Markdown, and the reasons of the differences."""
    lines = [
        f"| adapter | its C port | {' | '.join(f'`{column}`' for column in COLUMNS)} |",
        f"|---|---|{'---|' * len(COLUMNS)}",
    ]
    for adapter in adapters_in_trials():
        marks = " | ".join(_mark(adapter, column) for column in COLUMNS)
        lines.append(f"| `{adapter}` | `{port_of(adapter)}` | {marks} |")
    notes = [note_of(cell, adapter) for adapter in shipped_adapters() for cell in differing_cells(adapter)]
    notes += [
        f"- `{adapter}`, `{scenario}`: not played: {reason}."
        for adapter in shipped_adapters()
        for scenario, reason in library_tables()[adapter].get("not_played", {}).items()
    ]
    return "\n".join([*lines, "", *notes, ""])


def adapter_page() -> str:
    return page_with(PAGE, adapter_table(), BEGIN, END)


if __name__ == "__main__":
    write_text(PAGE, adapter_page())
