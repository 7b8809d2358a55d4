"""The recogniser, by hand: each file of tests/recogniser/sessions has sessions with the events that are right.

tests/helpers/wire_text.py describes the notation."""

from pathlib import Path

import pytest

from lockstorm.base import paths
from tests.helpers.building import make
from tests.helpers.wire_text import WrittenSession, encoded, recognised, written_sessions

FILES = sorted((paths.ROOT / "tests" / "recogniser" / "sessions").glob("*.txt"))
BY_HAND = [
    pytest.param(session, id=f"{file.stem}: {session.title}")
    for file in FILES
    for session in written_sessions(file.read_text())
]


@pytest.fixture(scope="module")
def program() -> Path:
    return make("build/tests/recognise") / "tests" / "recognise"


@pytest.mark.parametrize("session", BY_HAND)
def test_a_session_by_hand_has_the_events_that_its_lines_say(program: Path, session: WrittenSession) -> None:
    assert recognised(program, session.service, session.lines) == session.events


def test_each_kind_of_event_occurs_by_hand() -> None:
    source = (paths.ROOT / "harness" / "recogniser" / "wire_event.c").read_text()
    table = source.partition("KIND_NAMES[] = {")[2].partition("};")[0]
    kinds = {line.split('"')[1] for line in table.splitlines() if '"' in line}
    sessions = [session for file in FILES for session in written_sessions(file.read_text())]
    assert kinds == {event.split()[2].rstrip(":") for session in sessions for event in session.events}


def startups(session: WrittenSession) -> list[str]:
    """What byte_queue needs of PostgreSQL's sessions that begin without it."""
    begun: dict[str, str] = {}
    for line in session.lines:
        if line.startswith("> "):
            begun.setdefault(line.split()[1], line.split()[3])
    return [
        f"{way} {number} 0 {encoded(session.service, way, text).hex()}"
        for number, coded in begun.items()
        if session.service == "postgres" and not coded.startswith("00")
        for way, text in ((">", "startup user=u"), ("<", "ok | ready I"))
    ]


@pytest.mark.parametrize("session", BY_HAND)
def test_answers_in_pieces_make_the_same_events(program: Path, session: WrittenSession) -> None:
    """The streams are handed in byte by byte, and cut into messages by byte_queue."""
    if session.has_bytes:
        return  # byte_queue does not hand on what is of another protocol
    lines: list[str] = []
    begun = next(at for at, line in enumerate(session.lines) if line[0] in "<>")
    for line in [*session.lines[:begun], *startups(session), *session.lines[begun:]]:
        way, _, rest = line.partition(" ")
        if way not in ("<", ">"):
            lines.append(line)
            continue
        number, at_ns, coded = rest.split(" ")
        pieces = [coded[at : at + 2] for at in range(0, len(coded), 2)]
        lines += [f"{way}{way} {number} {at_ns} {piece}" for piece in pieces]
    assert recognised(program, session.service, lines) == session.events


TIMED = """
case: a statement with parameters
postgres
1> parse : select name from users where id = $1 and note = $2 for update | bind (7, 'x') | execute | sync
1< parsed | bound | row 'x' | done SELECT 1 | ready I

case: a long command, and one with a password
redis
1> MIGRATE host 6379 a 0 5000 AUTH secret | SET a {long}
1< OK | OK
"""


def test_an_event_has_the_times_and_the_text_of_its_statement(program: Path) -> None:
    """The request is 1 ms after the beginning, the answer at 2 ms."""
    postgres, redis = written_sessions(TIMED.format(long="x" * 300))
    text = "select name from users where id = 7 and note = 'x' for update"
    events = [line.split("\t") for line in recognised(program, "postgres", postgres.lines, "--times")]
    assert [event[1:] for event in events] == [
        ["1000000", "1000000", "1", text],
        *[["1000000", "2000000", "1", text]] * 2,
        ["1000000", "2000000", "1", ""],
    ]
    events = [line.split("\t") for line in recognised(program, "redis", redis.lines, "--times")]
    assert [event[4] for event in events] == ["MIGRATE", f"SET a {'x' * 230}..."]
