"""What a campaign prints: a line for each entry, and how to go on."""

import shlex
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lockstorm.base.errors import Inconclusive
from lockstorm.base.paths import runnable
from lockstorm.results.campaign_result import CampaignResult, EntryState

STYLES = {0: ("ok", "green"), 1: ("VIOLATED", "red"), 3: ("unclear", "yellow"), None: ("not ended", "dim")}


def entry_line(entry: EntryState) -> str:
    """An entry that has ended, in a line."""
    return f"{entry.name}: {entry.sentence}"


def show_campaign(out: Console, result: CampaignResult, directory: Path) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for entry in result.entries:
        word, style = STYLES[entry.exit]
        table.add_row(Text(word, style), Text(entry.name, "bold"), Text(entry.sentence))
        if entry.again:
            table.add_row("", "", Text(f"again: {runnable(entry.again)}", "dim"))
    out.print(table)
    out.print(Text(f"\n{result.played:,} cases played on {result.engine}; results in {directory}", "dim"))
    if result.state == "complete" and result.exit != Inconclusive.exit_status:
        return
    words = runnable(f"lockstorm campaign --resume {shlex.quote(str(directory))}")
    out.print(Text(f"go on: {words}", "dim"))
