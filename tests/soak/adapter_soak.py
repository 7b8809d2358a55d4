"""Plays scenarios with every shipped adapter repeatedly, many at a time: the same seed must give the same history.

    python -m tests.soak.adapter_soak -o scenarios/repeats.json

The runs are each other's load: each of them shares the machine with `--beside` others, all of them busy. The runs of
one adapter are far apart, so that they meet different neighbours. A round that is already in the file is not played
again, so a soak that was interrupted goes on where it was.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click

from lockstorm.base.atomic_file import write_json
from lockstorm.locks.adapter import shipped_adapters

SCENARIOS = ("contention", "gc-pause", "connection-closed")
TIME_LIMIT = 600  # seconds of wall time; JVMs that share a core with thirty others need minutes to start

# By adapter and scenario: how often each history was seen, by its sha256, or by the sentence of a run without one.
Seen = dict[str, dict[str, dict[str, int]]]


def played_history(adapter: str, scenario: str) -> str:
    """The first digits of the sha256 of the history of one run with seed 1; otherwise what the run said."""
    with tempfile.TemporaryDirectory() as directory:
        history = Path(directory) / "history.jsonl"
        command = [sys.executable, "-m", "lockstorm", "run", scenario, "--adapter", adapter, "--seed", "1", "-q"]
        try:
            run = subprocess.run(
                [*command, "-o", str(history)], capture_output=True, text=True, timeout=TIME_LIMIT, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no end in {TIME_LIMIT} s"
        if run.returncode == 2 or not history.exists():
            return " ".join((run.stderr or run.stdout).split())[:200]
        return hashlib.sha256(history.read_bytes()).hexdigest()[:16]


def rounds_left(seen: Seen, adapters: list[str], scenarios: list[str], repeat: int) -> list[tuple[str, str]]:
    """What is to be played: each pair once in each round in which it still lacks a run."""
    return [
        (adapter, scenario)
        for turn in range(repeat)
        for scenario in scenarios
        for adapter in adapters
        if sum(seen.get(adapter, {}).get(scenario, {}).values()) <= turn
    ]


def differing(seen: Seen) -> list[str]:
    """A line for each adapter and scenario whose runs were not all the same history."""
    return [
        f"{adapter}: {scenario}: " + ", ".join(f"{times} x {history}" for history, times in histories.items())
        for adapter, by_scenario in sorted(seen.items())
        for scenario, histories in sorted(by_scenario.items())
        if len(histories) > 1 or not all(len(history) == 16 for history in histories)
    ]


def soak(seen: Seen, left: list[tuple[str, str]], beside: int, output: Path) -> None:
    """Plays what is left, and writes the file after each run."""
    counts: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    for adapter, by_scenario in seen.items():
        for scenario, histories in by_scenario.items():
            counts[adapter][scenario].update(histories)
    with ThreadPoolExecutor(beside + 1) as pool:
        runs = {pool.submit(played_history, adapter, scenario): (adapter, scenario) for adapter, scenario in left}
        for number, run in enumerate(as_completed(runs), 1):
            adapter, scenario = runs[run]
            counts[adapter][scenario][run.result()] += 1
            seen[adapter] = json.loads(json.dumps(counts[adapter]))
            write_json(output, dict(sorted(seen.items())))
            click.echo(f"{number} of {len(left)}: {adapter} {scenario} {run.result()}", err=True)


@click.command()
@click.option("--repeat", type=click.IntRange(2, 1000), default=10, show_default=True, help="Runs of each scenario.")
@click.option("--beside", type=click.IntRange(0, 200), default=30, show_default=True, help="Other runs at a time.")
@click.option("--adapter", "adapters", multiple=True, help="Adapter to play; without it all that are shipped.")
@click.option("--scenario", "scenarios", multiple=True, default=SCENARIOS, show_default=True, help="What is played.")
@click.option("-o", "output", type=click.Path(path_type=Path), required=True, help="File of the results, kept up.")
def main(repeat: int, beside: int, adapters: tuple[str, ...], scenarios: tuple[str, ...], output: Path) -> None:
    """Play shipped adapters repeatedly beside each other. Exit status: 1 one seed gave two histories."""
    seen: Seen = json.loads(output.read_text()) if output.exists() else {}
    left = rounds_left(seen, list(adapters) or shipped_adapters(), list(scenarios), repeat)
    soak(seen, left, beside, output)
    lines = differing(seen)
    for line in lines:
        click.echo(line)
    click.echo(f"{sum(len(row) for row in seen.values())} rows, {len(lines)} of them with more than one history")
    raise SystemExit(1 if lines else 0)


if __name__ == "__main__":
    main()
