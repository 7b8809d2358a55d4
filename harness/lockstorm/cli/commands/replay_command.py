"""`lockstorm replay`."""

from pathlib import Path

import click
from rich.text import Text

from lockstorm.base.atomic_file import write_text
from lockstorm.base.errors import UsageError
from lockstorm.cli.options import json_option, path_option, quiet_option
from lockstorm.cli.search_table import show_library_replay, show_lock_replay
from lockstorm.cli.terminal import console, print_json, print_result, waiting
from lockstorm.locks.lock_names import lock_named
from lockstorm.results.event import Event
from lockstorm.search.replay import replay_library, replay_schedule
from lockstorm.search.replay_real import replay_real
from lockstorm.search.schedule_file import HostedSchedule, LibrarySchedule, read_saved_schedule
from lockstorm.search.standalone import LANGUAGES, check_standalone, standalone_program
from lockstorm.search.standalone_run import run_standalone


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@path_option("-o", "output", help="Write the history, or the program of --as, to this file.")
@click.option(
    "--real",
    is_flag=True,
    help="Use real processes in real time; only for schedules with one pause or crash of client 1.",
)
@click.option(
    "--commands",
    "with_commands",
    is_flag=True,
    help="Print, after the story, each command: who sent it to which server, the answer, and what became of it.",
)
@click.option(
    "--as",
    "language",
    type=click.Choice(LANGUAGES),
    help="Write a stand-alone program in this language, that of the library, which shows the schedule of a library on "
    "a plain redis-server; to -o, where it is also run once if that is possible, or to standard output.",
)
@quiet_option
@json_option
def replay_command(
    file: Path,
    output: Path | None,
    real: bool,
    with_commands: bool,
    language: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Replay a schedule that explore has found, or that was written by hand.

    \b
    Example: lockstorm replay found.schedule
             lockstorm replay --commands found.schedule
             lockstorm replay --real found.schedule
             lockstorm replay --as java found.schedule -o Found.java
    """
    if output and output.exists():
        raise UsageError(f"-o {output}: exists already")
    if real and with_commands:
        raise UsageError("--commands: only the explorer sees each command, so without --real")
    schedule = read_saved_schedule(file)
    if isinstance(schedule, HostedSchedule):
        _check_hosted(schedule, file, real=real, output=output, with_commands=with_commands, language=language)
        if language and isinstance(schedule, LibrarySchedule):
            return _write_program(schedule, file, language, output)
        with waiting(f"a schedule of {schedule.title} ..."):
            replayed = replay_library(schedule, str(file), with_commands=with_commands)
        print_result(as_json, replayed, show_library_replay, quiet=quiet)
        return replayed.exit
    if language:
        raise UsageError(f"--as: {file} is no schedule of a library")
    events: list[Event] | None = None if as_json or quiet else []
    with waiting(f"a schedule of {schedule.lock} ..."):
        if real:
            result = replay_real(schedule, str(file), events, output)
        else:
            result = replay_schedule(schedule, str(file), events, output, with_commands=with_commands)
    if as_json:
        print_json(result)
    else:
        show_lock_replay(console(), result, events)
        if real:
            console().print(Text(f"the fault struck client 1 at the checkpoint {result.struck_at}", "dim"))
    return result.exit


def _check_hosted(
    schedule: HostedSchedule, file: Path, *, real: bool, output: Path | None, with_commands: bool, language: str | None
) -> None:
    """UsageError for options that such a schedule has no use for."""
    of_library = isinstance(schedule, LibrarySchedule)
    if language and not of_library:
        raise UsageError(f"--as: {file} is no schedule of a library")
    if real or (output and not language):
        kind = "a library" if of_library else "an application"
        raise UsageError(f"{file} is a schedule of {kind}: -o and --real are for those of C locks")
    if with_commands and language:
        raise UsageError("--commands: a replay prints them, and --as writes a program: leave one of them out")
    service = lock_named(schedule.lock).service if of_library else "redis"
    if with_commands and service != "redis":
        raise UsageError(f"--commands: {file} is a schedule on {service}, and only commands of Redis can be shown")


def _write_program(schedule: LibrarySchedule, file: Path, language: str, output: Path | None) -> int:
    """Writes the program, the verdict of the schedule that it is to show, and what one run of it has shown. Returns 0:
    what was asked for is done."""
    check_standalone(schedule, language)
    with waiting(f"a schedule of {schedule.library} ..."):
        result = replay_library(schedule, str(file))
        text = standalone_program(schedule, result, language)
    if output:
        write_text(output, text)
        console().print(f"{output} is to show: {result.sentence}", soft_wrap=True)
        with waiting(f"one run of {output} ..."):
            breaks, lacking = bool(result.violates), schedule.servers.without
            shown = run_standalone(output, schedule.adapter, language, breaks=breaks, lacking=lacking)
        console().print(shown, soft_wrap=True)
    else:
        click.echo(text, nl=False)
    return 0
