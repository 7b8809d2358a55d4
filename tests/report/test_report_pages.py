"""The files of a report: self-contained, escaped and readable; bad input is refused with a reason."""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from msgspec import structs

from lockstorm.base import paths
from lockstorm.base.atomic_file import write_json
from lockstorm.base.paths import runnable
from lockstorm.report import library_grid
from lockstorm.report.cell_grid import GridCell
from lockstorm.report.diagram_page import diagram_picture
from lockstorm.report.matrix_page import grid_cell, scenario_kinds, survival_sentence
from lockstorm.report.report import write
from lockstorm.report.report_source import read_recorded
from lockstorm.report.templates import HERE, ICONS
from lockstorm.report.trial_page import trial_subject
from lockstorm.report.window import ROWS_USUAL
from lockstorm.results.campaign_result import CampaignResult, EntryState
from lockstorm.results.gate_verdict import GateCell, GateLock, GateVerdict, LockAdvice, PolicyDigest
from lockstorm.results.matrix_result import MatrixCell
from lockstorm.scenario.attached_play import attached_scenarios
from lockstorm.scenario.scenario import KINDS, scenarios
from tests.helpers.support import lockstorm

HISTORIES = sorted((paths.ROOT / "tests" / "histories").glob("*.jsonl"))
CELL = {
    "scenario": "gc-pause",
    "lock": "set-nx-px",
    "store": "open",
    "result": "violated",
    "expected": "violated",
    "control": "holds",
    "control_expected": "holds",
    "ok": True,
    "sentence": "Mutual exclusion violated",
    "reason": "the lease runs out",
    "replay": "lockstorm run gc-pause --lock set-nx-px",
    "control_replay": "lockstorm run gc-pause --lock set-nx-px --control",
}


def written(source: Path, against: Path | None = None, page: str = "page.html") -> str:
    """Writes the page of a source and returns its text."""
    target = source.parent / page
    write(source, against, target, None, ROWS_USUAL, None)
    return target.read_text()


def refused(*words: str) -> str:
    done = lockstorm(*words)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "gc.history"
    assert lockstorm("run", "gc-pause", "--lock", "set-nx-px", "-q", "-o", str(path)).returncode == 1
    return path


def test_a_page_has_the_verdict(history: Path, tmp_path: Path) -> None:
    target = tmp_path / "gc.html"
    done = lockstorm("report", str(history), "-o", str(target), "--json")
    assert json.loads(done.stdout)["files"] == [{"path": str(target), "bytes": target.stat().st_size}]
    page = target.read_text()
    assert "Mutual exclusion violated, integrity violated (1 stale write, 1 lost update)" in page
    assert "the store accepted a stale write" in page
    assert 'data-row="0"' in page


def test_a_page_refers_to_nothing_outside_itself(history: Path) -> None:
    page = written(history, page="alone.html")
    assert set(re.findall(r'(?:src|href)="([^"]*)"', page)) == {"data:,"}
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page


def test_the_json_lines_form_gives_the_same_page(history: Path) -> None:
    lines = history.with_suffix(".jsonl")
    lines.write_text(lockstorm("history", "to-json", str(history)).stdout)
    same = written(lines, page="lines.html").replace(lines.name, history.name)
    assert same == written(history, page="binary.html")


FAILED = GateVerdict(
    run="2026-08-01T10-00-00Z-abcd",
    interrupted=False,
    policy=PolicyDigest("lockstorm.toml", "0" * 64),
    exit=1,
    sentence="Not safe: of 1 cases 1 failed",
    locks=[],
    cells=[
        GateCell(
            lock="set-nx-px",
            store="open",
            scenario="gc-pause",
            time="virtual",
            outcome="failed",
            ok=False,
            statuses={"integrity": "violated"},
            violated=["integrity"],
            result="violated",
            expected=None,
            control="holds",
            control_expected=None,
            sentence="Integrity violated",
            in_short="data was damaged",
            happened="",
            matters="",
            reason="",
            accepted=[],
            replay="lockstorm run gc-pause --lock set-nx-px",
            control_replay="",
            shown=None,
            trials=[],
            planned=1,
            took_s=0.1,
        )
    ],
    unjudged=[],
    acceptances=[],
    versions={},
)


