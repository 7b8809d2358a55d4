"""`lockstorm explore` and `lockstorm replay`."""

import math
import time
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.driver.campaign import NAMES, read_campaign, write_result
from harness.driver.errors import UsageError
from harness.driver.explore import FAULTS, STRATEGIES, ExploreWish, Plan, merged, plan, resumed
from harness.driver.explore import explore as explore_
from harness.driver.explore import replay as replay_
from harness.driver.narrate import Event, show_result, story_table, verdict_table
from harness.driver.replay_real import replay_real
from harness.driver.schedule_file import keep_found, read_found
from harness.driver.terminal import (
    chosen_lock,
    console,
    json_option,
    lock_option,
    plugin_option,
    print_json,
    saying,
    waiting,
)

DAY_S = 86400


@click.command()
@lock_option
@plugin_option
@click.option("--clients", type=int, help="How many want the lock. Default: 3.")
@click.option("--replicas", type=int, help="Of each node, 2 at most. Default: as the lock or a fault needs.")
@click.option(
    "--faults",
    metavar="FAULT[=N],…",
    help=f"At most N (1) of each in one schedule: {', '.join(FAULTS)}; or none. Default: pause.",
)
@click.option("--schedules", type=int, help="Try so many.")
@click.option("--seconds", type=int, help="Stop after so long. Default without --schedules: 10.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed tries the same schedules.")
@click.option("--strategy", default="portfolio", show_default=True, metavar="|".join(STRATEGIES))
@click.option("--bound", type=int, help="Of --strategy exhaustive: at most so many surprises. Default: 2.")
@click.option(
    "--store",
    metavar="MODE",
    help="open (default), fence-writes, fence-reads-and-writes, compare-owner or compare-and-set.",
)
@click.option("--lease-ms", type=int, help="Default: 1000.")
@click.option(
    "--turns", type=int, help="How often each client wants the lock. Default: 1; where connections are lost, 2."
)
@click.option("--work-ms", type=int, help="How long a client works before it writes. Default: a fiftieth of the lease.")
@click.option(
    "--wait-ms",
    type=int,
    help="How long a client waits for the lock; -1: as long as the lock itself does. Default: 20 leases.",
)
@click.option("--permits", type=int, help="How many may hold a semaphore at once. Default: 1.")
@click.option("--fixed-lease", is_flag=True, help="Of locks with a watchdog: the lease is meant, nothing renews it.")
@click.option("--extends", is_flag=True, help="Clients extend their lease in the middle of their work.")
@click.option("--jobs", type=int, help="How many search side by side. Default: one a core.")
@click.option("--all", "goes_on", is_flag=True, help="Go on after a violation; group them by what they violate.")
@click.option(
    "--require", metavar="PROPERTY,…", help="Only these count: mutual_exclusion, integrity, fencing, liveness."
)
@click.option("-o", "output", type=click.Path(path_type=Path), help="Save the schedule that violates something here.")
@click.option(
    "--shard", metavar="K/N", help="Only every N-th schedule, from the K-th on; `lockstorm merge` joins them."
)
@click.option(
    "--result", "kept", type=click.Path(path_type=Path), help="Keep what was tried here, every 20 s, as JSON."
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Go on where such a file ends. It says everything but --schedules, --seconds and --jobs.",
)
@click.option("--save", is_flag=True, help="Keep it in scenarios/found: from then on the tests replay it.")
@click.option("--quiet", "-q", is_flag=True, help="Only the verdict, not the story.")
@json_option
@click.pass_context
def explore(
    context: click.Context,
    /,
    output: Path | None,
    kept: Path | None,
    resume: Path | None,
    save: bool,
    quiet: bool,
    as_json: bool,
    plugin: str | None,
    **wishes: Any,
) -> int:
    """Search schedules - who takes the next step, and what goes wrong between - until one breaks the lock; then make
    it as small as it gets.

    \b
    Example: lockstorm explore --lock set-nx-px --clients 3 --faults pause -o found.schedule
             lockstorm replay found.schedule
             lockstorm explore --lock redlock --faults clock-jump --save
             lockstorm explore --lock fair --seconds 600 --shard 2/4 --result two.json
    docs/explore.md says what a schedule is, and what finding nothing is worth.
    """
    if plugin is not None:
        _check_alone(wishes["lock"], resume, save)
        wishes["lock"] = chosen_lock(None, None, plugin)
    _check_new("-o", output)
    _check_new("--result", kept if kept != resume else None)
    campaign = read_campaign(resume) if resume else None
    if campaign:
        planned = resumed(str(resume), campaign, **_limits(context, wishes))
        kept = kept or resume
    elif wishes["lock"] is None:
        raise UsageError("--lock is missing: lockstorm locks lists them")
    else:
        planned = plan(ExploreWish(**wishes))
    events: list[Event] | None = None if as_json or quiet else []
    before = campaign.tally["schedules"] if campaign else 0
    with saying() as say:
        began = time.monotonic()
        keep = partial(write_result, kept) if kept else None
        result = explore_(
            planned, lambda told: say(so_far(told, planned, time.monotonic() - began, before)), events, campaign, keep
        )
    if output and result.get("found"):
        output.write_text(result["found"]["file"])
    if save and result.get("found"):
        result["saved"] = str(keep_found(result))
    if as_json:
        print_json(result)
    else:
        show_search(console(), result, events)
    return int(result["exit"])


