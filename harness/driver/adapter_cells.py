"""What the shipped adapters are expected to show (scenarios/adapters.toml): what the C port of the same pattern does,
but for the differences that are written down there. `python -m harness.driver.adapter_cells` writes them into
docs/adapters.md."""

import tomllib
from dataclasses import dataclass
from functools import cache

from harness.driver import paths
from harness.driver.adapter import shipped
from harness.driver.errors import UsageError
from harness.driver.expected import STATUSES, expected
from harness.driver.play import PROPERTIES, choose, lock_named

# Played in real time for every adapter, with and without the fault: what takes a second each, and shows most.
STORIES = ("connection-closed", "gc-pause", "packet-delay", "partition-holder")
FILE = paths.ROOT / "scenarios" / "adapters.toml"
PAGE = paths.ROOT / "docs" / "adapters.md"
BEGIN, END = "<!-- cells: begin, written by make matrix -->\n", "<!-- cells: end -->\n"


@dataclass(frozen=True)
class AdapterCell:
    """One story of one adapter: the statuses of what is required, and why they are not its port's."""

    adapter: str
    port: str
    scenario: str
    fault: dict[str, str]
    differs: tuple[str, ...]  # properties in which the port is otherwise
    reason: str

    @property
    def word(self) -> str:
        broken = [name.replace("_", " ") for name, status in self.fault.items() if status == "violated"]
        return ", ".join(broken) + " violated" if broken else "holds"


@cache
def adapter_cells() -> dict[tuple[str, str], AdapterCell]:
    """All by (adapter, scenario). Raises UsageError on what does not fit together."""
    said = tomllib.loads(FILE.read_text())
    if sorted(said) != shipped():
        raise UsageError(f"{FILE} is about {', '.join(sorted(said))}, and shipped are {', '.join(shipped())}")
    cells: dict[tuple[str, str], AdapterCell] = {}
    for adapter, about in said.items():
        port = lock_named(about.pop("port"))["name"]
        for scenario in about:
            choose("story about adapters", scenario, list(STORIES))
        for scenario in STORIES:
            cells[adapter, scenario] = _cell(adapter, port, scenario, dict(about.get(scenario, {})))
    return cells


def _cell(adapter: str, port: str, scenario: str, own: dict[str, str]) -> AdapterCell:
    reason = own.pop("reason", "")
    theirs = expected()[scenario, port, "open"].fault
    if bool(own) != bool(reason) or not set(own) <= set(PROPERTIES) or not set(own.values()) <= set(STATUSES):
        raise UsageError(f"{FILE}: [{adapter}] {scenario}: properties in which {port} is otherwise, and a reason")
    differs = tuple(name for name, status in own.items() if theirs.get(name) != status)
    if len(differs) != len(own):
        raise UsageError(f"{FILE}: [{adapter}] {scenario}: {port} does the same, so there is nothing to say")
    return AdapterCell(adapter, port, scenario, {**theirs, **own}, differs, reason)


def table() -> str:
    """As Markdown."""
    cells = adapter_cells()
    lines = [
        f"| adapter | its C port | {' | '.join(f'`{scenario}`' for scenario in STORIES)} |",
        f"|---|---|{'---|' * len(STORIES)}",
    ]
    notes: list[str] = []
    for adapter in shipped():
        words = []
        for scenario in STORIES:
            cell = cells[adapter, scenario]
            if cell.reason:
                notes.append(f"- `{adapter}`, `{scenario}`, unlike `{cell.port}`: {cell.reason}.")
            words.append(cell.word + (" *" if cell.reason else ""))
        lines.append(f"| `{adapter}` | `{cells[adapter, STORIES[0]].port}` | {' | '.join(words)} |")
    return "\n".join([*lines, "", *notes, ""])


def page_with(text: str) -> str:
    """The page, with the table between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text()))
