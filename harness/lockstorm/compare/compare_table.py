"""A comparison in a terminal: one table of locks under contention, one of the rates that they sustain."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.compare.comparison import Comparison, CostCell

HEADINGS = (
    *("grants/s", "x bench", "requests", "commands", "bytes", "CPU us", "server us"),
    *("hand-over", "p99", "overtaken", "unserved"),
)


WIDTH = 132  # of the wider table; a narrower terminal wraps its lines, so that no column is lost


def show_comparison(out: Console, result: Comparison) -> None:
    out.width = max(out.width, WIDTH)
    contended = [cell for cell in result.cells if cell.rate is None]
    paced = [cell for cell in result.cells if cell.rate is not None]
    reference, about = result.reference, result.machine
    if contended:
        out.print(contended_table(contended), "")
    if paced:
        out.print(paced_table(paced), "")
    for line in remarks(result.cells):
        out.print(Text(line, "yellow"))
    reference_us = f"{reference.us:.1f} us" if reference.us else f"unknown ({reference.reason or 'not measured'})"
    legend = f"x bench: time per grant / time of redis-benchmark for SET NX PX and EVALSHA (median {reference_us})"
    out.print(Text(legend, "dim"))
    out.print(Text(f"{about.cpu}, {about.cores} cores, Linux {about.kernel}, {about.redis}", "dim"))


def contended_table(cells: list[CostCell]) -> Table:
    table = Table(
        box=None, padding=(0, 1), header_style="dim", title="clients that contend for one lock", title_style="dim"
    )
    table.add_column("lock", no_wrap=True)
    table.add_column("clients", justify="right")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    last = None
    for cell in cells:
        name = Text(cell.lock if cell.lock != last else "", "bold")
        last = cell.lock
        table.add_row(name, str(cell.clients), *(_contended(cell) if cell.measured else ["-"] * len(HEADINGS)))
    return table


def paced_table(cells: list[CostCell]) -> Table:
    rates = sorted({cell.rate for cell in cells if cell.rate is not None})
    title = f"grants/s requested in total, by {cells[0].clients} clients with a lock each"
    table = Table(box=None, padding=(0, 1), header_style="dim", title=title, title_style="dim")
    table.add_column("lock", no_wrap=True)
    for rate in rates:
        table.add_column(f"{rate:,}/s", no_wrap=True)
    by_place = {(cell.lock, cell.rate): cell for cell in cells}
    for lock in dict.fromkeys(cell.lock for cell in cells):
        table.add_row(Text(lock, "bold"), *(_paced(by_place[lock, rate]) for rate in rates))
    return table


def remarks(cells: list[CostCell]) -> list[str]:
    """A line for each cell that has a remark or is empty, and one for each number of clients that shared processes."""
    shared = {cell.clients: cell.processes for cell in cells if cell.processes < cell.clients}
    return [
        *(f"{cell.lock}, {_load(cell)}: {cell.reason}" for cell in cells if cell.reason),
        *(f"{clients:,} clients shared {processes} processes" for clients, processes in shared.items()),
    ]


def _load(cell: CostCell) -> str:
    return f"{cell.clients} client{'s' if cell.clients > 1 else ''}" if cell.rate is None else f"{cell.rate:,} grants/s"


def _contended(cell: CostCell) -> list[str]:
    took = cell.hand_over_us
    return [
        _figure(cell.grants_per_s, ",.0f"),
        _figure(cell.cost_ratio, ".2f"),
        _figure(cell.requests_per_grant, ".2f"),
        _figure(cell.commands_per_grant, ".2f"),
        _figure(cell.bytes_per_grant, ".0f"),
        _figure(cell.client_cpu_us_per_grant, ".1f"),
        _figure(cell.server_cpu_us_per_grant, ".1f"),
        _time(took.p50 if took else None),
        _time(took.p99 if took else None),
        _figure(cell.overtakings_per_grant, ".2f"),
        str(took.unserved) if took else "-",
    ]


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _paced(cell: CostCell) -> Text:
    if not cell.measured:
        return Text("-", "dim")
    cpu = f"{_figure(cell.client_cpu_us_per_grant, '.0f')} us CPU, {_figure(cell.requests_per_grant, '.2f')} requests"
    if cell.sustained:
        return Text(f"yes ({cpu})", "green")
    return Text(f"cannot: {_figure(cell.grants_per_s, ',.0f')}/s ({cpu})", "red")


def _time(us: float | None) -> str:
    if us is None:
        return "-"
    return f"{us:.0f} us" if us < 1000 else f"{us / 1000:.1f} ms"
