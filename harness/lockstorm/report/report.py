"""Writing a report to files."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from lockstorm.base.atomic_file import write_bytes
from lockstorm.base.errors import UsageError
from lockstorm.report.campaign_page import campaign_grid
from lockstorm.report.cell_grid import grid_page
from lockstorm.report.command_rows import command_rows
from lockstorm.report.diagram import Diagram
from lockstorm.report.diagram_page import Fields, Subject, diagram_page, diagram_picture
from lockstorm.report.gate_page import gate_page
from lockstorm.report.library_grid import libraries_grid
from lockstorm.report.matrix_page import matrix_grid
from lockstorm.report.report_source import Recorded, read_recorded, read_source, table_word
from lockstorm.report.trial_page import trial_subject
from lockstorm.results.campaign_result import CampaignResult
from lockstorm.results.gate_verdict import GateVerdict
from lockstorm.results.library_table import LibraryTable
from lockstorm.results.verdict import HeardCommand


class WrittenFile(msgspec.Struct, frozen=True):
    path: str
    bytes: int


class WrittenReport(msgspec.Struct, frozen=True):
    """What `lockstorm report --json` prints."""

    files: list[WrittenFile]
    sentence: str


def library_subject(
    library: str,
    sentence: str,
    breaks: Sequence[str],
    diagram: Diagram,
    facts: Fields,
    lines: Sequence[str],
    commands: Sequence[HeardCommand] = (),
) -> Subject:
    """A replayed schedule. `library`: its name and version; `breaks`: promises; `lines`: of its workload and its
    deviations; `commands`: that the servers heard."""
    fields = [("" if place else "schedule", f"{place + 1} {line}") for place, line in enumerate(lines)]
    return Subject(
        name=library,
        what="schedule",
        sentence=sentence[:1].upper() + sentence[1:],
        exit=1 if breaks else 0,
        statuses=dict.fromkeys(breaks, "violated"),
        facts=facts,
        diagram=diagram,
        fields_of=lambda _: fields,
        lease_is_read=diagram.has_lease,
        commands=command_rows(commands),
    )


def write(
    source: Path,
    against: Path | None,
    page: Path | None,
    picture: Path | None,
    limit: int,
    around: int | None,
) -> WrittenReport:
    made = read_source(source)
    if isinstance(made, Recorded):
        if picture and against:
            raise UsageError("--svg writes one diagram: leave AGAINST out")
        subjects = [trial_subject(each) for each in ([made, read_recorded(against)] if against else [made])]
        return WrittenReport(write_subjects(subjects, page, picture, limit, around), subjects[0].sentence)
    if against or picture or around is not None:
        raise UsageError(f"{source} is a {table_word(made)}: AGAINST, --svg and --around are for histories")
    if isinstance(made, GateVerdict):
        trials = (source if source.is_dir() else source.parent) / "trials"
        return WrittenReport([save(page, gate_page(made, trials, limit))] if page else [], made.sentence)
    match made:
        case LibraryTable():
            grid = libraries_grid(made)
        case CampaignResult():
            grid = campaign_grid(made)
        case _:
            grid = matrix_grid(made)
    return WrittenReport([save(page, grid_page(grid))] if page else [], grid.sentence)


def write_subjects(
    subjects: list[Subject], page: Path | None, picture: Path | None, limit: int, around: int | None = None
) -> list[WrittenFile]:
    files = [save(page, diagram_page(subjects, limit, around))] if page else []
    return files + ([save(picture, diagram_picture(subjects[0], limit, around))] if picture else [])


def save(path: Path, text: str) -> WrittenFile:
    content = text.encode(errors="replace")
    try:
        write_bytes(path, content)
    except OSError as error:
        raise UsageError(f"{path} was not written: {error.strerror}") from None
    return WrittenFile(str(path), len(content))