def test_the_page_of_a_kept_run_has_the_words_of_the_gate(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    assert "is not a kept run of the gate" in refused("report", str(run))
    (run / "run.json").write_text("{}")
    assert "was interrupted, or it is still running" in refused("report", str(run))
    write_json(run / "verdict.json", FAILED)
    page = written(run)
    assert "Is set-nx-px safe?" in page and "Not safe: of 1 cases 1 failed" in page
    assert "Not as the policy asks: data was damaged" in page and "expected <b>" not in page


BASELINE = "A right lock of this kind keeps integrity here (set-nx-px): the mistake is this lock's. Use `one` script."
ADVICE = "Use a lock that works as fenced."


def of_gate(scenario: str, **changed: Any) -> GateCell:
    fields = {"scenario": scenario, "happened": f"Story of {scenario}.", "matters": "Data was damaged."}
    return structs.replace(FAILED.cells[0], **{**fields, "replay": f"lockstorm run {scenario} --lock mine", **changed})


def test_the_page_of_a_gate_opens_on_the_first_failure_with_its_advice(history: Path, tmp_path: Path) -> None:
    """A mistake of the lock's own precedes what breaks any lock; then the other cases, then the table by kind."""
    trials = tmp_path / "run" / "trials"
    trials.mkdir(parents=True)
    (tmp_path / "run" / "run.json").write_text("{}")
    shutil.copy(history, trials / "mine.1.history")
    passed = {"outcome": "passed", "ok": True, "violated": [], "result": "holds", "happened": "", "matters": ""}
    unclear = {**passed, "outcome": "inconclusive", "ok": False, "result": "inconclusive", "sentence": "No server."}
    cells = [
        of_gate("clock-jump-server", baseline="As any lock with a lease (set-nx-px): yours is not worse."),
        of_gate("contention", **unclear),
        of_gate("gc-pause", **passed),
        of_gate("release-race", baseline=BASELINE, shown="mine.1"),
    ]
    advice = LockAdvice("fenced", "open", [], ADVICE, "[[lock]]\n")
    lock = GateLock("set-nx-px", "open", ["integrity"], 1, None, advice, [], [f"release-race: {BASELINE[-17:]}"])
    write_json(tmp_path / "run" / "verdict.json", structs.replace(FAILED, cells=cells, locks=[lock]))
    page = written(tmp_path / "run")
    order = [
        *("Not safe", "Story of release-race", "the mistake is this lock&#39;s. Use <code>one</code> script."),
        *("Why it matters", ADVICE, f"{runnable('lockstorm run release-race')} --lock mine</code>", "<figure"),
        *("The other 2 cases that are", "Story of clock-jump-server", "As any lock with a lease", "No server."),
        *('<th scope="rowgroup"', ">client ", ">clock ", ">load "),
        "Of 4 cases: 1 passed, 2 failed, 1 inconclusive",
    ]
    places = [page.find(words) for words in order]
    assert -1 not in places and places == sorted(places), dict(zip(order, places, strict=True))
    assert page.count(ADVICE) == 1 and page.count("<figure") == 1
    assert "report" in page and f"{trials / 'mine.1.history'}</code>" in page


CAMPAIGN = CampaignResult(
    file="nightly.toml",
    place=".",
    state="interrupted",
    played=9,
    entries=[
        EntryState(name="redlock", cases=4, exit=1, sentence="Violated.", again="lockstorm replay redlock.schedule"),
        EntryState(name="fair", cases=4, exit=0, sentence="Every property held."),
        EntryState(name="setnx", cases=40),
    ],
)


def test_the_page_of_a_campaign_has_a_row_for_each_entry(tmp_path: Path) -> None:
    results = tmp_path / "nightly.results"
    results.mkdir()
    write_json(results / "campaign.json", CAMPAIGN)
    page = written(results)
    assert "1 of 3 entries found something; 2 have ended (interrupted)" in page and "lockstorm replay redlock" in page
    assert [f"result, {name}: {word}" in page for name, word in RESULT_OF.items()] == [True] * 3
    assert written(results / "campaign.json") == page
    (results / "campaign.json").write_text('{"entries": 3}')
    assert "campaign.json" in refused("report", str(results))


RESULT_OF = {"redlock": "violated, not as expected", "fair": "holds", "setnx": "inconclusive"}


def test_a_history_written_by_hand_can_be_shown(tmp_path: Path) -> None:
    text = (paths.ROOT / "tests" / "histories" / "overlap.jsonl").read_text().partition("\n")[2]
    by_hand = tmp_path / "overlap.jsonl"
    by_hand.write_text(text)
    assert "B was granted the lock" in written(by_hand)


def test_a_picture_is_whole_without_the_page(history: Path, tmp_path: Path) -> None:
    target = tmp_path / "gc.svg"
    assert lockstorm("report", str(history), "--svg", str(target)).returncode == 0
    picture = target.read_text()
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "var(" not in picture and "@media" not in picture  # programs that draw for print know neither
    assert list(tmp_path.iterdir()) == [target]


HOSTILE = "</script><script>document.title='caught'</script><img src=x onerror=\"document.title='caught'\">\u2028&'\"`"


def hostile_history(path: Path) -> Path:
    lines: list[dict[str, Any]] = [
        {"history": "lockstorm", "version": 1},
        {"kind": "note"},
        {"kind": "lock-open", "actor": HOSTILE, "name": HOSTILE, "value": 1000, "outcome": "ok"},
        {"kind": "acquire-invoke", "actor": HOSTILE, "name": HOSTILE},
        {"kind": "acquire-return", "actor": HOSTILE, "name": HOSTILE, "outcome": "ok"},
        {"kind": "acquire-return", "actor": "B", "name": HOSTILE, "outcome": "ok"},
        {"kind": "note", "actor": "driver", "name": f"ERR {HOSTILE}\u0001"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_names_from_outside_are_only_text(tmp_path: Path) -> None:
    page = written(hostile_history(tmp_path / "hostile.jsonl"))
    ours = written_scripts(page)
    assert len(ours) == 2
    assert "<img" not in page
    assert "&lt;/script&gt;" in page


def written_scripts(page: str) -> list[str]:
    return re.findall(r"<script[^>]*>", page)


def test_a_picture_with_names_from_outside_is_well_formed(tmp_path: Path) -> None:
    source = hostile_history(tmp_path / "hostile.jsonl")
    target = tmp_path / "hostile.svg"
    assert lockstorm("report", str(source), "--svg", str(target)).returncode == 0
    names = {element.tag.rpartition("}")[2] for element in ElementTree.parse(target).iter()}
    assert not names & {"script", "img", "a", "foreignObject"}


def test_two_histories_stand_beside_each_other(history: Path, tmp_path: Path) -> None:
    fenced = tmp_path / "fenced.history"
    words = (
        "run",
        "gc-pause",
        "--lock",
        "set-nx-px-fenced",
        "--store",
        "fence-reads-and-writes",
        "-q",
        "-o",
        str(fenced),
    )
    lockstorm(*words)
    page = written(history, fenced, page="two.html")
    assert page.count('<section class="trial') == 2
    differences = page[page.index("what differs") : page.index('<div class="compare">')]
    rows = re.findall(r'<th scope="row">([^<]*)</th>', differences)
    assert "integrity" in rows and "mutual exclusion" not in rows  # that is violated in both


def test_a_matrix_shows_every_cell(tmp_path: Path) -> None:
    cells = [CELL, {**CELL, "scenario": "contention", "result": "holds", "expected": "holds"}]
    matrix = tmp_path / "matrix.json"
    matrix.write_text(json.dumps({"time": "virtual", "cells": cells, "ok": True}))
    page = written(matrix)
    assert "Which lock survives what?" in page and "set-nx-px survives 1 of 2 scenarios" in page
    assert "all 2 cells are as expected" in page
    assert page.count("data-cell=") == 2


def test_a_matrix_says_which_lock_survives_what() -> None:
    def made(lock: str, result: str, store: str = "open", number: int = 0) -> GridCell:
        cell = {**CELL, "lock": lock, "store": store, "scenario": f"scenario-{number}", "result": result}
        return grid_cell(msgspec.convert(cell, MatrixCell))

    two = [made("fenced", "fenced", "fence-writes"), made("fenced", "stuck", "fence-writes", 1), made("setnx", "holds")]
    assert survival_sentence(two) == (
        "fenced with fence-writes survives 1 of 2 scenarios; setnx survives 1 of 1 scenarios"
    )
    others = [
        made("none", "violated"),
        made("redlock", "inconclusive"),
        made("pg", "holds"),
        made("pg", "holds", "open", 1),
    ]
    assert survival_sentence([*two, *others]) == (
        "Of 3 choices of lock and store with a verdict in 1 or more scenarios, pg survives 2 of 2 scenarios, and "
        "fenced with fence-writes survives 1 of 2 scenarios"
    )
    assert survival_sentence([made(name, "inconclusive") for name in "abcd"]) == (
        "No verdict was possible for any of 4 locks"
    )


def test_every_scenario_has_a_kind_by_which_tables_are_grouped() -> None:
    assert {each.kind for each in {**attached_scenarios(), **scenarios()}.values()} == set(KINDS)
    named = [
        grid_cell(msgspec.convert({**CELL, "scenario": name}, MatrixCell)) for name in ("gc-pause", "storm-x", "y")
    ]
    assert scenario_kinds(named) == {"gc-pause": "client", "storm-x": "storm", "y": "other"}


def test_a_history_page_says_what_plays_it_again(history: Path, tmp_path: Path) -> None:
    """Also with options that no other parameter of the history names."""
    assert f"{runnable('lockstorm run gc-pause')} --lock set-nx-px --seed 1 --time virtual</dd>" in written(history)
    for words in (
        ["run", "gc-pause", "--lock", "set-nx-px", "--seed", "7", "--time", "virtual", "--lease", "20s", "--control"],
        ["run", "contention", "--lock", "set-nx-px", "--seed", "1", "--time", "virtual", "--clients", "3"],
    ):
        other = tmp_path / f"{words[1]}.history"
        lockstorm(*words, "-q", "-o", str(other))
        assert f"{runnable('lockstorm')} {' '.join(words)}</dd>" in written(other)
    by_hand = paths.ROOT / "tests" / "histories" / "overlap.jsonl"
    (tmp_path / "overlap.jsonl").write_text(by_hand.read_text().partition("\n")[2])
    assert "<dt>again" not in written(tmp_path / "overlap.jsonl")


def test_a_matrix_names_what_is_not_as_expected(tmp_path: Path) -> None:
    cells = [CELL, {**CELL, "scenario": "contention", "ok": False}]
    matrix = tmp_path / "matrix.json"
    matrix.write_text(json.dumps({"cells": cells}))
    assert "1 of 2 cells is not as expected" in written(matrix)


def test_a_page_of_a_large_matrix_stays_below_a_megabyte(tmp_path: Path) -> None:
    names = [f"some-long-lock-name-{each}" for each in range(40)]
    scenarios = [f"some-long-scenario-{each}" for each in range(30)]
    cells = [{**CELL, "lock": lock, "scenario": name} for lock in names for name in scenarios]
    matrix = tmp_path / "matrix.json"
    matrix.write_text(json.dumps({"cells": cells}))
    assert len(written(matrix).encode()) < 1_000_000


def test_the_libraries_are_a_page_with_what_was_found(tmp_path: Path) -> None:
    table = tmp_path / "libraries.json"
    finding = {"title": "it waits", "what": "It waits on.", "workaround": "None.", "breaks": ["wait", "answer"]}
    figures = {
        "library": "mine",
        "version": "1",
        "schedules": 50,
        "broken": {"wait": 2, "cancel": 1},
        "by_calls": ["wait"],
    }
    words = {
        "adapter": "mine",
        "use": "A use.",
        "beware": "",
        "sentence": "broke wait",
        "findings": {"mine-waits": finding},
        "inapplicable": ["token"],
    }
    rows = [{**words, "figures": figures}, {**words, "adapter": "other", "figures": None}]
    promises = {"wait": "an acquire waits for as long", "cancel": "nothing is left", "token": "tokens rise"}
    promises |= {"answer": "each call is answered", "residue": "nothing is left"}
    table.write_text(json.dumps({"libraries": rows, "promises": promises}))
    page = written(table)
    assert "0 of 1 locks kept every promise, in 50 schedules" in page and page.count("data-cell=") == 5
    cells = json.loads(page.partition('class="cells">')[2].partition("</script>")[0])
    assert {cell["scenario"]: (cell["result"], cell["odd"]) for cell in cells} == {
        "wait": ("calls", True),
        "cancel": ("faults", False),
        "token": ("not-made", False),
        "answer": ("finding", True),
        "residue": ("kept", False),
    }
    assert "2 of 50 schedules, also without any fault" in cells[0]["sentence"] and cells[0]["more"][0][0] == "it waits"
    assert cells[0]["replay"] == "lockstorm explore --adapter mine --require wait" and not cells[2]["replay"]
    table.write_text(json.dumps({"libraries": [], "promises": promises}))
    assert "0 of 0 locks" in written(table)


@pytest.mark.lengthy("runs ten commands")
def test_what_cannot_be_reported_is_refused_with_a_reason(history: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"cells": [{"lock": "none"}]}')
    assert "missing required field `scenario` - at `$.cells[0]`: " in refused("report", str(broken), "-o", "x.html")
    broken.write_text('{"libraries": [{"adapter": "mine"}]}')
    assert "missing required field `figures` - at `$.libraries[0]`: " in refused(
        "report", str(broken), "-o", str(tmp_path / "x.html")
    )
    broken.write_text('{"libraries": []}')
    assert "missing required field `promises`: " in refused("report", str(broken), "-o", str(tmp_path / "x.html"))
    broken.write_text("nonsense")
    assert "neither a history nor its JSON Lines form" in refused("report", str(broken), "-o", str(tmp_path / "x.html"))
    broken.write_text("")
    assert "not even a first line" in refused("report", str(broken), "-o", str(tmp_path / "x.html"))
    assert "No such file" in refused("report", str(tmp_path / "none"), "-o", str(tmp_path / "x.html"))
    assert "exists already" in refused("report", str(history), "-o", str(history))
    matrix = tmp_path / "matrix.json"
    matrix.write_text(json.dumps({"cells": [CELL]}))
    assert "is a matrix" in refused("report", str(matrix), "--svg", str(tmp_path / "x.svg"))
    assert "is a matrix" in refused("report", str(history), str(matrix), "-o", str(tmp_path / "x.html"))
    assert "is a matrix" in refused("show", str(matrix))


def test_show_has_a_column_for_everybody(history: Path) -> None:
    done = lockstorm("show", str(history))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["time", "client-1", "client-2", "lock", "account", "store"]
    late = next(line for line in lines if "accepts 1 of client-1" in line)
    assert late.index("accepts") == lines[0].index("store")
    assert "2,3" in late  # both pieces of evidence that name it
    assert "lost update" in done.stdout


def test_show_as_json_tells_every_row(history: Path) -> None:
    shown = json.loads(lockstorm("show", str(history), "--json").stdout)
    assert [lane["kind"] for lane in shown["lanes"]] == ["client", "client", "lock", "store"]
    computed = [row["text"] for row in shown["rows"] if row["record"] is None]
    assert computed == ["lease of client-1 has run out"]


# --- colours ---


def colours(sheet: str, dark: bool) -> dict[str, str]:
    """The variables of a style sheet in one of its themes."""
    light, _, rest = (HERE / sheet).read_text().partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6})", light))
    return found | (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6})", rest.partition("@media print")[0])) if dark else {}
    )