def _check_alone(lock: str | None, resume: Path | None, save: bool) -> None:
    """What does not go with --plugin."""
    if lock is not None:
        raise UsageError("--plugin and --lock each name a lock: one of them")
    if resume:
        raise UsageError("--plugin with --resume: the file says it")
    if save:
        raise UsageError("--save keeps what the tests replay, and they do not have your plug-in: -o FILE saves it")


LIMITS = ("schedules", "seconds", "jobs")


def _limits(context: click.Context, wishes: dict[str, Any]) -> dict[str, Any]:
    """What may be said of a campaign that goes on."""
    for name in wishes:
        if name not in LIMITS and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            said = NAMES.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{said} with --resume: the file says it; only --{', --'.join(LIMITS)} can be said anew")
    return {name: wishes[name] for name in LIMITS}


def _check_new(option: str, path: Path | None) -> None:
    if path and (path.exists() or not path.parent.is_dir()):
        raise UsageError(f"{option} {path}: {'exists already' if path.exists() else 'its directory does not exist'}")


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write what they say together here.")
@json_option
def merge(files: tuple[Path, ...], output: Path | None, as_json: bool) -> int:
    """Join the results of a campaign's shards: what they say together, as if one search had tried all.

    \b
    Example: lockstorm merge one.json two.json
             where lockstorm explore --lock fair --schedules 100000 --shard 1/2 --result one.json was the first
    """
    _check_new("-o", output)
    result = merged([(str(path), read_campaign(path)) for path in files])
    if output:
        write_result(output, result)
    campaign = result.pop("campaign")
    missing = campaign["shards"] - len(campaign["parts"])
    if missing:
        click.echo(f"merge: {missing} of {campaign['shards']} shards are missing", err=True)
    if as_json:
        print_json(result)
    else:
        show_search(console(), result, None)
    return int(result["exit"])


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "output", type=click.Path(path_type=Path), help="Save the history here.")
@click.option("--real", is_flag=True, help="With real processes in real time, where its steps allow.")
@click.option("--quiet", "-q", is_flag=True, help="Only the verdict, not the story.")
@json_option
def replay(file: Path, output: Path | None, real: bool, quiet: bool, as_json: bool) -> int:
    """Run a schedule again that explore has found, or that was written by hand.

    \b
    Example: lockstorm replay found.schedule
             lockstorm replay --real found.schedule
    """
    if output and output.exists():
        raise UsageError(f"-o {output}: exists already")
    events: list[Event] | None = None if as_json or quiet else []
    found = read_found(file)
    with waiting(f"a schedule of {found.lock} ..."):
        result = (replay_real if real else replay_)(found, str(file), events, output)
    if as_json:
        print_json(result)
    else:
        show_result(console(), result, events)
        if real:
            console().print(Text(f"client 1 was struck behind the checkpoint {result['struck_at']}", "dim"))
    return int(result["exit"])


