"""Plays scenarios with every shipped adapter repeatedly, many at a time: the same seed must give the same history.

    python -m tests.soak.adapter_soak -o scenarios/repeats.json

The runs are each other's load: each of them shares the machine with `--beside` others, all of them busy. The runs of
one adapter are far apart, so that they meet different neighbours. A history that is already in the file is not played
again, so a soak that was interrupted goes on where it was.
"""

import hashlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click
import msgspec

from lockstorm.base.atomic_file import write_json
from lockstorm.locks.adapter import PREFIX, adapter_entry, shipped_adapters

SCENARIOS = ("contention", "gc-pause", "connection-closed")
TIME_LIMIT = 900  # seconds of wall time; JVMs that share a core with thirty others need minutes to start


class Repeats(msgspec.Struct):
    """What the runs of one adapter in one scenario gave."""

    histories: dict[str, int] = {}  # by the first digits of the sha256: how often
    unplayed: int = 0  # runs without a history: the machine was too slow
    last_reason: str = ""  # of the last one of these


Rows = dict[str, dict[str, Repeats]]


def why_not(adapter: str) -> str:
    """Why one seed does not have one history in a trial; empty: it has."""
    entry = adapter_entry(PREFIX + adapter)
    if entry.service == "etcd":
        return "a trial over etcd is in real time: the clock of its servers cannot be moved"
    if entry.library.topology != "single":
        return f"it is configured for {entry.library.topology}, which only searches have"
    return ""


def play(adapter: str, scenario: str) -> tuple[str, str]:
    """One run with seed 1: the first digits of the sha256 of its history; or none, and what the run said."""
    with tempfile.TemporaryDirectory() as directory:
        history = Path(directory) / "history.jsonl"
        command = [sys.executable, "-m", "lockstorm", "run", scenario, "--adapter", adapter, "--seed", "1", "-q"]
        try:
            run = subprocess.run(
                [*command, "-o", str(history)], capture_output=True, text=True, timeout=TIME_LIMIT, check=False
            )
        except subprocess.TimeoutExpired:
            return "", f"no end in {TIME_LIMIT} s"
        if run.returncode not in (0, 1) or not history.exists():
            return "", " ".join((run.stderr or run.stdout).split())[:200]
        return hashlib.sha256(history.read_bytes()).hexdigest()[:16], ""


def left_to_play(rows: Rows, adapters: list[str], scenarios: list[str], repeat: int) -> list[tuple[str, str]]:
    """Each adapter and scenario once in each round in which it still lacks a history."""
    return [
        (adapter, scenario)
        for turn in range(repeat)
        for scenario in scenarios
        for adapter in adapters
        if sum(rows[adapter][scenario].histories.values()) <= turn
    ]


def soak(rows: Rows, left: list[tuple[str, str]], beside: int, output: Path) -> None:
    """Plays what is left, and writes the file after each run."""
    with ThreadPoolExecutor(beside + 1) as pool:
        runs = {pool.submit(play, *pair): pair for pair in left}
        for number, run in enumerate(as_completed(runs), 1):
            adapter, scenario = runs[run]
            row, (history, reason) = rows[adapter][scenario], run.result()
            if history:
                row.histories[history] = row.histories.get(history, 0) + 1
            else:
                row.unplayed, row.last_reason = row.unplayed + 1, reason
            write_json(output, msgspec.to_builtins(rows), indent=1)
            click.echo(f"{number} of {len(left)}: {adapter} {scenario} {history or reason}", err=True)


def complaints(rows: Rows, repeat: int) -> list[str]:
    """A line for each row that has not `repeat` equal histories."""
    return [
        f"{adapter}: {scenario}: {row.histories or row.last_reason}"
        for adapter, by_scenario in sorted(rows.items())
        for scenario, row in sorted(by_scenario.items())
        if len(row.histories) != 1 or sum(row.histories.values()) < repeat
    ]


@click.command()
@click.option("--repeat", type=click.IntRange(2, 1000), default=10, show_default=True, help="Runs of each scenario.")
@click.option("--beside", type=click.IntRange(0, 200), default=30, show_default=True, help="Other runs at a time.")
@click.option("--adapter", "names", multiple=True, help="Adapter to play; without it all that are shipped.")
@click.option("--scenario", "scenarios", multiple=True, default=SCENARIOS, show_default=True, help="What is played.")
@click.option("-o", "output", type=click.Path(path_type=Path), required=True, help="File of the results, kept up.")
def main(repeat: int, beside: int, names: tuple[str, ...], scenarios: tuple[str, ...], output: Path) -> None:
    """Play shipped adapters repeatedly beside each other. Exit status: 1 one seed gave two histories."""
    reasons = {adapter: why_not(adapter) for adapter in names or shipped_adapters()}
    adapters = [adapter for adapter, reason in reasons.items() if not reason]
    rows: Rows = msgspec.json.decode(output.read_bytes(), type=Rows) if output.exists() else {}
    for adapter in adapters:
        rows.setdefault(adapter, {})
        for scenario in scenarios:
            rows[adapter].setdefault(scenario, Repeats())
    soak(rows, left_to_play(rows, adapters, list(scenarios), repeat), beside, output)
    lines = complaints(rows, repeat)
    for line in [*lines, *(f"not played: {adapter}: {reason}" for adapter, reason in reasons.items() if reason)]:
        click.echo(line)
    count = sum(map(len, rows.values()))
    click.echo(f"{count - len(lines)} of {count} rows had the same history {repeat} times")
    raise SystemExit(1 if lines else 0)


if __name__ == "__main__":
    main()