def luminance(colour: str) -> float:
    """The relative luminance of a colour, as WCAG 2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(each * 2 for each in colour[1:])
    parts = [int(digits[each : each + 2], 16) / 255 for each in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


READ_ON = {
    "page.css": {
        "card": ("text", "muted", "accent", "violated", "holds", "unsure", "fenced", "stuck"),
        "page": ("text", "muted", "violated", "holds", "unsure"),
        **{f"{name}-soft": (name,) for name in ("violated", "holds", "unsure", "fenced", "stuck")},
    },
    "diagram.css": {"paper": ("ink", "soft", "bad", "fault", "good"), "ground": ("ink", "soft"), "bad-paper": ("bad",)},
}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("sheet", READ_ON)
def test_text_has_enough_contrast(sheet: str, dark: bool) -> None:
    """WCAG 2 requires a contrast of 4.5 for text of this size."""
    known = colours(sheet, dark)
    for ground, names in READ_ON[sheet].items():
        for name in names:
            assert contrast(known[name], known[ground]) >= 4.5, f"{name} on {ground}"


def test_every_result_has_an_icon_of_its_own() -> None:
    for icons in (ICONS, library_grid.ICONS):
        assert len(set(icons.values())) == len(icons)
    assert set(library_grid.ICONS) == set(library_grid.WORDS)


# --- every history ---


@pytest.mark.parametrize("path", [path for path in HISTORIES if path.stem != "empty"], ids=lambda path: path.stem)
def test_every_history_has_a_picture(path: Path, tmp_path: Path) -> None:
    """Every history that can be judged can be drawn, with all of its evidence: torn, empty, with any names."""
    by_hand = tmp_path / path.name
    by_hand.write_text(path.read_text().partition("\n")[2])
    recorded = read_recorded(by_hand)
    picture = diagram_picture(trial_subject(recorded))
    assert ElementTree.fromstring(picture).get("class") == "lockstorm diagram"
    evidence = [
        piece
        for found in recorded.verdict.properties.values()
        if found.status == "violated"
        for piece in found.evidence
    ]
    assert picture.count('class="callout" data-evidence') == len(evidence)


def test_of_a_long_history_a_part_can_be_asked_for(tmp_path: Path) -> None:
    asks = [
        {"kind": "acquire-invoke", "actor": "A", "name": "stock", "mono_ns": each * 1_000_000} for each in range(200)
    ]
    lines = [{"history": "lockstorm", "version": 1}, {"kind": "note"}, *asks]
    path = tmp_path / "long.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = lockstorm("show", str(path), "--rows", "20", "--around", "105").stdout
    assert shown.count("left out") == 2
    assert "0.100 s" in shown and "0.150 s" not in shown
    assert "left out" not in lockstorm("show", str(path), "--rows", "200").stdout
    assert "is not in the range" in refused("show", str(path), "--rows", "3")