def show_search(out: Console, result: dict[str, Any], events: list[Event] | None) -> None:
    """What was tried, and the story of what was found."""
    found = result.get("found")
    if found and events:
        out.print(story_table(events))
        out.print()
    if found:
        for line in found["choices"]:
            out.print(Text(line, "bold"))
        out.print()
    if "schedules" in result:
        out.print(_numbers(result))
        out.print()
        out.print(verdict_table(result["verdict"], result["required"]))
        out.print()
    style = {0: "bold green", 1: "bold red"}.get(result["exit"], "bold yellow")
    out.print(Text(result["sentence"], style))
    if "replay" in result:
        out.print(Text(f"again: ./{result['replay']}", "dim"))
    if "saved" in result:
        out.print(Text(f"saved: {result['saved']}", "dim"))


def coverage(checkpoints: dict[str, dict[str, int]], faults: Collection[str]) -> str | None:
    """At how many of the places in its code, marked by checkpoints, a client was struck by how many of the faults."""
    pairs = len(checkpoints) * len(faults)
    hit = sum(len(struck) for struck in checkpoints.values())
    missed = [name for name, struck in checkpoints.items() if not struck]
    left_out = f"; never behind {', '.join(missed)}" if missed and hit else ""
    return f"{hit} of {pairs} pairs of checkpoint and fault{left_out}" if faults else None


def so_far(told: dict[str, Any], planned: Plan, elapsed_s: float, before: int = 0) -> str:
    """A search that runs, in a line. `before`: schedules of an earlier go."""
    count = told.get("schedules", 0)
    rate = max(0, count - before) / max(elapsed_s, 0.001)
    mine = -(-(planned.schedules - planned.shard.first) // planned.shard.of)
    left_s = min((planned.seconds or math.inf) - elapsed_s, (mine - count) / rate if rate else math.inf)
    violated = {name: each["violated"] for name, each in told.get("verdicts", {}).items() if each["violated"]}
    words = [f"{count:,} schedules of {planned.ground.lock}", f"{rate:,.0f} a second"]
    words.append(f"about {told.get('states', 0):,} states")
    words += [said] if (said := coverage(told.get("checkpoints", {}), planned.budget)) else []
    words += [f"{count:,} violate {name.replace('_', ' ')}" for name, count in violated.items()]
    words += [f"{max(0, left_s):.0f} s left at most"] if left_s < DAY_S else []
    return ", ".join(words)


def _numbers(result: dict[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 1), show_header=False)
    injected = ", ".join(f"{count:,} {name}" for name, count in result["injected"].items() if count) or "none"
    pct = result["pct"]
    groups = "\n".join(
        f"{group['schedules']:,} of {', '.join(group['violates']).replace('_', ' ')}"
        f" by {', '.join(group['faults']) or 'the order of steps'}, first {group['first']:,}"
        for group in result["groups"]
    )
    shrunk = result["found"] and f"{result['found']['choices_before_shrinking']} before it was made smaller"
    rows = {
        "schedules": f"{result['tried']:,}, {result['schedules_per_s']:,} a second, {result['steps']:,} steps",
        "distinct": f"{result['distinct']:,} histories in the first {result['schedules']:,}",
        "states": f"about {result['states']:,}, as far as they can be told apart",
        "faults": injected,
        "coverage": coverage(result["checkpoints"], result["faults"]),
        "PCT": pct["bound"]
        and f"an error of depth {pct['depth']} in one of {1 / pct['bound']:,.0f} at least "
        f"({pct['tasks']} tasks, {pct['steps']} steps)",
        "choices": shrunk,
        "violations": groups if result["groups"] else None,
        "no verdict": f"{result['unfit']:,}" if result["unfit"] else None,
    }
    for name, value in rows.items():
        if value:
            table.add_row(Text(name, "dim"), str(value))
    return table
