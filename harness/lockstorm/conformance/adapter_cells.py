"""The expected verdicts of the shipped adapters: those of the C port of the same pattern, except for the differences
that scenarios/adapters.toml lists. `python -m lockstorm.conformance.adapter_cells` writes them to docs/adapters.md."""

import tomllib
from dataclasses import dataclass
from functools import cache

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_text
from lockstorm.base.errors import UsageError
from lockstorm.base.marked_pages import page_with
from lockstorm.base.option_fields import choose
from lockstorm.locks.adapter import shipped_adapters
from lockstorm.locks.lock_names import lock_named
from lockstorm.results.properties import PROPERTIES
from lockstorm.scenario.expected import STATUSES, expected

# Played in real time for every adapter, with and without the fault: informative scenarios that take about a second.
SCENARIOS_PLAYED = ("connection-closed", "gc-pause", "packet-delay", "partition-holder")
FILE = paths.ROOT / "scenarios" / "adapters.toml"
PAGE = paths.ROOT / "docs" / "adapters.md"
BEGIN, END = "<!-- cells: begin, written by make matrix -->", "<!-- cells: end -->"


@dataclass(frozen=True)
class AdapterCell:
    """One adapter in one scenario: the statuses of the required properties, and why they differ from its port's."""

    adapter: str
    port: str
    scenario: str
    fault: dict[str, str]
    differs: tuple[str, ...]  # properties whose statuses differ from those of the port
    reason: str

    @property
    def result(self) -> str:
        broken = [name.replace("_", " ") for name, status in self.fault.items() if status == "violated"]
        return ", ".join(broken) + " violated" if broken else "holds"


@cache
def adapter_cells() -> dict[tuple[str, str], AdapterCell]:
    """All cells by (adapter, scenario). Raises UsageError on a contradiction in scenarios/adapters.toml."""
    tables = tomllib.loads(FILE.read_text())
    if sorted(tables) != shipped_adapters():
        raise UsageError(
            f"{FILE} is about {', '.join(sorted(tables))}, and shipped are {', '.join(shipped_adapters())}"
        )
    cells: dict[tuple[str, str], AdapterCell] = {}
    for adapter, table in tables.items():
        port = lock_named(table.pop("port")).name
        for scenario in table:
            choose("scenario for adapters", scenario, list(SCENARIOS_PLAYED))
        for scenario in SCENARIOS_PLAYED:
            cells[adapter, scenario] = _cell(adapter, port, scenario, dict(table.get(scenario, {})))
    return cells


def _cell(adapter: str, port: str, scenario: str, differences: dict[str, str]) -> AdapterCell:
    reason = differences.pop("reason", "")
    port_statuses = expected()[scenario, port, "open"].fault
    if (
        bool(differences) != bool(reason)
        or not set(differences) <= set(PROPERTIES)
        or not set(differences.values()) <= set(STATUSES)
    ):
        raise UsageError(f"{FILE}: [{adapter}] {scenario}: statuses that differ from those of {port}, and a reason")
    differs = tuple(name for name, status in differences.items() if port_statuses.get(name) != status)
    if len(differs) != len(differences):
        raise UsageError(f"{FILE}: [{adapter}] {scenario}: {port} has the same status, so it is no difference")
    return AdapterCell(adapter, port, scenario, {**port_statuses, **differences}, differs, reason)


def adapter_table() -> str:
    """The table in Markdown, and the reasons of the differences."""
    cells = adapter_cells()
    lines = [
        f"| adapter | its C port | {' | '.join(f'`{scenario}`' for scenario in SCENARIOS_PLAYED)} |",
        f"|---|---|{'---|' * len(SCENARIOS_PLAYED)}",
    ]
    notes: list[str] = []
    for adapter in shipped_adapters():
        results = []
        for scenario in SCENARIOS_PLAYED:
            cell = cells[adapter, scenario]
            if cell.reason:
                notes.append(f"- `{adapter}`, `{scenario}`, unlike `{cell.port}`: {cell.reason}.")
            results.append(cell.result + (" *" if cell.reason else ""))
        lines.append(f"| `{adapter}` | `{cells[adapter, SCENARIOS_PLAYED[0]].port}` | {' | '.join(results)} |")
    return "\n".join([*lines, "", *notes, ""])


def adapter_page() -> str:
    """The text of the page, with the up-to-date table between its marks."""
    return page_with(PAGE, adapter_table(), BEGIN, END)


if __name__ == "__main__":
    write_text(PAGE, adapter_page())
