"""The `lockstorm` command."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NoReturn

import click
from rich.table import Table
from rich.text import Text

from harness.driver import (
    adapter_commands,
    compare_table,
    explore_commands,
    matrix_commands,
    paths,
    plugin_commands,
    storm_show,
    zoo_commands,
)
from harness.driver import compare as compare_
from harness.driver import doctor as doctor_
from harness.driver import storm as storm_
from harness.driver import storms as storms_
from harness.driver.errors import LockstormError, UsageError
from harness.driver.explore import replay as replay_found
from harness.driver.library import faults as fault_table
from harness.driver.library import locks as lock_table
from harness.driver.library import locks_on
from harness.driver.linearize import FORMS, MODELS, Reading, linearize, needs_model, operations_words
from harness.driver.narrate import Event, policy_sentence, policy_table, show_result, verdict_table
from harness.driver.play import (
    ACQUIRE_POLICIES,
    AS_ASKED,
    CLIENT_LIMIT,
    RELEASE_POLICIES,
    Wish,
    check_on_redis,
    choose,
    judge_file,
    lock_named,
    play,
    scenario_named,
    usual_time,
)
from harness.driver.plugin import PREFIX as PLUGIN
from harness.driver.scenario import scenarios as scenario_table
from harness.driver.schedule_file import is_schedule, read_found
from harness.driver.terminal import (
    Duration,
    NearestName,
    Numbers,
    adapter_option,
    chosen_lock,
    console,
    json_option,
    lock_option,
    names_option,
    plugin_option,
    print_json,
    progress,
    require_option,
    waiting,
)
from harness.driver.version import VERSION
from harness.gate import commands as gate_commands
from harness.report import show as show_
from harness.report import write as write_
from harness.report.model import diagram_of
from harness.report.source import read_recorded
from harness.report.window import ROWS_USUAL

INTERRUPTED, TERMINATED = 130, 143
RATE_LIMIT = 1_000_000
DURATION_LEAST_MS, DURATION_MOST_MS = 10, 60_000  # of a measurement


@click.group(cls=NearestName, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="lockstorm")
def cli() -> None:
    """Tells whether a distributed lock is safe: runs real lock code against real servers, breaks what is around it,
    and judges the history.

    \b
    Start with:  lockstorm demo
    Exit status: 0 every property as required, 1 one violated, 2 bad usage or input, 3 inconclusive
    """


cli.add_command(matrix_commands.demo)


@cli.command()
@click.argument("scenario")
@lock_option
@adapter_option
@plugin_option
@click.option(
    "--store",
    metavar="MODE",
    help="open (default), fence-writes, fence-reads-and-writes, compare-owner or compare-and-set; "
    "table-open and so on: a table of PostgreSQL.",
)
@click.option(
    "--time", "time_", metavar="virtual|real", help="Default: virtual, and real where nothing moves the clock."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same history.")
@click.option("--control", is_flag=True, help="The same schedule without the fault, or with it inside the lease.")
@click.option("--lease-ms", type=int, help="Default: 30000 in virtual time, short in real time.")
@click.option("--clients", type=int, help="How many, in scenarios that let you choose (contention).")
@click.option("--duration", type=Duration(), help="How long, in scenarios that let you choose (contention): 2s, 500ms.")
@click.option("--fixed-lease", is_flag=True, help="Of locks with a watchdog: the lease is meant, nothing renews it.")
@click.option("--permits", type=int, help="How many may hold a semaphore at once, or an outbox's messages. Default: 1.")
@click.option("-o", "output", type=click.Path(path_type=Path), help="Save the history here.")
@click.option("--quiet", "-q", is_flag=True, help="Only the verdict, not the story.")
@require_option
@json_option
def run(
    scenario: str,
    lock: str | None,
    adapter: str | None,
    plugin: str | None,
    store: str | None,
    time_: str | None,
    seed: int,
    control: bool,
    lease_ms: int | None,
    clients: int | None,
    duration: int | None,
    fixed_lease: bool,
    permits: int | None,
    output: Path | None,
    quiet: bool,
    require: str | None,
    as_json: bool,
) -> int:
    """Run one trial of a SCENARIO.

    \b
    Example: lockstorm run gc-pause --lock set-nx-px-fenced --store fence-reads-and-writes
    """
    lock = chosen_lock(lock, adapter, plugin)
    time_ = time_ or usual_time(lock_named(lock))
    wish = Wish(scenario, lock, store, time_, seed, control, lease_ms, clients, duration, require, permits, fixed_lease)
    events: list[Event] | None = None if as_json or quiet else []
    with waiting(f"{scenario} with {lock} in {time_} time ..."):
        result = play(wish, save=output, story_to=events)
    if as_json:
        print_json(result)
    else:
        show_result(console(), result, events)
        console().print(Text(f"again: ./{result['replay']}", "dim"))
    return int(result["exit"])


@cli.command()
@lock_option
@adapter_option
@plugin_option
@names_option("--faults", "FAULT", "What strikes; default: all that fit. `lockstorm faults` lists them.")
@click.option("--duration", type=Duration(), help="Of a storm, by the trial's clock. Default: 10s.")
@click.option("--trials", type=int, help="So many storms, of rising seeds. Default: 1.")
@click.option("--clients", type=int, help="How many want the lock. Default: 4.")
@click.option("--seed", type=int, help="Of the schedule and of the trial. Default: 1.")
@click.option("--time", "time_", metavar="virtual|real", help="Default: virtual, where the lock's servers know it.")
@click.option(
    "--store",
    metavar="MODE",
    help="open (default), fence-writes, fence-reads-and-writes, compare-owner or compare-and-set; "
    "table-open and so on: a table of PostgreSQL.",
)
@click.option("--lease-ms", type=int, help="Default: 1000.")
@click.option("--longest", type=Duration(), help="No fault, and no gap, is longer. Default: two leases.")
@click.option(
    "--bound", type=Duration(), help="In the quiet, a free lock may be missed so long. Default: 4 leases + 2s."
)
@click.option("--fixed-lease", is_flag=True, help="Of locks with a watchdog: the lease is meant, nothing renews it.")
@click.option("--permits", type=int, help="How many may hold a semaphore at once, or an outbox's messages. Default: 1.")
@click.option("-o", "output", type=click.Path(path_type=Path), help="Save the history; of several, the first violated.")
@click.option("--save-schedule", type=click.Path(path_type=Path), help="Save the schedule; of which storm, as for -o.")
@click.option("--schedule", type=click.Path(path_type=Path), help="Play this schedule instead of drawing one.")
@click.option("--quiet", "-q", is_flag=True, help="Only the verdict.")
@require_option
@json_option
def storm(
    lock: str | None,
    adapter: str | None,
    plugin: str | None,
    faults: str | None,
    duration: int | None,
    trials: int | None,
    clients: int | None,
    seed: int | None,
    time_: str | None,
    store: str | None,
    lease_ms: int | None,
    longest: int | None,
    bound: int | None,
    fixed_lease: bool,
    permits: int | None,
    output: Path | None,
    save_schedule: Path | None,
    schedule: Path | None,
    quiet: bool,
    require: str | None,
    as_json: bool,
) -> int:
    """Random faults under load, then a quiet in which everybody must be served: storms drawn from a seed.

    \b
    Example: lockstorm storm --lock set-nx-px --faults pause-client,partition --trials 20
    docs/storms.md says what a storm is, and what a clean one is worth.
    """
    drawn = {"--faults": faults, "--duration": duration, "--trials": trials, "--clients": clients, "--seed": seed}
    for option, value in {**drawn, "--lease-ms": lease_ms, "--longest": longest}.items():
        if schedule and value is not None:
            raise UsageError(f"{option} is for a storm that is drawn: {schedule} says it already")
    for option, path in {"-o": output, "--save-schedule": save_schedule}.items():
        check_new_file(option, path)
    lock = chosen_lock(lock, adapter, plugin)
    time_ = time_ or usual_time(lock_named(lock))
    wish = Wish("storm", lock, store, time_, 1 if seed is None else seed, False, lease_ms, clients, duration, require)
    wish = replace(wish, permits=permits, fixed_lease=fixed_lease)
    wanted = storm_.StormWish(wish, faults, longest, 1 if trials is None else trials, schedule, bound)
    planned = storm_.plan(wanted)
    if wanted.trials > 1:
        with progress(wanted.trials) as tell:
            result = storms_.blow_many(wanted, tell, save=output, save_schedule=save_schedule)
    else:
        if save_schedule:
            planned.schedule.save(save_schedule)
        events: list[Event] | None = None if as_json or quiet else []
        with waiting(f"a storm over {lock} in {time_} time ..."):
            result = storm_.blow(planned, save=output, story_to=events)
    if as_json:
        print_json(result)
    elif wanted.trials > 1:
        storm_show.show_storms(console(), result)
    else:
        storm_show.show_storm(console(), result, events)
    return int(result["exit"])


cli.add_command(explore_commands.explore)
cli.add_command(explore_commands.replay)
cli.add_command(explore_commands.merge)


def check_new_file(option: str, path: Path | None) -> None:
    """Nothing is overwritten, and a file that cannot be written is known before the work begins."""
    if path and (path.exists() or not path.parent.is_dir()):
        raise UsageError(f"{option} {path}: {'exists already' if path.exists() else 'its directory does not exist'}")


@cli.command()
@names_option("--lock", "LOCK", "Only these; default: all on redis-servers.")
@click.option("--plugin", "plugins", metavar="FILE", multiple=True, help="Or one of your own in C; may be both.")
@click.option(
    "--waiters", type=Numbers(CLIENT_LIMIT), default="1,8,64", show_default=True, help="Clients that want one lock."
)
@click.option(
    "--rate",
    type=Numbers(RATE_LIMIT),
    default="100,1000,10000",
    show_default=True,
    help="Grants a second to sustain, in total over clients that do not contend.",
)
@click.option("--duration", type=Duration(), default="1s", show_default=True, help="Of each measurement.")
@click.option(
    "--work",
    type=Duration(),
    default="0ms",
    show_default=True,
    help="How long a client among --waiters keeps the lock.",
)
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the JSON object here, too.")
@json_option
def compare(
    lock: str | None,
    plugins: tuple[str, ...],
    waiters: tuple[int, ...],
    rate: tuple[int, ...],
    duration: int,
    work: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """What each lock costs in real time: requests, bytes and CPU per grant, hand-over, throughput, overtaking.

    \b
    Example: lockstorm compare --lock set-nx-px,setnx --waiters 1,8 --rate none
             lockstorm compare --lock set-nx-px --plugin ./my.so
    docs/compare.md says what the columns mean, and what not to conclude.
    """
    usual = locks_on("redis") if not plugins else []
    chosen = [lock_named(name) for name in lock.split(",")] if lock is not None else usual
    chosen = [*chosen, *(lock_named(PLUGIN + file) for file in plugins)]
    for each in chosen:
        check_on_redis(each, "what a lock costs is measured on")
    wanted = compare_.loads(waiters, rate, work)
    if not wanted:
        raise UsageError("--waiters none --rate none leaves nothing to measure")
    if not DURATION_LEAST_MS <= duration <= DURATION_MOST_MS:
        raise UsageError(f"--duration {duration}ms: from {DURATION_LEAST_MS}ms to {DURATION_MOST_MS}ms")
    if not 0 <= work < duration:
        raise UsageError(f"--work {work}ms: from 0ms to less than --duration")
    check_new_file("-o", output)
    with progress(len(chosen) * len(wanted)) as tell:
        result = compare_.compare(chosen, wanted, duration, tell)
    if output:
        output.write_text(json.dumps(result, indent=2) + "\n")
    if as_json:
        print_json(result)
    else:
        compare_table.show(console(), result)
    return 0 if any(cell["measured"] for cell in result["cells"]) else 3


cli.add_command(matrix_commands.matrix)
cli.add_command(matrix_commands.advise)
cli.add_command(zoo_commands.zoo)
cli.add_command(adapter_commands.adapter)
cli.add_command(plugin_commands.plugin_group)
cli.add_command(gate_commands.init)
cli.add_command(gate_commands.gate)
cli.add_command(gate_commands.runs)


@cli.command()
@click.argument("file", type=click.Path())
@require_option
@click.option(
    "--release-policy",
    type=click.Choice(RELEASE_POLICIES),
    help="How a release is read that failed: refused, or of unknown outcome. Default: released; with --model: unknown.",
)
@click.option(
    "--acquire-timeout",
    type=click.Choice(ACQUIRE_POLICIES),
    help="How an acquire of unknown outcome is read. Default: not-happened; with --model: unknown.",
)
@click.option("--all-policies", is_flag=True, help="Tell the verdict under each of these policies, too.")
@click.option("--model", type=click.Choice(MODELS), help="Judge instead whether it is linearizable as this model.")
@click.option("--permits", type=click.IntRange(1), help="Of --model semaphore.")
@click.option("--initial", metavar="N|nil", help="Of --model register.")
@click.option("--leases", is_flag=True, help="With --model: a hold that nothing confirms any more may end by itself.")
@click.option("--memory-limit", metavar="MIB", type=click.FloatRange(0), help="With --model: past it, inconclusive.")
@click.option("--time-limit", metavar="SECONDS", type=click.FloatRange(0), help="With --model: past it, inconclusive.")
@json_option
def check(
    file: str,
    require: str | None,
    release_policy: str | None,
    acquire_timeout: str | None,
    all_policies: bool,
    as_json: bool,
    model: str | None,
    **reading: Any,
) -> int:
    """Judge a recorded history: FILE is a binary history (run -o FILE), its JSON Lines form, or - with --model - Jepsen
    EDN or AtlasDB-style JSON. Or a kept run of the gate (runs/ID): its policy again, with the checkers of today.

    \b
    Example: lockstorm run gc-pause --lock set-nx-px -o gc.history; lockstorm check gc.history
             lockstorm check jepsen.edn --model owner-mutex --release-policy released
    docs/linearizable.md defines the models.
    """
    if Path(file).is_dir():
        if require or release_policy or acquire_timeout or all_policies or model or any(reading.values()):
            raise UsageError(f"{file} is a kept run: it is judged by its own policy, without options")
        return gate_commands.check_run(Path(file), as_json)
    if not model and needs_model(file):
        raise UsageError(f"{file}: another tool's history needs --model: {', '.join(MODELS)}")
    given = [f"--{name.replace('_', '-')}" for name, value in reading.items() if value]
    if given and not model:
        raise UsageError(f"{given[0]} is for --model")
    if model and all_policies:
        raise UsageError("--all-policies is not for --model: name one with --release-policy and --acquire-timeout")
    if model:
        read = Reading(model, release_policy=release_policy, acquire_timeout=acquire_timeout, **reading)
        verdict = linearize(file, read)
    else:
        verdict = judge_file(
            file, require, release_policy or "released", acquire_timeout or "not-happened", all_policies
        )
    if as_json:
        print_json(verdict)
    else:
        out = console()
        out.print(verdict_table(verdict["verdict"], verdict["required"]))
        out.print()
        if all_policies:
            out.print(policy_table(verdict["policies"]))
            out.print()
        if not model:
            out.print(Text(policy_sentence(verdict), "dim"))
        style = {0: "bold green", 1: "bold red"}.get(verdict["exit"], "bold yellow")
        out.print(Text(verdict["sentence"], style))
    return int(verdict["exit"])


@cli.command()
@click.argument("form", type=click.Choice(["to-json", "from-json", "follow", *FORMS]))
@click.argument("file", type=click.Path())
@click.option("-o", "output", type=click.Path(path_type=Path), help="The file to write; from-json needs it.")
@click.option(
    "--model",
    type=click.Choice(MODELS),
    default="owner-mutex",
    show_default=True,
    help="to-edn, to-porcupine: the operations of a lock, or of a register.",
)
def history(form: str, file: str, output: Path | None, model: str) -> int:
    """Turn a history into JSON Lines or back, or follow one that is being written. to-edn and to-porcupine write its
    operations for other checkers (docs/linearizable.md).

    \b
    Example: lockstorm history to-json gc.history | head
    """
    if form == "from-json":
        if not output:
            raise UsageError("from-json needs -o FILE")
        return run_program([paths.program("history"), form, file, str(output)])
    if form == "follow" and output:
        raise UsageError("follow writes to standard output")
    words = operations_words(file, form, model) if form in FORMS else [paths.program("history"), form, file]
    return write_new(output, words) if output else run_program(words)


def run_program(words: list[str], stdout: IO[bytes] | None = None) -> int:
    """Has one of our programs write to standard output. Raises UsageError with what it says when it cannot."""
    done = subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE)
    if done.returncode > 0:
        raise UsageError(done.stderr.decode(errors="replace").strip() or f"it ended with status {done.returncode}")
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def write_new(path: Path, words: list[str]) -> int:
    """Has a program write a file that must not be there yet, and is there only if that came to a good end."""
    try:
        with path.open("xb") as file:
            return run_program(words, file)
    except OSError as reason:
        raise UsageError(f"{path}: {reason.strerror}: choose another name") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise


rows_option = click.option(
    "--rows",
    type=click.IntRange(20, 20_000),
    default=ROWS_USUAL,
    show_default=True,
    help="Of a longer history, so many.",
)
around_option = click.option(
    "--around", type=click.IntRange(0), metavar="RECORD", help="... around this record, not around the evidence."
)


@contextlib.contextmanager
def history_of(source: Path) -> Iterator[Path]:
    """A schedule is run, and its history is there meanwhile; everything else is what it is."""
    if not is_schedule(source):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="lockstorm-") as directory:
        history = Path(directory) / source.name
        replay_found(read_found(source), str(source), save=history)
        yield history


@cli.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("against", type=click.Path(path_type=Path), required=False)
@click.option("-o", "output", type=click.Path(path_type=Path), help="The page to write. Default: SOURCE.html, here.")
@click.option("--svg", type=click.Path(path_type=Path), help="Write the diagram alone, as a picture for an article.")
@rows_option
@around_option
@json_option
def report(
    source: Path,
    against: Path | None,
    output: Path | None,
    svg: Path | None,
    rows: int,
    around: int | None,
    as_json: bool,
) -> int:
    """One page, complete in itself: who believed what, and what broke it. SOURCE is a history (run -o FILE), a schedule
    that the explorer has found, what `lockstorm matrix --json` printed, or a run that the gate kept; with AGAINST, two
    histories, or schedules, side by side.

    \b
    Example: lockstorm run gc-pause --lock set-nx-px -o gc.history; lockstorm report gc.history -o gc.html
    docs/report.md says what is drawn, and what it is computed from.
    """
    if output is None and svg is None:
        output = Path(f"{source.name}.html")
    for option, path in {"-o": output, "--svg": svg}.items():
        check_new_file(option, path)
    with contextlib.ExitStack() as stack:
        told, other = (path and stack.enter_context(history_of(path)) for path in (source, against))
        assert told
        written = write_.write(told, other, output, svg, rows, around, VERSION)
    if as_json:
        print_json(written)
    else:
        console().print(Text(written["sentence"], "bold"))
        console().print(
            Text("\n".join(f"written: {each['path']} ({each['bytes']:,} bytes)" for each in written["files"]))
        )
    return 0


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@rows_option
@around_option
@json_option
def show(file: Path, rows: int, around: int | None, as_json: bool) -> int:
    """A recorded history as a table: a column for everybody, a row for every event, the evidence in red.

    \b
    Example: lockstorm run gc-pause --lock set-nx-px -o gc.history; lockstorm show gc.history
    """
    recorded = read_recorded(file)
    diagram = diagram_of(recorded.events, recorded.verdict)
    if as_json:
        print_json(show_.shown_as_json(recorded, diagram))
    else:
        out = console()
        out.print(show_.events_table(diagram, rows, around))
        out.print()
        for line in show_.evidence_lines(diagram):
            out.print(line)
        out.print(Text(recorded.verdict["sentence"], "bold"))
    return 0


@cli.command()
@click.argument("name", required=False)
@json_option
def locks(name: str | None, as_json: bool) -> int:
    """The locks there are; with NAME, one explained.

    \b
    Example: lockstorm locks set-nx-px
    """
    known = lock_table()
    if name:
        return explain(
            lock_named(name),
            as_json,
            ("lease", "renews", "token", "reentrant", "fair", "waits", "capacity", "nodes", "replicas"),
        )
    traits = [("lease", "lease"), ("token", "token"), ("re-entrant", "reentrant"), ("fair", "fair")]
    return show_list("locks", known, as_json, traits, ("waits", "waits"))


@cli.command()
@click.argument("name", required=False)
@json_option
def faults(name: str | None, as_json: bool) -> int:
    """The faults there are; with NAME, one explained.

    \b
    Example: lockstorm faults pause-client
    """
    known = {fault["name"]: fault for fault in fault_table()}
    if name:
        return explain(
            known[choose("fault", name, list(known))], as_json, ("target", "options", "proof", "proved", "times")
        )
    return show_list("faults", list(known.values()), as_json, [], ("proof", "proof"))


@cli.command()
@click.argument("name", required=False)
@json_option
def scenarios(name: str | None, as_json: bool) -> int:
    """The scenarios there are; with NAME, one explained.

    \b
    Example: lockstorm scenarios gc-pause
    """
    known = [
        {
            "name": told.name,
            "summary": told.summary,
            "needs": list(told.needs),
            "times": list(told.times),
            "source": told.source,
            "control": told.control,
        }
        for told in scenario_table().values()
    ]
    if name:
        wanted = scenario_named(name).name
        return explain(next(told for told in known if told["name"] == wanted), as_json, ("needs", "times", "control"))
    return show_list("scenarios", known, as_json, [], ("control", "control"))


@cli.command()
@json_option
def doctor(as_json: bool) -> int:
    """What this machine can run, and why not.

    \b
    Example: lockstorm doctor
    """
    findings = doctor_.examine()
    well = all(finding["ok"] for finding in findings)
    if as_json:
        print_json({"findings": findings, "ok": well})
        return 0 if well else 3
    table = Table(box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        mark = Text("ok", "green") if finding["ok"] else Text("no", "bold red")
        table.add_row(mark, finding["name"], finding["found"] + (f" - {finding['help']}" if finding["help"] else ""))
    console().print(table)
    return 0 if well else 3


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test(arguments: tuple[str, ...]) -> int:
    """All tests of lockstorm itself; ARGUMENTS go to pytest.

    \b
    Example: lockstorm test -k gc_pause
    """
    words = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", *arguments]
    return subprocess.run(words, cwd=paths.ROOT).returncode


def show_list(
    kind: str,
    entries: list[dict[str, Any]],
    as_json: bool,
    marks: list[tuple[str, str]],
    last: tuple[str, str],
) -> int:
    """A table of entries, or {"kind": [...]}."""
    if as_json:
        print_json({kind: entries})
        return 0
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in ("name", *(title for title, _ in marks), "", last[0]):
        table.add_column(title, no_wrap=title == "name", overflow="fold")
    for entry in entries:
        said = [Text("yes", "green") if entry[key] else Text("-", "dim") for _, key in marks]
        table.add_row(Text(entry["name"], "bold"), *said, entry["summary"], str(entry[last[1]]))
    console().print(table)
    return 0


def explain(entry: dict[str, Any], as_json: bool, keys: tuple[str, ...]) -> int:
    """One entry in full."""
    if as_json:
        print_json(entry)
        return 0
    out = console()
    out.print(Text(entry["name"], "bold"), "-", entry["summary"])
    out.print()
    if "explanation" in entry:
        out.print(entry["explanation"])
        out.print()
    table = Table(box=None, show_header=False, padding=(0, 1))
    for key in (*keys, "source"):
        table.add_row(Text(key, "dim"), said_of(key, entry[key]))
    out.print(table)
    return 0


def said_of(key: str, value: Any) -> str:
    """A value of an entry in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key == "options":
        said = [
            (f"{word['name']}={'…' if word['usual'] is None else word['usual']}", word["meaning"]) for word in value
        ]
        width = max((len(given) for given, _ in said), default=0)
        return "\n".join(f"{given:{width}}  {meaning}" for given, meaning in said) or "none"
    if isinstance(value, list):
        return ", ".join(value) or "nothing of a lock"
    return "as many as --permits asks for" if key == "capacity" and value == AS_ASKED else str(value)


def interrupt(signal_number: int, frame: object) -> NoReturn:
    """SIGTERM and SIGHUP end a trial like Ctrl-C does: everything is cleaned up on the way out."""
    raise SystemExit(128 + signal_number)


@contextlib.contextmanager
def tidy_end() -> Iterator[None]:
    """Errors become a message and an exit status; nothing else is ever printed for them."""
    try:
        yield
    except LockstormError as error:
        click.echo(f"lockstorm: {error}", err=True)
        sys.exit(error.exit_status)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("lockstorm: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


def main() -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    with tidy_end():
        try:
            status = cli.main(prog_name="lockstorm", standalone_mode=False)
        except click.exceptions.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        sys.stdout.flush()
        sys.exit(int(status or 0))
