"""The commands of a replayed schedule as a table: a line each, in the order in which the servers heard them."""

import re
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from lockstorm.results.verdict import HeardCommand

LONGEST_WORD, LONGEST_ANSWER = 40, 120  # letters
RANDOM = re.compile(
    r"([0-9a-f]{8})[0-9a-f]{12,}"
)  # the hash of a script, or the name of an owner: its beginning is shown
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
        answer = " - ".join(part for part in (_short(each.answer or "", LONGEST_ANSWER), words) if part)
        table.add_row(
            f"{each.mono_ns / 1e9:.3f} s",
            f"client-{each.client}" + ("'s watchdog" if each.watchdog else ""),
            f"redis-{each.node}" if each.node else "store",
            Text(" ".join(map(_short, each.words)), style),
            Text(answer, style),
        )
    return table


def _short(word: str, most: int = LONGEST_WORD) -> str:
    word = RANDOM.sub(r"\1…", word)
    return word if len(word) <= most else f"{word[: most - 1]}…"
