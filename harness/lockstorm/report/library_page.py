"""A replayed schedule of a library as the subject of a page or a picture."""

from collections.abc import Sequence
from dataclasses import dataclass

from lockstorm.report.diagram_page import Fields, Subject
from lockstorm.report.library_model import library_diagram
from lockstorm.results.call_event import BrokenPromise, CallEvent


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
