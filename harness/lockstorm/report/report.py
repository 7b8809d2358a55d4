"""Writing a report to files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lockstorm.base.atomic_file import write_bytes
from lockstorm.base.errors import UsageError
from lockstorm.report.campaign_page import campaign_page, campaign_sentence
from lockstorm.report.diagram_page import Fields, Subject, diagram_page, diagram_picture
from lockstorm.report.library_grid import libraries_page, libraries_sentence
from lockstorm.report.library_model import library_diagram
from lockstorm.report.matrix_page import matrix_page, matrix_sentence
from lockstorm.report.report_source import Recorded, read_recorded, read_source, table_word
from lockstorm.report.trial_page import trial_subject
from lockstorm.results.call_event import BrokenPromise, CallEvent
from lockstorm.results.campaign_result import CampaignResult
from lockstorm.results.library_table import LibraryTable


class WrittenFile(msgspec.Struct, frozen=True):
    path: str
    bytes: int


class WrittenReport(msgspec.Struct, frozen=True):
    """What `lockstorm report --json` prints."""

    files: list[WrittenFile]
    sentence: str


@dataclass(frozen=True, kw_only=True)
class PlayedSchedule:
    file: str
    library: str  # name and version
    sentence: str
    exit: int
    breaks: Sequence[str]  # promises
    broken: Sequence[BrokenPromise]
    events: Sequence[CallEvent]
    again: str  # the command that replays it
    facts: Fields
    lines: Sequence[str]  # of its workload and its deviations


def library_subject(played: PlayedSchedule) -> Subject:
    diagram = library_diagram(played.events, [each for each in played.broken if each.promise in played.breaks])
    fields = [("schedule" if not place else "", line) for place, line in enumerate(played.lines)]
    return Subject(
        name=played.library,
        what="schedule",
        sentence=played.sentence[:1].upper() + played.sentence[1:],
        exit=played.exit,
        statuses=dict.fromkeys(played.breaks, "violated"),
        facts=[*played.facts, ("file", played.file), ("again", played.again)],
        diagram=diagram,
        fields_of=lambda _: fields,
        lease_is_read=diagram.has_lease,
    )


def write(
    source: Path,
    against: Path | None,
    page: Path | None,
    picture: Path | None,
    limit: int,
    around: int | None,
    version: str,
) -> WrittenReport:
    """Writes the page, the picture or both."""
    made = read_source(source)
    if isinstance(made, Recorded):
        if picture and against:
            raise UsageError("--svg writes one diagram: leave AGAINST out")
        subjects = [trial_subject(each) for each in ([made, read_recorded(against)] if against else [made])]
        return _write_subjects(subjects, page, picture, version, limit, around)
    if against or picture or around is not None:
        raise UsageError(f"{source} is a {table_word(made)}: AGAINST, --svg and --around are for histories")
    match made:
        case LibraryTable():
            text, sentence = libraries_page(made, version), libraries_sentence(made)
        case CampaignResult():
            text, sentence = campaign_page(made, version), campaign_sentence(made)
        case _:
            text, sentence = matrix_page(made, version), matrix_sentence(made)
    return WrittenReport([save(page, text)] if page else [], sentence)


def write_library(
    played: PlayedSchedule, page: Path | None, picture: Path | None, limit: int, version: str
) -> WrittenReport:
    written = _write_subjects([library_subject(played)], page, picture, version, limit, around=None)
    return WrittenReport(written.files, played.sentence)


def _write_subjects(
    subjects: list[Subject], page: Path | None, picture: Path | None, version: str, limit: int, around: int | None
) -> WrittenReport:
    files = [save(page, diagram_page(subjects, version, limit, around))] if page else []
    files += [save(picture, diagram_picture(subjects[0], limit, around))] if picture else []
    return WrittenReport(files, subjects[0].sentence)


def save(path: Path, text: str) -> WrittenFile:
    content = text.encode(errors="replace")
    try:
        write_bytes(path, content)
    except OSError as error:
        raise UsageError(f"{path} was not written: {error.strerror}") from None
    return WrittenFile(str(path), len(content))
