"""The commands of a replayed schedule as a table: a line each, in the order in which the servers heard them."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from lockstorm.results.struck_command import server_name, shortened
from lockstorm.results.verdict import HeardCommand

LONGEST_ANSWER = 120  # letters
FATES = {
    "answered": ("", ""),
    "answer-lost": ("the answer is lost on its way back", "yellow"),
    "waits": ("waits in the server", "dim"),
    "answered-late": ("answered now", ""),
    "late": ("executed late: nobody waits for its answer", "bold yellow"),
    "lost": ("never arrives", "yellow"),
    "refused": ("an error, and not executed", "yellow"),
}


def commands_table(commands: Iterable[HeardCommand]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("time", justify="right", no_wrap=True)
    for title in ("from", "to", "command", "answer"):
        table.add_column(title, overflow="fold")
    for each in commands:
        words, style = FATES[each.fate]
        answer = " - ".join(part for part in (shortened(each.answer or "", LONGEST_ANSWER), words) if part)
        table.add_row(
            f"{each.mono_ns / 1e9:.3f} s",
            f"client-{each.client}" + ("'s watchdog" if each.watchdog else ""),
            server_name(each.node),
            Text(" ".join(map(shortened, each.words)), style),
            Text(answer, style),
        )
    return table
