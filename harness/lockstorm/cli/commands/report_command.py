"""`lockstorm report`."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from rich.text import Text

from lockstorm.base.errors import UsageError
from lockstorm.base.paths import runnable
from lockstorm.cli.options import around_option, json_option, path_option, rows_option
from lockstorm.cli.terminal import check_new_file, console, print_json, waiting
from lockstorm.report.application_model import application_diagram
from lockstorm.report.library_model import library_diagram
from lockstorm.report.report import WrittenReport, library_subject, write, write_subjects
from lockstorm.search.replay import replay_library, replay_schedule
from lockstorm.search.schedule_file import ApplicationSchedule, HostedSchedule, read_saved_schedule
from lockstorm.search.schedule_text import is_schedule


@contextlib.contextmanager
def history_of(source: Path) -> Iterator[Path]:
    """The file to read: the history of a schedule, which is run for it, or the source itself."""
    schedule = read_saved_schedule(source) if is_schedule(source) else None
    if schedule is None:
        yield source
        return
    if isinstance(schedule, HostedSchedule):
        raise UsageError(f"{source} is a schedule of a library, and cannot be put beside a history")
    with tempfile.TemporaryDirectory(prefix="lockstorm-") as directory:
        history = Path(directory) / source.name
        replay_schedule(schedule, str(source), save=history)
        yield history


def _write_library(
    schedule: HostedSchedule, source: Path, page: Path | None, picture: Path | None, rows: int
) -> WrittenReport:
    with waiting(f"a schedule of {schedule.title} ..."):
        result = replay_library(schedule, str(source), with_commands=True)
    facts = [("time", "virtual"), ("seed", str(schedule.seed)), ("schedule", f"{schedule.number:,}")]
    facts.append(("lease", f"{schedule.lease_ms:,} ms by default"))
    facts.append(("faults", "; ".join(schedule.deviations) or "none, and every message goes its usual way"))
    facts += [("file", source.name), ("again", runnable(result.replay))]
    library = f"{result.library.name} {result.library.version}".strip()
    shown = [*result.required_evidence, *result.causes]
    is_application = isinstance(schedule, ApplicationSchedule)
    diagram = (
        application_diagram(result.events, result.accesses, shown)
        if is_application
        else library_diagram(result.events, shown)
    )
    heard = result.commands or []
    subject = library_subject(library, result.sentence, result.violates, diagram, facts, schedule.lines, heard)
    return WrittenReport(write_subjects([subject], page, picture, rows), result.sentence)


@click.command("report")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("against", type=click.Path(path_type=Path), required=False)
@path_option("-o", "output", help="Page to write. Default: SOURCE.html in this directory.")
@path_option("--svg", help="Write only the diagram, into this SVG file.")
@rows_option
@around_option
@json_option
def report_command(
    source: Path,
    against: Path | None,
    output: Path | None,
    svg: Path | None,
    rows: int,
    around: int | None,
    as_json: bool,
) -> int:
    """Write a self-contained HTML page: who believed what, and what broke it. SOURCE is a history (run -o FILE), a
    schedule that the explorer found (of a lock, or of a library), the output of `lockstorm matrix --json` or of
    `lockstorm libraries --json`, a run that the gate kept, or the directory of a campaign. AGAINST puts a
    second history or schedule beside the first.

    \b
    Example: lockstorm run gc-pause --lock set-nx-px -o gc.history; lockstorm report gc.history -o gc.html
    `lockstorm docs report` describes the page, and what its bars are computed from.
    """
    if output is None and svg is None:
        output = Path(f"{source.name}.html")
    for option, path in {"-o": output, "--svg": svg}.items():
        check_new_file(option, path)
    schedule = read_saved_schedule(source) if is_schedule(source) else None
    if isinstance(schedule, HostedSchedule):
        if against or around is not None:
            raise UsageError(f"{source} is a schedule of a library: AGAINST and --around are for histories")
        written = _write_library(schedule, source, output, svg, rows)
    else:
        with contextlib.ExitStack() as stack:
            history, other = (path and stack.enter_context(history_of(path)) for path in (source, against))
            assert history
            written = write(history, other, output, svg, rows, around)
    if as_json:
        print_json(written)
    else:
        console().print(Text(written.sentence, "bold"))
        console().print(Text("\n".join(f"written: {each.path} ({each.bytes:,} bytes)" for each in written.files)))
    return 0
